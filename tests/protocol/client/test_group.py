"""`GroupMember`: assignments, rebalances, joining and leaving."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from cloudevents_kafka.protocol.client import STORED, Consumer, TopicPartition, _offsets
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, ClientError
from tests.support.wire import eventually, fill, numbers, take
from tests.support.wire_broker import faults

FETCH, METADATA, COMMIT, FETCH_OFFSETS, FIND, JOIN, HEARTBEAT, LEAVE, SYNC = 1, 3, 8, 9, 10, 11, 12, 13, 14
MODERN = ["0.9", "0.10", "1.1", "3.9", "4.3"]


class Log(list):
    """The calls of a consumer's callbacks."""

    def assign(self, _consumer, parts):
        self.append(("assign", [(part.topic, part.partition) for part in parts]))

    def revoke(self, _consumer, parts):
        self.append(("revoke", [(part.topic, part.partition, part.offset) for part in parts]))


@pytest.fixture
def join(connect, stack):
    """Return a function that creates members."""

    def join(broker, topics=("t",), log=None, timeout=5.0, metadata_max_age=300.0, **more):
        client = connect(broker, timeout=timeout, metadata_max_age=metadata_max_age)
        settings = {
            "group": "g",
            "reset": "earliest",
            "heartbeat_interval": 0.05,
            "max_wait": 0.05,
            "session_timeout": 6.0,
            "rebalance_timeout": 5.0,
        }
        consumer = stack.enter_context(client.consumer(**{**settings, **more}))
        log = Log() if log is None else log
        consumer.subscribe(list(topics), log.assign, log.revoke)
        return consumer

    return join


