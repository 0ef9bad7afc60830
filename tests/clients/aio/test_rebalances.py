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

from cloudevents_kafka import AsyncEventConsumer, AsyncEventProducer, Decoded, Event, decode
from cloudevents_kafka.clients._policy import RunPolicy
from cloudevents_kafka.clients._protocols import expels_after
from cloudevents_kafka.testing import LocalBroker
from tests.support.cases import each

pytestmark = pytest.mark.broker
PARTITIONS, KEYS = 6, 30


def client_of(servers: str, group: str, **settings: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        **settings,
    )


class Member:
    """A run of a group, and the number of its assignments."""

    def __init__(self, servers: str, topic: str, **settings: Any) -> None:
        self.client = client_of(servers, topic, **settings)
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


@each(
    ("settings", "wait", "limit"),
    [
        ({}, 5, "rebalance_timeout_ms, which is 10 s"),  # aiokafka's default is session_timeout_ms
        ({"session_timeout_ms": 6000}, 3, "rebalance_timeout_ms, which is 6 s"),
        ({"rebalance_timeout_ms": 400_000}, 60, "max_poll_interval_ms, which is 300 s"),
        (
            {"rebalance_timeout_ms": 9000, "max_poll_interval_ms": 7000},
            3.5,
            "max_poll_interval_ms, which is 7 s",
        ),
    ],
)
def test_a_run_waits_less_than_the_group(settings: dict[str, Any], wait: float, limit: str) -> None:
    """A member that its group has expelled in a rebalance expels the others when it joins again."""

    async def work() -> None:
        client = client_of("127.0.0.1:1", "g", **settings)
        await client.stop()
        expels = expels_after(None, client)
        assert RunPolicy(read=decode, expels=expels).revoke_timeout == wait
        with pytest.raises(ValueError, match=f"revoke_timeout must be below {limit}, got 300"):
            RunPolicy(read=decode, expels=expels, revoke_timeout=300)

    asyncio.run(work())


@pytest.mark.release
def test_members_with_slow_handlers_do_not_expel_each_other(
    kafka_broker: LocalBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that takes longer than the group waits begins once more, and each commit is accepted."""
    servers = kafka_broker.bootstrap_servers
    topic = kafka_broker.create_topic(f"slow-{uuid.uuid4()}", partitions=4)
    begun, done = Counter[int](), set[int]()

    async def handle(item: Decoded) -> None:
        begun[item.event.data] += 1
        await asyncio.sleep(10)
        done.add(item.event.data)

    async def work() -> None:
        async with AsyncEventProducer(Producer({"bootstrap.servers": servers}), topic=topic) as producer:
            for number in range(8):
                event = Event(id=str(number), source="/s", type="t", data=number)
                await producer.send(event, partition=number % 4)
        members = [Member(servers, topic, session_timeout_ms=6000) for _ in range(2)]
        for member in members:
            await member.start(handle)
            await until(lambda: begun)
        await until(lambda: len(done) == 8)
        await asyncio.sleep(8)  # members that were expelled would join again
        for member in members:
            member.events.stop()
            await member.running
            await member.events.close()

    asyncio.run(work())
    assert max(begun.values()) <= 2
    assert "UNKNOWN_MEMBER_ID" not in caplog.text
