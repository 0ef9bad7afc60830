"""EventConsumer.run in a process of its own with a real broker: SIGTERM, and a process that is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import defaultdict
from contextlib import closing
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from cloudevents_kafka import (
    ConsumeError,
    DeadLetter,
    DeadLetterError,
    DeadLetters,
    Decoded,
    Event,
    EventConsumer,
    EventProducer,
    NotAnEvent,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeMessage, LocalBroker

COUNT = 400
SERVICE = """
import os, sys, time
from confluent_kafka import Consumer
from cloudevents_kafka import EventConsumer
servers, topic, group = sys.argv[1:]
client = Consumer({
    "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest",
    "enable.auto.commit": False, "group.instance.id": "one", "log_level": 0,
})
client.subscribe([topic])
def handle(item):
    time.sleep(0.02)
    os.write(1, item.record.key + b" %s\\n" % item.event.id.encode())  # in one call: there are threads
with EventConsumer(client) as events:
    events.run(handle, concurrency=4, stop_timeout=10, idle_timeout=float("inf"))
"""


ASYNC_SERVICE = """
import asyncio, os, sys
from aiokafka import AIOKafkaConsumer
from cloudevents_kafka import AsyncEventConsumer
servers, topic, group, kind = sys.argv[1:]
async def handle(item):
    await asyncio.sleep(0.02)
    os.write(1, item.record.key + b" %s\\n" % item.event.id.encode())
async def main():
    client = {
        "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest",
        "group.instance.id": "one", "log_level": 0,
    }
    if kind == "aiokafka":
        client = AIOKafkaConsumer(
            bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest",
            enable_auto_commit=False, group_instance_id="one",
        )
        await client.start()
    async with AsyncEventConsumer(client, topics=[topic]) as events:
        await events.run(handle, concurrency=4, stop_timeout=10)
asyncio.run(main())
"""
SERVICES = {
    "threads": [SERVICE],
    "asyncio": [ASYNC_SERVICE, "asyncio"],
    "aiokafka": [ASYNC_SERVICE, "aiokafka"],
}


class Service:
    """A process that handles events; ``lines`` are the key and the number of each, in its order."""

    def __init__(self, broker: LocalBroker, topic: str, group: str, loop: str) -> None:
        code, *kind = SERVICES[loop]
        argv = [sys.executable, "-c", code, broker.bootstrap_servers, topic, group, *kind]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.lines: list[tuple[str, int]] = []

    def read(self, count: int) -> None:
        assert self._process.stdout is not None
        for _ in range(count):
            self._add(self._process.stdout.readline())

    def _add(self, line: str) -> None:
        key, number = line.split()
        self.lines.append((key, int(number)))

    def end(self, number: int) -> float:
        """Send a signal, read the rest, and return the seconds to the end."""
        start = time.monotonic()
        self._process.send_signal(number)
        with self._process as process:
            assert process.stdout is not None
            for line in process.stdout:  # communicate() loses what readline() has read ahead
                self._add(line)
        assert process.returncode == (0 if number == signal.SIGTERM else -number)
        return time.monotonic() - start


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("loop", ["threads", "asyncio", pytest.param("aiokafka", marks=pytest.mark.release)])
def test_events_are_handled_in_order_through_signals(kafka_broker: LocalBroker, loop: str) -> None:
    """SIGTERM ends within the bound and repeats nothing; a kill loses nothing; keys keep their order."""
    topic = kafka_broker.create_topic(f"run-{uuid.uuid4()}", partitions=3)
    # Otherwise a request that is sent again comes after later ones.
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers, "enable.idempotence": True}
    with EventProducer(settings, topic=topic) as producer:
        for number in range(COUNT):
            producer.send(Event(id=str(number), source="/s", type="t"), key=f"k{number % 17}")
    group, seen = f"g-{uuid.uuid4()}", []
    for number, count in ((signal.SIGTERM, 60), (signal.SIGKILL, 60), (signal.SIGTERM, 0)):
        service = Service(kafka_broker, topic, group, loop)
        if number == signal.SIGTERM and count == 0:
            missing = set(range(COUNT)) - {event for _, event in seen}
            while not missing <= {event for _, event in service.lines}:
                service.read(1)
        service.read(count)
        seconds = service.end(number)
        assert seconds < 12
        if count and number == signal.SIGTERM:
            first = len(service.lines)
        in_order = defaultdict(list)
        for key, event in service.lines:
            in_order[key].append(event)
        assert {key: events for key, events in in_order.items() if events != sorted(events)} == {}
        seen += service.lines
    assert {event for _, event in seen} == set(range(COUNT))
    done = [event for _, event in seen[:first]]
    assert not set(done) & {event for _, event in seen[first:]}
    assert len(set(done)) == first


class Member:
    """A process with a consumer of one partition, whose record 2 is slow; it prints what it handles.

    What is printed last is the class of the error that has ended `run`.
    """

    CODE = """
