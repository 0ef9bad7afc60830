"""The rules of the 0.8 guide for clients: connections, leaders, batches, groups."""

from __future__ import annotations

import socket
import time

import pytest

from cloudevents_kafka.protocol.client import TopicPartition
from cloudevents_kafka.protocol.client._partitioners import round_robin
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import DeadlineExceeded
from cloudevents_kafka.protocol.messages.fetch import FetchRequest
from cloudevents_kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from cloudevents_kafka.protocol.records import Batches
from tests.support.wire import Wire, eventually, metadata, only
from tests.support.wire_broker import faults

PRODUCE, FETCH, OFFSETS, METADATA, COMMIT, COMMITTED = 0, 1, 2, 3, 8, 9
COORDINATOR, JOIN, BEAT = 10, 11, 12


@pytest.fixture
def three(start):
    """Return three brokers of 0.8.2; the first two lead one partition each."""
    broker = start("0.8.2", brokers=3)
    broker.create_topic("t", 2)
    return broker


@pytest.fixture
def first(three, connect):
    """Return a client with the address of the first broker, which does not request versions."""
    node = three.nodes[0]
    return connect(f"{node.host}:{node.port}", request_api_versions=False)


def write(client, count=1, *, partition=-1, **settings):
    """Produce records one by one, or together with ``linger``; return the errors."""
    errors = []
    with client.producer(**{"linger": 0, "partitioner": round_robin(), **settings}) as producer:
        for number in range(count):
            producer.produce(
                "t",
                b"%d" % number,
                partition=partition,
                on_delivery=lambda error, _message: errors.append(error),
            )
            if "linger" not in settings:
                producer.flush(5)
        producer.flush(5)
    return errors


def read(client, count, **settings):
    with client.consumer(**settings) as consumer:
        consumer.assign([TopicPartition("t", number, 0) for number in client.partitions("t")])
        return consumer.consume(count, 5)


def portions(call):
    """Return topic, partition and number of records for each part of a Produce request."""
    return [
        (topic.name, part.index, len(list(Batches(part.records).records())))
        for topic in call.message.topic_data
        for part in topic.partition_data
    ]


def test_the_first_bytes_are_a_request(three, first):
    """The protocol has no handshake, and one connection is kept for all requests."""
    for _ in range(3):
        first.metadata(["t"])
    first.close()
    with Wire(three.nodes[0]) as wire:
        wire.ask(metadata("t"), 0)
    assert [(call.key, call.connection) for call in three.calls()] == [(METADATA, 1)] * 3 + [(METADATA, 2)]
    assert three.connection_errors == []


def test_each_leader_has_one_connection(three, first):
    """Requests to two leaders use two connections; a broker that leads nothing has none."""
    assert write(first, 10) == [None] * 10
    found = {(call.node.id, call.connection) for call in three.calls()}
    assert sorted(node for node, _ in found) == [1, 2]
    assert len(three.calls(PRODUCE)) == 10


def test_requests_go_to_leaders(three, first):
    """Produce, Fetch and ListOffsets are sent only to the partition's leader."""
    write(first, 4)
    assert len(read(first, 4)) == 4
    assert [first.offset_at("t", number, -1) for number in (0, 1)] == [2, 2]
    for key in (PRODUCE, FETCH, OFFSETS):
        assert {(call.node.id, number) for call in three.calls(key) for number in numbers(call)} == {
            (1, 0),
            (2, 1),
        }


def numbers(call):
    """Return the partitions of a Produce, Fetch or ListOffsets request."""
    match call.message:
        case ProduceRequest(topic_data=topics):
            return [part.index for topic in topics for part in topic.partition_data]
        case FetchRequest(topics=topics):
            return [part.partition for topic in topics for part in topic.partitions]
    return [part.partition_index for topic in call.message.topics for part in topic.partitions]


