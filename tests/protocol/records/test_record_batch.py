"""Record batches: headers, and invalid records."""

from __future__ import annotations

import struct
import time
import tracemalloc

import pytest

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, Unencodable
from cloudevents_kafka.protocol.records import (
    Batches,
    Codec,
    ControlRecord,
    Record,
    RecordBatch,
    TimestampType,
    encode_batch,
)
from cloudevents_kafka.protocol.records.checksum import crc32c
from cloudevents_kafka.protocol.records.record import ABORT, COMMIT
from tests.support.cases import each

HEADER = ">qiiBIhiqqqhii"
ONE = Record(b"k", b"v", [("a", b"1"), ("a", None), ("", b"")], 1_700_000_000_000)


def only(data: bytes, **options) -> RecordBatch:
    (batch,) = Batches(data, **options)
    assert isinstance(batch, RecordBatch)
    return batch


def batch_of(body: bytes, count: int, *, attributes: int = 0, last_delta: int = 0) -> bytes:
    """Return a batch with a correct checksum and any body."""
    rest = struct.pack(">hiqqqhii", attributes, last_delta, 1000, 5000, -1, -1, -1, count) + body
    return struct.pack(">qiiBI", 7, 9 + len(rest), 0, 2, crc32c(rest)) + rest


@each("codec", Codec)
def test_all_fields_of_the_header_come_back(codec):
    """Offsets, epochs, producer and flags round-trip."""
    data = encode_batch(
        [ONE, ONE],
        codec,
        base_offset=40,
        producer_id=2**40,
        producer_epoch=3,
        base_sequence=9,
        is_transactional=True,
        partition_leader_epoch=5,
    )
    batch = only(data)
    assert (batch.base_offset, batch.last_offset, batch.count, batch.codec) == (40, 41, 2, codec)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2**40, 3, 9)
    assert (batch.is_transactional, batch.is_control, batch.partition_leader_epoch) == (True, False, 5)
    assert (batch.base_timestamp, batch.max_timestamp, batch.delete_horizon) == (
        ONE.timestamp,
        ONE.timestamp,
        None,
    )
    assert (batch.control_record(), batch.timestamp_type, len(data)) == (
        None,
        TimestampType.CREATE,
        12 + batch.size,
    )


def test_without_a_producer_the_fields_are_those_of_a_plain_batch():
    """Producer id, epoch, sequence and leader epoch are -1 by default."""
    batch = only(encode_batch([ONE]))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert (batch.partition_leader_epoch, batch.base_offset, batch.is_transactional) == (-1, 0, False)


def test_offsets_may_be_kept_with_their_gaps():
    """A batch keeps the records' offsets, as after compaction, or counts them from a base."""
    given = [Record(offset=10), Record(offset=13)]
    kept, counted = only(encode_batch(given, keep_offsets=True)), only(encode_batch(given, base_offset=5))
    assert [(b.base_offset, [r.offset for r in b], b.last_offset) for b in (kept, counted)] == [
        (10, [10, 13], 13),
        (5, [5, 6], 6),
    ]


def test_the_brokers_time_replaces_that_of_all_records():
    """With log append time, each record has the batch's maximum timestamp."""
    given = [Record(timestamp=5), Record(timestamp=9), Record(timestamp=7)]
    batch = only(encode_batch(given, timestamp_type=TimestampType.LOG_APPEND))
    assert [(r.timestamp, r.timestamp_type) for r in batch] == [(9, TimestampType.LOG_APPEND)] * 3


def test_timestamps_may_go_back():
    """Timestamp deltas may be negative or large; no timestamp stays None."""
    times = [1_700_000_000_000, 1_699_999_999_999, 0, None, 2**62]
    assert [r.timestamp for r in only(encode_batch([Record(timestamp=t) for t in times]))] == times


def test_a_delete_horizon():
    """With bit 6, the base timestamp is the delete horizon."""
    assert only(batch_of(b"", 0, attributes=0x40)).delete_horizon == 1000


@each("codec", range(8))
def test_an_empty_batch_has_no_records(codec):
    """A batch that compaction has emptied keeps its offsets, and may keep its codec."""
    batch = only(batch_of(b"", 0, attributes=codec, last_delta=4))
    assert (batch.records(), batch.last_offset, batch.control_record()) == ([], 11, None)


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_control_records(kind):
    """A control batch has the type of its transaction's end, and the coordinator's epoch."""
    mark = ControlRecord(kind, coordinator_epoch=12)
    batch = only(encode_batch([mark.to_record(5)], is_control=True, is_transactional=True, producer_id=4))
    assert (batch.is_control, batch.control_record()) == (True, mark)
    assert batch.records()[0].key == struct.pack(">hh", 0, kind)