def poll_until(*consumers, until, seconds=8.0):
    """Poll all in turn until something holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for consumer in consumers:
            consumer.poll(0.02)
        if until():
            return True
    return False


def owned(consumer):
    return [(part.topic, part.partition) for part in consumer.assignment()]


@pytest.mark.parametrize("release", MODERN)
def test_a_member_reads_commits_and_leaves(start, connect, join, release):
    """On each release with groups, the next member continues after the commit."""
    broker = start(release)
    client = connect(broker)
    fill(client, numbers(5))
    consumer = join(broker)
    assert take(consumer, 5) == numbers(5)
    consumer.close()
    assert broker.group("g").members == {}
    assert client.committed("g", [("t", 0)]) == {("t", 0): 5}
    fill(client, [b"5"])
    assert take(join(broker), 1) == [b"5"]


def test_brokers_without_groups_are_unsupported(start, join):
    """Before 0.9 joining raises `Unsupported`."""
    broker = start("0.8.2")
    broker.create_topic("t")  # 0.8 lists no brokers without topics
    consumer = join(broker)
    with pytest.raises(ClientError, match="JoinGroup"):
        take(consumer, 1)


@pytest.mark.parametrize("assignors", [["range"], ["roundrobin"], ["roundrobin", "range"]])
def test_two_members_share_partitions(start, connect, join, assignors):
    """The second member gets half, after the first has committed and stopped reading."""
    broker = start(settings={"partitions": 4})
    client = connect(broker)
    client.partitions("t")
    for partition in range(4):
        fill(client, numbers(3), partition=partition)
    log = Log()
    one = join(broker, log=log, assignors=assignors)
    assert len(take(one, 12)) == 12
    two = join(broker, assignors=assignors)
    assert poll_until(one, two, until=lambda: len(owned(one)) == len(owned(two)) == 2)
    assert [kind for kind, _ in log] == ["assign", "revoke", "assign"]
    assert sorted(log[1][1]) == [("t", n, 3) for n in range(4)]
    assert sorted(owned(one) + owned(two)) == [("t", n) for n in range(4)]
    assert {at.offset for at in broker.committed_offsets("g").values()} == {3}
    for partition in range(4):
        fill(client, [b"new"], partition=partition)
    found = [take(one, 2), take(two, 2)]
    assert found == [[b"new"] * 2] * 2
    two.close()
    assert poll_until(one, until=lambda: len(owned(one)) == 4)


@pytest.mark.parametrize(
    "code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS]
)
def test_a_heartbeat_error_makes_the_member_rejoin(broker, client, join, code):
    """The member stops reading and joins again; its commit was refused."""
    fill(client, numbers(3))
    log = Log()
    consumer = join(broker, log=log, session_timeout=0.3, rebalance_timeout=0.5)
    assert take(consumer, 3) == numbers(3)
    broker.faults.add(faults.error(code), api=HEARTBEAT)
    assert poll_until(consumer, until=lambda: len(log) == 3)
    assert [kind for kind, _ in log] == ["assign", "revoke", "assign"]
    fill(client, [b"3"])
    found = take(consumer, 1)
    while code == ErrorCode.UNKNOWN_MEMBER_ID and b"3" not in found:  # uncommitted records are read again
        found += take(consumer, 1, 1.0)
    assert found[-1] == b"3"
    assert code == ErrorCode.UNKNOWN_MEMBER_ID or found == [b"3"]


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
@pytest.mark.parametrize("api", [FIND, JOIN, SYNC, HEARTBEAT, COMMIT, FETCH_OFFSETS])
def test_retriable_errors_are_retried(broker, client, join, api, code):
    """Each request of a member is repeated, commits too."""
    fill(client, numbers(3))
    broker.faults.add(faults.error(code), api=api, times=2)
    consumer = join(broker, auto_commit=None)
    assert take(consumer, 3) == numbers(3)
    assert consumer.commit() == [TopicPartition("t", 0, 3)]
    assert eventually(lambda: broker.committed_offsets("g")[("t", 0)].offset == 3)


@pytest.mark.parametrize("api", [FIND, JOIN, SYNC, HEARTBEAT, COMMIT, FETCH_OFFSETS])
@pytest.mark.parametrize("fault", [faults.drop_before, faults.drop_after])
def test_lost_connections_are_replaced(broker, client, join, api, fault):
    """Connections that close at any step are replaced."""
    fill(client, numbers(3))
    broker.faults.add(fault(), api=api)
    consumer = join(broker, auto_commit=None, session_timeout=0.5, rebalance_timeout=1.0)
    assert take(consumer, 3) == numbers(3)
    consumer.commit()
    assert broker.committed_offsets("g")[("t", 0)].offset == 3


@pytest.mark.parametrize("api", [JOIN, SYNC])
@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION]
)
def test_rejoining_backs_off(broker, client, join, api, code):
    """A group that keeps refusing receives a few requests a second."""
    broker.faults.add(faults.error(code), api=api, times=None)
    consumer = join(broker)
    consumer.poll(0.5)
    assert 1 < len(broker.calls(JOIN)) < 20


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ],
)
def test_lasting_errors_are_raised(broker, join, code):
    """`poll` raises the coordinator's error each time."""
    broker.faults.add(faults.error(code), api=JOIN, times=None)
    consumer = join(broker)
    for _ in range(2):
        with pytest.raises(BrokerError, match="group g") as caught:
            take(consumer, 1)
        assert caught.value.code == code


def test_the_coordinator_moves(start, connect, join):
    """Heartbeats and commits go to the new coordinator, and reading continues."""
    broker = start(brokers=2)
    client = connect(broker)
    fill(client, numbers(3))
    broker.move_coordinator("g", 1)
    consumer = join(broker, auto_commit=None)
    assert take(consumer, 3) == numbers(3)
    broker.move_coordinator("g", 2)
    consumer.commit()
    assert client.committed("g", [("t", 0)]) == {("t", 0): 3}
    fill(client, [b"3"])
    assert take(consumer, 1) == [b"3"]
    assert consumer.committed([TopicPartition("t", 0)]) == [TopicPartition("t", 0, 3)]


def test_an_expired_member_rejoins(broker, client, join):
    """After its session expired, as in a suspended process, the member joins again."""
    fill(client, numbers(2))
    consumer = join(broker, session_timeout=0.2, heartbeat_interval=0.6)
    assert take(consumer, 2) == numbers(2)
    time.sleep(0.4)
    assert broker.group("g").members == {}
    fill(client, [b"2"])
    assert b"2" in take(consumer, 2, 2.0)


def test_heartbeats_continue_while_the_user_is_busy(broker, client, join):
    """A member that does not poll for longer than its session stays in the group."""
    fill(client, numbers(2))
    consumer = join(broker, session_timeout=0.3)
    assert take(consumer, 1) == [b"0"]
    (member,) = broker.group("g").members
    time.sleep(0.7)
    assert list(broker.group("g").members) == [member]
    assert take(consumer, 1) == [b"1"]


