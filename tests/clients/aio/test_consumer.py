"""AsyncEventConsumer with a fake client; tests/clients has the real ones."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from itertools import chain
from random import Random
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from cloudevents_kafka import (
    AsyncEventConsumer,
    BrokenEvent,
    ConsumeError,
    Decoded,
    Event,
    NotAnEvent,
    Undecodable,
    key_to_attribute,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeProducer
from tests.support.cases import each

BROKEN = [("ce_specversion", b"1.0"), ("ce_id", b""), ("ce_source", b"/s"), ("ce_type", b"t")]


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed", data={"number": number})


def log_of(*items: Event | bytes | list[Any], partitions: int = 1) -> FakeLog:
    """Return a topic with these events, values of records that are not events, and headers."""
    producer = FakeProducer(FakeLog(partitions=partitions))
    for item in items:
        if isinstance(item, Event):
            record = to_record(item, key=f"k{item.id}")
            producer.produce("orders", value=record.value, key=record.key, headers=record.headers)
        elif isinstance(item, bytes):
            producer.produce("orders", value=item)
        else:
            producer.produce("orders", value=b"", headers=item)
    producer.flush()
    return producer.log


def reading(log: FakeLog, **options: Any) -> FakeConsumer:
    client = FakeConsumer(log, **options)
    client.subscribe(["orders"])
    return client


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test in its event loop, in which no task may be left."""

    async def supervised() -> None:
        async with asyncio.timeout(100):
            await work
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(supervised())


def name_of(item: Decoded | Undecodable | None) -> str:
    """Return the id of an event, or the name of the error."""
    return item.event.id if isinstance(item, Decoded) else type(item and item.error).__name__


async def take(items: AsyncIterator[Decoded | Undecodable], count: int) -> list[str]:
    taken: list[str] = []
    async for item in items:
        taken.append(name_of(item))
        if len(taken) == count:
            break
    return taken


def test_async_for_returns_decoded_and_undecodable_records_in_order() -> None:
    """A bad record is an item like others, and does not stop the loop."""

    async def work() -> None:
        async with AsyncEventConsumer(reading(log_of(order(1), b"no", BROKEN, order(2)))) as events:
            items = [item async for item in events.items(idle_timeout=0.05)]
        assert [name_of(item) for item in items] == ["1", "NotAnEvent", "BrokenEvent", "2"]
        assert [item.record.offset for item in items] == [0, 1, 2, 3]
        assert isinstance(items[1], Undecodable)
        assert isinstance(items[1].error, NotAnEvent)

    run(work())


def test_options_are_those_of_event_consumer() -> None:
    """Options and their errors are those of the synchronous class."""

    async def work() -> None:
        log = log_of(order(1), BROKEN)
        async with AsyncEventConsumer(
            reading(log),
            strict=True,
            reverse_key_mapper=key_to_attribute("partitionkey"),
            data_reader=lambda event, record: (event.id, record.offset),
        ) as events:
            item = await events.poll()
            assert isinstance(item, Decoded)
            assert (item.event["partitionkey"], item.event.data) == ("k1", ("1", 0))
            with pytest.raises(BrokenEvent):
                await events.poll()
            assert await events.poll(0.01) is None
        lenient = [(name.replace("_", "-"), value or b"1") for name, value in BROKEN]
        async with AsyncEventConsumer(reading(log_of(lenient)), lenient=True) as events:
            item = await events.poll()
            assert isinstance(item, Decoded)
            assert item.tolerated

    run(work())


def test_errors_of_the_client_are_those_of_event_consumer() -> None:
    """What the client mends is gone through, what is final is raised, and reading goes on after it."""
    seen: list[str] = []

    async def work() -> None:
        client = reading(log_of(order(1), order(2)))
        client.fail_next("_MAX_POLL_EXCEEDED", "TOPIC_AUTHORIZATION_FAILED")
        async with AsyncEventConsumer(
            client, on_error=lambda error: seen.append(error.error.name())
        ) as events:
            with pytest.raises(ConsumeError, match="TOPIC_AUTHORIZATION_FAILED"):
                await take(events.items(), 1)
            assert await take(events.items(), 2) == ["1", "2"]
        assert seen == ["_MAX_POLL_EXCEEDED", "TOPIC_AUTHORIZATION_FAILED"]

    run(work())


