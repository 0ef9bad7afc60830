"""AsyncEventProducer with a fake client; tests/clients has the real ones."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from cloudevents_kafka import (
    AsyncDelivery,
    AsyncEventProducer,
    DeadLetter,
    DeadLetters,
    Delivery,
    DeliveryError,
    EncodeError,
    Event,
    EventProducer,
    Record,
    dead_letter,
    decode,
    from_record,
)
from cloudevents_kafka.testing import FakeLog, FakeProducer
from tests.support.cases import each


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed", data={"number": number})


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test in its event loop, in which no task may be left."""

    async def supervised() -> None:
        async with asyncio.timeout(100):
            await work
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(supervised(), debug=False)


def ids(client: FakeProducer) -> list[str]:
    return [from_record(message).id for message in client.log]


def test_send_returns_the_delivery_with_its_event() -> None:
    """Awaiting send returns where the event is, and the event."""

    async def work() -> None:
        client = FakeProducer()
        async with AsyncEventProducer(client, topic="orders") as producer:
            event = order(1)
            delivery = await producer.send(event, key="k")
            assert isinstance(delivery, Delivery)
            assert delivery.event is event
            assert (delivery.topic, delivery.partition, delivery.offset) == ("orders", 0, 0)
            assert delivery.result() is delivery
            assert await delivery is delivery
        assert [message.key() for message in client.log] == [b"k"]
        assert producer.producer is client

    run(work())


def test_options_are_those_of_event_producer() -> None:
    """Records are those of EventProducer, with the defaults of the producer and the options of a call."""
    defaults: dict[str, Any] = {"topic": "orders", "mode": "structured", "format": "json"}
    options: list[dict[str, Any]] = [
        {},
        {"topic": "others", "mode": "binary", "headers": {"h": b"\xff"}, "partition": 1, "timestamp": 7},
        {"key_mapper": lambda event: event.id},
        {"like": Record(key=b"k", value=b"", headers=[("a", b"1")])},
    ]
    clients = FakeProducer(FakeLog(partitions=2)), FakeProducer(FakeLog(partitions=2))
    with EventProducer(clients[0], **defaults) as producer:
        for each in options:
            producer.send(order(1), **each)

    async def work() -> None:
        async with AsyncEventProducer(clients[1], **defaults) as producer:
            for each in options:
                await producer.send(order(1), **each)

    run(work())
    sent = [[Record.of(message) for message in client.log] for client in clients]
    without_time = [[(r.key, r.value, r.headers, r.topic, r.partition) for r in each] for each in sent]
    assert without_time[0] == without_time[1]
    assert sent[1][-1].timestamp == 7


def test_a_failed_delivery_is_raised_by_send() -> None:
    """The error has the delivery, and neither flush nor leaving the block raises it again."""

    async def work() -> None:
        client = FakeProducer()
        client.fail_next("_MSG_TIMED_OUT")
        async with AsyncEventProducer(client, topic="orders") as producer:
            with pytest.raises(
                DeliveryError, match=r"event '1' of '/shop' to orders: .*_MSG_TIMED_OUT"
            ) as caught:
                await producer.send(order(1))
            assert caught.value.failed[0].event.id == "1"
            await producer.flush()
            await producer.send(order(2))
        assert ids(client) == ["2"]

    run(work())


def test_a_failed_delivery_that_nobody_awaits_is_raised_at_the_end() -> None:
    """Leaving the block waits for what was sent, and raises the errors of events that nobody awaited."""

    async def work() -> None:
        client = FakeProducer()
        client.fail_next("_MSG_TIMED_OUT")
        producer = AsyncEventProducer(client, topic="orders")
        await producer.__aenter__()
        for number in (1, 2, 3):
            producer.send_nowait(order(number))
        with pytest.raises(DeliveryError, match="1 event was not delivered") as caught:
            await producer.__aexit__(None, None, None)
        (failed,) = caught.value.failed
        assert failed.event.id == "1"
        assert isinstance(failed, AsyncDelivery)
        assert ids(client) == ["2", "3"]

    run(work())


def test_events_that_cannot_be_written_are_raised_at_once() -> None:
    """Such events are not in flight, and their errors are those of EventProducer.send."""

    async def work() -> None:
        client = FakeProducer()
        async with AsyncEventProducer(client) as producer:
            with pytest.raises(EncodeError, match="topic must be set"):
                await producer.send(order(1))
            with pytest.raises(EncodeError):
                producer.send_nowait(order(1), "orders", mode="structured", format="none such")
        assert ids(client) == []

    run(work())


