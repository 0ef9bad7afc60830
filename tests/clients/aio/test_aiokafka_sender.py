"""The task that sends through aiokafka's producer, when it is cancelled: by a client of the same shape."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import AsyncEventProducer, DeliveryError, Event
from cloudevents_kafka.clients.aio._aiokafka_sender import AiokafkaSender
from tests.support.cases import each

Producer = AsyncEventProducer[Any]


class Writer:
    """A producer that writes while ``open`` is set, and like aiokafka's not what was cancelled."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.written: list[str] = []
        self.turns = 0

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, topic: str, **record: Any) -> asyncio.Future[Any]:
        await self.open.wait()
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.written.append(dict(record["headers"])["ce_id"].decode())
        future = asyncio.get_running_loop().create_future()
        future.set_result(SimpleNamespace(partition=0, offset=len(self.written) - 1))
        return future


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed", data={"number": number})


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100):
            await work

    asyncio.run(bounded())


async def cancel_sender() -> None:
    """Cancel the task that sends, as programs do that cancel all tasks at their end."""
    senders = [task for task in asyncio.all_tasks() if "_send_queued" in repr(task)]
    assert senders
    for task in senders:
        task.cancel()
    await asyncio.wait(senders)


async def send_next(producer: Producer) -> None:
    await producer.send(order(500))


RESUMED: dict[str, Callable[[Producer], Awaitable[object]]] = {
    "send": send_next,
    "flush": lambda producer: producer.flush(),
    "close": lambda producer: producer.close(),
    "drain": lambda producer: producer.drain(),
}


@each("how", RESUMED)
@each("turns", [0, 1])
def test_a_cancelled_sender_begins_again(how: str, turns: int) -> None:
    """The next event, drain, flush and close send what is queued, the record in hand first, and each once."""

    async def work() -> None:
        client = Writer()
        producer = AsyncEventProducer(client, topic="orders")
        deliveries = [producer.send_nowait(order(number)) for number in range(500)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await cancel_sender()
        client.open.set()
        await RESUMED[how](producer)
        await asyncio.gather(*deliveries)
        assert client.written[:500] == [str(number) for number in range(500)]
        assert [delivery.offset for delivery in deliveries] == list(range(500))
        await producer.close()

    run(work())


WAITING: dict[str, Callable[[Producer], Coroutine[Any, Any, object]]] = {
    "send": send_next,
    "flush": lambda producer: producer.flush(),
    "drain": lambda producer: producer.drain(),
}


@each("how", WAITING)
def test_who_waits_while_the_sender_is_cancelled_waits_for_the_next(how: str) -> None:
    """A task that waits for room, for a delivery or for all of them is not left without a sender."""

    async def work() -> None:
        client = Writer()
        producer = AsyncEventProducer(client, topic="orders", max_in_flight=4 if how == "drain" else 1000)
        for number in range(4):
            producer.send_nowait(order(number))
        waiting = asyncio.create_task(WAITING[how](producer))
        for _ in range(3):
            await asyncio.sleep(0)
        await cancel_sender()
        client.open.set()
        await waiting
        await producer.close()
        assert client.written[:4] == ["0", "1", "2", "3"]

    run(work())


def test_a_delivery_that_is_awaited_later_begins_it_again() -> None:
    """Awaiting one delivery is enough, also if nothing else is called."""

    async def work() -> None:
        client = Writer()
        producer = AsyncEventProducer(client, topic="orders")
        delivery = producer.send_nowait(order(1))
        await asyncio.sleep(0)
        await cancel_sender()
        assert not delivery.done
        client.open.set()
        assert (await delivery).offset == 0

    run(work())


def test_a_topic_that_the_client_does_not_know_delays_no_other_topic() -> None:
    """While aiokafka waits for the metadata of one topic, the events of other topics are sent."""

    class Waiting(Writer):
        async def send(self, topic: str, **record: Any) -> asyncio.Future[Any]:
            if topic == "missing":
                await self.open.wait()
                raise ValueError("no metadata")
            self.written.append(topic)
            future = asyncio.get_running_loop().create_future()
            future.set_result(SimpleNamespace(partition=0, offset=0))
            return future

    async def work() -> None:
        client = Waiting()
        producer = AsyncEventProducer(client)
        missing = asyncio.ensure_future(producer.send(order(0), "missing"))
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            assert (await producer.send(order(1), "orders")).offset == 0
        assert not missing.done()
        client.open.set()
        with pytest.raises(DeliveryError, match="to missing: no metadata"):
            await missing
        await producer.close()

    run(work())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="asyncio.eager_task_factory needs Python 3.12")
