"""The captured responses of real brokers: fields have the meaning of the guide and of JoinGroup's page.

`test_vectors.py` shows that the bytes round-trip; these tests show the values.
"""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.produce import ProduceRequest
from cloudevents_kafka.protocol.records import Batches
from tests.protocol.captured import FILES
from tests.support.cases import each
from tests.support.wire import only

HOST = "127.0.0.1"
RELEASED, BETA = "0.8.2.2", "0.8.2-beta"
BOTH = [RELEASED, BETA]
JOINS = ["joingroup-v0", "joingroup-v1"]


def named(file, name):
    """Return the number of the first exchange with a name."""
    return next(one.number for one in FILES[file] if one.name == name)


def request_of(file, number):
    return FILES[file][number].decoded_request()


def response_of(file, number):
    return FILES[file][number].decoded_response()


def produced(message):
    return [
        (topic.name, part.index, part.error_code, part.base_offset)
        for topic in message.responses
        for part in topic.partition_responses
    ]


def fetched(message):
    return [
        (topic.topic, part.partition_index, part.error_code, part.high_watermark, len(part.records))
        for topic in message.responses
        for part in topic.partitions
    ]


def listed(message):
    return [
        (topic.name, part.partition_index, part.error_code, part.old_style_offsets)
        for topic in message.topics
        for part in topic.partitions
    ]


def kept(message):
    return [
        (part.committed_offset, part.metadata, part.error_code)
        for topic in message.topics
        for part in topic.partitions
    ]


def described(message):
    """Return the brokers, and the topics with their partitions."""
    brokers = [(broker.node_id, broker.host, broker.port) for broker in message.brokers]
    topics = [
        (
            topic.error_code,
            topic.name,
            {
                p.partition_index: (p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes)
                for p in topic.partitions
            },
        )
        for topic in message.topics
    ]
    return brokers, topics


@pytest.mark.parametrize(("file", "port"), [(RELEASED, 29092), (BETA, 29093)])
def test_metadata(file, port):
    """Brokers have id, host and port, topics an error and partitions; a request for no topic returns all."""
    one = (0, 1, [1], [1])
    whole = [(1, HOST, port)], [(0, "t1", {0: one, 1: one})]
    assert described(response_of(file, named(file, "metadata t1"))) == whole
    everything = named(file, "metadata all")
    assert request_of(file, everything).topics == []
    brokers, topics = described(response_of(file, everything))
    assert brokers == whole[0]
    assert whole[1][0] in topics


def test_metadata_makes_topics():
    """The first request creates a new topic: error 5, and 0.8.2.2 lists no broker; an invalid name is 17."""
    first, bad = (
        [named(file, name) for file in BOTH]
        for name in ("metadata t1 (first: autocreate)", "metadata bad topic")
    )
    assert described(response_of(RELEASED, first[0])) == ([], [(5, "t1", {})])
    assert described(response_of(BETA, first[1]))[1] == [(5, "t1", {})]
    assert [described(response_of(file, number)) for file, number in zip(BOTH, bad, strict=True)] == [
        ([], [(17, "no space!", {})])
    ] * 2


def test_replicas():
    """Replicas and those in sync are lists of broker ids; with one down, the others remain, with error 9."""
    both, one = (
        named(RELEASED, name) for name in ("two-broker metadata RF=2", "metadata after broker 2 died")
    )
    assert described(response_of(RELEASED, both)) == (
        [(1, HOST, 29121), (2, HOST, 29122)],
        [(0, "rr", {0: (0, 2, [2, 1], [2, 1]), 1: (0, 1, [1, 2], [1, 2])})],
    )
    assert described(response_of(RELEASED, one)) == (
        [(1, HOST, 29121)],
        [(0, "rr", {0: (9, 1, [1], [1]), 1: (9, 1, [1], [1])})],
    )


@each(
    ("name", "acks", "answer"),
    [
        ("produce", 1, ("t1", 0, 0, 0)),
        ("produce acks=-1", -1, ("t1", 0, 0, 3)),
        ("produce gzip", 1, ("t1", 0, 0, 6)),
        ("produce unknown partition", 1, ("t1", 9, 3, -1)),
        ("produce bad crc", 1, ("t1", 0, 2, -1)),
        ("empty message set", 1, ("sn", 0, 0, -1)),
        ("one", 1, ("sn", 0, 0, 4)),
        ("offset field -7", 1, ("sn", 0, 0, 5)),
        ("negative size", 1, ("sn", 0, 2, -1)),
        ("size 3", 1, ("sn", 0, 2, -1)),
        ("acks=2 with 1 replica", 2, ("aa", 0, 7, 1)),
        ("acks=-1", -1, ("aa", 0, 0, 2)),
        ("produce p0 to non-leader", 1, ("rr", 0, 6, -1)),
        ("produce p1 acks=-1 to leader RF2", -1, ("rr", 1, 0, 0)),
    ],
)
def test_produce(name, acks, answer):
    """A partition's response has an error and the first message's offset, -1 if nothing was appended."""
    number = named(RELEASED, name)
    assert request_of(RELEASED, number).acks == acks
    assert produced(response_of(RELEASED, number)) == [answer]


