"""Faults, each applied to the matching requests only."""

from __future__ import annotations

import time

import pytest

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Corrupt
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest
from cloudevents_kafka.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from cloudevents_kafka.protocol.messages.offsets import OffsetFetchRequest
from cloudevents_kafka.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from cloudevents_kafka.protocol.records import Batches, Record, encode_batch
from tests.support.wire import Wire, fetch, fetched, join, list_offsets, metadata, only, produce, produced
from tests.support.wire_broker import WireBroker, faults

BATCH = encode_batch([Record(value=b"v")])


@pytest.fixture
def broker():
    with WireBroker("4.3") as broker:
        broker.create_topic("t", 2)
        yield broker


@pytest.fixture
def wire(broker):
    with Wire(broker.nodes[0]) as wire:
        yield wire


@pytest.mark.parametrize(
    ("fault", "appended"), [(faults.drop_before(), 0), (faults.drop_after(), 1)], ids=["before", "after"]
)
def test_the_connection_drops_before_or_after_handling(broker, wire, fault, appended):
    """The client sees a closed connection; only `drop_after` appends the records."""
    broker.faults.add(fault, api=ApiKey.PRODUCE)
    wire.send(produce(BATCH), 3)
    assert wire.is_closed()
    assert len(broker.records("t")) == appended
    assert broker.connection_errors == []
    with Wire(broker.nodes[0]) as again:
        assert produced(again.ask(produce(BATCH), 3)) == (ErrorCode.NONE, appended)


def test_a_delayed_response_delays_later_ones(broker, wire):
    """The second request's response waits for the first's."""
    broker.faults.add(faults.delay(0.1), api=ApiKey.PRODUCE)
    began = time.monotonic()
    ids = [wire.send(produce(BATCH), 3), wire.send(metadata("t"), 1)]
    got = [wire.frame(), wire.frame()]
    assert time.monotonic() - began >= 0.1
    assert [int.from_bytes(frame[:4], "big") for frame in got] == ids


def test_stopping_ends_a_delay(broker, wire):
    """A broker with a delayed response stops at once."""
    planned = broker.faults.add(faults.delay(60))
    wire.send(metadata("t"), 1)
    while not planned.matched:
        time.sleep(0.001)
    began = time.monotonic()
    broker.stop()
    assert time.monotonic() - began < 2


def test_a_response_can_be_left_out(broker, wire):
    """The request is handled, and the connection stays open without a response."""
    broker.faults.add(faults.no_response(), api=ApiKey.PRODUCE)
    wire.send(produce(BATCH), 3)
    assert produced(wire.ask(produce(BATCH), 3)) == (ErrorCode.NONE, 1)


def test_frames_can_be_damaged(broker, wire):
    """Faults change the correlation id or the size, and truncate the frame."""
    broker.faults.add(faults.wrong_correlation_id(by=5), api=ApiKey.METADATA)
    sent = wire.send(metadata("t"), 1)
    assert int.from_bytes(wire.frame()[:4], "big") == sent + 5
    broker.faults.add(faults.truncate(7), api=ApiKey.METADATA)
    wire.send(metadata("t"), 1)
    assert len(wire.read(7)) == 7
    assert wire.is_closed()
    for size in (0x7FFFFFFF, -1):
        with Wire(broker.nodes[0]) as other:
            broker.faults.add(faults.frame_size(size), api=ApiKey.METADATA)
            other.send(metadata("t"), 1)
            assert int.from_bytes(other.read(4), "big", signed=True) == size
            assert len(other.read(8)) == 8


def test_fetched_records_are_corrupt(broker, wire):
    """The fetched records fail their checksum, and the log is unchanged."""
    wire.ask(produce(BATCH), 3)
    broker.faults.add(faults.corrupt_records(), api=ApiKey.FETCH)
    with pytest.raises(Corrupt):
        list(Batches(fetched(wire.ask(fetch(), 4)).records).records())
    assert len(list(Batches(fetched(wire.ask(fetch(), 4)).records).records())) == 1


def test_an_error_can_be_for_one_partition(broker, wire):
    """Records are appended to the other partition only."""
    broker.faults.add(faults.error(ErrorCode.REQUEST_TIMED_OUT, topic="t", partition=1), api=ApiKey.PRODUCE)
    request = produce(BATCH)
    request.topic_data[0].partition_data.append(produce(BATCH, partition=1).topic_data[0].partition_data[0])
    rows = only(wire.ask(request, 3).responses).partition_responses
    assert [(row.error_code, row.base_offset) for row in rows] == [
        (ErrorCode.NONE, 0),
        (ErrorCode.REQUEST_TIMED_OUT, -1),
    ]
    assert [len(broker.records("t", n)) for n in (0, 1)] == [1, 0]


