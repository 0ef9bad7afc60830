"""The errors of aiokafka's clients, by clients of the same shape; tests/clients has the real ones."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, TopicAuthorizationFailedError

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProducer,
    ConsumeError,
    Decoded,
    DeliveryError,
    Event,
    to_record,
)
from tests.support.cases import each


class Reader:
    """A consumer that returns records, and raises errors, in the order in which they were passed."""

    def __init__(self, *found: Event | KafkaError) -> None:
        self._found = deque(enumerate(found))

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        if not self._found:
            await asyncio.sleep(timeout_ms / 1000)
            return {}
        offset, found = self._found.popleft()
        if isinstance(found, KafkaError):
            raise found
        record = to_record(found)
        return {
            TopicPartition("orders", 0): [
                SimpleNamespace(
                    topic="orders",
                    partition=0,
                    offset=offset,
                    key=None,
                    value=record.value,
                    headers=tuple(record.headers),
                    timestamp=7,
                )
            ]
        }

    def assignment(self) -> set[TopicPartition]:
        return set()


class Writer:
    """A producer whose deliveries have these results: an error that send raises, or one of its future."""

    def __init__(self, *results: KafkaError | tuple[KafkaError] | asyncio.CancelledError | None) -> None:
        self._results = deque(results)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, topic: str, **record: Any) -> asyncio.Future[Any]:
        result = self._results.popleft()
        future = asyncio.get_running_loop().create_future()
        if isinstance(result, KafkaError):
            raise result
        if isinstance(result, asyncio.CancelledError):
            future.cancel()
        elif isinstance(result, tuple):
            future.set_exception(result[0])
        else:
            future.set_result(result)
        return future


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed", data={"number": number})


def test_errors_while_reading_are_those_of_event_consumer(caplog: pytest.LogCaptureFixture) -> None:
    """What may be tried again is logged and gone through, what is final is raised, and on_error decides."""

    async def work() -> None:
        client = Reader(
            KafkaConnectionError("away"), order(1), TopicAuthorizationFailedError("orders"), order(2)
        )
        async with AsyncEventConsumer(client) as events:
            with caplog.at_level(logging.WARNING):
                item = await events.poll()
            assert isinstance(item, Decoded)
            assert (item.event.id, item.record.timestamp) == ("1", 7)
            assert "KafkaConnectionError('away'); reading goes on" in caplog.text
            with pytest.raises(ConsumeError, match=r"TopicAuthorizationFailedError.*grant the client READ"):
                await events.poll()
            assert isinstance(await events.poll(), Decoded)
        passed: list[object] = []
        client = Reader(TopicAuthorizationFailedError("orders"), order(3))
        async with AsyncEventConsumer(client, on_error=lambda error: not passed.append(error)) as events:
            assert isinstance(await events.poll(), Decoded)
        assert len(passed) == 1

    asyncio.run(work())


def test_errors_while_sending_are_those_of_the_delivery() -> None:
    """What send raises, what the future of the delivery has, and a cancelled one, are DeliveryErrors."""

    async def work() -> None:
        client = Writer(
            KafkaTimeoutError("slow"), (KafkaTimeoutError("late"),), asyncio.CancelledError(), None
        )
        async with AsyncEventProducer(client, topic="orders") as producer:
            for text in ("slow", "late", "cancelled"):
                with pytest.raises(DeliveryError, match=text):
                    await producer.send(order(1))
            delivery = await producer.send(order(2))  # without acknowledgements its place is unknown
            assert (delivery.done, delivery.offset) == (True, None)

    asyncio.run(work())


@asynccontextmanager
async def made(kind: Any, *topics: str, **options: Any) -> AsyncIterator[Any]:
    """Make a client of aiokafka, which is not started; yield it, and stop it."""
    client = kind(*topics, bootstrap_servers="127.0.0.1:1", **options)
    try:
        yield client
    finally:
        await client.stop()


@pytest.mark.parametrize("option", ["key_serializer", "value_serializer"])
def test_a_producer_that_changes_what_is_sent_is_refused(option: str) -> None:
    """A service that sent JSON by aiokafka has set it."""

    async def work() -> None:
        refused = rf"{option} of the producer must be None, got str.encode: .*create"
        async with made(AIOKafkaProducer, **{option: str.encode}) as client:
            with pytest.raises(ValueError, match=refused):
                AsyncEventProducer(client)

    asyncio.run(work())


@pytest.mark.parametrize("option", ["key_deserializer", "value_deserializer"])
def test_a_consumer_that_changes_what_is_read_is_refused(option: str) -> None:
    """It would return text in place of the bytes of an event."""

    async def work() -> None:
        async with made(AIOKafkaConsumer, "t", **{option: bytes.decode}) as client:
            with pytest.raises(ValueError, match=rf"{option} of the consumer must be None, got bytes.decode"):
                AsyncEventConsumer(client)

    asyncio.run(work())


def test_a_producer_that_was_not_started_is_refused() -> None:
    """The event is not on its way, and the block ends."""

    async def work() -> None:
        refused = r"must be started, got AIOKafkaProducer before start\(\); await its start\(\) first"
        async with (
            asyncio.timeout(50),
            made(AIOKafkaProducer) as client,
            AsyncEventProducer(client, topic="orders") as producer,
        ):
            with pytest.raises(RuntimeError, match=refused):
                await producer.send(order(1))
            with pytest.raises(RuntimeError, match=refused):
                producer.send_nowait(order(1))

    asyncio.run(work())


async def nothing(_: Decoded) -> None:
    """Do nothing."""


READING: dict[str, Any] = {
    "poll": lambda events: events.poll(0.1),
    "items": lambda events: anext(events.items()),
    "batches": lambda events: anext(events.batches()),
    "run": lambda events: events.run(nothing),
}


@each("how", READING)
def test_a_consumer_that_was_not_started_is_refused(how: str) -> None:
    """No error of the client names what was forgotten."""

    async def work() -> None:
        options: dict[str, Any] = {"group_id": "g", "enable_auto_commit": False}
        async with made(AIOKafkaConsumer, "t", **options) as client, AsyncEventConsumer(client) as events:
            with pytest.raises(
                RuntimeError, match=r"consumer must be started, got AIOKafkaConsumer before st"
            ):
                await READING[how](events)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            r"group_id must be the name of a group for run\(\), .* got None; create the consumer with a",
        ),
        ({"group_id": "g"}, r"enable_auto_commit must be False for run\(\), got True"),
    ],
)
def test_a_consumer_that_cannot_commit_is_refused_by_a_run(options: dict[str, Any], expected: str) -> None:
    """A run commits what is done in a group, and nothing else commits."""

    async def work() -> None:
        async with made(AIOKafkaConsumer, "t", **options) as client, AsyncEventConsumer(client) as events:
            with pytest.raises(ValueError, match=expected):
                await events.run(nothing)

    asyncio.run(work())


def test_a_client_of_the_other_kind_is_refused() -> None:
    """The error names what the client has not, and what to pass."""

    async def work() -> None:
        async with made(AIOKafkaProducer) as client:
            with pytest.raises(
                TypeError, match="got AIOKafkaProducer, which has no getmany; pass a Consumer"
            ):
                AsyncEventConsumer(client)
        async with made(AIOKafkaConsumer, "t") as client:
            with pytest.raises(TypeError, match="got AIOKafkaConsumer, which has no send; pass a Producer"):
                AsyncEventProducer(client)

    asyncio.run(work())
