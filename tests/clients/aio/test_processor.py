"""AsyncEventProcessor with fakes: each record is forwarded once by a coroutine, with any abort."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    DeadLetters,
    Decoded,
    Event,
    Undecodable,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer


def message(number: int) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t"))
    return FakeMessage("in", record.value, str(number), record.headers)


class Kafka:
    """A log, a group, and clients of a processor that forwards each record; some fail at first."""

    def __init__(self, count: int = 10, **fails: int) -> None:
        self.log = FakeLog([message(number) for number in range(count)])
        self.offsets: dict[tuple[str, int], int] = {}
        self.reader = FakeConsumer(self.log, offsets=self.offsets, auto_commit=False)
        self.events = AsyncEventConsumer(self.reader, topics=["in"])
        self.writer = FakeProducer(self.log, transactional=True)
        self.producer = AsyncEventProducer(self.writer, topic="out")
        self.fails = {int(name[1:]): times for name, times in fails.items()}

    async def handle(self, item: Decoded | Undecodable) -> None:
        number = int(item.record.key or b"")
        assert isinstance(item, Decoded)
        self.producer.send_nowait(item.event, key=item.record.key)
        await asyncio.sleep(0)
        if self.fails.get(number, 0):
            self.fails[number] -= 1
            raise ConnectionError(f"no {number}")

    def processor(self, handler: Any = None, **options: Any) -> AsyncEventProcessor:
        return AsyncEventProcessor(
            self.events, self.producer, handler or self.handle, **{"max_records": 4, "backoff": 0, **options}
        )

    def keys(self, topic: str) -> list[int]:
        """The numbers that a consumer reads which sees committed transactions only."""
        return [int(each.key() or b"") for each in self.log if each.topic() == topic]


def test_the_end_of_its_consumer_is_that_of_a_processor() -> None:
    """`stop` of the consumer ends the run after the current record, which is committed."""
    kafka = Kafka(10)

    async def handle(item: Decoded | Undecodable) -> None:
        await kafka.handle(item)
        kafka.events.stop()

    assert asyncio.run(kafka.processor(handle).run()) == 1
    assert kafka.keys("out") == [0]


def test_a_handler_may_close_the_consumer() -> None:
    """It does not wait for its run, which commits what was handled, and then closes the client."""
    kafka = Kafka(10)

    async def handle(item: Decoded | Undecodable) -> None:
        await kafka.handle(item)
        await asyncio.wait_for(kafka.events.close(), 10)

    assert asyncio.run(kafka.processor(handle).run()) == 1
    assert kafka.keys("out") == [0]
    assert kafka.reader._closed


@pytest.mark.parametrize("abort", [None, "_TIMED_OUT", "delivery", "rebalance"])
def test_each_record_is_forwarded_once_whatever_aborts(abort: str | None) -> None:
    """Also if a transaction is aborted, its records are read again and handled by the loop."""

    async def main() -> None:
        kafka = Kafka()
        if abort == "_TIMED_OUT":
            kafka.writer.fail_transaction("_TIMED_OUT")
        elif abort == "delivery":
            kafka.writer.fail_next("_MSG_TIMED_OUT")
        elif abort == "rebalance":
            kafka.reader.rebalance()
        async with kafka.producer:
            assert await kafka.processor().run(idle_timeout=0) == 10
        assert kafka.keys("out") == list(range(10))
        assert kafka.offsets == {("in", 0): 10}

    asyncio.run(main())


@pytest.mark.parametrize("by_function", [False, True])
def test_a_bad_record_is_set_aside_once(*, by_function: bool) -> None:
    """Its letter is in the transaction, and what its handler sent is not read."""

    async def main() -> None:
        kafka = Kafka(n1=9, n7=1)
        letters = DeadLetters(kafka.producer, topic="dead")
        on_failure: Any = (lambda *_: letters) if by_function else letters
        async with kafka.producer:
            assert await kafka.processor(on_failure=on_failure, tries=2).run(idle_timeout=0) == 10
        assert kafka.keys("out") == [0, *range(2, 10)]
        assert kafka.keys("dead") == [1]

    asyncio.run(main())


def test_an_error_of_the_handler_aborts_and_ends() -> None:
    """It has the place of the record; nothing of its transaction is read."""

    async def main() -> None:
        kafka = Kafka(n2=1)
        with pytest.raises(ConnectionError, match="no 2") as caught:
            await kafka.processor().run(idle_timeout=0)
        assert "while in[0]@2 was handled" in caught.value.__notes__
        assert kafka.keys("out") == []
        assert await kafka.processor().run(idle_timeout=0) == 10
        await kafka.producer.close()

    asyncio.run(main())


@pytest.mark.parametrize("by", ["stop", "cancel"])
def test_the_end_is_within_the_bound(by: str) -> None:
    """A handler that hangs is cancelled, and its transaction is left to the next process."""

    async def main() -> None:
        kafka, begun = Kafka(), asyncio.Event()
        cancelled: list[bool] = []

        async def hang(_: Any) -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        processor = kafka.processor(hang)
        running = asyncio.create_task(processor.run(stop_timeout=0.5))
        await begun.wait()
        start = time.monotonic()
        if by == "stop":
            processor.stop()
            assert await running == 0
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        await asyncio.sleep(0.05)
        assert 0.3 < time.monotonic() - start < 3
        assert cancelled == [True]
        assert kafka.offsets == {}
        await kafka.producer.close()

    asyncio.run(main())


def test_a_processor_after_a_cancelled_one_begins_with_its_batch() -> None:
    """The records of the transaction that was left open are handled by the next processor, at once."""

    async def main() -> None:
        kafka, begun = Kafka(), asyncio.Event()

        async def hang(_: Any) -> None:
            begun.set()
            await asyncio.sleep(60)

        running = asyncio.create_task(kafka.processor(hang).run(stop_timeout=0))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await kafka.producer.close()
        kafka.producer = AsyncEventProducer(FakeProducer(kafka.log, transactional=True), topic="out")
        assert await kafka.processor().run(idle_timeout=0) == 10
        assert kafka.keys("out") == list(range(10))
        await kafka.producer.close()

    asyncio.run(main())


def test_other_clients_and_handlers_are_refused() -> None:
    """The error says why aiokafka's are."""
    kafka = Kafka()
    with pytest.raises(TypeError, match="handler must be a coroutine function"):
        kafka.processor(print)
    other: Any = AsyncEventConsumer(Aiokafka())
    with pytest.raises(TypeError, match="with aiokafka, a broker would accept offsets"):
        AsyncEventProcessor(other, kafka.producer, kafka.handle)


