"""Buffers of records: entries are found by their sizes and decoded on demand."""

from __future__ import annotations

import struct
import subprocess
import sys
import time

import pytest

from cloudevents_kafka.protocol.errors import Corrupt, Malformed
from cloudevents_kafka.protocol.records import Batches, Record, encode_batch, encode_message_set
from tests.support.cases import each

A, B, C = (
    encode_message_set([Record(value=b"a")], 0, base_offset=5),
    encode_message_set([Record(value=b"b")], 1, base_offset=6),
    encode_batch([Record(value=b"c"), Record(value=b"d")], base_offset=7),
)


def test_magics_may_be_mixed():
    """A buffer may have entries of all three magics, as the log of an upgraded broker."""
    batches = Batches(A + B + C)
    assert [batch.magic for batch in batches] == [0, 1, 2]
    assert [(r.offset, r.value) for r in batches.records()] == [(5, b"a"), (6, b"b"), (7, b"c"), (8, b"d")]
    assert (len(batches), batches.first_offset, batches.last_offset, batches.partial_size) == (3, 5, 8, 0)


@each("data", [b"", C[:1], C[:11], C[:12], C[:-1], struct.pack(">qi", -1, 2**31 - 1)])
def test_only_a_partial_entry(data):
    """A buffer with only a partial entry is partial; an empty buffer is not."""
    batches = Batches(data)
    assert (len(batches), batches.partial_size, batches.is_partial) == (0, len(data), bool(data))
    assert (batches.first_offset, batches.last_offset, list(batches.records())) == (None, None, [])


def test_an_entry_that_is_never_complete_is_partial():
    """The last entry of a broker that down-converts, with offset -1 and a size beyond the end, is partial."""
    fake = struct.pack(">qi", -1, 100) + bytes(30)
    batches = Batches(A + fake)
    assert (len(batches), batches.partial_size, batches.is_partial) == (1, len(fake), False)


@each("size", [-(2**31), -1, 0, 3, 13])
def test_sizes_too_small_are_refused(size):
    """Negative and small sizes are `Malformed`, also for a partial entry."""
    for tail in (b"", bytes(40)):
        with pytest.raises(Malformed, match="at least 26 bytes"):
            Batches(A + struct.pack(">qi", 0, size) + tail)


@each("magic", [3, 127, 128, 255])
def test_unknown_magics_are_refused(magic):
    """An unknown magic is `Malformed`, and the error names it."""
    with pytest.raises(Malformed, match=f"0, 1 or 2, got {magic}"):
        Batches(A[:16] + bytes([magic]) + A[17:])


@each(("magic", "least"), [(0, 26), (1, 34), (2, 61)])
def test_the_smallest_entry_of_each_magic(magic, least):
    """An entry smaller than its fixed fields is `Malformed`."""
    small = struct.pack(">qiiB", 0, least - 12, 0, magic) + bytes(least - 17)
    assert len(Batches(small)) == 1
    with pytest.raises(Malformed):
        Batches(struct.pack(">qiiB", 0, least - 13, 0, magic) + bytes(least - 18))


def test_entries_before_a_broken_one_decode():
    """Checksums are checked on decoding, so that the entries before a corrupt one can be decoded."""
    broken = B[:-1] + b"x"
    found = []
    with pytest.raises(Corrupt, match="at byte 27"):
        found.extend(record.offset for record in Batches(A + broken).records())
    assert found == [5]


def test_a_large_buffer_is_scanned_in_linear_time():
    """100,000 entries are found in less than three seconds of processor time."""
    data = A * 100_000
    start = time.process_time()
    assert len(Batches(data)) == 100_000
    assert time.process_time() - start < 3


def test_the_extra_is_not_imported_with_the_package():
    """Neither cramjam nor google-crc32c is loaded before it is needed."""
    code = (
        "import sys, cloudevents_kafka.protocol.records;"
        "print(sorted({'cramjam', 'google_crc32c', 'pyspark', 'confluent_kafka'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
