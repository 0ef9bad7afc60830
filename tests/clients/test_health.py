"""What a consumer answers to a health check, in each loop, from any thread, whichever call hangs."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    ConsumerHealth,
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    to_record,
)
from cloudevents_kafka.clients._health import Vitals
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each

HANG = 30.0  # seconds that only a hang takes


def client(count: int, *, partitions: int = 1, kind: Any = FakeConsumer) -> Any:
    found = []
    for number in range(count):
        record = to_record(Event(id=str(number), source="/s", type="t"))
        found.append(FakeMessage("in", b"", str(number), record.headers, partition=number % partitions))
    return kind(FakeLog(found), auto_commit=False)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + HANG
    while not condition():
        assert time.perf_counter() < deadline, "the condition does not hold"
        time.sleep(0.005)


class Clock:
    """The monotonic clock, to which a test adds seconds."""

    def __init__(self) -> None:
        self.added = 0.0
        self._real = time.monotonic

    def __call__(self) -> float:
        return self._real() + self.added


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found)
    return found


class Hanging(FakeConsumer):
    """A client whose reading call does not return before ``go_on``, and which nobody else may call."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.hangs, self.go_on = threading.Event(), threading.Event()

    def poll(self, timeout: float = -1) -> Any:
        self.hangs.set()
        assert self.go_on.wait(HANG)
        return super().poll(timeout)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> Any:
        self.hangs.set()
        assert self.go_on.wait(HANG)
        return super().consume(num_messages, timeout)


