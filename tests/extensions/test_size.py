"""The size on the wire equals that of the protocol's encoder."""

from __future__ import annotations

import strategies as make
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.extensions import SIZE_LIMIT, size_problem, wire_size
from cloudevents_kafka.protocol.records import Record as WireRecord
from cloudevents_kafka.protocol.records import encode_batch

lengths = st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**20 - 1, 2**20])


@given(st.one_of(make.hostile_records(), st.builds(Record, value=lengths.map(bytes), key=lengths.map(bytes))))
def test_the_size_is_that_of_a_batch_of_one(record: Record) -> None:
    """The size has key, value, headers with their lengths, and the frame."""
    try:
        [name.encode() for name, _ in record.headers]
    except UnicodeEncodeError:
        assert wire_size(record) > 0  # no wire can carry it
        return
    batch = encode_batch([WireRecord(key=record.key, value=record.value, headers=record.headers)])
    assert wire_size(record) == len(batch)


def test_one_byte_more_than_the_limit_is_too_large() -> None:
    """64 KiB with headers have no problem; one byte more has one with both numbers."""
    event = Event(id="1", source="/", type="t", datacontenttype="application/octet-stream")
    empty = wire_size(to_record(event.replace(data=b"")))
    fits = next(n for n in range(SIZE_LIMIT - empty, 0, -1) if _size(event, n) <= SIZE_LIMIT)
    assert _size(event, fits) == SIZE_LIMIT
    assert size_problem(to_record(event.replace(data=bytes(fits)))) is None
    problem = size_problem(to_record(event.replace(data=bytes(fits + 1))))
    assert problem is not None
    assert "65536 bytes" in str(problem)
    assert "got 65537 bytes (S-02" in str(problem)
    assert size_problem(to_record(event), limit=10) is not None


def _size(event: Event, length: int) -> int:
    return wire_size(to_record(event.replace(data=bytes(length))))
