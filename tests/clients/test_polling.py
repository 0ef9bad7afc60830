"""One thread polls while something is on its way, and each report wakes all that wait for it."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import ref

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Delivery, DeliveryError, Event, EventProducer
from cloudevents_kafka.testing import FakeProducer, LocalBroker
from tests.support.cases import each


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed")


class Client:
    """A client whose reports arrive in time, and whose calls wait for them, as those of the real one do.

    ``most`` is the largest number of threads that have waited in ``poll`` at once.
    """

    def __init__(self, *, room: int = 1_000_000) -> None:
        self.room = room
        self.calls = self._reporting = 0
        self.waiting = self.most = 0
        self._sent: deque[Callable[..., None]] = deque()
        self._arrived: deque[Callable[..., None]] = deque()
        self._changed = threading.Condition()

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **_: Any) -> None:
        with self._changed:
            if len(self._sent) + len(self._arrived) >= self.room:
                raise BufferError
            self._sent.append(on_delivery)

    def report(self, count: int = 1_000_000) -> int:
        """Let reports arrive, in order; return their number."""
        with self._changed:
            count = min(count, len(self._sent))
            self._arrived += [self._sent.popleft() for _ in range(count)]
            self._changed.notify_all()
        return count

    def poll(self, timeout: float = -1) -> int:
        with self._changed:
            self.calls += 1
            self.waiting += timeout != 0
            self.most = max(self.most, self.waiting)
            self._changed.wait_for(lambda: self._arrived, None if timeout < 0 else timeout)
            self.waiting -= timeout != 0
            reports, self._arrived = self._arrived, deque()
            self._reporting += len(reports)
        for report in reports:
            report(None, None)
            with self._changed:
                self._reporting -= 1
        return len(reports)

    def flush(self, timeout: float = -1) -> int:
        deadline = time.monotonic() + timeout
        while self and time.monotonic() < deadline:
            self.poll(max(deadline - time.monotonic(), 0))
        return len(self)

    def __len__(self) -> int:
        return len(self._sent) + len(self._arrived) + self._reporting

    def __bool__(self) -> bool:
        return len(self) > 0


@contextmanager
def reporting(client: Client, choose: random.Random | None = None) -> Iterator[None]:
    """Let reports arrive from time to time while the block runs."""
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(0.0005 if choose is None else choose.choice((0, 0.0005, 0.005))):
            client.report(1_000_000 if choose is None else choose.randint(0, 9))

    thread = threading.Thread(target=report)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def running(*works: Callable[[], object]) -> Iterator[list[threading.Thread]]:
    """Run functions in threads; raise their first error, or that of threads which do not end, at the end."""
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # it is raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield threads
    for thread in threads:
        thread.join(20)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def number_of_waiters(deliveries: Iterable[Delivery[Any]]) -> int:
    """Return the number of threads that wait for deliveries."""
    return sum(len(delivery._waiters) for delivery in deliveries)


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.release) for n in range(6, 200))]
)
def test_any_history_of_threads_obeys_the_law(seed: int) -> None:
    """Threads that send, wait, flush and fill the queue at random all go on, and one at a time polls."""
    client = Client(room=12)
    producer = EventProducer(client, topic="t")
    strict = seed % 2 == 0  # only waits: then no other thread waits in the client

    def work(number: int) -> None:
        choose = random.Random(seed * 100 + number)
        kept: list[Delivery[Any]] = []
        for step in range(40):
            action = (
                "result" if strict else choose.choice(("result", "result", "send", "flush", "late", "hurry"))
            )
            if action == "flush":
                producer.flush()
                continue
            delivery = producer.send(order(step))
            if action == "hurry":
                try:
                    delivery.result(choose.choice((0, 0.001)))
                except DeliveryError:
                    kept.append(delivery)
            elif action == "result" or (kept and action == "late"):
                assert (kept.pop() if action == "late" else delivery).result(10).done

    began = time.monotonic()
    with reporting(client, random.Random(seed)), running(*(partial(work, number) for number in range(8))):
        pass
    assert not strict or time.monotonic() - began < 2  # a thread that was not woken would look 0.1 s later
    with reporting(client):
        producer.close(10)
    assert not producer._deliveries.pending
    assert not strict or client.most == 1


def test_a_report_wakes_all_that_wait_for_it_at_once() -> None:
    """Eight threads, two for each event, return when their report has arrived, while others go on to wait."""
    client = Client()
    producer = EventProducer(client, topic="t")
    deliveries = [producer.send(order(number)) for number in range(4)]
    ended: list[float] = []

    def wait(delivery: Delivery[Any]) -> None:
        delivery.result()
        ended.append(time.monotonic())

    with running(*(partial(wait, each) for each in deliveries * 2)):
        until(lambda: number_of_waiters(deliveries) == 8)
        for count in (2, 4, 6, 8):
            began = time.monotonic()
            client.report(1)
            until(lambda count=count: len(ended) == count)
            assert time.monotonic() - began < 0.05
    assert len(ended) == 8


def test_a_thread_of_the_user_that_polls_wakes_who_waits() -> None:
    """Reports that another thread serves wake threads that wait, which do not wait for their next look."""
    client = Client()
    producer = EventProducer(client, topic="t")
    deliveries = [producer.send(order(number)) for number in range(8)]
    with running(*(delivery.result for delivery in deliveries)):
        until(lambda: number_of_waiters(deliveries) == 8)
        with client._changed:
            reports, client._sent = client._sent, deque()
        for report in reports:
            report(None, None)
        until(lambda: number_of_waiters(deliveries) == 0)


@pytest.mark.parametrize("client", [Client(), FakeProducer()], ids=["waits", "does not wait"])
def test_waiting_is_not_a_busy_loop(client: Any) -> None:
    """Threads that wait for half a second need little time of the processor, and end at their timeout."""
    client.hold = True
    producer = EventProducer(client, topic="t")
    deliveries = [producer.send(order(number)) for number in range(8)]
    began, used = time.monotonic(), time.process_time()

    def wait(delivery: Delivery[Any]) -> None:
        with pytest.raises(DeliveryError, match="no delivery report for event"):
            delivery.result(0.5)

    with running(*(partial(wait, delivery) for delivery in deliveries)):
        pass
    assert 0.5 <= time.monotonic() - began < 0.75
    assert time.process_time() - used < 0.2
    assert all(not delivery._waiters for delivery in deliveries)


@each("role", ["polls", "waits", "flushes"])
def test_ctrl_c_ends_a_wait(role: str) -> None:
    """It does so within 0.2 s, whether the main thread polls, waits for another thread, or flushes."""
    client = Client()
    producer = EventProducer(client, topic="t")
    mine, other = producer.send(order(1)), producer.send(order(2))
    sent = list[float]()

    def interrupt() -> None:
        time.sleep(0.15)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    with running(interrupt, *([lambda: other.result(10)] if role == "waits" else [])):
        until(lambda: role != "waits" or number_of_waiters([other]))
        with pytest.raises(KeyboardInterrupt):
            producer.flush() if role == "flushes" else mine.result()
        assert time.monotonic() - sent[0] < 0.2
        client.report()
    assert mine.result(5) is mine


def test_a_callback_may_wait_send_and_flush() -> None:
    """A callback runs in the turn of its thread, which it may use, while other threads wait or flush."""
    client = Client(room=3)
    producer = EventProducer(client, topic="t")
    done: list[Delivery[Any]] = []

    def on_delivery(delivery: Delivery[Any]) -> None:
        done.append(producer.send(order(2)).result(5))
        producer.send(order(3))
        producer.flush(5)
        done.append(delivery)

    with (
        reporting(client),
        running(*[lambda: producer.send(order(1), on_delivery=on_delivery).result(10)] * 4),
    ):
        producer.flush(10)
    assert len(done) == 8


def test_a_callback_that_takes_long_does_not_stop_other_threads() -> None:
    """A callback may wait for a thread that waits for another report, flushes or needs room."""
    client = Client(room=4)
    producer = EventProducer(client, topic="t")
    entered, left = threading.Event(), threading.Event()

    def on_delivery(_: object) -> None:
        entered.set()
        assert left.wait(10)

    first = producer.send(order(1), on_delivery=on_delivery)
    with running(first.result):
        client.report()
        assert entered.wait(5)
        with reporting(client):
            assert producer.send(order(2)).result(5).done
            for number in range(20):
                producer.send(order(number))
            producer.flush(5)
        left.set()


def test_an_error_of_a_callback_comes_out_of_no_call(caplog: pytest.LogCaptureFixture) -> None:
    """It is that of its delivery, and logged once; threads that send, wait and flush go on."""
    client = Client()
    producer = EventProducer(client, topic="t")

    def fail(delivery: Delivery[Any]) -> None:
        raise ZeroDivisionError(delivery.event.id)

    failing = producer.send(order(1), on_delivery=fail)
    deliveries = [producer.send(order(number)) for number in range(2, 6)]
    with running(*(partial(each.result, 10) for each in deliveries)):
        until(lambda: number_of_waiters(deliveries) == 4)
        client.report(1)
        producer.send(order(6))
        client.report()
    producer.flush(10)
    assert repr(failing.callback_error) == "ZeroDivisionError('1')"
    with pytest.raises(DeliveryError, match="has arrived, and must not be sent again"):
        failing.result(10)
    assert [record.getMessage() for record in caplog.records] == [
        "on_delivery of event '1' of '/shop' has failed: 1"
    ]


def test_an_exit_in_a_callback_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged as any error of a callback, and the next report is processed."""
    client, called = Client(), list[Delivery[Any]]()
    producer = EventProducer(client, topic="t")
    producer.send(order(1), on_delivery=lambda _: sys.exit("no more"))
    client.report()
    until(lambda: caplog.records)
    producer.send(order(2), on_delivery=called.append)
    client.report()
    until(lambda: called)
    assert [record.getMessage() for record in caplog.records] == [
        "a callback of a delivery has failed: no more"
    ]


