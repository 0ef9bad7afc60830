"""Each try of a run or a processor begins with the data as it came, also if a handler has changed it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from cloudevents_kafka import (
    AsyncEventConsumer,
    DeadLetter,
    DeadLetters,
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

DATA = {"total": "9.50", "lines": [1, 2]}


@dataclass
class Order:
    total: str
    lines: list[int]


def unchecked(event: Event) -> Any:
    return event.data


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lenient": {"lenient": True},
    "strict": {"strict": True},
    "eager": {"eager_data": True},
    "a type": {"data_type": Order},
    "a function of the event": {"data_type": unchecked},
    "a function of the record": {"data_reader": lambda event, record: event.replace(data=record.value).data},
}


def consumer(**options: Any) -> EventConsumer[Any, Any]:
    record = to_record(Event(id="1", source="/s", type="t", data=DATA))
    reader = FakeConsumer(FakeLog([FakeMessage("in", record.value, "k", record.headers)]), auto_commit=False)
    reader.subscribe(["in"])
    return EventConsumer(reader, **options)


class Handler:
    """A handler that takes its data apart, and fails twice by an error that passes."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, item: Decoded) -> None:
        data = item.event.data
        seen = vars(data) if isinstance(data, Order) else data
        self.seen.append({**seen, "lines": [*seen["lines"]]})
        seen["lines"].pop()
        seen.pop("total")
        if len(self.seen) < 3:
            raise ConnectionError("the database is away")

    async def awaited(self, item: Decoded) -> None:
        self(item)


@each("options", OPTIONS.values(), ids=OPTIONS)
def test_a_run_of_threads(options: dict[str, Any]) -> None:
    """The third try of a handler that pops members has all of them, so the record is handled."""
    handler = Handler()
    with consumer(**options) as events:
        counts = events.run(handler, tries=3, backoff=0, idle_timeout=0)
    assert counts == RunResult(handled=1, retried=2)
    assert handler.seen == 3 * [DATA]


@each("options", OPTIONS.values(), ids=OPTIONS)
def test_a_run_of_tasks(options: dict[str, Any]) -> None:
    """The same holds for a loop of asyncio."""
    handler, events = Handler(), consumer(**options)

    async def run() -> RunResult:
        async with AsyncEventConsumer(events.consumer, **options) as aio:
            return await aio.run(handler.awaited, tries=3, backoff=0, idle_timeout=0)

    assert asyncio.run(run()) == RunResult(handled=1, retried=2)
    assert handler.seen == 3 * [DATA]


@each("options", OPTIONS.values(), ids=OPTIONS)
def test_a_processor(options: dict[str, Any]) -> None:
    """The same holds for transactions that are repeated."""
    handler, events = Handler(), consumer(**options)
    producer = EventProducer(FakeProducer(events.consumer.log, transactional=True), topic="out")
    processor = EventProcessor(events, producer, handler, on_failure="fail", tries=3, backoff=0)
    assert processor.run(idle_timeout=0) == 1
    assert handler.seen == 3 * [DATA]


def test_a_dead_letter_has_the_reason_of_its_last_try() -> None:
    """A passing failure stays the reason, where changed data would have been the reason before."""
    handler, events = Handler(), consumer()
    letters = DeadLetters(EventProducer(FakeProducer()), topic="dead")
    counts = events.run(handler, tries=2, backoff=0, idle_timeout=0, on_failure=letters)
    assert counts == RunResult(dead=1, retried=1)
    (sent,) = letters.producer.producer.log
    letter = DeadLetter.of(sent)
    assert letter is not None
    assert letter.error == "ConnectionError: the database is away"
    assert sent.value() == to_record(Event(id="1", source="/s", type="t", data=DATA)).value


def test_changed_data_is_sent_by_replace() -> None:
    """An event keeps its bytes if its data is changed; `replace` makes an event of the changed data."""
    event = Event(id="1", source="/s", type="t", data=DATA)
    event.data["total"] = "8.00"
    assert to_record(event).value == to_record(Event(id="1", source="/s", type="t", data=DATA)).value
    assert event.replace(data=event.data).payload == b'{"total":"8.00","lines":[1,2]}'