@pytest.mark.parametrize("file", BOTH)
def test_acks_0(file):
    """Acks 0 has no response, and the message is appended."""
    number = named(file, "acks=0 sent")
    assert FILES[file][number].response is None
    sent = request_of(file, number)
    assert (type(sent), sent.acks) == (ProduceRequest, 0)
    part = only(only(sent.topic_data).partition_data)
    _, _, error, end, size = only(fetched(response_of(file, named(file, "fetch p1 acks0 data"))))
    assert (part.index, error, size) == (1, 0, len(part.records))
    assert end == len(list(Batches(part.records).records())) == 3


@pytest.mark.parametrize("partition", [0, 1])
def test_only_leaders(partition):
    """A broker that does not lead responds with 6 to Produce, Fetch and ListOffsets."""
    names = (f"produce p{partition} to", f"fetch p{partition} from", f"offsets p{partition} from")
    records, fetch, offsets = (response_of(RELEASED, named(RELEASED, f"{name} non-leader")) for name in names)
    assert produced(records) == [("rr", partition, 6, -1)]
    assert fetched(fetch) == [("rr", partition, 6, -1, 0)]
    assert listed(offsets) == [("rr", partition, 6, [])]


@pytest.mark.parametrize("file", BOTH)
def test_gzip_is_compressed_again(file):
    """Offsets in a compressed set become the log's, so it is compressed again; the wrapper has the last."""
    number = named(file, "produce gzip")
    base = produced(response_of(file, number))[0][3]
    sent = only(Batches(only(only(request_of(file, number).topic_data).partition_data).records))
    fetch = response_of(file, named(file, "fetch mid-compressed"))
    got = only(Batches(only(only(fetch.responses).partitions).records))
    came, kept = sent.records(), got.records()
    assert [(r.key, r.value) for r in came] == [(r.key, r.value) for r in kept]
    assert [r.offset for r in kept] == [base + number for number in range(len(came))]
    assert got.last_offset == kept[-1].offset
    assert came[0].offset != base


def test_any_offset_is_accepted():
    """A message with the offset -7 gets the broker's offset."""
    sent = only(only(request_of(RELEASED, named(RELEASED, "offset field -7")).topic_data).partition_data)
    assert [record.offset for record in Batches(sent.records).records()] == [-7]
    assert produced(response_of(RELEASED, named(RELEASED, "offset field -7")))[0][3] == 5


def test_raw_snappy_gets_framing():
    """A set in raw snappy is stored with xerial's framing, like one that has it."""
    framed = b"\x82SNAPPY\0" + bytes([0, 0, 0, 1] * 2)
    for name, came_framed in (("snappy xerial", True), ("snappy raw", False)):
        number = named(RELEASED, name)
        sent = only(only(request_of(RELEASED, number).topic_data).partition_data).records
        got = only(only(response_of(RELEASED, number + 1).responses).partitions).records
        assert (framed in sent, framed in got) == (came_framed, True)
        came, kept = ([(r.key, r.value) for r in Batches(data).records()] for data in (sent, got))
        assert came == kept
        assert len(came) == 2


def test_several_topics():
    """A request is for several topics and partitions; the response has all of them, in any order."""
    number = named(RELEASED, "multi produce")
    sent = [(t.name, p.index) for t in request_of(RELEASED, number).topic_data for p in t.partition_data]
    got = [row[:2] for row in produced(response_of(RELEASED, number))]
    assert sorted(got) == sorted(sent)
    assert got != sent
    assert len(fetched(response_of(RELEASED, named(RELEASED, "multi fetch")))) == 3


@each(
    ("name", "answer"),
    [
        ("fetch", ("t1", 0, 0, 8, 269)),
        ("fetch truncated 40", ("t1", 0, 0, 8, 40)),
        ("fetch mid-compressed", ("t1", 0, 0, 8, 87)),
        ("fetch out of range", ("t1", 0, 1, -1, 0)),
        ("fetch p1 acks0 data", ("t1", 1, 0, 3, 91)),
        ("fetch at end, long poll", ("t1", 0, 0, 8, 0)),
        ("min bytes 0", ("aa", 0, 0, 1, 0)),
        ("fetch p0 from non-leader", ("rr", 0, 6, -1, 0)),
        ("fetch p0 replicaId -2 from follower", ("rr", 0, 0, 0, 0)),
    ],
)
def test_fetch(name, answer):
    """A partition's response has an error, the high watermark, and a set of at most the requested size."""
    number = named(RELEASED, name)
    assert fetched(response_of(RELEASED, number)) == [answer]
    request = request_of(RELEASED, number)
    assert request.replica_id == (-2 if "-2" in name else -1)
    assert answer[4] <= only(only(request.topics).partitions).partition_max_bytes