@contextmanager
def started(loop: Callable[[], object], stop: Callable[[], object]) -> Iterator[None]:
    """Run a loop in a thread during the block, then stop it, and raise its error."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(loop)
        try:
            yield
        finally:
            stop()
        running.result(HANG)


def test_a_consumer_that_has_not_polled(clock: Clock) -> None:
    """Before its first poll a consumer counts from when it was made, so one that never begins is seen."""
    events = EventConsumer(client(1))
    clock.added += 100
    now = events.health()
    assert 100 <= now.seconds_since_poll < 100 + HANG
    assert (now.records_in_work, now.seconds_in_work, now.assignment) == (0, 0.0, ())


def test_each_loop_notes_its_polls(clock: Clock) -> None:
    """`poll`, `items` and `batches` poll, and see what is assigned, until `close`."""
    events = EventConsumer(client(9, partitions=3), topics=["in"])
    loops: list[Callable[[], object]] = [
        events.poll,
        lambda: next(events.items()),
        lambda: next(events.batches(2)),
    ]
    for loop in loops:
        clock.added += 50
        assert events.health().seconds_since_poll >= 50
        assert loop() is not None
        assert events.health().seconds_since_poll < HANG
        assert events.health().assignment == (("in", 0), ("in", 1), ("in", 2))
    events.close()
    assert events.health().assignment == ()


def test_a_rebalance_is_seen(clock: Clock) -> None:
    """Revoked partitions are gone at once, and assigned ones are there with the next poll."""
    fake = client(2, partitions=2)
    events = EventConsumer(fake, topics=["in"])
    assert events.poll() is not None
    fake.rebalance()
    assert events.health().assignment == ()
    assert events.poll() is not None
    assert events.health().assignment == (("in", 0), ("in", 1))


@each("loop", ["run", "processor", "items"])
def test_a_call_of_the_client_that_hangs_is_not_waited_for(clock: Clock, loop: str) -> None:
    """While the client is in a call, another thread gets an answer at once, and sees how long that takes."""
    fake = client(3, kind=Hanging)
    events = EventConsumer(fake, topics=["in"])
    loops: dict[str, Callable[[], object]] = {
        "run": lambda: events.run(lambda item: None, idle_timeout=0),
        "processor": processor(events, lambda item: None).run,
        "items": lambda: list(events.items(idle_timeout=0)),
    }
    with started(loops[loop], fake.go_on.set):
        assert fake.hangs.wait(HANG)
        clock.added += 70
        assert events.health().seconds_since_poll >= 70
        events.stop()


def processor(events: EventConsumer[Any, Any], handler: Any) -> EventProcessor:
    producer = EventProducer(FakeProducer(transactional=True), topic="out")
    return EventProcessor(events, producer, handler)


def test_a_handler_that_hangs_is_seen(clock: Clock) -> None:
    """A run polls on while handlers hang; their records are in work, and the oldest grows old."""
    events = EventConsumer(client(5), topics=["in"])
    begun, go_on = threading.Semaphore(0), threading.Event()

    def handle(item: Decoded) -> None:
        begun.release()
        assert go_on.wait(HANG)

    with started(lambda: events.run(handle, concurrency=2, idle_timeout=0), go_on.set):
        assert begun.acquire(timeout=HANG)
        assert begun.acquire(timeout=HANG)
        assert events.health().records_in_work == 2
        clock.added += 300
        until(lambda: events.health().seconds_since_poll < 100)
        assert 300 <= events.health().seconds_in_work < 300 + HANG
        assert events.health().records_in_work == 2
    now = events.health()
    assert (now.records_in_work, now.seconds_in_work) == (0, 0.0)


def test_a_record_that_waits_for_its_next_try_is_not_in_work(clock: Clock) -> None:
    """A record is in work from each call of its handler to its end, so a wait between two is not a hang."""
    events = EventConsumer(client(1), topics=["in"])
    tries = []

    def handle(item: Decoded) -> None:
        tries.append(1)
        raise TimeoutError

    with started(lambda: events.run(handle, tries=9, backoff=1e6, on_failure="skip"), events.stop):
        until(lambda: tries != [] and events.health().records_in_work == 0)
    assert events.health().seconds_in_work == 0.0


def test_a_record_waits_for_what_its_handler_has_sent(clock: Clock) -> None:
    """With a producer a record stays in work until all has arrived."""
    writer = FakeProducer()
    writer.hold = True
    events = EventConsumer(client(1), topics=["in"])
    returned = threading.Event()
    with EventProducer(writer, topic="out") as producer:

        def handle(item: Decoded) -> None:
            producer.send(item.event)
            returned.set()

        with started(lambda: events.run(handle, producer=producer), events.stop):
            assert returned.wait(HANG)
            clock.added += 40
            assert events.health().records_in_work == 1
            assert events.health().seconds_in_work >= 40
            writer.hold = False
            until(lambda: events.health().records_in_work == 0)


def test_a_processor_has_a_batch_in_work(clock: Clock) -> None:
    """The records of a transaction are in work together."""
    events = EventConsumer(client(4), topics=["in"])
    begun, go_on = threading.Event(), threading.Event()

    def handle(item: Any) -> None:
        begun.set()
        assert go_on.wait(HANG)

    found = processor(events, handle)
    with started(lambda: found.run(idle_timeout=0), go_on.set):
        assert begun.wait(HANG)
        clock.added += 90
        until(lambda: events.health().seconds_since_poll < 80)  # the processor polls meanwhile
        now = events.health()
    assert now.records_in_work == 4
    assert now.seconds_in_work >= 90
    assert events.health().records_in_work == 0


def test_a_processor_of_asyncio(clock: Clock) -> None:
    """The same for coroutines, asked of the consumer on the event loop."""

    async def main() -> ConsumerHealth:
        events = AsyncEventConsumer(client(4), topics=["in"])
        producer = AsyncEventProducer(FakeProducer(transactional=True), topic="out")
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def handle(item: Any) -> None:
            begun.set()
            await go_on.wait()

        running = asyncio.create_task(AsyncEventProcessor(events, producer, handle).run(idle_timeout=0))
        await begun.wait()
        clock.added += 90
        found = events.health()
        go_on.set()
        assert await running == 4
        assert events.health().records_in_work == 0
        return found

    found = asyncio.run(main())
    assert found.records_in_work == 4
    assert found.seconds_in_work >= 90


def test_a_run_of_asyncio(clock: Clock) -> None:
    """The same in asyncio, where the endpoint is a coroutine, or asks from a thread."""

    async def main() -> ConsumerHealth:
        events = AsyncEventConsumer(client(5), topics=["in"])
        begun, go_on = asyncio.Semaphore(0), asyncio.Event()

        async def handle(item: Decoded) -> None:
            begun.release()
            await go_on.wait()

        async with asyncio.timeout(300 + HANG), events, asyncio.TaskGroup() as tasks:
            tasks.create_task(events.run(handle, concurrency=3))
            for _ in range(3):
                await begun.acquire()
            clock.added += 200
            await asyncio.to_thread(until, lambda: events.health().seconds_since_poll < 100)
            found = await asyncio.to_thread(events.health)
            go_on.set()
            events.stop()
        assert events.health().records_in_work == 0
        assert events.health().assignment == ()
        return found

    found = asyncio.run(main())
    assert found.records_in_work == 3
    assert 200 <= found.seconds_in_work < 200 + HANG
    assert found.assignment == (("in", 0),)


def test_a_call_that_hangs_in_asyncio(clock: Clock) -> None:
    """A client that hangs in its thread is seen from the event loop."""

    async def main() -> None:
        fake = client(1, kind=Hanging)
        events = AsyncEventConsumer(fake, topics=["in"])

        async def handle(item: Decoded) -> None:
            pass

        async with asyncio.timeout(300 + HANG), asyncio.TaskGroup() as tasks:
            tasks.create_task(events.run(handle))
            try:
                assert await asyncio.to_thread(fake.hangs.wait, HANG)
                clock.added += 80
                assert events.health().seconds_since_poll >= 80
            finally:
                events.stop()
                fake.go_on.set()
        await events.close()

    asyncio.run(main())


def test_no_lock_is_waited_for() -> None:
    """A thread that has the lock of a run, such as one that logs to a slow disk, does not hold the answer."""
    events = EventConsumer(client(1), topics=["in"])
    asked: list[ConsumerHealth] = []

    def handle(item: Decoded) -> None:
        run = events._run
        assert run is not None
        with run._workers.lock, ThreadPoolExecutor(1) as pool:
            asked.append(pool.submit(events.health).result(HANG))

    events.run(handle, idle_timeout=0)
    assert [each.records_in_work for each in asked] == [1]


def test_answers_are_whole_while_a_run_is_at_work() -> None:
    """Threads that ask all the time get answers in which each number can be true."""
    count, workers = 3000, 4
    events = EventConsumer(client(count), topics=["in"])
    ended = threading.Event()
    seen: list[ConsumerHealth] = []

    def ask() -> None:
        while not ended.is_set():
            now = events.health()
            assert 0 <= now.records_in_work <= workers
            assert 0 <= now.seconds_in_work < HANG
            assert 0 <= now.seconds_since_poll < HANG
            assert (now.records_in_work > 0) or now.seconds_in_work == 0
            seen.append(now)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(ask) for _ in range(2)]
            try:
                result = events.run(lambda item: None, concurrency=workers, idle_timeout=0)
            finally:
                ended.set()
            for each_one in asking:
                each_one.result(HANG)
    finally:
        sys.setswitchinterval(before)
    assert result.handled == count
    assert {now.assignment for now in seen} <= {(), (("in", 0),)}


def test_the_client_is_asked_once_a_second(clock: Clock) -> None:
    """What is assigned costs one local call of the client a second, in the thread that polls."""

    class Counting(FakeConsumer):
        asked = 0

        def assignment(self) -> Any:
            self.asked += 1
            return super().assignment()

    fake = client(100, kind=Counting)
    vitals, before = Vitals(), clock()
    fake.subscribe(["in"])
    for _ in range(100):
        fake.poll()
        vitals.note_poll(fake)
    assert fake.asked <= 2 + int(clock() - before)