def test_send_nowait_has_a_bound() -> None:
    """At the bound it raises QueueFull and sends nothing; drain waits for room."""

    async def work() -> None:
        client = FakeProducer()
        client.hold = True
        async with AsyncEventProducer(client, topic="orders", max_in_flight=2) as producer:
            deliveries = [producer.send_nowait(order(number)) for number in (1, 2)]
            with pytest.raises(asyncio.QueueFull, match="2 events are in flight; await drain"):
                producer.send_nowait(order(3))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await producer.drain()
            with pytest.raises(asyncio.InvalidStateError, match="pending"):
                deliveries[0].result()
            client.hold = False
            await producer.drain()
            producer.send_nowait(order(3))
        assert ids(client) == ["1", "2", "3"]
        assert all(delivery.done for delivery in deliveries)

    run(work())


def test_send_waits_at_the_bound_in_order() -> None:
    """Many tasks send through a small bound, and all events arrive, in the order in which the tasks began."""

    async def work() -> None:
        client = FakeProducer()
        async with AsyncEventProducer(client, topic="orders", max_in_flight=3) as producer:
            await asyncio.gather(*(producer.send(order(number)) for number in range(100)))
        assert ids(client) == [str(number) for number in range(100)]

    run(work())


def test_a_full_client_is_waited_for() -> None:
    """If the client's own queue is full, also by the messages of others, send waits for room."""

    async def work() -> None:
        client = FakeProducer(queue_limit=2)
        client.hold = True
        client.produce("others", value=b"")
        client.produce("others", value=b"")
        async with AsyncEventProducer(client, topic="orders") as producer:
            with pytest.raises(asyncio.QueueFull, match="the queue of the client is full"):
                producer.send_nowait(order(0))
            sending = asyncio.gather(*(producer.send(order(number)) for number in range(10)))
            await asyncio.sleep(0.05)
            assert not sending.done()
            client.hold = False
            await sending

    run(work())


def test_waiting_tasks_that_send_nothing_do_not_block_others() -> None:
    """A task that was woken for room may be cancelled, or have an event that cannot be written."""

    async def work() -> None:
        client = FakeProducer()
        client.hold = True
        async with AsyncEventProducer(client, topic="orders", max_in_flight=1) as producer:
            first = producer.send_nowait(order(0))
            wrong = [asyncio.create_task(producer.send(order(1), format="none such")) for _ in range(3)]
            cancelled = [asyncio.create_task(producer.send(order(2))) for _ in range(3)]
            right = asyncio.create_task(producer.send(order(3)))
            await asyncio.sleep(0.02)
            client.hold = False
            await first
            for task in cancelled:
                task.cancel()
            await right
            results = await asyncio.gather(*wrong, *cancelled, return_exceptions=True)
        assert {type(result) for result in results} == {EncodeError, asyncio.CancelledError}
        assert ids(client) == ["0", "3"]

    run(work())


def test_a_cancelled_send_leaves_the_event_on_its_way() -> None:
    """The event arrives once, and if it does not, flush raises its error."""

    async def work() -> None:
        client = FakeProducer()
        client.hold = True
        client.fail_next("_MSG_TIMED_OUT")
        async with AsyncEventProducer(client, topic="orders") as producer:
            for number in (1, 2):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await producer.send(order(number))
            client.hold = False
            with pytest.raises(DeliveryError, match="1 event was not delivered") as caught:
                await producer.flush()
        assert [each.event.id for each in caught.value.failed] == ["1"]
        assert ids(client) == ["2"]

    run(work())


def test_a_delivery_may_be_awaited_by_many() -> None:
    """Each task gets the delivery, or the error, also if one of them is cancelled."""

    async def waits(delivery: Any) -> Any:
        return await delivery

    async def work() -> None:
        client = FakeProducer()
        client.hold = True
        client.fail_next("_MSG_TIMED_OUT")
        async with AsyncEventProducer(client, topic="orders") as producer:
            failing, arriving = producer.send_nowait(order(1)), producer.send_nowait(order(2))
            tasks = [asyncio.create_task(waits(each)) for each in (failing, arriving) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            tasks[3].cancel()
            await asyncio.sleep(0)
            client.hold = False
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result).__name__ for result in results] == [
            *("CancelledError", "DeliveryError", "DeliveryError"),
            *("CancelledError", "AsyncDelivery", "AsyncDelivery"),
        ]

    run(work())


def test_close_timeout_bounds_the_end() -> None:
    """Leaving the block ends at close_timeout with the events on their way, which may still arrive."""

    async def work() -> None:
        client = FakeProducer()
        client.hold = True
        producer = AsyncEventProducer(client, topic="orders", close_timeout=0.1)
        delivery = producer.send_nowait(order(1))
        began = time.monotonic()
        with pytest.raises(DeliveryError, match=r"1 message is still pending after 0\.1 s") as caught:
            await producer.close()
        assert time.monotonic() - began < 1
        assert caught.value.failed == (delivery,)
        with pytest.raises(DeliveryError, match="closed"):
            await producer.send(order(2))
        client.hold = False
        assert (await delivery).offset == 0
        await producer.close()

    run(work())