import os, sys, time
from confluent_kafka import Consumer
from cloudevents_kafka import EventConsumer
client = Consumer({
    "bootstrap.servers": sys.argv[1], "group.id": sys.argv[3],
    "auto.offset.reset": "earliest", "log_level": 0,
    **dict(setting.split("=") for setting in sys.argv[5:]),
})
client.subscribe([sys.argv[2]])
def handle(item):
    if item.event.id == "2":
        os.write(1, b"begun\\n")
        time.sleep(float(sys.argv[4]))
    os.write(1, item.event.id.encode() + b"\\n")
try:
    EventConsumer(client).run(handle, stop_timeout=1)
except Exception as error:
    os.write(1, type(error).__name__.encode() + b"\\n")
"""

    def __init__(
        self, broker: LocalBroker, topic: str, group: str, seconds: float, **settings: object
    ) -> None:
        names = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        servers = broker.bootstrap_servers
        argv = [sys.executable, "-c", self.CODE, servers, topic, group, str(seconds), *names]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def lines_to(self, last: str) -> list[str]:
        """Return the lines up to one, or to the end of the process."""
        assert self.process.stdout is not None
        lines = list[str]()
        for line in self.process.stdout:
            lines.append(line.strip())
            if lines[-1] == last:
                break
        return lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def send(broker: LocalBroker, topic: str, count: int) -> None:
    client = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    with EventProducer(client, topic=topic) as producer:
        for number in range(count):
            producer.send(Event(id=str(number), source="/s", type="t"), partition=0)


def committed(broker: LocalBroker, topic: str, group: str) -> int:
    """Return the group's offset of partition 0."""
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0})
    with closing(client):
        return int(client.committed([TopicPartition(topic, 0)], timeout=10)[0].offset)


@pytest.mark.broker
@pytest.mark.slow
def test_automatic_commits_lose_nothing_when_the_process_is_killed(
    kafka_broker: LocalBroker, kafka_topic: str
) -> None:
    """`run` ends before that, or the group's offset is that of the unfinished record; the queue is full."""
    send(kafka_broker, kafka_topic, 40)
    group, one = f"g-{uuid.uuid4()}", {"group_instance_id": "one"}  # it joins again at once
    with Member(kafka_broker, kafka_topic, group, 60, auto_commit_interval_ms=1000, **one) as member:
        assert member.lines_to("ConsumeError") == ["0", "1", "begun", "ConsumeError"]
    assert committed(kafka_broker, kafka_topic, group) == 2
    with Member(kafka_broker, kafka_topic, group, 0, enable_auto_commit=False, **one) as member:
        assert member.lines_to("39") == ["begun", *map(str, range(2, 40))]


@pytest.mark.broker
@pytest.mark.release
@pytest.mark.parametrize("marked", [True, False])
def test_a_member_that_was_stopped_is_not_accused(
    kafka_broker: LocalBroker, kafka_topic: str, *, marked: bool
) -> None:
    """Its partition moved to a member that runs, or to one that commits otherwise; neither ends."""
    send(kafka_broker, kafka_topic, 40)
    group = f"g-{uuid.uuid4()}"
    settings = {"enable_auto_commit": False, "session_timeout_ms": 6000}
    with Member(kafka_broker, kafka_topic, group, 15, **settings) as member:
        assert member.lines_to("begun") == ["0", "1", "begun"]
        member.process.send_signal(signal.SIGSTOP)
        if marked:
            with Member(kafka_broker, kafka_topic, group, 0, **settings) as other:
                assert other.lines_to("39")[-1] == "39"
                member.process.send_signal(signal.SIGCONT)
                assert member.lines_to("2")[-1] == "2"
                assert (member.process.poll(), other.process.poll()) == (None, None)
        else:
            with consumer(kafka_broker, kafka_topic, group, **{"session.timeout.ms": 6000}) as events:
                for item in events.items():
                    if item.record.offset == 20:
                        events.commit(item)
                        break
                member.process.send_signal(signal.SIGCONT)
                assert member.lines_to("2")[-1] == "2"
                assert member.process.poll() is None


