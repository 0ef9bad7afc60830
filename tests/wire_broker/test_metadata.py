"""ApiVersions, Metadata, FindCoordinator and CreateTopics."""

from __future__ import annotations

import threading

import pytest

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.groups import FindCoordinatorRequest
from cloudevents_kafka.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, MetadataRequest
from cloudevents_kafka.protocol.records import Record, encode_message_set
from tests.support.cases import each
from tests.support.wire import Wire, fetch, fetched, list_offsets, metadata, only, produce, produced
from tests.support.wire_broker import RELEASES, ApiError, Settings, WireBroker


@each("name", ["0.10", "1.1", "3.9", "4.3"])
def test_api_versions_lists_the_accepted_versions(name):
    """ApiVersions in each version lists the release's ranges; 4.3 alone also lists Produce 0 to 2."""
    release = RELEASES[name]
    with WireBroker(release) as broker, Wire(broker.nodes[0]) as wire:
        for version in range(release.versions[18].last + 1):
            got = wire.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version)
            listed = {row.api_key: (row.min_version, row.max_version) for row in got.api_keys}
            assert got.error_code == ErrorCode.NONE
            assert listed == {key: tuple(range_) for key, range_ in release.advertised.items()}
            assert {key for key in listed if listed[key] != tuple(release.versions[key])} == (
                {0} if name == "4.3" else set()
            )


@each(("release", "listed"), [("0.10", {}), ("1.1", {}), ("3.9", {18: (0, 4)})])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(release, listed):
    """The error is 35; 3.9 lists the versions of ApiVersions with it."""
    with WireBroker(release) as broker, Wire(broker.nodes[0]) as wire:
        frame = bytearray(frames.encode_request(ApiVersionsRequest(), 3)[4:])
        frame[2:4] = b"\0\x63"
        wire.socket.sendall(frames.add_size(bytes(frame)))
        _, got = frames.decode_response(ApiVersionsResponse, 0, wire.frame())
        assert got.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert {row.api_key: (row.min_version, row.max_version) for row in got.api_keys} == listed


@each(("release", "closed"), [("0.8.2", True), ("0.8.2-beta", True), ("0.9", False)])
def test_brokers_without_api_versions_do_not_answer_it(release, closed):
    """0.8 closes the connection and 0.9 keeps it; both record why."""
    with WireBroker(release) as broker, Wire(broker.nodes[0], timeout=5 if closed else 0.2) as wire:
        wire.send(ApiVersionsRequest(), 0)
        assert wire.is_closed() is closed
        assert "has no such API" in only(broker.connection_errors)


def test_4_3_refuses_old_versions():
    """Produce 2 and Fetch 3 close the connection, though ApiVersions lists Produce 0."""
    with WireBroker("4.3") as broker:
        for request, version in ((produce(b""), 2), (fetch(), 3)):
            with Wire(broker.nodes[0]) as wire:
                wire.send(request, version)
                assert wire.is_closed()


def test_old_brokers_answer_newer_versions_in_their_own_layout():
    """S0-N11: 0.8 reads Produce 1 and Metadata 1 as version 0, and answers in version 0."""
    with WireBroker("0.8.2") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        wire.send(produce(encode_message_set([Record(value=b"v")], 0)), 1)
        assert produced(Wire.decoded(produce(b""), 0, wire.frame())[1]) == (ErrorCode.NONE, 0)
        assert broker.calls(ApiKey.PRODUCE)[0].version == 0


@each("version", range(14))
def test_metadata_has_brokers_topics_and_leaders(version):
    """Each version has both brokers, and they lead the topic's partitions in turn."""
    release = RELEASES["4.3"]
    with WireBroker(release, brokers=2) as broker, Wire(broker.nodes[1]) as wire:
        broker.create_topic("t", 3)
        got = wire.ask(metadata("t"), version)
        assert [(row.node_id, row.host, row.port) for row in got.brokers] == broker.nodes
        topic = only(got.topics)
        assert (topic.error_code, topic.name) == (ErrorCode.NONE, "t")
        assert [(p.partition_index, p.leader_id, p.error_code) for p in topic.partitions] == [
            (0, 1, 0),
            (1, 2, 0),
            (2, 1, 0),
        ]
        assert topic.partitions[1].replica_nodes == topic.partitions[1].isr_nodes == [2, 1]
        assert version < 10 or topic.topic_id == broker.topic_id("t")


def test_all_topics_are_requested_by_empty_or_null_lists():
    """An empty list means all topics in version 0; from version 1 on null does."""
    with WireBroker("4.3") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("a")
        broker.create_topic("b")
        for topics, version, names in (([], 0, ["a", "b"]), ([], 1, []), (None, 1, ["a", "b"])):
            got = wire.ask(MetadataRequest(topics=topics), version)
            assert [topic.name for topic in got.topics] == names