def test_an_error_of_the_block_takes_precedence() -> None:
    """What was sent is delivered also if the block raises, and undelivered events are a note of its error."""

    async def fails(client: FakeProducer) -> None:
        async with AsyncEventProducer(client, topic="orders") as producer:
            producer.send_nowait(order(1))
            producer.send_nowait(order(2))
            raise ValueError("of the block")

    async def work() -> None:
        client = FakeProducer()
        client.fail_next("_MSG_TIMED_OUT")
        with pytest.raises(ValueError, match="of the block") as caught:
            await fails(client)
        assert caught.value.__notes__[0].startswith("also: 1 event was not delivered")
        assert ids(client) == ["2"]

    run(work())


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("AsyncEvent")]


def test_one_thread_polls_and_ends() -> None:
    """The thread is there while something is on its way, and ends when the producer is freed."""

    async def work() -> None:
        await no_threads_of_other_tests()
        client = FakeProducer()
        client.hold = True
        producer = AsyncEventProducer(client, topic="orders")
        assert threads() == []
        producer.send_nowait(order(1))
        second = producer.send_nowait(order(2))
        await asyncio.sleep(0.3)
        assert threads() == ["AsyncEventProducer"]
        client.hold = False
        await second
        await until(lambda: not threads())
        await producer.send(order(3))
        await producer.close()
        await until(lambda: not threads())
        client.hold = True
        forgotten = AsyncEventProducer(client, topic="orders")
        forgotten.send_nowait(order(1))
        assert threads() == ["AsyncEventProducer"]
        del forgotten
        gc.collect()
        await until(lambda: not threads())

    run(work())


async def no_threads_of_other_tests() -> None:
    """Free producers that other tests have forgotten, and wait for the ends of their threads."""
    gc.collect()
    await until(lambda: not threads())


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  # nothing sets an event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_an_error_while_polling_goes_to_the_handler_of_the_loop(error: type[BaseException]) -> None:
    """An error of the user's callbacks, which poll raises, is reported, and polling goes on."""

    class Failing(FakeProducer):
        failures = 1

        def poll(self, timeout: float = -1) -> int:
            if self.failures:
                self.failures -= 1
                raise error("of a callback")
            return super().poll(timeout)

    async def work() -> None:
        contexts = asyncio.Queue[dict[str, Any]]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.put_nowait(context))
        async with AsyncEventProducer(Failing(), topic="orders") as producer:
            await asyncio.wait_for(producer.send(order(1)), 30)
        context = await asyncio.wait_for(contexts.get(), 30)  # the loop calls its handler later
        assert str(context["exception"]) == "of a callback"
        assert contexts.empty()

    run(work())


def test_a_producer_belongs_to_one_loop() -> None:
    """Another event loop is refused, as the reports arrive in the first."""
    producer = AsyncEventProducer(FakeProducer(), topic="orders")

    async def send() -> None:
        await producer.send(order(1))

    async def refused() -> None:
        with pytest.raises(RuntimeError, match="must stay in one event loop"):
            producer.send_nowait(order(2))

    run(send())
    run(refused())


class Aiokafka:
    """The coroutines by which aiokafka's producer is recognized."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def send(self) -> None: ...


class AIOProducer:
    """A coroutine of confluent-kafka's producer for asyncio."""

    async def produce(self) -> None: ...


@each(
    ("client", "message"),
    [
        (FakeProducer, "got the class FakeProducer; create an instance"),
        (None, "got NoneType, which has no produce"),
        (AIOProducer(), "AIOProducer, which does not accept headers; pass confluent_kafka.Producer"),
    ],
)
def test_other_clients_are_refused(client: object, message: str) -> None:
    """What cannot be used is refused when it is passed, and the error names what to pass."""
    with pytest.raises(TypeError) as caught:
        AsyncEventProducer(client)
    assert message in str(caught.value)


def test_wrong_options_are_refused() -> None:
    """A bound below one would never send."""
    with pytest.raises(ValueError, match="max_in_flight must be at least 1, got 0"):
        AsyncEventProducer(FakeProducer(), max_in_flight=0)
    with pytest.raises(ValueError, match="max_in_flight must be at least 1, got 0"):
        AsyncEventProducer(Aiokafka(), max_in_flight=0)
    with pytest.raises(ValueError, match="close_timeout must be"):
        AsyncEventProducer(FakeProducer(), close_timeout=-1)


class Quiet(FakeProducer):
    """A client with ``delivery.report.only.error``: it frees reports of success without calling them."""

    def produce(self, topic: str, value: Any = None, key: Any = None, **options: Any) -> None:
        report = options.pop("on_delivery")
        super().produce(
            topic, value, key, on_delivery=lambda error, message: error and report(error, message), **options
        )