def consumer(broker: LocalBroker, topic: str, group: str, **settings: Any) -> EventConsumer[Consumer]:
    """Return a consumer whose client commits by itself, unless settings say otherwise."""
    names = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group}
    client = Consumer({**names, "auto.offset.reset": "earliest", "log_level": 0, **settings})
    client.subscribe([topic])
    return EventConsumer(client)


@pytest.mark.broker
def test_a_client_that_commits_by_itself_is_found(
    kafka_broker: LocalBroker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the setting, and the group reads on from what was not done."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.1)
    send(kafka_broker, kafka_topic, COUNT)
    group, done = f"g-{uuid.uuid4()}", []

    def handle(item: Decoded) -> None:
        time.sleep(0.05)
        done.append(int(item.event.id))

    with (
        consumer(kafka_broker, kafka_topic, group, **{"auto.commit.interval.ms": 200}) as events,
        pytest.raises(ConsumeError, match=r"enable.auto.commit must be False for run\(\)"),
    ):
        events.run(handle, stop_timeout=0, idle_timeout=20)
    with consumer(kafka_broker, kafka_topic, group) as events:
        item = next(events.items(idle_timeout=20))
        assert isinstance(item, Decoded)
        assert int(item.event.id) <= len(done)  # a commit that the broker did not answer in time is none


def test_a_dead_letter_larger_than_the_client_sends_is_explained() -> None:
    """The client refuses it without a broker: the error has the record, the size, and what failed."""
    client = Producer({"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": 2000, "log_level": 0})
    reader = FakeConsumer([FakeMessage("orders", value=b"1", headers=[("x", bytes(1950))])])
    reader.subscribe(["orders"])
    letters = DeadLetters(EventProducer(client), topic="orders.dead")
    expected = r"^orders\[0\]@0: no dead letter: .*code=MSG_SIZE_TOO_LARGE.*; it has 2,\d\d\d bytes, and the "
    with pytest.raises(DeadLetterError, match=expected) as caught:
        EventConsumer(reader).run(print, on_failure=letters, idle_timeout=0)
    assert isinstance(caught.value.error, NotAnEvent)
    assert isinstance(caught.value.__cause__, KafkaException)


@pytest.mark.broker
@pytest.mark.parametrize("limited", ["client", "topic"])
def test_a_dead_letter_too_large_for_its_topic_is_sent_without_its_value(
    kafka_broker: LocalBroker, *, limited: str
) -> None:
    """The client or the broker refuses it, and takes the letter without the value."""
    topic = kafka_broker.create_topic(
        f"dead-{limited}", config={"max.message.bytes": "3000"} if limited == "topic" else None
    )
    settings: dict[str, Any] = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    settings |= {"message.max.bytes": 3000} if limited == "client" else {}
    reader = FakeConsumer([FakeMessage("orders", value=bytes(4000))])
    reader.subscribe(["orders"])
    with EventProducer(settings) as producer:
        letters = DeadLetters(producer, topic=topic)
        counts = EventConsumer(reader).run(print, on_failure=letters, idle_timeout=0)
    assert counts.dead == 1
    names = {"bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": topic}
    client = Consumer({**names, "auto.offset.reset": "earliest", "log_level": 0})
    client.subscribe([topic])
    with EventConsumer(client) as events:
        record = next(events.items(idle_timeout=20)).record
    letter = DeadLetter.of(record)
    assert letter is not None
    assert (record.value, letter.value_size, letter.topic, letter.offset) == (None, 4000, "orders", 0)


@pytest.mark.broker
@pytest.mark.parametrize("appears", [False, True])
def test_a_pattern_that_matches_the_dead_letters_ends_the_run(
    kafka_broker: LocalBroker, *, appears: bool
) -> None:
    """Dead letters have no letters of their own, also if their topic appears while a record is unfinished.

    A record that is handled again, as the group is rebalanced then, has another letter.
    """
    name = f"orders-{uuid.uuid4()}"
    topic, dead = kafka_broker.create_topic(f"{name}.new"), f"{name}.dead"
    send(kafka_broker, topic, 1)
    if not appears:
        kafka_broker.create_topic(dead)

    handled: list[str | None] = []

    def fail(item: Decoded) -> None:
        if appears and not handled:
            kafka_broker.create_topic(dead)
        handled.append(item.record.topic)
        raise ValueError("no")

    settings = {"topic.metadata.refresh.interval.ms": 200, "enable.auto.commit": False}
    writer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0})
    with (
        EventProducer(writer) as producer,
        consumer(kafka_broker, f"^{name}[.].*", f"g-{name}", **settings) as events,
        pytest.raises(ValueError, match="on_failure must send to a topic that the consumer does not read"),
    ):
        events.run(fail, on_failure=DeadLetters(producer, topic=dead), idle_timeout=30)
    with consumer(kafka_broker, dead, f"look-{name}") as events:
        letters = [DeadLetter.of(item.record) for item in events.items(idle_timeout=2)]
    assert [letter and letter.topic for letter in letters] == [topic] * len(letters)
    assert len(letters) <= len(handled)
    assert set(handled) <= {topic}


