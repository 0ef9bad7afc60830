"""Records of real brokers and clients decode, and encode to the same bytes."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.errors import Corrupt, Malformed
from cloudevents_kafka.protocol.records import Batches, Codec, RecordBatch, encode_batch, encode_message_set
from tests.protocol.captured import RecordSet, record_sets
from tests.support.cases import each

BROKEN = {"produce bad crc": Corrupt, "negative size": Malformed, "size 3": Malformed}
SETS = list(record_sets())
WHOLE = [captured for captured in SETS if captured.name not in BROKEN]
PACKED = [
    captured for captured in WHOLE if any(batch.codec != Codec.NONE for batch in Batches(captured.data))
]


def named(captured: RecordSet) -> str:
    return f"{captured.where} {captured.name} {'fetched' if captured.fetched else 'produced'}"


def again(batch) -> bytes:
    records = batch.records()
    if isinstance(batch, RecordBatch):
        return encode_batch(
            records,
            keep_offsets=True,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            timestamp_type=batch.timestamp_type,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
    return encode_message_set(records, batch.magic, keep_offsets=True, timestamp_type=batch.timestamp_type)


def test_there_are_enough_of_each_kind():
    """The captures have all magics, and compressed, partial and empty sets, as the tests below require."""
    read = [(captured, Batches(captured.data)) for captured in WHOLE]
    entries = [batch for _, batches in read for batch in batches]
    assert {batch.magic for batch in entries} == {0, 1, 2}
    assert {batch.codec for batch in entries} == {Codec.NONE, Codec.GZIP, Codec.SNAPPY}
    assert {batch.magic for batch in entries if batch.codec == Codec.GZIP} >= {0, 1}
    assert any(batches.partial_size for _, batches in read)
    assert any(not captured.data for captured, _ in read)
    assert len(entries) > 200


@each("captured", WHOLE, ids=named)
def test_every_set_round_trips(captured):
    """All records decode; uncompressed ones encode to the same bytes."""
    batches = Batches(captured.data)
    written = b""
    for batch in batches:
        assert batch.records()
        entry = batch.data[batch.start : batch.end]
        assert batch.codec != Codec.NONE or again(batch) == entry
        written += entry
    assert written + captured.data[len(written) :] == captured.data
    assert len(written) + batches.partial_size == len(captured.data)


@each("captured", PACKED, ids=named)
def test_compressed_sets_round_trip(captured):
    """The records of a compressed entry are the same, with offsets, after they are compressed again."""
    for batch in Batches(captured.data):
        records = batch.records()
        packed = (
            encode_batch(records, batch.codec, keep_offsets=True)
            if batch.magic == 2
            else encode_message_set(records, batch.magic, batch.codec, keep_offsets=True)
        )
        assert list(Batches(packed).records()) == records


@each("captured", [one for one in SETS if one.name in BROKEN], ids=named)
def test_broken_sets_are_refused(captured):
    """Sets that brokers refused raise the corresponding error."""
    with pytest.raises(BROKEN[captured.name]):
        list(Batches(captured.data).records())


def one(where: str, name: str, *, fetched: bool = True) -> list[Batches]:
    found = [c.data for c in SETS if (c.where, c.name, c.fetched) == (where, name, fetched)]
    return [Batches(data) for data in found]


def test_a_cut_fetch_has_a_partial_entry():
    """A fetch of 40 bytes has a message of 31 bytes and 9 bytes of the next."""
    (batches,) = one("0.8.2.2", "fetch truncated 40")
    assert (len(batches), batches.partial_size, batches.is_partial) == (1, 9, False)


def test_a_fetch_from_an_inner_offset_returns_the_wrapper():
    """Offsets in a wrapper of magic 0 are absolute; the first may be before the requested offset."""
    (batches,) = one("0.8.2.2", "fetch mid-compressed")
    records = list(batches.records())
    assert [record.offset for record in records] == [*range(batches.first_offset, batches.last_offset + 1)]
    assert len(records) > 1


def test_a_down_converted_fetch_ends_with_a_partial_entry():
    """Brokers of 2.0 and later add an entry with offset -1 after down-converted data."""
    (batches,) = one("old-apis-3.9.1", "Fetch")[:1]
    data = next(c.data for c in SETS if c.where == "old-apis-3.9.1" and c.fetched)
    tail = data[len(data) - batches.partial_size :]
    assert tail[:8] == b"\xff" * 8
    assert len(list(batches.records())) > 1


def test_headers_null_keys_and_null_values_of_a_real_batch():
    """The CloudEvents batch of brokers 1.1.1 and 4.4.0 decodes completely."""
    for batches in one("record-batch-v2", "fetch v4"):
        first, second = batches.records()
        assert first.value == b'{"a":1}'
        assert ("ce_specversion", b"1.0") in first.headers
        assert (second.key, second.value, second.headers) == (None, None, [("n", None)])
        assert (first.offset, second.offset, second.timestamp - first.timestamp) == (0, 1, 5)
