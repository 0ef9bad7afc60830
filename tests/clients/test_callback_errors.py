"""Errors that callbacks of a consumer's client raise in a poll that has records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import AsyncEventConsumer, Decoded, Event, EventConsumer, EventProducer, to_record
from cloudevents_kafka.testing import FakeConsumer, FakeProducer
from tests.support.cases import each


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed")


class Assigning(FakeConsumer):
    """A client that calls ``on_assign`` within the call that returns the first records."""

    assigned: Callable[..., object] | None = None

    def subscribe(self, topics: Any, on_assign: Any = None, **_: Any) -> None:
        super().subscribe(topics)
        self.assigned = on_assign

    def _read(self, count: int) -> Any:
        found, (call, self.assigned) = super()._read(count), (self.assigned, None)
        if call is not None:
            call(self, [])
        return found


def fail(*_: object) -> None:
    raise ValueError("of the user")


def numbers(items: Any) -> list[int]:
    return [int(item.event.id) for item in items if isinstance(item, Decoded)]


def by_run(events: EventConsumer[Any, Any]) -> list[int]:
    handled: list[Any] = []
    events.run(handled.append, idle_timeout=0.1)
    return numbers(handled)


def log_of(count: int) -> Any:
    producer = FakeProducer()
    for number in range(count):
        record = to_record(order(number))
        producer.produce("orders", value=record.value, headers=record.headers)
    producer.flush()
    return producer.log


READERS: dict[str, Callable[[EventConsumer[Any, Any]], list[int]]] = {
    "items": lambda events: numbers(events.items(idle_timeout=0.1)),
    "batches": lambda events: numbers(chain.from_iterable(events.batches(2, 0.1, idle_timeout=0.1))),
    "run": by_run,
}


@each("how", READERS)
def test_the_records_of_a_poll_outlive_an_error_of_on_assign(how: str) -> None:
    """The call that reads raises the error, and the next one returns the records of the failed poll."""
    read = READERS[how]
    events = EventConsumer(Assigning(log_of(3)))
    events.subscribe(["orders"], on_assign=fail)
    with pytest.raises(ValueError, match="of the user"):
        read(events)
    assert read(events) == [0, 1, 2]


def test_the_records_of_a_fetch_outlive_an_error_of_on_assign() -> None:
    """In asyncio, the records of the fetch are returned, and then the error is raised."""

    async def read() -> None:
        found: list[Any] = []
        errors: list[ValueError] = []
        async with asyncio.timeout(20), AsyncEventConsumer(Assigning(log_of(3))) as events:
            events.subscribe(["orders"], on_assign=fail)
            while len(numbers(found)) < 3 or not errors:
                try:
                    found.append(await events.poll(0.1))
                except ValueError as error:
                    errors.append(error)
        assert numbers(found) == [0, 1, 2]
        assert [str(error) for error in errors] == ["of the user"]

    asyncio.run(read())


def test_an_error_of_stats_cb_loses_no_record() -> None:
    """confluent-kafka's client would drop the whole batch of the call in which ``stats_cb`` fails."""
    host = Producer({"test.mock.num.brokers": 1, "log_level": 0, "bootstrap.servers": "127.0.0.1:1"})
    servers = ",".join(f"{each.host}:{each.port}" for each in host.list_topics(timeout=30).brokers.values())
    with EventProducer({"bootstrap.servers": servers}, topic="orders") as producer:
        for number in range(500):
            producer.send(order(number))
    errors: list[Exception] = []

    def stats_cb(_: str) -> None:
        if errors:
            raise errors.pop()

    settings = {
        "bootstrap.servers": servers, "group.id": "mail", "auto.offset.reset": "earliest",
        "statistics.interval.ms": 20, "stats_cb": stats_cb,
    }  # fmt: skip
    with EventConsumer(settings, topics=["orders"]) as events:
        read = numbers([next(events.items(idle_timeout=30))])
        time.sleep(0.3)  # the client fetches records, and statistics wait for the next call
        errors.append(RuntimeError("in stats_cb"))
        with pytest.raises(RuntimeError, match="in stats_cb"):
            next(events.batches(1000, 1.0))
        with suppress(StopIteration):
            while len(read) < 500:
                read += numbers(next(events.batches(1000, 1.0, idle_timeout=10)))
        assert sorted(read) == list(range(500))
        errors.append(RuntimeError("in stats_cb"))
        time.sleep(0.1)
        with pytest.raises(RuntimeError, match="in stats_cb"):
            events.close()