def test_the_thread_is_there_while_something_is_on_its_way() -> None:
    """It calls what is due also if nobody calls the producer, and ends when all is reported."""
    client = Client()
    producer = EventProducer(client, topic="t")
    called: list[Delivery[Any]] = []
    polling = producer._polling.thread
    assert polling.thread is None
    delivery = producer.send(order(1), on_delivery=called.append)
    thread = polling.thread
    assert thread is not None
    time.sleep(0.3)
    assert thread.is_alive()
    client.report()
    until(lambda: called)
    until(lambda: polling.thread is None)
    thread.join(10)
    assert called == [delivery]
    producer.send(order(2), on_delivery=called.append)
    client.report()
    until(lambda: len(called) == 2)


def test_no_thread_is_left_by_a_forgotten_producer() -> None:
    """Its thread ends with it."""
    before = {*threading.enumerate()}
    client = Client()

    def work(producer: EventProducer[Any]) -> None:
        assert producer.send(order(1)).result(5).done

    with reporting(client):
        producer = EventProducer(client, topic="t")
        with running(*[partial(work, producer)] * 4) as threads:
            assert len({*threading.enumerate()} - before) <= 2 + len(threads)
    reference = ref(producer)
    del producer
    gc.collect()
    assert reference() is None
    until(lambda: before >= {*threading.enumerate()})


@pytest.mark.broker
def test_threads_wait_together(kafka_broker: LocalBroker) -> None:
    """Eight threads that wait for each event need hardly longer than one, with a real broker.

    Waiting in turn would take eight times as long in each round; another program may disturb some rounds.
    """
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    producer = EventProducer(Producer(settings), topic=kafka_broker.create_topic("waits"))
    producer.send(order(0)).result(20)

    def work() -> None:
        for number in range(50):
            producer.send(order(number)).result(10)

    def seconds(threads: int) -> float:
        began = time.monotonic()
        with running(*[work] * threads):
            pass
        return time.monotonic() - began

    assert any(seconds(8) < 3 * seconds(1) for _ in range(10))