def test_a_missing_topic_does_not_stop_the_group(start, connect, join):
    """The group reads the topics that exist."""
    broker = start(settings={"auto_create": False})
    broker.create_topic("t")
    fill(connect(broker), numbers(2))
    assert take(join(broker, ["missing", "t"], session_timeout=0.6), 2) == numbers(2)


def test_closing_while_joining(start, connect, join):
    """A member that waits for another to join can close at once."""
    broker = start(settings={"partitions": 2})
    connect(broker).partitions("t")
    one = join(broker, rebalance_timeout=30.0)
    assert poll_until(one, until=lambda: len(owned(one)) == 2)
    two = join(broker, rebalance_timeout=30.0)
    two.poll(0.3)
    began = time.monotonic()
    two.close()
    assert time.monotonic() - began < 20
    assert poll_until(one, until=lambda: len(owned(one)) == 2)


@pytest.mark.parametrize("api", [FIND, JOIN, SYNC, HEARTBEAT])
def test_closing_while_a_coordinator_is_silent(broker, client, join, api):
    """At no step does `close` wait for a missing response."""
    client.partitions("t")
    broker.faults.add(faults.no_response(), api=api)
    consumer = join(broker, timeout=15.0)
    consumer.poll(0.4)
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 12


@pytest.mark.parametrize("joined", [True, False])
def test_closing_without_a_broker(start, connect, join, joined):
    """`close` returns soon if the broker is down, before or after joining."""
    broker = start()
    connect(broker).partitions("t")
    if not joined:
        broker.stop()
    consumer = join(broker, timeout=15.0)
    consumer.poll(0.4)
    broker.stop()
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 12


def test_closing_right_after_subscribing(broker, join):
    """`close` works before there is a connection."""
    began = time.monotonic()
    join(broker).close()
    assert time.monotonic() - began < 60


def test_a_callback_that_raises_does_not_stop_close(broker, client, join):
    """`close` raises the exception of `on_revoke` after leaving the group and ending the thread."""
    fill(client, numbers(1))
    consumer = join(broker)

    def bad(_consumer, _parts):
        raise RuntimeError("bad callback")

    consumer.subscribe(["t"], on_revoke=bad)
    assert take(consumer, 1) == numbers(1)
    with pytest.raises(RuntimeError, match="bad callback"):
        consumer.close()
    assert broker.group("g").members == {}


def test_subscribing_again(broker, client, join):
    """The new topic is read, and the offsets of the former one are committed."""
    fill(client, numbers(2))
    fill(client, [b"u"], "u")
    consumer = join(broker)
    assert take(consumer, 2) == numbers(2)
    consumer.subscribe(["u"])
    assert take(consumer, 1) == [b"u"]
    assert client.committed("g", [("t", 0)]) == {("t", 0): 2}
    consumer.unsubscribe()
    assert consumer.assignment() == []
    assert broker.group("g").members == {}


def test_commits(broker, client, join):
    """A member commits after a message, named offsets, and all positions; a refused commit is raised."""
    fill(client, numbers(5))
    consumer = join(broker, auto_commit=None)
    first = None
    while first is None:
        first = consumer.poll(0.1)
    take(consumer, 4)
    at = [TopicPartition("t", 0)]
    assert consumer.committed(at)[0].offset == -1001
    assert consumer.commit(first) == [TopicPartition("t", 0, 1)] == consumer.committed(at)
    assert consumer.commit(offsets=[TopicPartition("t", 0, 3)]) == consumer.committed(at)
    assert consumer.commit() == [TopicPartition("t", 0, 5)] == consumer.committed(at)
    assert consumer.commit() == []
    for code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
        broker.faults.add(faults.error(code), api=COMMIT)
        with pytest.raises(BrokerError, match=r"group g: t\[0\]"):
            consumer.commit(first)


def test_auto_commit(broker, client, join):
    """Returned records are committed by a later `poll`; fetched ones are not."""
    fill(client, numbers(5))
    consumer = join(broker, auto_commit=0.1)
    assert take(consumer, 2) == numbers(2)
    time.sleep(0.15)
    consumer.poll(0)
    assert broker.committed_offsets("g")[("t", 0)].offset == 2