def test_batches_are_lists_of_what_is_there() -> None:
    """A list has as many records as asked for or are there, and an error comes after those before it."""

    async def work() -> None:
        log = log_of(*map(order, range(5)), BROKEN, *map(order, range(6, 8)))
        events = AsyncEventConsumer(reading(log), strict=True)
        batches = events.batches(3, 0.05, idle_timeout=0.05)
        assert [name_of(item) for item in await anext(batches)] == ["0", "1", "2"]
        assert [name_of(item) for item in await anext(batches)] == ["3", "4"]
        with pytest.raises(BrokenEvent):
            await anext(batches)
        assert [
            [name_of(item) for item in batch] async for batch in events.batches(3, 0.05, idle_timeout=0.05)
        ] == [["6", "7"]]
        await events.close()

    run(work())


def test_a_timeout_loses_no_record() -> None:
    """Records arrive once and in order, whichever readers are cancelled while they wait."""

    async def work() -> None:
        log, chosen, taken = FakeLog(), Random(17), []
        producer = FakeProducer(log)
        async with AsyncEventConsumer(reading(log), max_records=3) as events:
            readers: list[Callable[[], Coroutine[Any, Any, Any]]] = [
                events.poll,
                lambda: anext(aiter(events)),
                lambda: anext(events.batches(4, 0.01)),
            ]
            for number in range(300):
                record = to_record(order(number))
                producer.produce("orders", value=record.value, headers=record.headers)
                producer.flush()
                with suppress(TimeoutError):
                    async with asyncio.timeout(chosen.choice([0, 0.001, 0.01])):
                        found = await chosen.choice(readers)()
                        taken += found if isinstance(found, list) else [found]
            taken += [item async for item in events.items(idle_timeout=0.05)]
        assert [name_of(item) for item in taken] == [str(number) for number in range(300)]

    run(work())


def test_timeouts_may_be_zero() -> None:
    """With a timeout of zero a call returns what is there, and fetches what is there for the next one."""

    async def work() -> None:
        async with AsyncEventConsumer(reading(log_of(*map(order, range(4)))), max_records=2) as events:
            async with asyncio.timeout(100):
                while (item := await events.poll(0)) is None:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                assert name_of(item) == "0"
                batch = await anext(events.batches(9, 0))
                assert [name_of(each) for each in batch] == ["1"]
                await events.poll(0)
                await asyncio.sleep(0.05)
                assert len([each async for each in events.items(idle_timeout=0)]) >= 1

    run(work())


def test_each_record_goes_to_one_of_several_readers() -> None:
    """Tasks may read from one consumer; together they get each record once."""

    async def work() -> None:
        async with AsyncEventConsumer(reading(log_of(*map(order, range(500)))), max_records=7) as events:

            async def reads() -> list[str]:
                return [name_of(item) async for item in events.items(idle_timeout=0.1)]

            taken = await asyncio.gather(*(reads() for _ in range(5)))
        assert sorted(chain(*taken), key=int) == [str(number) for number in range(500)]

    run(work())


def test_the_loop_runs_while_records_are_there() -> None:
    """Iteration over records that are there lets other tasks run, at least each millisecond or so."""

    async def work() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async with AsyncEventConsumer(reading(log_of(*map(order, range(2000)))), max_records=2000) as events:
            await take(events.items(), 1)
            ticks, began = 0, time.thread_time()
            await take(events.items(), 1999)
            assert ticks >= (time.thread_time() - began) / 0.02
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)

    run(work())


def test_commit_is_after_what_was_returned() -> None:
    """Records that were fetched and not returned are not committed by commit."""

    async def work() -> None:
        client = reading(log_of(*map(order, range(10))), auto_commit=False)
        async with AsyncEventConsumer(client) as events:
            items = [await events.poll() for _ in range(3)]
            assert items[2] is not None
            await events.commit(items[2])
            assert client.offsets == {("orders", 0): 3}
            await events.commit([item for item in items[:2] if item])
            assert client.offsets == {("orders", 0): 2}
        assert client.offsets == {("orders", 0): 2}

    run(work())