def test_the_first_address_may_be_dead(three, connect):
    """Addresses are tried in turn, and any broker returns all brokers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        dead = server.getsockname()[1]
    for node in three.nodes:
        client = connect(f"127.0.0.1:{dead},{node.host}:{node.port}", request_api_versions=False)
        found = client.metadata()
        assert [(broker.node_id, broker.port) for broker in found.brokers] == [
            (n.id, n.port) for n in three.nodes
        ]
    assert [call.node.id for call in three.calls(METADATA)] == [1, 2, 3]


def test_metadata_is_kept_until_it_is_wrong(three, first):
    """Metadata is requested again only after a broker stops leading or its connection is lost."""
    with first.producer(linger=0) as producer:

        def send():
            producer.produce("t", b"v", partition=0)
            assert producer.flush(5) == 0
            return len(three.calls(METADATA))

        once = send()
        assert [send() for _ in range(5)] == [once] * 5
        three.move_leader("t", 0, 2)
        moved = send()
        assert moved > once
        assert send() == moved
        three.close_connections()
        assert send() > moved
    assert three.calls(PRODUCE)[-1].node.id == 2
    assert len(three.records("t", 0)) == 9


def test_records_are_batched(start, connect):
    """Records for one leader are sent in one request over topics and partitions, or singly."""
    broker = start("0.8.2")
    for name in ("t", "u"):
        broker.create_topic(name, 2)
    client = connect(broker, request_api_versions=False)
    with client.producer(linger=5) as producer:
        for number in range(12):
            producer.produce("tu"[number % 2], b"v", partition=number // 2 % 2)
        assert broker.calls(PRODUCE) == []  # sending is not waited for
        producer.flush(5)
    assert sorted(portions(only(broker.calls(PRODUCE)))) == [(name, n, 3) for name in "tu" for n in (0, 1)]
    assert write(client, 3, partition=0, linger=5, batch_records=1) == [None] * 3
    assert [portions(call) for call in broker.calls(PRODUCE)[1:]] == [[("t", 0, 1)]] * 3


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks_and_timeouts_are_sent(three, first, acks):
    """A request has the acks, and a shorter timeout for the broker than for the client."""
    assert write(first, 2, partition=0, acks=acks, delivery_timeout=60.0) == [None, None]
    assert {call.message.acks for call in three.calls(PRODUCE)} == {acks}
    assert 0 < only({call.message.timeout_ms for call in three.calls(PRODUCE)}) < 5000  # the client's timeout


def test_a_silent_broker_times_out(three, first):
    """The client's timeout ends the wait for the broker."""
    three.faults.add(faults.no_response(), api=PRODUCE, times=None)
    began = time.monotonic()
    error = only(write(first, partition=0, delivery_timeout=0.3))
    assert isinstance(error, DeadlineExceeded)
    assert time.monotonic() - began < 4


def test_fetch_parameters_are_sent(three, first):
    """A fetch has replica -1, the least bytes, the longest wait, and the limit of each partition."""
    write(first, 2)
    read(first, 2, min_bytes=3, max_wait=0.2, partition_bytes=1000)
    asked = {
        (call.message.replica_id, call.message.min_bytes, call.message.max_wait_ms, part.partition_max_bytes)
        for call in three.calls(FETCH)
        for topic in call.message.topics
        for part in topic.partitions
    }
    assert asked == {(-1, 3, 200, 1000)}


def test_a_truncated_set_is_continued(three, first):
    """If the last message of a fetch is cut, the next fetch begins with it."""
    assert write(first, 20, partition=0, linger=5) == [None] * 20
    found = read(first, 20, partition_bytes=100)
    assert [message.value() for message in found] == [b"%d" % number for number in range(20)]
    assert len(three.calls(FETCH)) > 5


@pytest.mark.parametrize("release", ["0.8.2-beta", "0.8.2", "0.10", "4.3"])
def test_offsets_are_kept_by_the_coordinator(start, connect, release):
    """Any broker returns the coordinator; partitions without an offset are left out."""
    broker = start(release, brokers=2)
    broker.create_topic("t", 2)
    broker.move_coordinator("g", 2)
    client = connect(broker)
    assert client.committed("g", [("t", 0)]) == {}
    client.commit("g", {("t", 0): 7})
    assert client.committed("g", [("t", 0), ("t", 1)]) == {("t", 0): 7}
    assert {call.node.id for key in (COMMIT, COMMITTED) for call in broker.calls(key)} == {2}
    assert broker.calls(COORDINATOR)
    broker.move_coordinator("g", 1)
    client.commit("g", {("t", 0): 8})
    assert broker.calls(COMMIT)[-1].node.id == 1