class Aiokafka:
    """A class with the coroutines of aiokafka's consumer."""

    async def getmany(self) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


def test_a_cancellation_of_something_else_is_a_failure() -> None:
    """A handler awaits a task that another has cancelled; its tries and on_failure decide."""
    kafka, calls = Kafka(4), list[bytes]()

    async def handle(item: Decoded) -> None:
        calls.append(item.record.key or b"")
        if item.record.key == b"2":
            shared = asyncio.ensure_future(asyncio.sleep(100))
            shared.cancel()
            await shared
        await kafka.handle(item)

    async def work() -> None:
        async with kafka.producer:
            processor = kafka.processor(handle, tries=2, on_failure="skip")
            assert await processor.run(idle_timeout=0.1) == 4

    asyncio.run(work())
    assert kafka.keys("out") == [0, 1, 3]
    assert calls.count(b"2") == 2


def test_processors_leave_the_default_executor_free() -> None:
    """Each has a thread of its own, a daemon, which ends with the run."""

    async def work() -> None:
        loop = asyncio.get_running_loop()
        executor = ThreadPoolExecutor(1)
        loop.set_default_executor(executor)
        gate = threading.Event()
        held = loop.run_in_executor(None, gate.wait)
        all_kafka = [Kafka(5) for _ in range(8)]
        runs = (kafka.processor().run(idle_timeout=0.1) for kafka in all_kafka)
        async with asyncio.timeout(50):
            assert await asyncio.gather(*runs) == [5] * 8
        gate.set()
        await held
        for kafka in all_kafka:
            await kafka.producer.close()

    asyncio.run(work())
