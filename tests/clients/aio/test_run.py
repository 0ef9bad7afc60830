"""AsyncEventConsumer.run, with fakes: the promises of EventConsumer.run, kept by tasks of the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import DeserializingConsumer, KafkaException, SerializingProducer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    DeadLetter,
    DeadLetters,
    Decoded,
    Event,
    EventConsumer,
    EventProducer,
    NotAnEvent,
    Record,
    RunResult,
    to_record,
)
from cloudevents_kafka.clients.observing import Observer
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support import strategies as make
from tests.support.cases import each
from tests.support.detached import Detached
from tests.support.dying_producer import DyingProducer

Handler = Callable[[Decoded], Awaitable[object]]


def message(number: int, partition: int = 0, key: str | None = None) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t", data=number))
    return FakeMessage("in", record.value, key, record.headers, partition=partition)


class Service:
    """A service with its own subscription; ``begun`` and ``done`` are numbers of events, in order."""

    def __init__(self, *messages: FakeMessage) -> None:
        self.offsets: dict[tuple[str, int], int] = {}
        self.client = FakeConsumer(FakeLog(messages), offsets=self.offsets, auto_commit=False)
        self.events = AsyncEventConsumer(self.client, topics=["in"])
        self.begun: list[int] = []
        self.done: list[int] = []
        self.gate = asyncio.Event()

    async def handle(self, item: Decoded) -> None:
        """Handle an event; the first waits for the gate."""
        self.begun.append(item.event.data)
        if item.event.data == 0:
            await self.gate.wait()
        self.done.append(item.event.data)

    async def run(self, handler: Handler | None = None, **options: Any) -> RunResult:
        return await self.events.run(
            handler or self.handle, **{"concurrency": 4, "idle_timeout": 0.2, **options}
        )

    def start(self, handler: Handler | None = None, **options: Any) -> asyncio.Task[RunResult]:
        return asyncio.create_task(self.run(handler, **options))


async def wait_until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(100):
        while not condition():  # noqa: ASYNC110  # a test's condition has no event
            await asyncio.sleep(0.001)


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Return a test that runs a coroutine."""
    import functools

    @functools.wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        asyncio.run(test(*arguments, **options))  # type: ignore[arg-type]

    return run


@in_loop
async def test_each_event_is_handled_and_committed() -> None:
    """The handler gets all events, those of a key in order, and the offset after them is committed."""
    service = Service(*(message(n, n % 2, key=f"k{n % 7}") for n in range(1, 100)))
    assert await service.run() == RunResult(handled=99)
    for key in range(7):
        numbers = [number for number in service.done if number % 7 == key]
        for partition in range(2):
            of_partition = [number for number in numbers if number % 2 == partition]
            assert of_partition == sorted(of_partition)
    assert sum(service.offsets.values()) == 99
    assert await service.run() == RunResult()


@in_loop
async def test_handlers_run_at_the_same_time_up_to_a_bound() -> None:
    """Each in a task of the loop."""
    service = Service(*(message(n, key=f"k{n}") for n in range(40)))
    now = most = 0

    async def handle(_: Decoded) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1

    assert (await service.run(handle, concurrency=8)).handled == 40
    assert most == 8


@in_loop
async def test_a_failure_ends_the_run() -> None:
    """The handler's error is raised, with the place; what was done before is committed, and no more."""
    service = Service(*map(message, range(1, 20)))

    async def fail(item: Decoded) -> None:
        if item.event.data == 7:
            raise ValueError("no 7")

    with pytest.raises(ValueError, match="no 7") as caught:
        await service.run(fail)
    assert caught.value.__notes__ == ["while in[0]@6 was handled, try 1"]
    assert service.offsets == {("in", 0): 6}
    assert (await service.run()).handled == 13