@pytest.mark.parametrize("end", [Consumer.close, Consumer.unassign, Consumer.unsubscribe])
@pytest.mark.parametrize(("auto_commit", "committed"), [(60.0, {("t", 0): 3}), (None, {})])
def test_auto_commit_of_an_assignment(client, stack, end, auto_commit, committed):
    """A consumer with a group that is not a member commits when it stops reading, unless commits are off."""
    fill(client, numbers(5))
    consumer = stack.enter_context(client.consumer(group="g", reset="earliest", auto_commit=auto_commit))
    consumer.assign([TopicPartition("t", 0, STORED)])
    assert take(consumer, 3) == numbers(3)
    end(consumer)
    assert client.committed("g", [("t", 0)]) == committed


def test_an_assignment_continues_after_the_last_one(client, stack):
    """The offsets of the former assignment are committed before stored offsets are fetched."""
    fill(client, numbers(5))
    consumer = stack.enter_context(client.consumer(group="g", reset="earliest"))
    for part in (numbers(5)[:3], numbers(5)[3:]):
        consumer.assign([TopicPartition("t", 0, STORED)])
        assert take(consumer, len(part)) == part


def test_no_auto_commit(broker, client, join):
    """With ``auto_commit=None`` neither time nor closing commits."""
    fill(client, numbers(3))
    consumer = join(broker, auto_commit=None)
    assert take(consumer, 3) == numbers(3)
    consumer.close()
    assert broker.committed_offsets("g") == {}


def test_a_failed_auto_commit_is_repeated(broker, client, join):
    """A retriable error is not raised, and the commit is repeated."""
    fill(client, numbers(3))
    broker.faults.add(faults.drop_before(), api=COMMIT, times=2)
    consumer = join(broker, auto_commit=0.05)
    assert take(consumer, 3) == numbers(3)
    assert poll_until(
        consumer, until=lambda: [at.offset for at in broker.committed_offsets("g").values()] == [3]
    )


def test_a_failed_assignment_is_repeated(broker, client, join):
    """If the offsets cannot be fetched, the error is raised once, and the next `poll` tries again."""
    fill(client, numbers(3))
    broker.faults.add(faults.error(ErrorCode.TOPIC_AUTHORIZATION_FAILED), api=FETCH_OFFSETS)
    consumer = join(broker)
    with pytest.raises(BrokerError):
        take(consumer, 1)
    assert take(consumer, 3) == numbers(3)