def test_the_order_in_a_response_does_not_matter(start, connect):
    """Parts of a response are matched by topic and partition."""

    def answer(call):
        parts = {
            topic.name: [
                PartitionProduceResponse(
                    index=part.index,
                    error_code=ErrorCode.MESSAGE_TOO_LARGE if topic.name == "a" else ErrorCode.NONE,
                    base_offset=part.index,
                )
                for part in reversed(topic.partition_data)
            ]
            for topic in reversed(call.message.topic_data)
        }
        rows = [TopicProduceResponse(name=name, partition_responses=rows) for name, rows in parts.items()]
        return ProduceResponse(responses=rows)

    broker = start("0.8.2")
    for name in ("a", "b"):
        broker.create_topic(name, 2)
    broker.faults.add(faults.script(answer), api=PRODUCE)
    found = {}

    def note(error, message):
        found[message.topic(), message.partition()] = error.code if error else message.offset()

    with connect(broker, request_api_versions=False).producer(linger=5) as producer:
        for name, partition in (("a", 0), ("b", 1), ("b", 0)):
            producer.produce(name, b"v", partition=partition, on_delivery=note)
        producer.flush(5)
    assert found == {("a", 0): 10, ("b", 0): 0, ("b", 1): 1}


@pytest.mark.parametrize(("release", "version"), [("0.9", 0), ("0.10", 1)])
def test_a_member_joins_and_joins_again(start, connect, release, version):
    """A member joins without an id, then with its id after a heartbeat that reports a rebalance.

    The requests have the settings; heartbeats and commits have the new generation.
    """
    broker = start(release)
    broker.create_topic("t", 2)
    settings = {
        "group": "g",
        "session_timeout": 5.0,
        "rebalance_timeout": 7.0,
        "heartbeat_interval": 0.02,
        "auto_commit": None,
        "reset": "earliest",
    }
    with connect(broker).consumer(**settings) as member, connect(broker).consumer(**settings) as other:
        member.subscribe(["t"])
        assert eventually(lambda: member.poll(0) or len(member.assignment()) == 2)
        other.subscribe(["t"])
        assert eventually(lambda: [(c.poll(0.01), len(c.assignment()))[1] for c in (member, other)] == [1, 1])
        member.commit(offsets=[TopicPartition("t", 0, 0)])
        joins = [call.message for call in broker.calls(JOIN)]
        assert {call.version for call in broker.calls(JOIN)} == {version}
        assert eventually(lambda: broker.calls(BEAT)[-1].message.generation_id == 2)
    first, *_ = joins
    ids = [join.member_id for join in joins]
    assert ids.count("") == 2
    assert broker.calls(BEAT)[0].message.member_id in ids[1:]
    assert (first.session_timeout_ms, first.rebalance_timeout_ms) == (5000, 7000 if version else -1)
    assert (first.protocol_type, [p.name for p in first.protocols]) == ("consumer", ["range", "roundrobin"])
    assert {call.message.generation_id for call in broker.calls(BEAT)} == {1, 2}
    assert only(broker.calls(COMMIT)).message.generation_id_or_member_epoch == 2


@pytest.mark.parametrize("number", [-1, -(1 << 31), 0, (1 << 31) - 1])
@pytest.mark.parametrize("client_id", [None, "", "é"])
def test_ids_are_echoed(three, number, client_id):
    """A correlation id is echoed, and a client id may be missing."""
    with Wire(three.nodes[0]) as wire:
        wire._correlation_id = number - 1  # what is sent next is one more
        sent = wire.send(metadata("t"), 0, client_id=client_id)
        answer = Wire.decoded(metadata("t"), 0, wire.frame())
    assert sent == answer[0] == number
    assert only(three.calls()).client_id == client_id