@in_loop
async def test_a_record_that_is_not_an_event_fails_or_is_skipped() -> None:
    """It is not tried again."""
    service = Service(message(1), FakeMessage("in", b"foreign"), message(2))
    with pytest.raises(NotAnEvent):
        await service.run(tries=3)
    assert await service.run(tries=3, on_failure="skip") == RunResult(handled=1, skipped=1)


@pytest.mark.parametrize("is_async", [False, True])
@in_loop
async def test_dead_letters_are_sent_by_either_kind_of_producer(*, is_async: bool) -> None:
    """A letter has arrived before its record is done."""
    service = Service(message(1, key="a"), message(2, key="b"))
    client = FakeProducer()
    producer: Any = AsyncEventProducer(client) if is_async else EventProducer(client)

    async def fail(item: Decoded) -> None:
        if item.event.data == 1:
            raise ConnectionError("no")

    letters = DeadLetters(producer, topic="dead")
    counts = await service.run(fail, tries=2, backoff=0, on_failure=letters)
    assert counts == RunResult(handled=1, dead=1, retried=1)
    [letter] = [DeadLetter.of(Record.of(message)) for message in client.log]
    assert letter is not None
    assert (letter.offset, letter.attempt, letter.error) == (0, 2, "ConnectionError: no")
    if is_async:
        await producer.close()


@in_loop
async def test_tries_of_a_key_hold_no_other() -> None:
    """Its records wait in order, and others are read and handled meanwhile."""
    service = Service(*(message(n, key="bad" if n % 10 == 0 else f"k{n}") for n in range(1000)))
    seen: list[int] = []

    async def handle(item: Decoded) -> None:
        if item.record.key == b"bad":
            seen.append(item.event.data)
            raise ConnectionError
        service.done.append(item.event.data)

    running = service.start(handle, concurrency=1, tries=3, backoff=60, max_ahead=5000, stop_timeout=1)
    await wait_until(lambda: len(service.done) == 900)
    assert seen == [0]
    service.events.stop()
    await running


@in_loop
async def test_few_records_are_repeated_after_a_slow_one() -> None:
    """At most max_ahead records begin after it, and other partitions go on."""
    messages = [message(n, key=f"k{n}") for n in range(300)]
    messages += [message(n, partition=1, key=f"k{n}") for n in range(300, 600)]
    service = Service(*messages)
    running = service.start(max_ahead=20)
    await wait_until(lambda: len(service.done) == 320)
    await asyncio.sleep(0.3)
    assert sorted(service.done) == [*range(1, 21), *range(300, 600)]
    service.gate.set()
    await running
    assert service.offsets == {("in", 0): 300, ("in", 1): 300}


@in_loop
async def test_revoked_partitions_end_with_the_records_in_work() -> None:
    """Queued records are dropped; those in work are waited for and committed before the partitions go."""
    service = Service(*(message(n, key="k") for n in range(9)))
    asked, poll, offsets = asyncio.Event(), service.client.poll, list[Any]()

    def poll_with_rebalance(timeout: float = -1) -> Any:
        if asked.is_set() and not offsets:
            service.client.rebalance()
            offsets.append(dict(service.offsets))
        return poll(timeout)

    service.client.poll = poll_with_rebalance  # type: ignore[method-assign]
    running = service.start()
    await wait_until(lambda: service.begun == [0])
    asked.set()
    await asyncio.sleep(0.2)
    assert offsets == []  # it waits for record 0
    service.gate.set()
    await running
    assert offsets == [{("in", 0): 1}]
    assert service.begun == list(range(9))
    assert service.offsets == {("in", 0): 9}


