"""AsyncEventProducer and AsyncEventConsumer with confluent-kafka and with aiokafka, on a real broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProducer,
    Decoded,
    DeliveryError,
    EncodeError,
    Event,
    Undecodable,
    to_record,
)
from cloudevents_kafka.testing import LocalBroker

pytestmark = pytest.mark.broker

QUIET = {"log_level": 0}


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed", data={"number": number})


class Confluent:
    """Clients of confluent-kafka."""

    @asynccontextmanager
    async def producer(self, servers: str, **options: Any) -> AsyncIterator[AsyncEventProducer[Any]]:
        client = Producer({"bootstrap.servers": servers, "linger.ms": 1, **QUIET})
        async with AsyncEventProducer(client, **options) as producer:
            yield producer

    @asynccontextmanager
    async def consumer(
        self, servers: str, topic: str, group: str, *, auto_commit: bool = False, **options: Any
    ) -> AsyncIterator[AsyncEventConsumer[Any]]:
        settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", **QUIET}
        client = Consumer({**settings, "enable.auto.commit": auto_commit, **self.group_settings()})
        client.subscribe([topic])
        async with AsyncEventConsumer(client, **options) as events:
            yield events

    def group_settings(self) -> dict[str, str]:
        return {}


class Cooperative(Confluent):
    """Clients of confluent-kafka in groups whose assignments are changed by parts."""

    def group_settings(self) -> dict[str, str]:
        return {"partition.assignment.strategy": "cooperative-sticky"}


class Aiokafka:
    """Clients of aiokafka."""

    @asynccontextmanager
    async def producer(self, servers: str, **options: Any) -> AsyncIterator[AsyncEventProducer[Any]]:
        async with (
            AIOKafkaProducer(bootstrap_servers=servers) as client,
            AsyncEventProducer(client, **options) as producer,
        ):
            yield producer

    @asynccontextmanager
    async def consumer(
        self, servers: str, topic: str, group: str, *, auto_commit: bool = False, **options: Any
    ) -> AsyncIterator[AsyncEventConsumer[Any]]:
        client = AIOKafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=auto_commit,
        )
        await client.start()
        async with AsyncEventConsumer(client, **options) as events:
            yield events


Clients = Confluent | Aiokafka


@pytest.fixture(params=[Confluent, Aiokafka])
def clients(request: pytest.FixtureRequest) -> Clients:
    """Both kinds of clients."""
    return request.param()


@pytest.fixture
def servers(kafka_broker: LocalBroker) -> str:
    """The address of the broker."""
    return str(kafka_broker.bootstrap_servers)


def new_group() -> str:
    return f"g-{uuid.uuid4()}"


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await work()

    asyncio.run(bounded())


async def take(events: AsyncEventConsumer[Any], count: int) -> list[Decoded | Undecodable]:
    taken = []
    async for item in events.items(idle_timeout=20):
        taken.append(item)
        if len(taken) == count:
            break
    return taken


def numbers(items: list[Decoded | Undecodable]) -> list[int]:
    return [int(item.event.id) for item in items if isinstance(item, Decoded)]


def test_every_event_arrives_as_it_was_sent(clients: Clients, servers: str, kafka_topic: str) -> None:
    """Records are those of to_record, in each mode, with any keys, headers and timestamps."""
    cases: list[tuple[Event, dict[str, Any]]] = [
        (order(1), {}),
        (order(2), {"mode": "structured", "key": b"\xff"}),
        (Event(id="3", source="/s", type="t"), {"key": "k"}),
        (Event(id="4", source="/s", type="t", data=b"\x00\xff"), {"timestamp": 7}),
        (order(5), {"headers": [("a", b"\xff"), ("b", b""), ("a", "é"), ("n", None)]}),
        (order(6), {"mode": "structured", "format": "avro"}),
    ]

    async def work() -> None:
        async with clients.producer(servers, topic=kafka_topic) as producer:
            deliveries = [await producer.send(event, partition=0, **options) for event, options in cases]
        async with clients.consumer(servers, kafka_topic, new_group()) as events:
            items = await take(events, len(cases))
        for (event, options), delivery, item in zip(cases, deliveries, items, strict=True):
            assert delivery.event is event
            assert (delivery.partition, delivery.offset) == (item.record.partition, item.record.offset)
            timestamp = options.pop("timestamp", None)
            expected = to_record(event, **options)
            record = item.record
            assert (record.key, record.value, record.headers) == (
                expected.key,
                expected.value,
                expected.headers,
            )
            assert timestamp in {None, record.timestamp}
            assert isinstance(item, Decoded)

    run(work)


def test_many_tasks_send_and_read(clients: Clients, servers: str, kafka_broker: LocalBroker) -> None:
    """1,000 tasks send through a bound of 100, and each event is read once, in batches and one by one."""
    topic = kafka_broker.create_topic(f"many-{uuid.uuid4()}", partitions=3)

    async def work() -> None:
        async with clients.producer(servers, topic=topic, max_in_flight=100) as producer:
            deliveries = await asyncio.gather(*(producer.send(order(n)) for n in range(1000)))
        assert len({(each.partition, each.offset) for each in deliveries}) == 1000
        async with clients.consumer(servers, topic, new_group()) as events:
            items = await take(events, 300)
            async for batch in events.batches(200, 0.5):
                items += batch
                if len(items) >= 1000:
                    break
        assert sorted(numbers(items)) == list(range(1000))

    run(work)


def test_cancelled_senders_lose_nothing(clients: Clients, servers: str, kafka_topic: str) -> None:
    """Events whose delivery was awaited arrived; those of cancelled tasks arrive once or not at all."""
    chosen = Random(17)

    async def work() -> None:
        async with clients.producer(servers, topic=kafka_topic, max_in_flight=20) as producer:

            async def send(number: int) -> int:
                async with asyncio.timeout(chosen.choice([0, 0.001, 0.01, None, None])):
                    await producer.send(order(number), partition=0)
                return number

            results = await asyncio.gather(*(send(n) for n in range(400)), return_exceptions=True)
        done = {result for result in results if isinstance(result, int)}
        assert {type(result) for result in results} <= {int, TimeoutError}
        async with clients.consumer(servers, kafka_topic, new_group()) as events:
            found = numbers([item async for item in events.items(idle_timeout=3)])
        assert len(found) == len(set(found))
        assert done <= set(found)

    run(work)


@pytest.mark.parametrize("auto_commit", [False, True])
@pytest.mark.parametrize("kind", [Confluent, Cooperative, Aiokafka])
def test_cancelled_readers_lose_nothing(
    kind: Callable[[], Clients], *, auto_commit: bool, servers: str, kafka_topic: str
) -> None:
    """A group whose readers are cancelled and restarted again and again reads each record once.

    Each reader takes some records, which it commits or the client commits, is cancelled, and closes.
    """
    clients, chosen, found = kind(), Random(17), []
    group = new_group()

    async def read_some(count: int, done: asyncio.Event) -> None:
        async with clients.consumer(servers, kafka_topic, group, auto_commit=auto_commit) as events:
            async for item in events:
                found.append(item)
                if len(found) % count == 0:
                    if not auto_commit:
                        await events.commit(item)
                    done.set()
                    await asyncio.sleep(20)

    async def work() -> None:
        async with clients.producer(servers, topic=kafka_topic) as producer:
            await asyncio.gather(*(producer.send(order(n), partition=0) for n in range(300)))
        for _ in range(4):
            done = asyncio.Event()
            reader = asyncio.create_task(read_some(chosen.randrange(1, 90), done))
            await done.wait()
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        async with clients.consumer(servers, kafka_topic, group) as events:
            found.extend(await take(events, 300 - len(found)))
            assert await events.poll(0.5) is None
        assert sorted(numbers(found)) == list(range(300))

    run(work)


def test_seek_reads_again(clients: Clients, servers: str, kafka_topic: str) -> None:
    """After seek the next record is the one sought, and commit is after what was returned."""

    async def work() -> None:
        async with clients.producer(servers, topic=kafka_topic) as producer:
            for number in range(10):
                producer.send_nowait(order(number), partition=0)
        group = new_group()
        async with clients.consumer(servers, kafka_topic, group) as events:
            items = await take(events, 5)
            await events.seek(items[1])
            again = await take(events, 3)
            await events.commit(again)
            await events.seek(TopicPartition(kafka_topic, 0, 9))
            assert numbers(await take(events, 1)) == [9]
        assert numbers(again) == [1, 2, 3]
        async with clients.consumer(servers, kafka_topic, group) as events:
            assert numbers(await take(events, 1)) == [4]

    run(work)


def test_failed_deliveries_are_raised(clients: Clients, servers: str, kafka_topic: str) -> None:
    """An event that is too large is a DeliveryError, or the error that the client raises at once."""

    async def work() -> None:
        large = Event(id="large", source="/s", type="t", data=b"x" * 2_000_000)
        async with clients.producer(servers, topic=kafka_topic) as producer:
            with pytest.raises((DeliveryError, KafkaException), match=r"(?i)large"):
                await producer.send(large)
            assert (await producer.send(order(1))).error is None

    run(work)


def test_aiokafka_needs_a_key_or_a_value(servers: str, kafka_topic: str) -> None:
    """An event without data and key, which aiokafka refuses, is an EncodeError that names what to do."""

    async def work() -> None:
        async with Aiokafka().producer(servers, topic=kafka_topic) as producer:
            with pytest.raises(EncodeError, match="pass a key, or mode='structured'"):
                await producer.send(Event(id="1", source="/s", type="t"))

    run(work)


def test_flush_does_not_linger(servers: str, kafka_topic: str) -> None:
    """Leaving the block sends at once what would wait for linger.ms."""

    async def work() -> None:
        client = Producer({"bootstrap.servers": servers, "linger.ms": 60_000, **QUIET})
        async with asyncio.timeout(100), AsyncEventProducer(client, topic=kafka_topic) as producer:
            delivery = producer.send_nowait(order(1))
        assert delivery.result().offset == 0

    run(work)


def test_a_client_that_reports_failures_only_is_an_error(servers: str, kafka_topic: str) -> None:
    """With delivery.report.only.error each delivery raises what to change; the broker has the events."""

    async def work() -> None:
        client = Producer({"bootstrap.servers": servers, "delivery.report.only.error": True, **QUIET})
        async with asyncio.timeout(100), AsyncEventProducer(client, topic=kafka_topic) as producer:
            errors = await asyncio.gather(
                *(producer.send(order(number)) for number in range(50)), return_exceptions=True
            )
        assert all("without delivery.report.only.error" in str(error) for error in errors)
        async with Confluent().consumer(servers, kafka_topic, f"g-{uuid.uuid4()}") as events:
            assert sorted(numbers(await take(events, 50))) == list(range(50))

    run(work)


@pytest.mark.parametrize(
    ("members", "count"), [(3, 300), pytest.param(7, 20_000, marks=[pytest.mark.release, pytest.mark.slow])]
)
def test_members_survive_those_that_join_and_leave(
    members: int, count: int, servers: str, kafka_broker: LocalBroker
) -> None:
    """No commit and no read of a member fails because others join and leave, and no event is passed over."""
    topic, group, chosen = (
        kafka_broker.create_topic(f"moved-{uuid.uuid4()}", partitions=8),
        new_group(),
        Random(17),
    )
    found: list[int] = []

    async def read(batches: float) -> None:
        async with Aiokafka().consumer(servers, topic, group) as events:
            while batches > 0 and len(set(found)) < count:
                batch = await anext(events.batches(30, 0.1, idle_timeout=1), [])
                found.extend(numbers(batch))
                await asyncio.sleep(chosen.random() / 10)
                await events.commit(batch)
                batches -= 1

    async def work() -> None:
        async with Confluent().producer(servers, topic=topic) as producer:
            await asyncio.gather(*(producer.send(order(n), key=str(n)) for n in range(count)))
        async with asyncio.TaskGroup() as tasks:
            for number in range(members):
                tasks.create_task(read(chosen.randrange(20, 90) if number else float("inf")))
                await asyncio.sleep(1)
        assert set(found) == set(range(count))

    run(work)
