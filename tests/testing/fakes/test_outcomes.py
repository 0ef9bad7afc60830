"""The fakes return and refuse what confluent-kafka's clients do with a real broker, call by call."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer, LocalBroker
from tests.support.cases import each

SCRIPT: Any = run_path(str(Path(__file__).with_name("calls.py")))
CALLS, outcome = SCRIPT["CALLS"], SCRIPT["outcome"]
TIMES = (1000, 1001, 1002)
_numbers = count(1)


@dataclass
class Real:
    """The real clients, each with a group or transactional id of its own."""

    servers: str
    topic: str
    waits: bool = True

    def producer(self, **settings: Any) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "log_level": 0, **settings})

    def transactional(self) -> Producer:
        return self.producer(**{"transactional.id": f"{self.topic}-{next(_numbers)}"})

    def consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"{self.topic}-{next(_numbers)}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )


class Fake:
    """The fakes on a log of the same messages."""

    waits = False

    def __init__(self, topic: str, *, is_known: bool = False) -> None:
        self.topic = topic
        self.is_known = is_known
        self.log = FakeLog([FakeMessage(topic, b"v", timestamp=at) for at in TIMES])

    def producer(self) -> FakeProducer:
        return FakeProducer(self.log)

    def transactional(self) -> FakeProducer:
        producer = FakeProducer(self.log, transactional=True)
        if self.is_known:
            producer.list_topics(self.topic)
        return producer

    def consumer(self) -> FakeConsumer:
        return FakeConsumer(self.log, auto_commit=False)


@pytest.fixture(scope="module")
def written(kafka_broker: LocalBroker) -> Real:
    """The real clients, and a topic with three messages that no call adds to."""
    real = Real(kafka_broker.bootstrap_servers, kafka_broker.create_topic("outcomes"))
    producer = real.producer()
    for at in TIMES:
        producer.produce(real.topic, b"v", timestamp=at)
    assert producer.flush(10) == 0
    kafka_broker.create_topic("sent")
    return real


@each("name", CALLS)
def test_the_fakes_have_an_outcome_for_each_call(name: str) -> None:
    """Without a broker, no call ends in an error that the client does not have, and it is the same again."""
    found = outcome(lambda: CALLS[name](Fake("orders")))
    assert found == outcome(lambda: CALLS[name](Fake("orders")))
    assert found not in ("raised AttributeError", "raised KeyError", "raised IndexError")


@pytest.mark.broker
@each("name", CALLS)
def test_the_fakes_do_what_the_clients_do(written: Real, name: str) -> None:
    """A call returns the same, or raises the same class and code, with the real clients and the fakes."""
    topic = written.topic if name.startswith("consumer") else "sent"
    expected = outcome(lambda: CALLS[name](Real(written.servers, topic)))
    found = outcome(lambda: CALLS[name](Fake(topic)))
    if (
        found != expected and "begin, partition 99" in name
    ):  # the client may have the topic's metadata by then
        found = outcome(lambda: CALLS[name](Fake(topic, is_known=True)))
    assert found == expected
