"""A consumer has one loop at a time, which is a run or a processor; any other is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    RunResult,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each


def client(count: int = 3) -> FakeConsumer:
    records = [to_record(Event(id=str(number), source="/s", type="t")) for number in range(count)]
    log = FakeLog([FakeMessage("in", record.value, None, record.headers) for record in records])
    return FakeConsumer(log, auto_commit=False)


LOOPS: dict[str, Callable[[EventConsumer[Any, Any]], object]] = {
    "poll": lambda events: events.poll(0),
    "items": lambda events: next(events.items(idle_timeout=0), None),
    "batches": lambda events: next(events.batches(idle_timeout=0), None),
    "run": lambda events: events.run(print, idle_timeout=0),
    "processor": lambda events: processor(events, print).run(idle_timeout=0),
}
TASKS: dict[str, Callable[[AsyncEventConsumer[Any, Any]], Awaitable[object]]] = {
    "poll": lambda events: events.poll(0),
    "items": lambda events: anext(events.items(idle_timeout=0), None),
    "batches": lambda events: anext(events.batches(idle_timeout=0), None),
    "run": lambda events: events.run(nothing, idle_timeout=0),
    "processor": lambda events: async_processor(events, nothing).run(idle_timeout=0),
}


def processor(events: EventConsumer[Any, Any], handler: Callable[[Decoded], object]) -> EventProcessor:
    return EventProcessor(events, EventProducer(FakeProducer(transactional=True), topic="out"), handler)


async def nothing(_: Decoded) -> None:
    """Do nothing."""


def async_processor(
    events: AsyncEventConsumer[Any, Any], handler: Callable[[Decoded], Awaitable[object]]
) -> AsyncEventProcessor:
    producer = AsyncEventProducer(FakeProducer(transactional=True), topic="out")
    return AsyncEventProcessor(events, producer, handler)


@each("first", ["run", "processor"])
@each("second", LOOPS)
def test_another_loop_is_refused_in_a_handler(first: str, second: str) -> None:
    """The error names both; the first loop handles all records, and the consumer is free after it."""
    events = EventConsumer(client(), topics=["in"])
    handled: list[Decoded] = []

    def handle(item: Decoded) -> None:
        with pytest.raises(RuntimeError, match=rf"one loop at a time, got {second}.* while its {first}"):
            LOOPS[second](events)
        handled.append(item)

    if first == "run":
        assert events.run(handle, idle_timeout=0) == RunResult(handled=3)
    else:
        assert processor(events, handle).run(idle_timeout=0) == 3
    assert len(handled) == 3
    LOOPS[second](events)


def test_another_loop_is_refused_in_a_thread() -> None:
    """Two threads do not handle the records of one consumer: no offset passes a record in work."""
    events, begun, gate = EventConsumer(client(), topics=["in"]), threading.Event(), threading.Event()

    def handle(_: Decoded) -> None:
        begun.set()
        assert gate.wait(20)

    thread = threading.Thread(target=events.run, args=(handle,), kwargs={"idle_timeout": 0})
    thread.start()
    assert begun.wait(20)
    for loop in LOOPS.values():
        with pytest.raises(RuntimeError, match="one loop at a time"):
            loop(events)
    gate.set()
    thread.join(20)
    assert events.consumer.offsets == {("in", 0): 3}


@each("first", ["run", "processor"])
@each("second", TASKS)
def test_another_loop_is_refused_in_a_handler_of_asyncio(first: str, second: str) -> None:
    """The error names both; the first loop handles all records, and the consumer is free after it."""

    async def work() -> None:
        events = AsyncEventConsumer(client(), topics=["in"])
        handled: list[Decoded] = []

        async def handle(item: Decoded) -> None:
            with pytest.raises(RuntimeError, match=rf"one loop at a time, got {second}.* while its {first}"):
                await TASKS[second](events)
            handled.append(item)

        if first == "run":
            assert await events.run(handle, idle_timeout=0) == RunResult(handled=3)
        else:
            assert await async_processor(events, handle).run(idle_timeout=0) == 3
        assert len(handled) == 3
        await TASKS[second](events)

    asyncio.run(work())


def test_two_runs_of_asyncio_at_once_are_refused() -> None:
    """The first goes on."""

    async def work() -> None:
        events = AsyncEventConsumer(client(), topics=["in"])
        first, second = await asyncio.gather(
            events.run(nothing, idle_timeout=0.1), events.run(nothing), return_exceptions=True
        )
        assert first == RunResult(handled=3)
        assert isinstance(second, RuntimeError)

    asyncio.run(work())