@each("file", BOTH)
@each(
    ("name", "time", "answer"),
    [
        ("offsets time=-1 n=10", -1, ("t1", 0, 0, [8, 0])),
        ("offsets time=-2 n=10", -2, ("t1", 0, 0, [0])),
        ("offsets time=1 n=10", 1, ("t1", 0, 0, [])),
        ("offsets time=-1 n=1", -1, ("t1", 9, 3, [])),
    ],
)
def test_offsets(file, name, time, answer):
    """Starts of segments and the end, highest first; -1 is the end, -2 the start, otherwise a time."""
    number = named(file, name)
    assert only(only(request_of(file, number).topics).partitions).timestamp == time
    assert listed(response_of(file, number)) == [answer]


@pytest.mark.parametrize(("file", "port"), [(RELEASED, 29092), (BETA, 29093)])
def test_coordinators(file, port):
    """The coordinator has id, host and port; with the first error, 15, they are empty."""
    found = [one.decoded_response() for one in FILES[file] if one.name == "consumer metadata"]
    rows = [(a.error_code, a.node_id, a.host, a.port) for a in found[:3]]
    assert rows == [(15, -1, "", -1), (0, 1, HOST, port), (0, 1, HOST, port)]


@each(
    ("file", "number", "rows"),
    [
        (RELEASED, 40, [(-1, "", 3)] * 2),
        (RELEASED, 41, [(-1, "", 0)] * 2),
        (RELEASED, 46, [(6, "", 0), (-1, "", 3)]),
        (RELEASED, 50, [(7, "meta1", 0), (-1, "", 0)]),
        (BETA, 38, [(-1, "", 0)] * 2),
        (BETA, 44, [(6, "meta-ts", 0), (-1, "", 0)]),
        (BETA, 47, [(7, "meta1", 0), (-1, "", 0)]),
    ],
)
def test_committed_offsets(file, number, rows):
    """Without a committed offset, it is -1 and no error, except for released version 0, with its own store.

    Exchange 46 follows a commit in the guide's layout: the released broker lost the metadata.
    """
    assert kept(response_of(file, number)) == rows


def joined(file, scenario):
    found = [(one.decoded_request(), one.decoded_response()) for one in FILES[file] if one.name == scenario]
    return found if len(found) > 1 else only(found)


@pytest.mark.parametrize("file", JOINS)
def test_a_new_member_gets_an_id_and_leads(file):
    """A first member without an id gets one, leads generation 1 and gets the members."""
    request, answer = joined(file, "A joins")
    assert (request.member_id, request.session_timeout_ms) == ("", 10_000)
    assert request.rebalance_timeout_ms == (20_000 if file.endswith("1") else -1)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert answer.leader == answer.member_id != ""
    assert [(member.member_id, member.metadata) for member in answer.members] == [(answer.member_id, b"A")]


@pytest.mark.parametrize("file", JOINS)
def test_a_second_member_starts_a_generation(file):
    """Both members join, the first with its id; the protocol is the common one; the leader gets both."""
    _, first = joined(file, "A joins")
    both = sorted(joined(file, "A hb during rebalance 27"), key=lambda pair: pair[0].member_id)
    (new, following), (again, leading) = both
    assert (new.member_id, again.member_id) == ("", first.member_id)
    assert set.intersection(*({p.name for p in one.protocols} for one in (new, again))) == {"rr"}
    for answer in (following, leading):
        assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 2, "rr")
        assert answer.leader == first.member_id
    assert following.members == []
    assert {m.member_id: m.metadata for m in leading.members} == {
        first.member_id: b"B",
        following.member_id: b"BB",
    }


@each("file", JOINS)
@each(
    ("scenario", "code", "generation"),
    [
        ("unknown member join", ErrorCode.UNKNOWN_MEMBER_ID, 0),
        ("wrong protocol type", ErrorCode.INCONSISTENT_GROUP_PROTOCOL, 0),
        ("inconsistent protocol", ErrorCode.INCONSISTENT_GROUP_PROTOCOL, 0),
        ("session timeout too small", ErrorCode.INVALID_SESSION_TIMEOUT, 0),
        ("empty group id", ErrorCode.INVALID_GROUP_ID, 0),
        ("empty protocols", ErrorCode.UNKNOWN_SERVER_ERROR, -1),
    ],
)
def test_joins_are_refused(file, scenario, code, generation):
    """Each invalid request has its code; the response has the member's id."""
    request, answer = joined(file, scenario)
    assert (answer.error_code, answer.generation_id, answer.member_id) == (
        code,
        generation,
        request.member_id,
    )
    assert (answer.leader, answer.members) == ("", [])