@pytest.mark.parametrize("lost", [False, True])
@in_loop
async def test_functions_of_a_subscription_are_called_after_the_hand_over(*, lost: bool) -> None:
    """They get the client and its partitions; what was done is committed, but not of lost partitions."""
    service = Service(*(message(n, key=f"k{n}") for n in range(1, 4)))
    calls: list[tuple[str, Any, list[int], dict[Any, int]]] = []

    def note(name: str) -> Callable[..., None]:
        return lambda client, places: calls.append(
            (name, client, [place.partition for place in places], dict(service.offsets))
        )

    service.events.subscribe(["in"], on_assign=note("assign"), on_revoke=note("revoke"), on_lost=note("lost"))
    poll = service.client.poll

    def poll_with_rebalance(timeout: float = -1) -> Any:
        if len(service.done) == 3 and len(calls) == 1:
            service.client.rebalance(lost=lost)
        return poll(timeout)

    service.client.poll = poll_with_rebalance  # type: ignore[method-assign]
    await service.run(stop_timeout=0)
    committed = {} if lost else {("in", 0): 3}
    assert calls[:2] == [
        ("assign", service.client, [0], {}),
        ("lost" if lost else "revoke", service.client, [0], committed),
    ]


@pytest.mark.parametrize("fails", [False, True])
@in_loop
async def test_a_record_is_done_when_what_its_handler_sent_has_arrived(*, fails: bool) -> None:
    """A delivery that fails is a failure of its record."""
    service, client = Service(message(1), message(2)), FakeProducer()
    if fails:
        client.fail_next("_MSG_TIMED_OUT")
    async with AsyncEventProducer(client, topic="out") as producer:

        async def handle(item: Decoded) -> None:
            producer.send_nowait(item.event)

        counts = await service.run(handle, producer=producer, tries=2, backoff=0)
    assert counts == RunResult(handled=2, retried=int(fails))
    assert len(client.log) == 2
    assert service.offsets == {("in", 0): 2}


@in_loop
async def test_a_fatal_error_of_the_producer_ends_the_run() -> None:
    """No record is at fault: none is skipped, tried again or sent as a dead letter."""
    service, client = Service(*map(message, range(20))), DyingProducer()
    client.hold = False
    producer = AsyncEventProducer(client, topic="out")

    async def handle(item: Decoded) -> None:
        if item.event.data == 5:
            client.die()
        await producer.send(item.event)

    with pytest.raises(KafkaException, match="Unable to produce message"):
        await service.run(handle, producer=producer, on_failure="skip", tries=3)
    assert service.offsets == {("in", 0): 5}
    await producer.close()


@pytest.mark.parametrize("fails", [False, True])
@in_loop
async def test_a_message_after_the_last_report_of_a_try_belongs_to_no_record(*, fails: bool) -> None:
    """A task of the first try sends the message while the next try, or the next record, is in work."""
    service, client = Service(message(1), message(2)), FakeProducer()
    tasks, goes_on = list[asyncio.Task[None]](), asyncio.Event()
    async with AsyncEventProducer(client, topic="out") as producer:

        async def send_later(event: Event) -> None:
            await goes_on.wait()
            await producer.send(event)

        async def handle(item: Decoded) -> None:
            service.begun.append(item.event.data)
            if len(service.begun) == 1:
                tasks.append(asyncio.create_task(send_later(item.event)))
                if fails:
                    client.fail_next("_MSG_TIMED_OUT")
                    producer.send_nowait(item.event)
            else:
                goes_on.set()
                await tasks[0]

        counts = await service.run(handle, producer=producer, tries=2, backoff=0)
    assert counts == RunResult(handled=2, retried=int(fails))
    assert service.begun == [1, *[1] * fails, 2]
    assert service.offsets == {("in", 0): 2}