def test_tasks_that_end_at_once_send_each_event_once() -> None:
    """With an eager task factory, a task may end before ``create_task`` returns."""
    unhandled: list[dict[str, Any]] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unhandled.append(context))
        loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
        client = Writer()
        producer = AsyncEventProducer(client)
        deliveries = [producer.send_nowait(order(number), f"topic-{number % 3}") for number in range(6)]
        await cancel_sender()
        client.open.set()
        await producer.flush()  # sends the queued events of all topics at once
        deliveries += [producer.send_nowait(order(number), "topic-0") for number in range(6, 9)]
        await producer.close()
        assert all(delivery.offset is not None for delivery in deliveries)
        assert sorted(client.written) == [str(number) for number in range(9)]

    run(work())
    gc.collect()  # reports the error of a task that nobody awaits
    assert unhandled == []


def test_no_sender_begins_while_all_tasks_are_cancelled() -> None:
    """When a loop ends, which cancels all tasks, nobody waits, and no task is left behind."""
    senders: list[AiokafkaSender] = []

    async def work() -> None:
        producer = AsyncEventProducer(Writer(), topic="orders")
        senders.append(producer._sender)  # type: ignore[arg-type]
        delivery = producer.send_nowait(order(1))
        waiting = [asyncio.ensure_future(wait) for wait in (producer.flush(), send_next(producer))]
        await asyncio.sleep(0)
        assert not delivery.done
        assert len(waiting) == 2

    asyncio.run(work())
    assert [task.cancelled() for task in senders[0]._tasks.values()] == [True]


class Cancelling(Writer):
    """A client whose own future is cancelled, as happens when it is stopped."""

    async def send(self, topic: str, **record: Any) -> asyncio.Future[Any]:
        if not self.written:
            self.written.append("cancelled")
            raise asyncio.CancelledError("stopped")
        return await super().send(topic, **record)


def test_a_send_that_the_client_cancels_is_a_failed_delivery() -> None:
    """The error is that of the delivery, as it would be the same in each try, and the others are sent."""

    async def work() -> None:
        client = Cancelling()
        client.open.set()
        producer = AsyncEventProducer(client, topic="orders")
        first, second = producer.send_nowait(order(1)), producer.send_nowait(order(2))
        with pytest.raises(DeliveryError, match="cancelled"):
            await first
        await second
        assert client.written == ["cancelled", "2"]

    run(work())


@given(
    st.lists(
        st.tuples(st.sampled_from(["send", "cancel", "turn", "close gate", "open gate"]), st.integers(1, 5))
    ),
    st.integers(0, 2),
)
def test_each_event_is_sent_once_however_often_its_sender_is_cancelled(
    steps: list[tuple[str, int]], turns: int
) -> None:
    """All events arrive once and in order, at any moments of cancelling and of a client that waits."""

    async def work() -> None:
        client, sent = Writer(), 0
        client.turns = turns
        producer = AsyncEventProducer(client, topic="orders")
        for step, count in steps:
            for _ in range(count):
                if step == "send":
                    producer.send_nowait(order(sent))
                    sent += 1
                elif step == "turn":
                    await asyncio.sleep(0)
            if step == "cancel":
                for task in producer._sender._tasks.values():  # type: ignore[attr-defined]
                    task.cancel()
            elif step == "close gate":
                client.open.clear()
            elif step == "open gate":
                client.open.set()
        client.open.set()
        await producer.close()
        assert client.written == [str(number) for number in range(sent)]

    run(work())
