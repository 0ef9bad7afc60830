"""Groups on real brokers: committed offsets, and members that join and leave."""

from __future__ import annotations

import threading
import time

import pytest

from cloudevents_kafka.protocol import BrokerError, Unsupported

from .kafkas import delivered, since, write

QUICK = {"session_timeout": 6.0, "heartbeat_interval": 0.2, "reset": "earliest", "auto_commit": None}


def test_offsets_are_kept(client, topic):
    """A group has no offset until one is committed, then the last committed one."""
    place, group = (topic, 0), f"keeps-{topic}"
    assert client.committed(group, [place]) == {}
    for offset in (3, 7):
        client.commit(group, {place: offset})
        assert client.committed(group, [place]) == {place: offset}
    assert client.committed(f"other-{topic}", [place]) == {}


def test_reading_continues_at_the_committed_offset(client, topic):
    """A consumer with assigned partitions starts at the offset of its group."""
    delivered(write(client, topic, [{"value": b"%d" % n} for n in range(6)]))
    found = []
    for _ in range(2):
        with client.consumer(group=f"on-{topic}", reset="earliest", auto_commit=None) as consumer:
            consumer.assign(consumer.committed([Part(topic)]))
            found += [message.value() for message in consumer.consume(3, 20)]
            consumer.commit()
    assert found == [b"%d" % n for n in range(6)]


class Part:
    def __init__(self, topic, partition=0):
        self.topic, self.partition, self.offset = topic, partition, -1001


@pytest.fixture
def halves(kafka, client):
    """Return two topics of one partition, for brokers that cannot create a topic of two."""
    topics = [kafka.topic(client) for _ in range(2)]
    for name in topics:
        delivered(write(client, name, [{"value": b"%d" % n} for n in range(5)]))
    return topics


@pytest.mark.parametrize("kafka", since(0, 9), indirect=True)
@pytest.mark.parametrize("assignor", ["range", pytest.param("roundrobin", marks=pytest.mark.release)])
def test_two_members_share_partitions(client, halves, assignor):
    """A second member triggers a rebalance; when it leaves, the first member has all partitions."""
    group = f"group-{halves[0]}"
    settings = {**QUICK, "group": group, "assignors": [assignor]}
    spread = {
        "roundrobin": ([halves[0]], [halves[1]]),
        "range": (halves, []),  # topic by topic, some member first
    }[assignor]
    with client.consumer(**settings) as first:
        first.subscribe(halves)
        until(lambda: topics_of(first) == halves, first)
        with client.consumer(**settings) as second:
            second.subscribe(halves)
            until(lambda: joined(second) and shares(first, second) == sorted(spread), first, second)
        until(lambda: topics_of(first) == halves, first)


@pytest.mark.parametrize("kafka", since(0, 9), indirect=True)
def test_a_member_reads_commits_and_is_followed(client, halves):
    """A new member does not read records that another member committed."""
    group, seen = f"follow-{halves[0]}", []
    for number in (6, 4):
        with client.consumer(**QUICK, group=group) as member:
            member.subscribe(halves)
            found = member.consume(number, 20)
            seen += [(message.topic(), message.value()) for message in found]
            member.commit()
    assert sorted(seen) == sorted((name, b"%d" % n) for name in halves for n in range(5))
    assert client.committed(group, [(name, 0) for name in halves]) == {(name, 0): 5 for name in halves}


@pytest.mark.parametrize("kafka", since(0, 9), indirect=True)
def test_an_empty_group_starts_again(client, topic):
    """A member rejoins a group that was empty, for which 0.9 restarts the generations."""
    delivered(write(client, topic, [{"value": b"v"}]))
    with client.consumer(**QUICK, group=f"anew-{topic}") as member:
        for _ in range(2):
            member.subscribe([topic])
            message = member.poll(10)
            assert message is not None
            assert message.value() == b"v"


@pytest.mark.parametrize("kafka", since(0, 9), indirect=True)
def test_a_member_that_closes_while_it_joins(client, topic):
    """A member that leaves while it joins does not wait for the others."""
    settings = {**QUICK, "group": f"closes-{topic}"}
    with client.consumer(**settings) as first:
        first.subscribe([topic])
        until(lambda: topics_of(first) == [topic], first)
        second = client.consumer(**settings)
        second.subscribe([topic])
        began = time.monotonic()
        second.close()  # and the first, not polled, does not join again
        assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    "kafka", ["0.9.0.1", pytest.param("4.3.1", marks=pytest.mark.release)], indirect=True
)
def test_a_busy_member_stays(client, topic):
    """A member that is busy for longer than its session is kept alive by its heartbeats."""
    with client.consumer(**QUICK, group=f"busy-{topic}") as member:
        member.subscribe([topic])
        until(lambda: topics_of(member) == [topic], member)
        with pytest.raises(BrokerError):  # while it lives, nobody else may
            client.commit(f"busy-{topic}", {(topic, 0): 1})
        time.sleep(6.5)
        delivered(write(client, topic, [{"value": b"v"}]))
        assert member.poll(20).value() == b"v"
        member.commit()
        assert client.committed(f"busy-{topic}", [(topic, 0)]) == {(topic, 0): 1}


@pytest.mark.parametrize("kafka", ["0.8.2-beta", "0.8.2.2"], indirect=True)
def test_members_need_a_broker_of_0_9(client, topic):
    """Brokers before 0.9 have committed offsets but no members: joining raises an error."""
    with client.consumer(group="g") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(Unsupported, match=r"JoinGroup: the broker accepts no version"):
            consumer.poll(5)


def joined(consumer):
    return consumer._member.state == "stable"


def shares(*consumers):
    return sorted(topics_of(consumer) for consumer in consumers)


def topics_of(consumer):
    return sorted({part.topic for part in consumer.assignment()})


def until(holds, *consumers, seconds=30.0):
    """Poll all consumers, each in its thread, until a condition is true."""
    over = threading.Event()

    def turn(consumer):
        while not over.is_set():
            consumer.poll(0.1)

    threads = [threading.Thread(target=turn, args=(consumer,)) for consumer in consumers]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < end:
        time.sleep(0.02)
    over.set()
    for thread in threads:
        thread.join()
    assert found
