"""EventProducer shared by threads: each failure is raised once, by one flush of any thread."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from cloudevents_kafka import Delivery, DeliveryError, Event, EventProducer
from cloudevents_kafka.testing import FakeProducer


def order(number: int) -> Event:
    return Event(id=str(number), source="/shop", type="order.placed")


def failures(producer: EventProducer[Any]) -> list[str]:
    """Flush, and return the ids of the events whose failures it raises."""
    try:
        producer.flush()
    except DeliveryError as error:
        return [delivery.event.id for delivery in error.failed]
    return []


class Held(dict[Delivery[Any], None]):
    """The failures of a producer, where a report waits after it has found them and before it adds to them."""

    def __init__(self) -> None:
        self.found = threading.Barrier(2, timeout=10)
        self.add = threading.Event()

    def __setitem__(self, delivery: Delivery, value: None) -> None:
        self.found.wait()
        assert self.add.wait(10)
        super().__setitem__(delivery, value)


def test_a_failure_that_is_reported_during_a_flush_is_raised_by_the_next() -> None:
    """A report that has begun before a flush, and goes on after it, is pending, and not lost."""
    fake = FakeProducer()
    fake.hold = True
    producer = EventProducer(fake, topic="orders")
    producer.send(order(1))
    producer._polling.deliveries.failed = held = Held()
    fake.fail_next("_MSG_TIMED_OUT")
    fake.hold = False
    reporter = threading.Thread(target=fake.poll)
    reporter.start()
    held.found.wait()
    with pytest.raises(DeliveryError, match="1 message is still pending"):
        producer.flush(0)
    held.add.set()
    reporter.join()
    assert failures(producer) == ["1"]
    assert failures(producer) == []


@contextmanager
def switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def run_all(*works: Callable[[], None]) -> None:
    """Run functions in threads, all at the same time, and raise the first of their errors."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # it is raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("count", [500, pytest.param(20_000, marks=pytest.mark.release)])
def test_each_failure_is_raised_by_one_flush_of_any_thread(count: int) -> None:
    """Threads that send, report and flush at the same time lose no failure and raise none twice."""
    fake = FakeProducer()
    fake.fail_next(*["_MSG_TIMED_OUT"] * (4 * count))
    producer = EventProducer(fake, topic="orders")
    sent, raised = list[int](), list[str]()

    def send(first: int) -> None:
        for number in range(first, first + count):
            producer.send(order(number))
        sent.append(first)

    def flush() -> None:
        while len(sent) < 4:
            raised.extend(failures(producer))

    run_all(*(partial(send, first * count) for first in range(4)), *[flush] * 4)
    raised += failures(producer)
    assert Counter(raised) == Counter(map(str, range(4 * count)))