@pytest.mark.parametrize("during", ["the wait for handlers", "the seek"])
@in_loop
async def test_an_end_that_is_cancelled_goes_back_to_unfinished_records(
    during: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run of the consumer handles them, and those that were fetched, and nothing is lost."""
    service = Service(*(message(n, key=f"k{n % 2}") for n in range(6)))
    is_seeking, may_seek, seek = threading.Event(), threading.Event(), service.client.seek

    def seek_slowly(place: TopicPartition) -> None:
        is_seeking.set()
        may_seek.wait(20)
        seek(place)

    async def fail(item: Decoded) -> None:
        if item.event.data == 1:
            raise ValueError("no 1")
        await service.handle(item)

    monkeypatch.setattr(service.client, "seek", seek_slowly)
    running = service.start(fail, stop_timeout=20 if during == "the wait for handlers" else 0.1)
    await wait_until(lambda: len(service.begun) == 1)
    tasks: Any = service.events._tasks
    await wait_until(is_seeking.is_set if during == "the seek" else lambda: False in tasks._waiting.values())
    running.cancel()
    await asyncio.sleep(0.01)
    may_seek.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    service.gate.set()
    assert (await service.run()).handled == 6
    assert sorted(service.done) == list(range(6))
    assert service.offsets == {("in", 0): 6}


@pytest.mark.parametrize("on_failure", ["skip", "fail"])
@in_loop
async def test_an_error_without_a_text_is_a_failure_like_any_other(on_failure: str) -> None:
    """The error contains an object whose repr fails; the run ends, or tries the record again and skips it."""
    service = Service(message(1), message(2))

    async def handle(item: Decoded) -> None:
        service.begun.append(item.event.data)
        if item.event.data == 1:
            raise ValueError(Detached())

    running = service.start(handle, on_failure=on_failure, tries=2, backoff=0)
    if on_failure == "skip":
        assert await running == RunResult(handled=1, skipped=1, retried=1)
    else:
        with pytest.raises(ValueError, check=lambda error: isinstance(error.args[0], Detached)):
            await running
    assert service.begun == [1, 1, *[2] * (on_failure == "skip")]


@pytest.mark.parametrize("by", ["stop", "SIGTERM", "cancel"])
@in_loop
async def test_the_end_waits_for_handlers_within_the_bound(by: str) -> None:
    """What is not done by then is cancelled and not committed; what was done is."""
    service = Service(*(message(n, key=f"k{n}") for n in range(2, 4)), message(0, key="slow"))
    running = service.start(stop_timeout=2)  # a fifth of it is for the commit
    await wait_until(lambda: len(service.begun) == 3)
    start = time.monotonic()
    if by == "stop":
        service.events.stop()
    elif by == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
    else:
        running.cancel()
    if by == "cancel":
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        assert (await running).handled == 2
    assert 1.2 < time.monotonic() - start < 30
    assert service.offsets == {("in", 0): 2}
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@in_loop
async def test_a_handler_may_close_the_consumer() -> None:
    """The run ends, what was handled is committed, and the client is closed."""
    service = Service(*map(message, range(1, 100)))

    async def handle(item: Decoded) -> None:
        service.done.append(item.event.data)
        if item.event.data == 7:
            await service.events.close()

    counts = await service.run(handle)
    await service.events.close()
    assert service.client._closed
    assert service.offsets == {("in", 0): counts.handled}
    assert counts.handled == len(service.done) >= 7


@in_loop
async def test_wrong_arguments_are_refused() -> None:
    """A function would never be awaited; options are those of threads."""
    service = Service()
    with pytest.raises(TypeError, match="handler must be a coroutine function, got builtin"):
        await service.events.run(print)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        await service.run(concurrency=0)
    with pytest.raises(TypeError, match=r"topics must be a list of names, got 'in'"):
        service.events.subscribe("in")
    with pytest.raises(TypeError, match="on_revoke must be a plain function, got a coroutine function"):
        service.events.subscribe(["in"], on_revoke=service.handle)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"enable\.auto\.commit must be False in the settings"):
        AsyncEventConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "enable.auto.commit": True})


def test_a_failure_is_raised_when_the_other_handlers_have_returned() -> None:
    """The next run does not handle a record while an earlier handler of it works."""

    async def work() -> None:
        service = Service(*(message(n, key=f"k{n}") for n in range(9)))
        failed = asyncio.Event()

        async def handle(item: Decoded) -> None:
            service.begun.append(item.event.data)
            if item.event.data == 1 and not failed.is_set():
                failed.set()
                raise OSError
            if item.event.data == 0:
                await failed.wait()
                await asyncio.sleep(0.1)
            service.done.append(item.event.data)

        with pytest.raises(OSError):
            await service.run(handle, concurrency=2)
        assert service.done == [0]
        await service.run(handle, concurrency=2)
        assert sorted(service.begun) == [0, 1, *range(1, 9)]
        assert service.offsets == {("in", 0): 9}

    asyncio.run(work())


@each("concurrency", [1, 4, 8])
def test_slow_keys_slow_no_other(concurrency: int) -> None:
    """With fewer places than slow keys they take turns with all others; other partitions do not wait."""

    async def work() -> None:
        slow = [message(n, key=f"slow{n % 9}") for n in range(900)]
        service = Service(*slow, *(message(n, partition=1, key=f"k{n}") for n in range(900, 1200)))
        before: list[int] = []

        async def handle(item: Decoded) -> None:
            service.done.append(item.event.data)
            if item.event.data < 900 and not before:
                await asyncio.sleep(0.002)
            if not before and sum(number >= 900 for number in service.done) == 300:
                before.append(len(service.done) - 300)

        await service.run(handle, concurrency=concurrency)
        assert before[0] < 600
        assert sorted(service.done) == list(range(1200))

    asyncio.run(work())


class NoExecutor(ThreadPoolExecutor):
    """A default executor that nothing may use."""

    def submit(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError(f"asyncio's default executor was used: {arguments} {options}")


@in_loop
async def test_eight_runs_leave_the_default_executor_free() -> None:
    """Each handles its records, with dead letters and tries, and no call goes by the pool of asyncio."""
    asyncio.get_running_loop().set_default_executor(NoExecutor(1))
    services = [Service(*(message(n, key=f"k{n}") for n in range(1, 20))) for _ in range(8)]
    letters = DeadLetters(EventProducer(FakeProducer()), topic="dead")

    async def run(service: Service) -> RunResult:
        async def handle(item: Decoded) -> None:
            if item.event.data == 7:
                raise OSError
            await asyncio.sleep(0.05)

        counts = await service.run(handle, tries=2, backoff=0, on_failure=letters)
        await service.events.close()
        return counts

    counts = await asyncio.gather(*map(run, services))
    assert counts == [RunResult(handled=18, dead=1, retried=1)] * 8
    assert [service.offsets for service in services] == [{("in", 0): 19}] * 8


@pytest.mark.parametrize("on_failure", ["fail", "skip", "letters"])
@in_loop
async def test_a_cancellation_of_something_else_is_a_failure(on_failure: str) -> None:
    """A handler awaits a task that another has cancelled: its tries and on_failure decide."""
    service, calls, client = Service(*map(message, range(1, 4))), list[int](), FakeProducer()

    async def handle(item: Decoded) -> None:
        calls.append(item.event.data)
        if item.event.data == 2:
            shared = asyncio.ensure_future(asyncio.sleep(100))
            shared.cancel()
            await shared

    action: Any = DeadLetters(EventProducer(client), topic="dead") if on_failure == "letters" else on_failure
    if on_failure == "fail":
        with pytest.raises(concurrent.futures.CancelledError, match="an awaited task was cancelled"):
            await service.run(handle, tries=2, backoff=0, on_failure=action, concurrency=1)
        assert service.offsets == {("in", 0): 1}
        return
    counts = await service.run(handle, tries=2, backoff=0, on_failure=action, concurrency=1)
    assert counts == RunResult(
        handled=2, retried=1, skipped=int(on_failure == "skip"), dead=int(on_failure == "letters")
    )
    assert calls == [1, 2, 2, 3]
    assert service.offsets == {("in", 0): 3}


@in_loop
async def test_a_handler_whose_task_is_cancelled_ends_the_run() -> None:
    """Its record is not done, so it is neither skipped nor committed."""
    service = Service(*map(message, range(1, 4)))

    async def handle(item: Decoded) -> None:
        if item.event.data == 2:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    with pytest.raises(concurrent.futures.CancelledError, match="the task of a handler was cancelled"):
        await service.run(handle, on_failure="skip", tries=3, concurrency=1)
    assert service.offsets == {("in", 0): 1}


class Watched(FakeConsumer):
    """A client that notes which threads call it."""

    threads: set[int]

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        watched = ("poll", "consume", "commit", "committed", "assignment", "seek", "pause", "resume", "close")
        if name not in (*watched, "position", "get_watermark_offsets", "memberid"):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self.threads.add(threading.get_ident())
            return found(*arguments, **options)

        return call


class Lags(Observer):
    """Notes the ends of partitions, which the client knows."""

    def __init__(self) -> None:
        self.ends: list[int | None] = []

    def received(self, notices: Any) -> None:
        self.ends += [notice.end for notice in notices]


@pytest.mark.parametrize("loop", ["run", "items", "batches"])
@in_loop
async def test_the_loop_calls_no_client_that_waits(loop: str) -> None:
    """One thread makes all calls, also for observers: a call waits while the client polls."""
    Watched.threads = set()
    client, lags = Watched(FakeLog([message(n) for n in range(9)]), auto_commit=False), Lags()
    async with AsyncEventConsumer(client, topics=["in"], observers=[lags]) as events:
        Watched.threads.clear()
        if loop == "run":
            await events.run(nothing, idle_timeout=0.05)
        elif loop == "items":
            async for item in events.items(idle_timeout=0):
                await events.commit(item)
        else:
            async for batch in events.batches(idle_timeout=0):
                await events.commit(batch)
        await events.seek(TopicPartition("in", 0, 0))
    assert lags.ends == [9] * 9
    assert len(Watched.threads) <= 2  # a thread ends with its run
    assert threading.get_ident() not in Watched.threads


async def nothing(_: Decoded) -> None:
    """Do nothing."""


@pytest.mark.parametrize("name", ["poll", "committed", "commit", "close"])
@in_loop
async def test_a_call_that_hangs_holds_no_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` ends within stop_timeout after a stop, and close within its bound, whichever call hangs."""
    monkeypatch.setattr("cloudevents_kafka.clients.aio._source._CLOSE_SECONDS", 0.2)
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.05)
    service, gate = Service(*map(message, range(1, 9))), threading.Event()
    call = getattr(service.client, name)

    def hang(*arguments: Any, **options: Any) -> Any:
        if service.done:
            gate.wait(100)
        return call(*arguments, **options)

    monkeypatch.setattr(service.client, name, hang)
    running = service.start(stop_timeout=0.5, idle_timeout=None)
    await wait_until(lambda: len(service.done) == 8)
    await asyncio.sleep(0.2)
    service.events.stop()
    async with asyncio.timeout(50):
        assert (await running).handled == 8
        await service.events.close()
    gate.set()