def test_a_success_that_is_not_reported_wakes_who_awaits_it() -> None:
    """A client that reports failures only is an error: awaiting raises what to change, or the failure."""

    async def work() -> None:
        client = Quiet()
        async with AsyncEventProducer(client, topic="orders", max_in_flight=2) as producer:
            for number in range(3):
                with pytest.raises(DeliveryError, match=r"without delivery\.report\.only\.error"):
                    await producer.send(order(number))
            client.fail_next("_MSG_TIMED_OUT")
            with pytest.raises(DeliveryError, match="timed out"):
                await producer.send(order(22))
        assert len(ids(client)) == 3

    run(work())


def test_records_are_sent_as_they_are() -> None:
    """send_record waits for room as send does, and its delivery has the record."""

    async def work() -> None:
        client = FakeProducer(FakeLog(partitions=4))
        record = Record(
            key=b"k", value=b"not an event", headers=[("a", None), ("a", b"\xff")], topic="orders"
        )
        async with AsyncEventProducer(client, max_in_flight=2) as producer:
            deliveries = await asyncio.gather(*(producer.send_record(record) for _ in range(9)))
            await producer.send_record(record, "others", partition=3, timestamp=7)
            client.fail_next("_MSG_TIMED_OUT")
            with pytest.raises(DeliveryError, match=r"record orders to orders: .*timed out"):
                await producer.send_record(record)
        assert [delivery.record for delivery in deliveries] == [record] * 9
        assert sorted(delivery.offset or 0 for delivery in deliveries) == list(range(9))
        sent = [Record.of(message) for message in client.log]
        assert {(each.key, each.value, tuple(each.headers)) for each in sent} == {
            (b"k", b"not an event", (("a", None), ("a", b"\xff")))
        }
        assert [each.timestamp for each in sent if (each.topic, each.partition) == ("others", 3)] == [7]

    run(work())


def test_dead_letters_are_sent_with_asyncio() -> None:
    """Out of a run, send_record of a dead letter is awaited; DeadLetters names that way."""

    async def work() -> None:
        client = FakeProducer()
        record = Record(value=b"foreign", topic="orders", partition=0, offset=5)
        async with AsyncEventProducer(client) as producer:
            letters = DeadLetters(producer, topic="orders.dead")
            with pytest.raises(TypeError, match=r"AsyncEventProducer; await its send_record\(dead_letter"):
                letters.send(decode(record))
            await producer.send_record(dead_letter(decode(record), topic="orders.dead"), "orders.dead")
        (letter,) = map(DeadLetter.of, client.log)
        assert letter is not None
        assert (letter.topic, letter.offset, letter.attempt) == ("orders", 5, 1)

    run(work())


def test_a_client_is_made_of_settings_and_closed() -> None:
    """Leaving the block delivers what was sent, ends the thread, and closes the client."""

    async def work() -> None:
        await no_threads_of_other_tests()
        settings = {"test.mock.num.brokers": 1, "log_level": 0}
        async with AsyncEventProducer(settings, topic="orders") as producer:
            assert (await producer.send(order(1))).offset == 0
        await until(lambda: not threads())
        with pytest.raises(RuntimeError, match="closed"):
            producer.producer.poll(0)
        await producer.close()

    run(work())


def test_what_a_client_of_settings_has_not_delivered_ends_with_it() -> None:
    """After close_timeout its events are purged, and tasks that await them go on."""

    async def work() -> None:
        await no_threads_of_other_tests()
        settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
        producer = AsyncEventProducer(settings, topic="orders", close_timeout=0.1)
        sending = asyncio.create_task(producer.send(order(1)))
        await asyncio.sleep(0.01)
        with pytest.raises(DeliveryError, match="1 message is still pending") as caught:
            await producer.close()
        with pytest.raises(DeliveryError, match="purged"):
            await sending
        assert caught.value.failed[0].aborted
        await until(lambda: not threads())

    run(work())


def test_what_cannot_be_sent_is_explained() -> None:
    """A dict, a record, and an event that is too large have errors of their own."""

    async def work() -> None:
        settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "message.max.bytes": 2000}
        async with AsyncEventProducer(settings, topic="orders") as producer:
            with pytest.raises(TypeError, match="send takes an Event, got a dict; make one"):
                await producer.send({"id": "1"})  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="use send_record"):
                producer.send_nowait(Record())  # type: ignore[arg-type]
            with pytest.raises(DeliveryError, match=r"to orders: it has 3,\d\d\d bytes, and the limits"):
                await producer.send(Event(id="1", source="/", type="t", data=bytes(3000)))

    run(work())
