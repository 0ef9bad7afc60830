"""The group is served while a processor waits: with fakes, and with a real broker."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from unittest.mock import patch

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    TransactionError,
    Undecodable,
    to_record,
)
from cloudevents_kafka.clients._serving import Serving
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer, LocalBroker


def message(number: int, partition: int = 0) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t"))
    return FakeMessage("in", record.value, str(number), record.headers, partition=partition)


def fake(count: int, partitions: int = 1) -> FakeConsumer:
    client = FakeConsumer(
        FakeLog([message(number, number % partitions) for number in range(count)]), auto_commit=False
    )
    client.subscribe(["in"])
    return client


@given(st.lists(st.sampled_from(["poll", "poll", "read", "rebalance"]), max_size=40), st.integers(1, 4))
def test_what_is_read_ahead_is_returned_once_and_in_order(steps: list[str], partitions: int) -> None:
    """Any polls, batches and rebalances: no record is missing, and at most one of a partition waits."""
    client = fake(40, partitions)
    events: EventConsumer[Any, Any] = EventConsumer(client)
    serving = Serving(events, events._gathered, None)
    read: dict[int, list[int]] = {each: [] for each in range(partitions)}

    def take() -> None:
        serving.begin()
        batch = next(events.batches(3, 0, idle_timeout=0), [])
        for item in batch:
            read[item.record.partition].append(item.record.offset)
        events.commit(batch)

    with patch("cloudevents_kafka.clients._serving._PATIENCE", 0):
        for step in [*steps, *["read"] * 80]:
            {"poll": serving.poll, "read": take, "rebalance": client.rebalance}[step]()
            assert len(events._gathered.waiting) <= partitions
    sizes = {each: len(range(each, 40, partitions)) for each in range(partitions)}
    assert read == {each: list(range(size)) for each, size in sizes.items()}


def test_a_partition_that_the_user_has_paused_stays_paused() -> None:
    """Only what has returned a record is paused, and read again."""
    client = fake(8, 2)
    events = EventConsumer(client)
    serving = Serving(events, events._gathered, None)
    client.pause([TopicPartition("in", 0)])
    with patch("cloudevents_kafka.clients._serving._PATIENCE", 0):
        for _ in range(5):
            serving.poll()
    assert client._paused == {("in", 0), ("in", 1)}
    serving.begin()
    assert {item.record.partition for batch in events.batches(9, 0, idle_timeout=0) for item in batch} == {1}


def test_an_error_of_a_poll_ends_the_run_after_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handler does at that time is committed: nothing is aborted under it."""
    client = fake(3)
    writer = FakeProducer(client.log, transactional=True)
    producer, seen = EventProducer(writer, topic="out"), list[int]()
    polls = threading.Event()

    def fail(_: float) -> None:
        polls.set()
        raise KafkaException(KafkaError(KafkaError._FATAL))

    def handle(item: Decoded | Undecodable) -> None:
        producer.send_record(item.record)
        assert polls.wait(30)
        seen.append(item.record.offset or 0)

    monkeypatch.setattr(client, "poll", fail)
    with pytest.raises(KafkaException):
        EventProcessor(EventConsumer(client), producer, handle).run(idle_timeout=0)
    assert seen == [0, 1, 2]
    assert client.offsets == {("in", 0): 3}


INTERVAL = {"max.poll.interval.ms": 1500, "session.timeout.ms": 1500, "heartbeat.interval.ms": 200}


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    """A broker whose groups may expel a member soon."""
    with LocalBroker(
        properties={"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 500}
    ) as broker:
        yield broker


class Topic:
    """A topic with two events, and a processor that copies them."""

    def __init__(self, broker: LocalBroker, handle: Callable[[Decoded | Undecodable], object]) -> None:
        self.name, self.handle = broker.create_topic(uuid.uuid4().hex), handle
        servers = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        self.settings = {
            **servers, **INTERVAL, "group.id": self.name, "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }  # fmt: skip
        with EventProducer(servers, topic=self.name) as producer:
            for number in range(2):
                producer.send(Event(id=str(number), source="/s", type="t"))
        self.writing = {**servers, "transactional.id": self.name}

    def run(self, **options: Any) -> int:
        with (
            EventProducer(self.writing, topic=f"{self.name}-out") as producer,
            EventConsumer(self.settings, topics=[self.name]) as events,
        ):
            self.producer = producer
            return EventProcessor(events, producer, self._handle, **options).run(idle_timeout=3)

    def _handle(self, item: Decoded | Undecodable) -> None:
        self.handle(item)
        self.producer.send_record(item.record)

    @property
    def committed(self) -> int:
        with closing(Consumer(self.settings)) as client:
            return int(client.committed([TopicPartition(self.name, 0)], timeout=30)[0].offset)


@pytest.mark.broker
def test_a_handler_may_take_longer_than_the_interval_of_polls(broker: LocalBroker) -> None:
    """Each record is handled once, as the client is polled meanwhile."""
    calls = list[int]()

    def handle(item: Decoded | Undecodable) -> None:
        calls.append(item.record.offset or 0)
        if len(calls) == 1:
            time.sleep(4)

    topic = Topic(broker, handle)
    assert topic.run() == 2
    assert calls == [0, 1]
    assert topic.committed == 2


@pytest.mark.broker
def test_a_member_that_was_expelled_is_explained(
    broker: LocalBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A handler that lets no other thread run: the error names the setting and the seconds, also if idle."""
    monkeypatch.setattr(Serving, "poll", lambda _: None)
    topic = Topic(broker, lambda _: time.sleep(4))
    expected = (
        r"2 transactions for \d records? were aborted, and the group has expelled the member, which did not "
        r"poll for [4-9]\.\d s, and max.poll.interval.ms is 1.5 s: raise this setting, .*UNKNOWN_MEMBER_ID"
    )
    with pytest.raises(TransactionError, match=expected):
        topic.run(transactions=2, max_records=1)
    assert "was aborted, and its records are read again" in caplog.text
    assert "max.poll.interval.ms is 1.5 s" in caplog.text
    assert topic.committed < 2  # the record of a transaction that came before the group had noticed


@pytest.mark.broker
def test_a_client_that_was_passed_shows_its_interval_when_it_is_expelled(broker: LocalBroker) -> None:
    """From then on a run waits half of it for revoked partitions: members expel each other once."""
    topic = Topic(broker, lambda _: None)
    client = Consumer(topic.settings)
    client.subscribe([topic.name])
    with EventConsumer(client) as events:
        assert events.bound_revocation(60) == 60
        end = time.monotonic() + 60
        while events.bound_revocation(60) == 60 and time.monotonic() < end:
            if events.poll(5) is not None:
                time.sleep(4)
        assert events.bound_revocation(60) == 0.75
        assert events.bound_revocation(0.5) == 0.5
