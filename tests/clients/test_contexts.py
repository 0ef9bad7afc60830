"""Handlers have the context variables of the code that called `run`, in threads as in asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each

TENANT: ContextVar[str] = ContextVar("TENANT", default="none")
Loop = Callable[[Any, Callable[[Any], None], int], None]


def run_threads(client: Any, handle: Any, concurrency: int) -> None:
    EventConsumer(client).run(handle, concurrency=concurrency, idle_timeout=0)


def run_tasks(client: Any, handle: Any, concurrency: int) -> None:
    async def handle_in_task(item: Any) -> None:
        handle(item)

    asyncio.run(AsyncEventConsumer(client).run(handle_in_task, concurrency=concurrency, idle_timeout=0))


def process(client: Any, handle: Any, concurrency: int) -> None:
    producer = EventProducer(FakeProducer(transactional=True), topic="out")
    EventProcessor(EventConsumer(client), producer, handle).run(idle_timeout=0)


def process_tasks(client: Any, handle: Any, concurrency: int) -> None:
    async def main() -> None:
        async def handle_in_task(item: Any) -> None:
            handle(item)

        producer = AsyncEventProducer(FakeProducer(transactional=True), topic="out")
        await AsyncEventProcessor(AsyncEventConsumer(client), producer, handle_in_task).run(idle_timeout=0)

    asyncio.run(main())


def client(count: int) -> FakeConsumer:
    messages = []
    for number in range(count):
        record = to_record(Event(id=str(number), source="/s", type="t"))
        messages.append(FakeMessage("in", b"", str(number), record.headers))
    found = FakeConsumer(FakeLog(messages), auto_commit=False)
    found.subscribe(["in"])
    return found


@each("loop", [run_threads, run_tasks, process, process_tasks])
@each("concurrency", [1, 3])
def test_a_handler_has_the_context_of_the_caller(loop: Loop, concurrency: int) -> None:
    """What the caller has set is there in each call."""
    seen = []
    token = TENANT.set("shop")
    try:
        loop(client(9), lambda item: seen.append(TENANT.get()), concurrency)
    finally:
        TENANT.reset(token)
    assert seen == ["shop"] * 9


@each("loop", [run_threads, run_tasks, process_tasks])
def test_a_handler_changes_no_other_context(loop: Loop) -> None:
    """What a handler sets is there until it returns, and nowhere else, in whichever thread it is called."""
    seen = []

    def handle(item: Any) -> None:
        seen.append((TENANT.get(), threading.get_ident()))
        TENANT.set(item.event.id)

    loop(client(20), handle, 2)
    assert {value for value, _ in seen} == {"none"}
    assert TENANT.get() == "none"