@pytest.mark.parametrize(
    "release",
    [pytest.param("0.10", marks=pytest.mark.release), pytest.param("1.1", marks=pytest.mark.release), "4.3"],
)
def test_many_members_join_and_leave(start, connect, join, release):
    """Each record is read at least once, and all members have left in the end."""
    broker = start(release, settings={"partitions": 6})
    client = connect(broker)
    client.partitions("t")
    done, found, lock = threading.Event(), set(), threading.Lock()

    def consume(number):
        with connect(broker).consumer(
            group="g", reset="earliest", heartbeat_interval=0.05, max_wait=0.05, rebalance_timeout=3.0
        ) as consumer:
            consumer.subscribe(["t"])
            while not done.is_set():
                for message in consumer.consume(10, 0.1):
                    with lock:
                        found.add(message.value())
                if number and len(found) > 30 * number:
                    return

    threads = [threading.Thread(target=consume, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(10):
        for partition in range(6):
            fill(client, [b"%d-%d" % (turn, partition)], partition=partition)
    complete = eventually(lambda: len(found) == 60, 10)
    done.set()
    for thread in threads:
        thread.join()
    assert complete
    assert broker.group("g").members == {}


def test_a_lost_heartbeat_does_not_end_the_session(start, join):
    """A heartbeat without an answer is repeated on another connection before the session expires."""
    broker = start("0.9")
    log = Log()
    consumer = join(broker, log=log, session_timeout=3.0, timeout=30.0)
    assert poll_until(consumer, until=lambda: owned(consumer) == [("t", 0)])
    lost = broker.faults.add(faults.no_response(), api=HEARTBEAT)
    assert eventually(lambda: lost.matched)
    began = time.monotonic()
    consumer.commit(offsets=[TopicPartition("t", 0, 7)])
    assert time.monotonic() - began < 3.0
    beats = len(broker.calls(HEARTBEAT))
    assert eventually(lambda: len(broker.calls(HEARTBEAT)) > beats)
    assert [kind for kind, _ in log] == ["assign"]


def test_a_lost_commit_is_sent_again(start, connect, monkeypatch):
    """A commit without an answer is sent on another connection long before the timeout."""
    monkeypatch.setattr(_offsets, "_ATTEMPT", 0.3)
    broker = start()
    client = connect(broker, timeout=30.0)
    client.partitions("t")
    broker.faults.add(faults.no_response(), api=COMMIT)
    began = time.monotonic()
    client.commit("g", {("t", 0): 3})
    assert time.monotonic() - began < 10
    assert client.committed("g", [("t", 0)]) == {("t", 0): 3}


def test_a_coordinator_with_another_address(start, connect, stack, join):
    """The address in the coordinator's look-up counts: the metadata may have the one before a restart."""
    broker = start(brokers=2)
    broker.create_topic("t")
    broker.move_leader("t", 0, 1)
    broker.move_coordinator("g", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        former = server.getsockname()[1]

    def outdated(_call, answer):
        response = answer()
        for row in response.brokers:
            row.port = former if row.node_id == 2 else row.port
        return response

    broker.faults.add(outdated, api=METADATA, times=None)
    servers = f"{broker.nodes[0].host}:{broker.nodes[0].port}"
    client = connect(servers)
    fill(client, numbers(3))
    client.commit("g", {("t", 0): 1})
    assert client.committed("g", [("t", 0)]) == {("t", 0): 1}
    assert take(join(servers), 2) == numbers(3)[1:]


# --- topics that change ------------------------------------------------------------------


def test_new_partitions_are_assigned(start, connect, stack, join):
    """The leader of a group sees new partitions of a topic, and all members read them."""
    broker = start()
    broker.create_topic("t", 2)
    member = join(broker, metadata_max_age=0.2)
    other = join(broker, metadata_max_age=0.2)
    assert poll_until(member, other, until=lambda: len(owned(member)) == len(owned(other)) == 1, seconds=60)
    broker.add_partitions("t", 4)
    fill(connect(broker), [b"new"], partition=3)
    found = []

    def read():
        messages = [consumer.poll(0.02) for consumer in (member, other)]
        found.extend(message.value() for message in messages if message is not None)
        return found == [b"new"] and len(owned(member)) == len(owned(other)) == 2

    assert eventually(read)


def test_a_topic_that_is_created_later_is_read(start, connect, join):
    """A member whose topic does not exist yet reads it once it does."""
    broker = start(settings={"auto_create": False})
    broker.create_topic("t")
    consumer = join(broker, ("t", "later"))
    assert poll_until(consumer, until=lambda: owned(consumer) == [("t", 0)], seconds=60)
    broker.create_topic("later")
    fill(connect(broker), [b"1"], "later")
    assert take(consumer, 1, seconds=60) == [b"1"]
    assert owned(consumer) == [("later", 0), ("t", 0)]


def test_a_group_whose_topics_do_not_change_stays(broker, connect, join):
    """Looking for new partitions does not make the group join again, also if a topic is away for a moment."""
    broker.create_topic("t")
    consumer = join(broker, metadata_max_age=0.05)
    assert poll_until(consumer, until=lambda: owned(consumer) == [("t", 0)], seconds=60)
    joins, asked = len(broker.calls(JOIN)), len(broker.calls(METADATA))
    broker.faults.add(faults.error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t"), api=METADATA, times=3)
    assert poll_until(consumer, until=lambda: len(broker.calls(METADATA)) > asked + 8, seconds=60)
    assert len(broker.calls(JOIN)) == joins


def test_a_deleted_topic_stays_deleted(broker, join):
    """No request of a member asks the broker to create a topic, which may have been deleted."""
    broker.create_topic("t")
    consumer = join(broker, metadata_max_age=0.05)
    assert poll_until(consumer, until=lambda: owned(consumer) == [("t", 0)], seconds=60)
    broker.faults.add(faults.error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t"), api=FETCH, times=2)
    assert poll_until(consumer, until=lambda: len(broker.calls(METADATA)) > 8, seconds=60)
    asked = [call.message for call in broker.calls(METADATA) if call.message.topics]
    assert not any(message.allow_auto_topic_creation for message in asked)