@each(
    ("auto", "allow", "name", "code"),
    [
        (True, True, "new", ErrorCode.NONE),
        (False, True, "new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (True, False, "new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (True, True, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (True, True, "..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (True, True, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (True, True, "x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (False, False, "x" * 249, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_metadata_requests_create_topics(auto, allow, name, code):
    """A topic is created if broker and client allow it, and its name is legal."""
    with WireBroker(settings=Settings(auto_create=auto, partitions=2)) as broker:
        with Wire(broker.nodes[0]) as wire:
            request = metadata(name)
            request.allow_auto_topic_creation = allow
            topic = only(wire.ask(request, 4).topics)
        assert (topic.error_code, len(topic.partitions)) == (code, 0 if code else 2)


def test_a_new_topic_may_have_no_leader_yet():
    """Without immediate elections the creating request gets an error, and the next one the leaders."""
    with WireBroker(settings=Settings(elects_leaders_at_once=False)) as broker, Wire(broker.nodes[0]) as wire:
        topics = [only(wire.ask(metadata("new"), 1).topics) for _ in range(2)]
        assert [(topic.error_code, len(topic.partitions)) for topic in topics] == [
            (ErrorCode.LEADER_NOT_AVAILABLE, 0),
            (ErrorCode.NONE, 1),
        ]


def test_a_topic_is_found_by_its_id():
    """Version 12 accepts an id instead of a name; an unknown id is an error."""
    with WireBroker() as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        request = metadata(None)
        for id, expected in (
            (broker.topic_id("t"), (ErrorCode.NONE, "t")),
            (type(broker.topic_id("t"))(int=9), (ErrorCode.UNKNOWN_TOPIC_ID, None)),
        ):
            request.topics[0].topic_id = id
            topic = only(wire.ask(request, 12).topics)
            assert (topic.error_code, topic.name) == expected


def test_partitioned_requests_go_to_the_leader():
    """Other brokers refuse, also after a move, as all do without a leader; replica -2 may fetch anywhere."""
    with WireBroker("3.9", brokers=2) as broker, Wire(broker.nodes[0]) as one, Wire(broker.nodes[1]) as two:
        broker.create_topic("t")
        data = encode_message_set([Record(value=b"v")], 0)

        def codes(wire):
            offsets = only(only(wire.ask(list_offsets(-1), 0).topics).partitions).error_code
            return produced(wire.ask(produce(data), 0))[0], fetched(wire.ask(fetch(), 0)).error_code, offsets

        assert [codes(one), codes(two)] == [(ErrorCode.NONE,) * 3, (ErrorCode.NOT_LEADER_OR_FOLLOWER,) * 3]
        assert fetched(two.ask(fetch(replica_id=-2), 0)).error_code == ErrorCode.NONE
        broker.move_leader("t", 0, 2)
        assert [codes(one), codes(two)] == [(ErrorCode.NOT_LEADER_OR_FOLLOWER,) * 3, (ErrorCode.NONE,) * 3]
        assert [row.leader_id for row in only(one.ask(metadata("t"), 0).topics).partitions] == [2]
        stale = fetch()
        for epoch, code in enumerate(
            (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE, ErrorCode.UNKNOWN_LEADER_EPOCH)
        ):
            stale.topics[0].partitions[0].current_leader_epoch = epoch
            assert fetched(two.ask(stale, 9)).error_code == code
        broker.move_leader("t", 0, -1)
        row = only(only(one.ask(metadata("t"), 0).topics).partitions)
        assert (row.error_code, row.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


@each("version", range(7))
def test_all_brokers_return_the_same_coordinator(version):
    """Both brokers return one coordinator; that of a transactional id is refused for good."""
    with WireBroker(brokers=2) as broker, Wire(broker.nodes[0]) as one, Wire(broker.nodes[1]) as two:
        broker.move_coordinator("g", 2)
        request = (
            FindCoordinatorRequest(key="g") if version < 4 else FindCoordinatorRequest(coordinator_keys=["g"])
        )
        for wire in (one, two):
            got = wire.ask(request, version)
            row = got if version < 4 else only(got.coordinators)
            assert (row.error_code, row.node_id, row.port) == (ErrorCode.NONE, 2, broker.nodes[1].port)
        if version == 1:
            assert (
                one.ask(FindCoordinatorRequest(key="g", key_type=1), 1).error_code
                == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            )


def test_topics_can_be_created():
    """A refused topic has its error code; -1 is the broker's default; validate_only creates nothing."""

    def topic(name, partitions=1, replicas=1):
        return CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=[]
        )

    with WireBroker(settings=Settings(partitions=3)) as broker, Wire(broker.nodes[0]) as wire:
        expected = [
            (topic("a", 2), ErrorCode.NONE, 2),
            (topic("a"), ErrorCode.TOPIC_ALREADY_EXISTS, -1),
            (topic("b/c"), ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
            (topic("d", 0), ErrorCode.INVALID_PARTITIONS, -1),
            (topic("e", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR, -1),
            (topic("f", -1, -1), ErrorCode.NONE, 3),
        ]
        for request, *outcome in expected:
            row = only(wire.ask(CreateTopicsRequest(topics=[request]), 7).topics)
            assert [row.error_code, row.num_partitions] == outcome
        got = wire.ask(CreateTopicsRequest(topics=[topic("g"), topic("h/")], validate_only=True), 2)
        assert [row.error_code for row in got.topics] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
        names = {row.name for row in wire.ask(MetadataRequest(topics=None), 1).topics}
        assert names == {"a", "f"}


def test_stopping_ends_threads_and_connections():
    """After `stop`, which may be called twice, all threads and connections have ended."""
    before = threading.active_count()
    broker = WireBroker(brokers=3)
    broker.start()
    wires = [Wire(node) for node in broker.nodes]
    for wire in wires:
        wire.ask(metadata(), 1)
    assert threading.active_count() == before + 6
    broker.stop()
    broker.stop()
    assert all(wire.is_closed() for wire in wires)
    assert threading.active_count() == before
    for wire in wires:
        wire.socket.close()
    with pytest.raises(ValueError, match="brokers must be at least 1, got 0"):
        WireBroker(brokers=0)


def test_missing_topics_raise_api_errors():
    """The methods raise the protocol's error with its name and meaning."""
    with WireBroker() as broker:
        with pytest.raises(ApiError, match=r"UNKNOWN_TOPIC_OR_PARTITION \(3\): the broker does not"):
            broker.records("t")
        with pytest.raises(ApiError, match=r"\(17\)"):
            broker.create_topic("a/b")
