"""EventConsumer.run in a process of its own with a real broker: SIGTERM, and a process that is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import ConsumeError, Decoded, Event, EventConsumer, EventProducer
from cloudevents_kafka.testing import LocalBroker

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


class Service:
    """A process that handles events; ``lines`` are the key and the number of each, in its order."""

    def __init__(self, broker: LocalBroker, topic: str, group: str) -> None:
        argv = [sys.executable, "-c", SERVICE, broker.bootstrap_servers, topic, group]
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
        rest, _ = self._process.communicate(timeout=30)
        for line in rest.splitlines():
            self._add(line)
        assert self._process.returncode == (0 if number == signal.SIGTERM else -number)
        return time.monotonic() - start


@pytest.mark.broker
@pytest.mark.slow
def test_events_are_handled_in_order_through_signals(kafka_broker: LocalBroker) -> None:
    """SIGTERM ends within the bound and repeats nothing; a kill loses nothing; keys keep their order."""
    topic = kafka_broker.create_topic(f"run-{uuid.uuid4()}", partitions=3)
    client = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0})
    with EventProducer(client, topic=topic) as producer:
        for number in range(COUNT):
            producer.send(Event(id=str(number), source="/s", type="t"), key=f"k{number % 17}")
    group, seen = f"g-{uuid.uuid4()}", []
    for number, count in ((signal.SIGTERM, 60), (signal.SIGKILL, 60), (signal.SIGTERM, 0)):
        service = Service(kafka_broker, topic, group)
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
        assert all(events == sorted(events) for events in in_order.values())
        seen += service.lines
    assert {event for _, event in seen} == set(range(COUNT))
    done = [event for _, event in seen[:first]]
    assert not set(done) & {event for _, event in seen[first:]}
    assert len(set(done)) == first


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
    monkeypatch.setattr("cloudevents_kafka.handling._COMMIT_SECONDS", 0.1)
    client = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0})
    with EventProducer(client, topic=kafka_topic) as producer:
        for number in range(COUNT):
            producer.send(Event(id=str(number), source="/s", type="t"), partition=0)
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
        assert int(item.event.id) in (len(done) - 1, len(done))  # one more may end after the bound