@in_loop
async def test_classes_of_threads_are_refused() -> None:
    """What waits in a thread would block the loop, and a thread cannot await."""
    service, threads = Service(), EventConsumer(FakeConsumer([]))
    sync, aio = EventProducer(FakeProducer()), AsyncEventProducer(FakeProducer())
    wrong: Any
    with pytest.raises(TypeError, match="producer must be an AsyncEventProducer, got EventProducer; pass"):
        await service.run(producer=sync)
    wrong = aio
    with pytest.raises(TypeError, match="producer must be an EventProducer, got AsyncEventProducer; pass"):
        threads.run(print, producer=wrong)
    with pytest.raises(TypeError, match="on_failure must have an EventProducer here, got an AsyncEventPr"):
        threads.run(print, on_failure=DeadLetters(aio, topic="dead"))
    for wrong in (service.events, threads):
        for kind in (AsyncEventConsumer, EventConsumer):
            with pytest.raises(
                TypeError, match=r"EventConsumer, which has no .*consume; pass the client that"
            ):
                kind(wrong)
    wrong = threads
    with pytest.raises(TypeError, match="consumer must be an AsyncEventConsumer, got EventConsumer; pass"):
        AsyncEventProcessor(wrong, aio, nothing)
    wrong = sync
    with pytest.raises(TypeError, match="producer must be an AsyncEventProducer, got EventProducer; pass"):
        AsyncEventProcessor(service.events, wrong, nothing)


