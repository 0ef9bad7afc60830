"""What consumers answer to a health check on a real broker, and while none is there."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from cloudevents_kafka import AsyncEventConsumer, Decoded, Event, EventConsumer, EventProducer
from cloudevents_kafka.testing import LocalBroker

pytestmark = pytest.mark.broker
HANG = 60.0  # seconds that only a hang takes


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold"
        time.sleep(0.02)


class Member:
    """A member of a group in a thread, with either kind of run; ``events`` is its consumer."""

    def __init__(self, servers: str, topic: str, group: str, kind: str) -> None:
        self.servers, self.topic, self.group = servers, topic, group
        self.settings = {"bootstrap.servers": servers, "group.id": group, "log_level": 0}
        self.settings["auto.offset.reset"] = "earliest"
        self.events: Any = None
        self.begun, self.go_on = threading.Event(), threading.Event()
        runs = {"threads": self._run, "asyncio": self._run_tasks, "aiokafka": self._run_aiokafka}
        self.thread = threading.Thread(target=runs[kind], daemon=True)
        self.thread.start()
        until(lambda: self.events is not None)

    def stop(self) -> None:
        self.go_on.set()
        self.events.stop()
        self.thread.join(HANG)
        assert not self.thread.is_alive()

    def _handle(self, item: Decoded) -> None:
        self.begun.set()
        assert self.go_on.wait(HANG)

    async def _handle_in_task(self, item: Decoded) -> None:
        self.begun.set()
        assert await asyncio.to_thread(self.go_on.wait, HANG)

    def _run(self) -> None:
        with EventConsumer(self.settings, topics=[self.topic]) as self.events:
            self.events.run(self._handle)

    def _run_tasks(self) -> None:
        async def main() -> None:
            async with AsyncEventConsumer(self.settings, topics=[self.topic]) as self.events:
                await self.events.run(self._handle_in_task)

        asyncio.run(main())

    def _run_aiokafka(self) -> None:
        async def main() -> None:
            async with (
                AIOKafkaConsumer(
                    bootstrap_servers=self.servers,
                    group_id=self.group,
                    auto_offset_reset="earliest",
                    enable_auto_commit=False,
                ) as client,
                AsyncEventConsumer(client, topics=[self.topic]) as self.events,
            ):
                await self.events.run(self._handle_in_task)

        asyncio.run(main())


@pytest.mark.parametrize("kind", ["threads", pytest.param("asyncio", marks=pytest.mark.release), "aiokafka"])
def test_health_through_a_handler_that_hangs_and_a_rebalance(kafka_broker: LocalBroker, kind: str) -> None:
    """A record is in work while a rebalance waits for it, and then each member has its partitions."""
    topic = kafka_broker.create_topic(f"health-{uuid.uuid4()}", partitions=2)
    servers = kafka_broker.bootstrap_servers
    with EventProducer({"bootstrap.servers": servers}, topic=topic) as producer:
        producer.send(Event(id="1", source="/s", type="t"))
    both = ((topic, 0), (topic, 1))
    first = Member(servers, topic, topic, kind)
    try:
        assert first.begun.wait(HANG)
        until(lambda: first.events.health().assignment == both)
        second = Member(servers, topic, topic, kind)
        try:
            until(lambda: first.events.health().seconds_in_work > 1)
            assert first.events.health().records_in_work == 1
            first.go_on.set()
            until(lambda: first.events.health().records_in_work == 0)

            def shared() -> list[Any]:
                return sorted(first.events.health().assignment + second.events.health().assignment)

            until(lambda: shared() == list(both) and second.events.health().assignment)
            until(lambda: first.events.health().seconds_since_poll < 1)
        finally:
            second.stop()
    finally:
        first.stop()
    assert first.events.health().assignment == ()


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_health_while_no_broker_is_there(kind: str) -> None:
    """A consumer whose broker is away polls on: to start the process again would not help."""
    member = Member("127.0.0.1:1", "in", "g", kind)
    try:
        began = time.monotonic()
        until(lambda: time.monotonic() - began > 2 and member.events.health().seconds_since_poll < 1)
        assert member.events.health().records_in_work == 0
        assert member.events.health().assignment == ()
    finally:
        member.stop()