class Noting(Consumer):
    """A client that notes what is paused."""

    paused = threading.Event()

    def pause(self, partitions: list[TopicPartition]) -> None:
        super().pause(partitions)
        self.paused.set()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("assignor", ["range", pytest.param("cooperative-sticky", marks=pytest.mark.release)])
def test_a_paused_partition_is_read_when_it_comes_back(kafka_broker: LocalBroker, assignor: str) -> None:
    """Another member joins and leaves while a partition is paused for a slow record: all is handled then."""
    topic, seen, gate = uuid.uuid4().hex, set[int](), threading.Event()
    settings = {
        "bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": topic, "log_level": 0,
        "auto.offset.reset": "earliest", "enable.auto.commit": False, "heartbeat.interval.ms": 300,
        "partition.assignment.strategy": assignor,
    }  # fmt: skip
    kafka_broker.create_topic(topic, partitions=2)
    client = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for number in range(400):
        event = to_record(Event(id=str(number), source="/s", type="t", data=number))
        headers: Any = event.headers
        client.produce(topic, event.value, f"k{number}", number % 2, headers=headers)
    client.flush()

    def handle(item: Decoded) -> None:
        if item.event.data == 0:
            gate.wait(60)
        seen.add(item.event.data)

    with EventConsumer(Noting(settings), topics=[topic]) as events:
        events.consumer.paused.clear()
        running = threading.Thread(
            target=events.run,
            args=(handle,),
            kwargs={
                "max_ahead": 2,
                "max_bytes": 100_000,
                "concurrency": 4,
                "revoke_timeout": 0.1,
                "idle_timeout": 5,
            },
        )
        running.start()
        assert events.consumer.paused.wait(60)
        with closing(Consumer(settings)) as other:
            other.subscribe([topic])
            while not other.assignment():
                other.poll(0.1)
        gate.set()
        running.join(100)
    assert seen == set(range(400))


@pytest.mark.release  # tests/clients/test_run_under_load.py has the law with fakes
def test_a_slow_handler_fetches_little_twice(kafka_broker: LocalBroker) -> None:
    """A pause makes the client drop what it has fetched: it fetches at most 1.5 times what is read."""
    topic = kafka_broker.create_topic(f"slow-{uuid.uuid4()}", partitions=4)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0})
    record = to_record(Event(id="1", source="/s", type="t", data=bytes(100)))
    headers: Any = record.headers
    for number in range(24_000):
        producer.produce(topic, record.value, partition=number % 4, headers=headers)
        producer.poll(0)
    assert producer.flush(60) == 0
    fetched: dict[str, int] = {}

    def count(text: str) -> None:
        for name, place in json.loads(text)["topics"].get(topic, {}).get("partitions", {}).items():
            fetched[name] = place["rxmsgs"]

    settings = {
        "bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": topic, "log_level": 0,
        "auto.offset.reset": "earliest", "statistics.interval.ms": 100, "stats_cb": count,
    }  # fmt: skip
    with EventConsumer(settings, topics=[topic]) as events:
        result = events.run(lambda _: time.sleep(0.0001), max_ahead=50, idle_timeout=1)
    assert result.handled == 24_000
    assert 24_000 <= sum(fetched.values()) <= 1.5 * 24_000
