"""Queued records, drained into batches and encoded for each version."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.client._batches import (
    ProducerBatch,
    ProducerId,
    QueuedRecord,
    check_headers,
    drain,
    encode_records,
)
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.errors import DeadlineExceeded, Disconnected, Unsupported
from cloudevents_kafka.protocol.records import Batches, Codec, Record, RecordBatch
from tests.support.cases import each


def pending(value=b"v", headers=()):
    return QueuedRecord("t", -1, Record(value=value, headers=list(headers), timestamp=5), None, Deadline(9))


@given(st.lists(st.integers(0, 300)), st.integers(1, 5), st.integers(1, 500))
def test_drain_keeps_all_records_in_order(sizes, most_records, most_bytes):
    """No record is lost, and only a batch of one record exceeds a limit."""
    waiting = deque(pending(b"x" * size) for size in sizes)
    batches = []
    while waiting:
        batches.append(drain(waiting, most_records, most_bytes))
    assert [len(one.record.value) for batch in batches for one in batch] == sizes
    assert all(len(batch) <= most_records for batch in batches)
    assert all(len(batch) == 1 or sum(one.size for one in batch) <= most_bytes for batch in batches)


@each(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (12, 2)])
def test_each_version_has_its_format(version, magic):
    """Versions 0 to 2 send message sets; from 3 on record batches have producer id and sequence."""
    records = [pending().record, pending().record]
    found = Batches(encode_records(records, version, Codec.NONE, ProducerId(7, 1), 5))
    assert [record.value for record in found.records()] == [b"v", b"v"]
    first = next(iter(found))
    assert first.magic == magic
    if isinstance(first, RecordBatch):
        assert (first.producer_id, first.producer_epoch, first.base_sequence) == (7, 1, 5)


@pytest.mark.parametrize(
    ("headers", "version", "fits"),
    [
        ([], 0, True),
        ([("content-type", b"x")], 2, True),
        ([("Content-Type", b"x")], 0, True),
        ([("content-type", b"x"), ("ce_id", b"1")], 2, False),
        ([("ce_id", b"1")], 3, True),
    ],
)
def test_headers_need_a_broker_of_0_11(headers, version, fits):
    """A content-type alone is dropped; other headers raise `Unsupported`."""
    if fits:
        check_headers("t", pending(headers=headers).record, version)
    else:
        with pytest.raises(Unsupported, match=r"brokers before 0.11 .* ce_id; send structured mode"):
            check_headers("t", pending(headers=headers).record, version)


def test_a_timeout_does_not_hide_the_reason():
    """The reason of a batch's failure is the last error that is not a timeout, if there is one."""
    batch = ProducerBatch(("t", 0), [pending()], ProducerId(), -1)
    for error in (DeadlineExceeded("1"), Disconnected("2"), DeadlineExceeded("3")):
        batch.back_off(error)
    assert str(batch.last_error) == "2"
    batch.back_off(Disconnected("4"))
    assert str(batch.last_error) == "4"
