"""`AsyncEventConsumer.run` with aiokafka in rebalances under load, with a real broker."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Producer

from cloudevents_kafka import AsyncEventConsumer, AsyncEventProducer, Decoded, Event
from cloudevents_kafka.testing import LocalBroker

pytestmark = pytest.mark.broker
PARTITIONS, KEYS = 6, 30


class Member:
    """A run of a group, and the number of its assignments."""

    def __init__(self, servers: str, topic: str) -> None:
        self.client = AIOKafkaConsumer(
            bootstrap_servers=servers,
            group_id=topic,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
        )
        self.events = AsyncEventConsumer(self.client)
        self.events.subscribe([topic], on_assign=lambda *_: setattr(self, "joins", self.joins + 1))
        self.joins = 0
        self.running: asyncio.Task[Any]

    async def start(self, handle: Callable[[Decoded], Awaitable[None]]) -> None:
        await self.client.start()
        self.running = asyncio.create_task(self.events.run(handle, concurrency=4, stop_timeout=10))

    async def join_again(self) -> None:
        before = self.joins
        self.client._coordinator.request_rejoin()
        await until(lambda: self.joins > before)


class Load:
    """What two members have handled of events that are sent all the time."""

    def __init__(self) -> None:
        self.sent = 0
        self.begun: Counter[int] = Counter()
        self.at_work: set[bytes] = set()
        self.last: dict[bytes, int] = defaultdict(lambda: -1)

    async def send(self, servers: str, topic: str, stopped: asyncio.Event) -> None:
        client = Producer({"bootstrap.servers": servers, "log_level": 0})
        async with AsyncEventProducer(client, topic=topic) as producer:
            while not stopped.is_set():
                for number in range(self.sent, self.sent + 20):
                    event = Event(id=str(number), source="/s", type="t", data=number)
                    key = number % KEYS
                    producer.send_nowait(event, key=f"k{key}", partition=key % PARTITIONS)
                self.sent += 20
                await asyncio.sleep(0.02)

    async def handle(self, item: Decoded) -> None:
        key, number = item.record.key or b"", item.event.data
        assert key not in self.at_work
        assert number > self.last[key]
        self.begun[number] += 1
        self.last[key] = number
        self.at_work.add(key)
        await asyncio.sleep(0.002)
        self.at_work.discard(key)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  # a member has no event for that
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("rebalances", [8, pytest.param(200, marks=[pytest.mark.release, pytest.mark.slow])])
def test_rebalances_under_load_end(kafka_broker: LocalBroker, rebalances: int) -> None:
    """Each ends while events are handled, none is lost, none begins again, and keys keep their order."""
    servers = kafka_broker.bootstrap_servers
    topic = kafka_broker.create_topic(f"load-{uuid.uuid4()}", partitions=PARTITIONS)

    async def work() -> None:
        load, stopped = Load(), asyncio.Event()
        members = [Member(servers, topic) for _ in range(2)]
        for member in members:
            await member.start(load.handle)
        sending = asyncio.create_task(load.send(servers, topic, stopped))
        for number in range(rebalances):
            before = len(load.begun)
            await members[number % 2].join_again()
            await until(lambda before=before: len(load.begun) > before)  # type: ignore[misc]
        stopped.set()
        await sending
        await until(lambda: len(load.begun) == load.sent)
        for member in members:
            member.events.stop()
            await member.running
            await member.events.close()
        assert set(load.begun.values()) == {1}

    asyncio.run(work())