@each("key", [None, b"", b"\0\0\0"])
def test_control_records_with_a_short_key_are_refused(key):
    """A control record whose key is too short for version and type is `Malformed`."""
    with pytest.raises(Malformed, match="key"):
        only(encode_batch([Record(key=key)], is_control=True)).control_record()


def test_names_that_are_not_utf8_come_back():
    """The name of a header may have any bytes, and round-trips."""
    data = batch_of(b"\x14\x00\x00\x00\x01\x01\x02\x04\xff\xfe\x01", 1)
    (record,) = only(data)
    assert record.headers == [("\udcff\udcfe", None)]
    body = encode_batch([record], keep_offsets=True)[61:]
    assert body == data[61:]


def test_a_wrong_checksum_is_corrupt_when_records_are_decoded():
    """A wrong checksum raises `Corrupt` with both values; without checks the records decode."""
    data = bytearray(encode_batch([ONE]))
    data[20] ^= 1
    batch = only(bytes(data))
    with pytest.raises(Corrupt, match="CRC-32C"):
        batch.records()
    assert only(bytes(data), check_crc=False).records()[0].value == b"v"


BODIES = {
    "count beyond the bytes": (b"", 2**31 - 1),
    "count below none": (b"", -1),
    "fewer records than bytes": (b"\x0c\0\0\0\x01\x01\0" * 2, 1),
    "record beyond the batch": (b"\x7e\0\0\0\x01\x01\0", 1),
    "record of negative length": (b"\x01\0\0\0\x01\x01\0", 1),
    "record shorter than its fields": (b"\x0a\0\0\0\x01\x01\0", 1),
    "record longer than its fields": (b"\x0e\0\0\0\x01\x01\0\0", 1),
    "length that never ends": (b"\xff" * 20, 1),
    "key of negative length": (b"\x0c\0\0\0\x03\x01\0", 1),
    "key beyond the record": (b"\x0c\0\0\0\x7e\x01\0", 1),
    "value beyond the batch": (b"\x14\0\0\0\x01\xfe\xff\xff\xff\x0f\0", 1),
    "headers beyond the record": (b"\x14\0\0\0\x01\x01\xfe\xff\xff\xff\x0f", 1),
    "headers of negative count": (b"\x0c\0\0\0\x01\x01\x01", 1),
    "header with a null name": (b"\x10\0\0\0\x01\x01\x02\x01\x01", 1),
    "header beyond the record": (b"\x10\0\0\0\x01\x01\x02\x7e\x01", 1),
    "offset of at most 32 bits": (b"\x16\0\0\xff\xff\xff\xff\xff\x01\x01\x01\0", 1),
    "timestamp of at most 64 bits": (b"\x20\0" + b"\xff" * 10 + b"\0\x01\x01\0\0", 1),
}


@each("name", BODIES)
def test_broken_bodies_are_refused(name):
    """A malformed body is `Malformed` at once, and uses little memory, although its checksum is correct."""
    body, count = BODIES[name]
    batch = only(batch_of(body, count))
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(Malformed):
        batch.records()
    assert time.process_time() - start < 1
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


@each("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_uncompressed_records_with_a_codec_are_refused(codec):
    """Uncompressed records with a codec in the attributes are `Malformed`."""
    with pytest.raises(Malformed):
        only(batch_of(b"\x0c\0\0\0\x01\x01\0", 1, attributes=codec)).records()


def test_offsets_that_go_back_are_refused():
    """A negative last offset delta is `Malformed`, because a consumer would loop."""
    with pytest.raises(Malformed, match="offset"):
        only(batch_of(b"", 0, last_delta=-1)).records()


def test_the_limit_of_a_batch():
    """The limit of `Batches` applies to its batches."""
    data = encode_batch([Record(value=bytes(5000))], Codec.GZIP)
    assert len(only(data, limit=6000).records()) == 1
    with pytest.raises(Malformed, match="at most"):
        only(data, limit=5000).records()


@each(
    ("records", "options", "says"),
    [
        ([], {}, "at least 1 record"),
        ([Record(timestamp=2**63)], {}, "fit"),
        ([Record(timestamp=0), Record(timestamp=2**64)], {}, "64 bits"),
        ([Record(offset=0), Record(offset=2**31)], {"keep_offsets": True}, "fit"),
        ([Record()], {"base_offset": 2**63}, "fit"),
        ([Record()], {"producer_id": 2**63}, "fit"),
        ([Record(headers=[("\ud800", b"")])], {}, "encodable as UTF-8"),
    ],
)
def test_values_that_a_batch_cannot_carry(records, options, says):
    """Values beyond their fields are `Unencodable`."""
    with pytest.raises(Unencodable, match=says):
        encode_batch(records, **options)


def test_the_repr_of_a_batch_has_no_bytes():
    """The repr of a batch has only offsets and sizes."""
    assert repr(only(encode_batch([ONE], base_offset=3))) == "<RecordBatch offsets=3..3 count=1 79 bytes>"