@pytest.mark.parametrize(
    ("request_", "version", "found"),
    [
        (produce(BATCH), 3, lambda got: produced(got)[0]),
        (fetch(), 4, lambda got: fetched(got).error_code),
        (list_offsets(-1), 1, lambda got: only(only(got.topics).partitions).error_code),
        (metadata("t"), 1, lambda got: only(got.topics).error_code),
        (FindCoordinatorRequest(key="g"), 1, lambda got: got.error_code),
        (FindCoordinatorRequest(coordinator_keys=["g"]), 4, lambda got: only(got.coordinators).error_code),
        (join(), 1, lambda got: got.error_code),
        (
            SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[]),
            0,
            lambda got: got.error_code,
        ),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0, lambda got: got.error_code),
        (LeaveGroupRequest(group_id="g", member_id="m"), 0, lambda got: got.error_code),
        (OffsetFetchRequest(group_id="g", topics=[]), 2, lambda got: got.error_code),
        (
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0),
            0,
            lambda got: got.error_code,
        ),
        (ApiVersionsRequest(), 0, lambda got: got.error_code),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "message") else "",
)
def test_any_api_can_answer_an_error(broker, wire, request_, version, found):
    """An error without a topic is the error of the whole request."""
    broker.faults.add(faults.error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), times=1)
    assert found(wire.ask(request_, version)) == 14


def test_an_error_of_a_partition_in_metadata(broker, wire):
    """Only the partition's error code is set."""
    broker.faults.add(
        faults.error(ErrorCode.REPLICA_NOT_AVAILABLE, topic="t", partition=1), api=ApiKey.METADATA
    )
    topic = only(wire.ask(metadata("t"), 1).topics)
    assert [topic.error_code, *(row.error_code for row in topic.partitions)] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    ]


def test_a_leader_moves_before_a_request(broker, wire):
    """The request is answered by the former leader with error 6."""
    broker.faults.add(faults.move_leader("t", 0, -1), api=ApiKey.PRODUCE)
    assert produced(wire.ask(produce(BATCH), 3)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_a_response_can_be_scripted(broker, wire):
    """A function returns the response, or None for the broker's own."""
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    codes = iter(
        [
            HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
            None,
            HeartbeatResponse(error_code=ErrorCode.NONE),
        ]
    )
    broker.faults.add(faults.script(lambda call: next(codes)), api=ApiKey.HEARTBEAT, times=3)
    assert [wire.ask(beat, 0).error_code for _ in range(4)] == [
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_a_scripted_response_that_cannot_be_encoded_is_recorded(broker, wire):
    """The connection is closed, and the error names the field."""
    broker.faults.add(faults.script(lambda call: HeartbeatResponse(error_code=99999)), api=ApiKey.HEARTBEAT)
    wire.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0)
    assert wire.is_closed()
    assert "HeartbeatResponse.error_code" in only(broker.connection_errors)


def test_faults_are_counted_and_chosen(broker, wire):
    """A fault applies to a number of requests of an API, to those of a predicate, or to all until `clear`."""

    def codes(n, client_id="test"):
        return [produced(wire.ask(produce(BATCH), 3, client_id=client_id))[0] for _ in range(n)]

    twice = broker.faults.add(faults.error(ErrorCode.REQUEST_TIMED_OUT), api=ApiKey.PRODUCE, times=2)
    wire.ask(metadata("t"), 1)
    assert codes(3) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]
    assert (twice.matched, twice.remaining) == (2, 0)
    broker.faults.add(
        faults.error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        api=ApiKey.PRODUCE,
        times=None,
        when=lambda call: call.client_id == "late",
    )
    assert codes(2) == [ErrorCode.NONE, ErrorCode.NONE]
    assert codes(2, "late") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    broker.faults.clear()
    assert codes(1, "late") == [ErrorCode.NONE]


def test_faults_can_be_combined(broker, wire):
    """All faults that match a request are applied, the first added outermost."""
    broker.faults.add(faults.wrong_correlation_id(by=2), api=ApiKey.PRODUCE)
    broker.faults.add(faults.error(ErrorCode.REQUEST_TIMED_OUT), api=ApiKey.PRODUCE)
    sent = wire.send(produce(BATCH), 3)
    id, got = Wire.decoded(ProduceRequest, 3, wire.frame())
    assert (id - sent, produced(got)) == (2, (ErrorCode.REQUEST_TIMED_OUT, -1))


def test_calls_are_kept(broker, wire):
    """`calls` returns the requests, of one API or all, with client, node and version."""
    wire.ask(metadata("t"), 1, client_id="me")
    wire.ask(produce(BATCH), 3)
    assert [call.key for call in broker.calls()] == [3, 0]
    call = only(broker.calls(ApiKey.METADATA))
    assert (call.version, call.correlation_id, call.client_id, call.node.id) == (1, 1, "me", 1)
    assert call.message.topics[0].name == "t"


def test_all_connections_can_be_closed_at_once(broker, wire):
    """`close_connections` closes them, and new ones are accepted."""
    wire.ask(metadata("t"), 1)
    broker.close_connections()
    assert wire.is_closed()
    with Wire(broker.nodes[0]) as again:
        assert again.ask(metadata("t"), 1) is not None