@each("returned", [1, 4, 10])
def test_what_was_not_returned_is_read_again(returned: int) -> None:
    """After close the group reads on after the records that were returned, also with automatic commits."""

    async def work() -> None:
        log, offsets = log_of(*map(order, range(10))), {}
        async with AsyncEventConsumer(reading(log, offsets=offsets)) as events:
            first = await take(events.items(), returned)
        async with AsyncEventConsumer(reading(log, offsets=offsets)) as events:
            rest = [name_of(item) async for item in events.items(idle_timeout=0.05)]
        assert first + rest == [str(number) for number in range(10)]

    run(work())


def test_seek_and_discard_drop_what_was_fetched() -> None:
    """After seek the next record is the one sought; discard drops the records of partitions."""

    async def work() -> None:
        client = reading(log_of(*map(order, range(10))))
        async with AsyncEventConsumer(client) as events:
            items = [await events.poll() for _ in range(5)]
            assert items[2] is not None
            await events.seek(items[2])
            assert await take(events.items(), 3) == ["2", "3", "4"]
            await events.seek(TopicPartition("orders", 0, 8))
            assert name_of(await events.poll()) == "8"
            events.discard([TopicPartition("others", 0)])
            events.discard([TopicPartition("orders", 0)])
            assert await events.poll(0.01) is None

    run(work())


def test_stop_ends_all_iteration() -> None:
    """Loops that wait end within a fraction of a second, and those with records after the current one."""

    async def work() -> None:
        async with AsyncEventConsumer(reading(log_of(*map(order, range(5))))) as events:
            taken = []
            async for item in events:
                taken.append(name_of(item))
                if len(taken) == 2:
                    events.stop()
            assert taken == ["0", "1"]
        async with AsyncEventConsumer(reading(FakeLog())) as events:
            asyncio.get_running_loop().call_later(0.05, events.stop)
            async with asyncio.timeout(100):
                assert [item async for item in events] == []
                assert [batch async for batch in events.batches()] == []
                assert await events.poll(1000) is None

    run(work())


def test_close_ends_the_threads() -> None:
    """The client is closed after its last call, and no thread is left."""

    def names() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("AsyncEvent")]

    async def work() -> None:
        client = reading(log_of(order(1)))
        events = AsyncEventConsumer(client)
        item = await events.poll()
        assert item is not None
        await events.commit(item)
        reader = asyncio.create_task(events.poll(1000))
        await asyncio.sleep(0.01)
        await asyncio.gather(events.close(), events.close())
        assert await reader is None
        with pytest.raises(RuntimeError, match="closed"):
            client.poll(0)
        async with asyncio.timeout(100):
            while names():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    run(work())


def test_an_error_of_the_client_is_raised_to_who_reads() -> None:
    """What the calls of the client raise is raised by reading, and the next try reads on."""

    class Failing(FakeConsumer):
        failures = 1

        def consume(self, num_messages: int = 1, timeout: float = -1) -> Any:
            if self.failures:
                self.failures -= 1
                raise OSError("of a rebalance callback")
            return super().consume(num_messages, timeout)

    async def work() -> None:
        client = Failing(log_of(order(1)))
        client.subscribe(["orders"])
        async with AsyncEventConsumer(client) as events:
            with pytest.raises(OSError, match="of a rebalance callback"):
                await events.poll()
            assert name_of(await events.poll()) == "1"

    run(work())


class AIOConsumer:
    """A coroutine of confluent-kafka's consumer for asyncio."""

    async def consume(self) -> None: ...


@each(
    ("client", "message"),
    [
        (FakeConsumer, "got the class FakeConsumer; create an instance"),
        (FakeProducer(), "got FakeProducer, which has no consume"),
        (AIOConsumer(), "got AIOConsumer, which this library does not use; pass confluent_kafka.Consumer"),
    ],
)
def test_other_clients_are_refused(client: object, message: str) -> None:
    """What cannot be used is refused when it is passed, and the error names what to pass."""
    with pytest.raises(TypeError) as caught:
        AsyncEventConsumer(client)
    assert message in str(caught.value)
