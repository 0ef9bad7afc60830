"""The errors of aiokafka's clients, by clients of the same shape; tests/clients has the real ones."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
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