def test_clients_that_convert_are_refused() -> None:
    """SerializingProducer and DeserializingConsumer change keys and values, which are bytes of events."""
    settings: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    for wrapper in (AsyncEventConsumer, EventConsumer):
        with pytest.raises(
            TypeError, match="got DeserializingConsumer, which converts keys and values; pass"
        ):
            wrapper(DeserializingConsumer({**settings, "group.id": "g"}))
    for producer in (AsyncEventProducer, EventProducer):
        with pytest.raises(TypeError, match="got SerializingProducer, which converts keys and values; pass"):
            producer(SerializingProducer(settings))


@make.examples(40)
@given(
    st.lists(st.integers(1, 12), max_size=8),
    st.integers(1, 5),
    st.integers(1, 20),
    st.sets(st.integers(0, 59)),
)
def test_a_run_loses_and_repeats_no_record_in_any_rebalances(
    between: list[int], concurrency: int, max_ahead: int, failing: set[int]
) -> None:
    """No offset passes a record that is not done, and none that was done begins again."""

    async def work() -> None:
        messages = [message(n, partition=n % 3, key=f"k{n % 7}") for n in range(60)]
        service, failed, begun = Service(*messages), set(failing), Counter[int]()
        client, rebalances = service.client, list(between)
        consume, commit = client.consume, client.commit

        def consume_with_rebalances(count: int, timeout: float) -> Any:
            if rebalances and len(service.done) >= rebalances[0] * (len(between) - len(rebalances)):
                rebalances.pop(0)
                client.rebalance()
            return consume(min(count, 5), timeout)

        def commit_done(*, offsets: list[TopicPartition], **options: Any) -> Any:
            for place in offsets:
                before = {n for n in range(60) if n % 3 == place.partition and n // 3 < place.offset}
                assert before <= set(service.done)
            return commit(offsets=offsets, **options)

        client.consume, client.commit = consume_with_rebalances, commit_done  # type: ignore[assignment]

        async def handle(item: Decoded) -> None:
            number = item.event.data
            begun[number] += 1
            await asyncio.sleep(begun.total() % 3 / 1000)
            if number in failed:
                failed.discard(number)
                begun[number] -= 1
                raise OSError
            service.done.append(number)

        options: dict[str, Any] = {"tries": 2, "backoff": 0, "idle_timeout": 0.02}
        await service.run(handle, concurrency=concurrency, max_ahead=max_ahead, **options)
        assert set(begun.values()) == {1}
        assert sorted(service.done) == list(range(60))
        assert service.offsets == {("in", number): 20 for number in range(3)}
        await service.events.close()

    asyncio.run(work())


@in_loop
async def test_a_record_that_a_function_of_the_user_cannot_read_is_left() -> None:
    """The run ends by the error, and the next one begins with the record."""
    fails = [True]

    def map_key(event: Event, record: Record) -> Event:
        if event.data == 2 and fails:
            fails.clear()
            raise LookupError("no key")
        return event

    service = Service(*map(message, range(1, 4)))
    service.events = AsyncEventConsumer(service.client, topics=["in"], reverse_key_mapper=map_key)
    with pytest.raises(LookupError, match="no key"):
        await service.run()
    await service.run()
    assert service.done == [1, 2, 3]
    assert service.offsets == {("in", 0): 3}
