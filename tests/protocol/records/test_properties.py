"""Encoded records decode, and arbitrary bytes decode or raise the protocol's errors."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.records import Batches, Codec, Record
from cloudevents_kafka.protocol.records.compression import decompress
from tests.protocol.records.samples import FORMS, encoded, records
from tests.support.cases import each
from tests.support.strategies import examples

SAMPLE = [
    Record(b"k", b"value " * 3, [], None, 7),
    Record(None, b"", [], None, 8),
    Record(b"", None, [], None, 9),
]


def sample(magic: int) -> list[Record]:
    headers = [("ce_id", b"1"), ("n", None)] if magic == 2 else []
    time = 1_700_000_000_000 if magic else None
    return [msgspec.structs.replace(one, headers=headers, timestamp=time) for one in SAMPLE]


@pytest.mark.parametrize(("magic", "codec"), FORMS)
@examples(30)
@given(data=st.data())
def test_encoded_records_decode(magic, codec, data):
    """Records round-trip for each magic and codec, with offsets from the base offset on."""
    written = data.draw(records(magic))
    base = data.draw(st.integers(0, 2**40))
    (*_, last) = batches = list(Batches(encoded(written, magic, codec, base_offset=base)))
    expected = [msgspec.structs.replace(one, offset=base + i) for i, one in enumerate(written)]
    assert [record for batch in batches for record in batch] == expected
    assert (batches[0].base_offset, last.last_offset, last.magic, last.codec) == (
        base,
        base + len(written) - 1,
        magic,
        codec,
    )


@each("magic", [0, 1, 2])
@each("codec", [Codec.NONE, Codec.GZIP])
def test_an_entry_cut_anywhere_is_partial(magic, codec):
    """Complete entries decode if the next one is partial, and its size is counted."""
    first, second = (encoded(sample(magic), magic, codec, base_offset=base) for base in (0, 3))
    whole = len(Batches(first))
    for size in range(len(second)):
        batches = Batches(first + second[:size])
        last_start = max(b.end for b in batches)
        assert batches.partial_size == len(first) + size - last_start
        assert [r.offset for r in batches.records()] == [
            *range(len(batches) if codec == 0 and magic < 2 else 3)
        ]
        assert len(batches) >= whole


@each(("magic", "codec"), FORMS)
def test_a_changed_byte_is_detected(magic, codec):
    """A changed byte raises an error, makes the entry partial, or changes a field outside the checksum."""
    data = encoded(sample(magic), magic, codec, base_offset=7)
    good = seen(Batches(data))
    entries = [(batch.start, batch.end) for batch in Batches(data)]
    for start, end in entries:
        for at in range(start, end):
            inside = at - start >= (16 if magic == 2 else 8)
            for bit in (1, 0x80):
                changed = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
                try:
                    batches = Batches(changed)
                    found = seen(batches)
                except Malformed:
                    continue
                assert found != good
                assert batches.partial_size or not inside


def seen(batches: Batches) -> list:
    return [(one.last_offset, getattr(one, "partition_leader_epoch", 0), one.records()) for one in batches]


def drain(data: bytes) -> None:
    """Use all attributes of a buffer; only `Malformed` may be raised."""
    for check_crc in (True, False):
        with contextlib.suppress(Malformed):
            for batch in Batches(data, check_crc=check_crc, limit=1 << 16):
                for use in (batch.records, lambda one=batch: (one.base_offset, one.codec, repr(one))):
                    with contextlib.suppress(Malformed):
                        use()


@examples(300)
@given(st.binary(max_size=200))
@example(b"\x00" * 26)
def test_any_bytes_decode_or_are_refused(data):
    """Arbitrary bytes raise only the protocol's errors."""
    drain(data)


@pytest.mark.parametrize(("magic", "codec"), FORMS)
@examples(60)
@given(data=st.data())
def test_damaged_sets_decode_or_are_refused(magic, codec, data):
    """Sets with overwritten bytes raise only the protocol's errors, with and without checks."""
    damaged = bytearray(encoded(sample(magic), magic, codec))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    drain(bytes(damaged))


@pytest.mark.parametrize("codec", Codec)
@examples(100)
@given(data=st.binary(max_size=80))
@example(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff")
@example(b"\x04\x22\x4d\x18\x60\x40\x82\x01\x00\x00\x00\x00")
@example(b"\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff")
def test_codecs_take_any_bytes(codec, data):
    """Arbitrary compressed bytes decompress or are `Malformed`."""
    starts = {
        Codec.LZ4: b"\x04\x22\x4d\x18\x60\x40\x82",
        Codec.ZSTD: b"\x28\xb5\x2f\xfd",
        Codec.GZIP: b"\x1f\x8b\x08",
    }
    for one in (data, starts.get(codec, b"") + data):
        with contextlib.suppress(Malformed):
            assert len(decompress(one, codec, limit=1 << 16)) <= 1 << 16
