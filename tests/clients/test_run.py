"""EventConsumer.run, with fakes."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    ConsumeError,
    DataError,
    DeadLetter,
    DeadLetterError,
    DeadLetters,
    Decoded,
    DeliveryError,
    Event,
    EventConsumer,
    EventProducer,
    NotAnEvent,
    Record,
    RunResult,
    to_record,
)
from cloudevents_kafka.clients._places import MARK, bits_of
from cloudevents_kafka.clients._workers import Threads
from cloudevents_kafka.clients.serdes import serialize_data
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer
from tests.support.cases import each
from tests.support.detached import Detached
from tests.support.dying_producer import DyingProducer


def message(number: int, partition: int = 0, key: str | None = None) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t", data=number))
    return FakeMessage("in", record.value, key, record.headers, partition=partition)


class Kafka:
    """A log of events, a group, and an `EventConsumer` of it."""

    def __init__(self, *messages: FakeMessage) -> None:
        self.log = FakeLog(messages)
        self.offsets: dict[tuple[str, int], int] = {}
        self.events = self.start()
        self.handled: list[int] = []

    def start(self, *, strict: bool = False, auto_commit: bool = False) -> EventConsumer[FakeConsumer]:
        reader = FakeConsumer(self.log, offsets=self.offsets, auto_commit=auto_commit)
        reader.subscribe(["in"])
        return EventConsumer(reader, strict=strict)

    def handle(self, item: Decoded) -> None:
        self.handled.append(item.event.data)

    def run(self, handler: Any = None, **options: Any) -> RunResult:
        return self.events.run(handler or self.handle, idle_timeout=0, backoff=0, **options)


def numbered(count: int) -> Kafka:
    return Kafka(*map(message, range(count)))


class Flaky:
    """A handler that fails for some numbers, each a number of times."""

    def __init__(self, kafka: Kafka, **fails: int) -> None:
        self.kafka = kafka
        self.left = {int(name[1:]): times for name, times in fails.items()}

    def __call__(self, item: Decoded) -> None:
        number = item.event.data
        if self.left.get(number, 0) > 0:
            self.left[number] -= 1
            raise ValueError(f"no {number}")
        self.kafka.handle(item)


def test_each_event_is_handled_and_committed() -> None:
    """The handler gets all events in order, and the offset after them is committed."""
    kafka = numbered(20)
    assert kafka.run() == RunResult(handled=20)
    assert kafka.handled == list(range(20))
    assert kafka.offsets == {("in", 0): 20}
    assert kafka.run() == RunResult()


def test_records_behind_a_slow_one_are_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the metadata of its offset before it is done: after a kill nobody handles them again."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.02)
    kafka = Kafka(message(0, key="slow"), *(message(number, key=str(number)) for number in range(1, 9)))
    commit, committed, killed = kafka.events.consumer.commit, list[TopicPartition](), threading.Event()

    def commit_until_killed(offsets: list[TopicPartition], *, asynchronous: bool) -> Any:
        if not killed.is_set():
            committed[:] = offsets
        if bits_of(committed[0].metadata).bit_count() == 8:
            killed.set()
        return commit(offsets=offsets, asynchronous=asynchronous)

    def handle(item: Decoded) -> None:
        assert item.event.data != 0 or killed.wait(5)

    monkeypatch.setattr(kafka.events.consumer, "commit", commit_until_killed)
    assert kafka.run(handle, concurrency=2).handled == 9
    kafka.events = kafka.start()
    kafka.events.consumer.commit(offsets=committed, asynchronous=False)
    assert kafka.run().handled == 1
    assert kafka.handled == [0]


def test_a_failure_ends_the_run() -> None:
    """The handler's error is raised, with the place; what was done before is committed, and no more."""
    kafka = numbered(20)
    with pytest.raises(ValueError, match="no 7") as caught:
        kafka.run(Flaky(kafka, n7=1))
    assert caught.value.__notes__ == ["while in[0]@7 was handled, try 1"]
    assert kafka.handled == list(range(7))
    assert kafka.offsets == {("in", 0): 7}
    assert kafka.start().run(kafka.handle, idle_timeout=0).handled == 13


@each("again", [False, True])
@each("strict", [False, True])
def test_a_record_that_is_not_an_event_fails_skips_or_goes_on(*, strict: bool, again: bool) -> None:
    """It is not tried again; on_failure decides what becomes of it, also with strict."""
    kafka = Kafka(message(0), FakeMessage("in", b"foreign"), message(2))
    kafka.events = kafka.start(strict=strict)
    with pytest.raises(NotAnEvent):
        kafka.run(tries=3)
    assert kafka.offsets == {("in", 0): 1}
    if not again:
        kafka.events = kafka.start(strict=strict)
    assert kafka.run(on_failure="skip", tries=3) == RunResult(handled=1, skipped=1)
    assert kafka.offsets == {("in", 0): 3}


def test_data_that_cannot_be_read_is_not_tried_again() -> None:
    """Another try would not change a DataError; any other error is tried again."""
    broken = to_record(Event(id="1", source="/s", type="t", datacontenttype="application/json", data=b"{"))
    kafka = Kafka(FakeMessage("in", broken.value, None, broken.headers))
    assert kafka.run(tries=5, on_failure="skip") == RunResult(skipped=1)


def test_tries_come_before_giving_up() -> None:
    """A record whose handler succeeds in time is handled; another fails after all tries."""
    kafka = numbered(6)
    counts = kafka.run(Flaky(kafka, n1=2, n4=3), tries=3, on_failure="skip")
    assert counts == RunResult(handled=5, skipped=1, retried=4)
    assert kafka.handled == [0, 1, 2, 3, 5]
    assert kafka.offsets == {("in", 0): 6}


def test_only_some_errors_are_tried_again() -> None:
    """Errors of other types than retry_on are final at once."""
    kafka = numbered(3)
    counts = kafka.run(Flaky(kafka, n1=1), tries=5, retry_on=OSError, on_failure="skip")
    assert counts == RunResult(handled=2, skipped=1)


def test_dead_letters_are_delivered_before_the_commit() -> None:
    """A dead letter has the reason and the number of tries."""
    kafka = Kafka(message(0), FakeMessage("in", b"foreign"), message(2), message(3))
    dead = DeadLetters(EventProducer(FakeProducer()), topic="dead")
    counts = kafka.run(Flaky(kafka, n2=9), tries=2, on_failure=dead)
    assert counts == RunResult(handled=2, dead=2, retried=1)
    letters = [DeadLetter.of(Record.of(letter)) for letter in dead.producer.producer.log]
    assert [(letter.offset, letter.attempt) for letter in letters if letter] == [(1, 1), (2, 2)]
    assert kafka.offsets == {("in", 0): 4}


@pytest.mark.parametrize(("on_failure", "outcome"), [("skip", "is skipped"), (None, "is a dead letter")])
def test_a_failure_is_logged_with_its_place_once(
    on_failure: Any, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The message says what became of the record, after how many tries, and why."""
    kafka = Kafka(FakeMessage("in", b"foreign"), message(1))
    dead = DeadLetters(EventProducer(FakeProducer()), topic="dead")
    kafka.run(Flaky(kafka, n1=9), tries=2, on_failure=on_failure or dead)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith(f"in[0]@0 {outcome} after 1 try: NotAnEvent('not a CloudEvent: ")
    assert second.startswith(f"in[0]@1 {outcome} after 2 tries: ")
    assert first.count("in[0]@0") == 1


def test_a_dead_letter_that_is_not_delivered_ends_the_run() -> None:
    """Its record is not committed."""
    kafka = numbered(3)
    fake = FakeProducer()
    fake.fail_next("_MSG_TIMED_OUT")
    with pytest.raises(DeliveryError):
        kafka.run(Flaky(kafka, n1=1), on_failure=DeadLetters(EventProducer(fake), topic="dead"))
    assert kafka.offsets == {("in", 0): 1}


@each("fails", [False, True])
def test_a_message_after_the_last_report_of_a_try_belongs_to_no_record(*, fails: bool) -> None:
    """A thread of the first try sends the message while the next try, or the next record, is in work."""
    kafka, client, goes_on = Kafka(message(0), message(1)), FakeProducer(), threading.Event()
    producer, threads = EventProducer(client, topic="out"), list[threading.Thread]()

    def send_later(event: Event) -> None:
        goes_on.wait(20)
        producer.send(event)
        producer.flush()

    def handle(item: Decoded) -> None:
        kafka.handle(item)
        if len(kafka.handled) == 1:
            send = partial(copy_context().run, send_later, item.event)
            threads.append(threading.Thread(target=send))
            threads[0].start()
            if fails:
                client.fail_next("_MSG_TIMED_OUT")
                producer.send(item.event)
        else:
            goes_on.set()
            threads[0].join(20)

    assert kafka.run(handle, producer=producer, tries=2) == RunResult(handled=2, retried=int(fails))
    assert kafka.handled == [0, *[0] * fails, 1]
    assert kafka.offsets == {("in", 0): 2}


@each("tries", [1, 3])
def test_a_fatal_error_of_the_producer_ends_the_run(tries: int) -> None:
    """No record is at fault: none is skipped, tried again or sent as a dead letter."""
    kafka, decided = numbered(20), list[object]()
    client = DyingProducer()
    client.hold = False
    producer = EventProducer(client, topic="out")

    def handle(item: Decoded) -> None:
        if item.event.data == 5:
            client.die()
        producer.send(item.event)
        kafka.handle(item)

    def skip(_: object, error: Exception) -> Any:
        decided.append(error)
        return "skip"

    with pytest.raises(KafkaException, match="Unable to produce message"):
        kafka.run(handle, producer=producer, on_failure=skip, tries=tries)
    assert kafka.handled == [0, 1, 2, 3, 4]
    assert kafka.offsets == {("in", 0): 5}
    assert decided == []


def test_what_a_fatal_error_purges_ends_the_run() -> None:
    """The handlers of the purged messages have returned, and still no record is skipped."""
    kafka, client = Kafka(*(message(number, key=str(number)) for number in range(6))), DyingProducer()
    producer = EventProducer(client, topic="out")

    def handle(item: Decoded) -> None:
        producer.send(item.event)
        if item.event.data == 5:
            client.die()

    with pytest.raises(DeliveryError, match="lost order"):
        kafka.run(handle, producer=producer, on_failure="skip")
    assert kafka.offsets == {("in", 0): 0}


def test_a_delivery_that_fails_at_the_end_of_a_run_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end waits for a delivery only until it has failed, as the time limit of tests shows."""
    kafka, client, sent = Kafka(message(0, key="a"), message(1, key="b")), FakeProducer(), threading.Event()
    client.hold = True
    producer = EventProducer(client, topic="out")

    def handle(item: Decoded) -> None:
        if item.event.data == 0:
            producer.send(item.event)
            sent.set()
        elif sent.wait(20):
            raise ValueError("of the other record")

    def fail() -> None:
        client.fail_next("_MSG_TIMED_OUT")
        client.hold = False

    def wait(workers: Threads, seconds: float) -> bool:
        threading.Timer(0.2, fail).start()
        return waits(workers, seconds)

    waits = Threads.wait_for_handlers
    monkeypatch.setattr(Threads, "wait_for_handlers", wait)
    with pytest.raises(ValueError, match="of the other record"):
        kafka.run(handle, producer=producer, concurrency=2, stop_timeout=1000)


def test_an_interrupted_end_goes_back_to_unfinished_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run of the consumer handles them, and the later records of a partition that was paused."""
    kafka, is_over = Kafka(*map(message, range(4)), message(4, partition=1)), threading.Event()
    client = kafka.events.consumer

    def interrupt(*_: Any) -> Any:
        monkeypatch.undo()
        raise KeyboardInterrupt

    def handle(item: Decoded) -> None:
        if item.event.data == 0:
            is_over.wait(20)
        elif item.event.data == 4 and not is_over.is_set():
            while not client._paused:
                time.sleep(0.001)
            raise ValueError("no 4")
        kafka.handle(item)

    monkeypatch.setattr(Threads, "wait_for_handlers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kafka.run(handle, concurrency=2, max_bytes=3_000)
    is_over.set()
    kafka.run(handle)
    assert set(kafka.handled) == set(range(5))
    assert kafka.offsets == {("in", 0): 4, ("in", 1): 1}


@each("on_failure", ["skip", "fail", "dead"])
def test_an_error_without_a_text_is_a_failure_like_any_other(on_failure: Any) -> None:
    """The error contains an object whose repr fails; the record is tried again, then on_failure decides."""
    kafka, fake = Kafka(message(0), message(1)), FakeProducer()
    on_failure = DeadLetters(EventProducer(fake), topic="dead") if on_failure == "dead" else on_failure

    def handle(item: Decoded) -> None:
        if item.event.data == 0:
            raise ValueError(Detached())

    if on_failure == "fail":
        with pytest.raises(ValueError, check=lambda error: isinstance(error.args[0], Detached)):
            kafka.run(handle, on_failure=on_failure, tries=2)
        assert kafka.offsets == {("in", 0): 0}
        return
    counts = kafka.run(handle, on_failure=on_failure, tries=2)
    assert (counts.handled, counts.retried, counts.skipped + counts.dead) == (1, 1, 1)
    assert kafka.offsets == {("in", 0): 2}
    letters = [DeadLetter.of(Record.of(letter)) for letter in fake.log]
    errors = [letter.error for letter in letters if letter]
    assert errors == ["ValueError: <a ValueError whose str() raises RuntimeError>"] * counts.dead


def test_a_function_that_fails_at_an_error_without_a_text_ends_the_run() -> None:
    """The error that ends the run names the record, and has a note about the error of the handler."""
    kafka = Kafka(message(0))

    def handle(_: Decoded) -> None:
        raise ValueError(Detached())

    def decide(*_: Any) -> Any:
        raise LookupError("no decision")

    with pytest.raises(LookupError, match="no decision") as caught:
        kafka.run(handle, on_failure=decide)
    assert caught.value.__notes__ == [
        "while in[0]@0 was handled, try 1",
        "its handler has failed: <a ValueError whose repr() raises RuntimeError>",
    ]


def test_a_function_decides_by_error() -> None:
    """on_failure may choose for each record and error."""
    kafka = numbered(3)
    seen: list[Any] = []

    def choose(item: Any, error: Exception) -> Any:
        seen.append((item.record.offset, str(error)))
        return "skip" if len(seen) == 1 else "fail"

    with pytest.raises(ValueError, match="no 2"):
        kafka.run(Flaky(kafka, n1=1, n2=1), on_failure=choose)
    assert seen == [(1, "no 1"), (2, "no 2")]
    assert kafka.offsets == {("in", 0): 2}


def test_a_function_decides_by_the_data_as_it_came() -> None:
    """The handler may have changed the data before it failed."""
    record = to_record(Event(id="1", source="/", type="t", data={"kind": "a"}))
    kafka = Kafka(FakeMessage("in", value=record.value, headers=record.headers))
    seen: list[Any] = []

    def take(item: Any) -> None:
        del item.event.data["kind"]
        raise ValueError

    def choose(item: Any, _: Exception) -> Any:
        seen.append(item.event.data)
        return "skip"

    kafka.run(take, on_failure=choose, tries=2)
    assert seen == [{"kind": "a"}]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "c", None])), max_size=40),
    st.integers(1, 4),
    st.sets(st.integers(0, 39)),
)
def test_order_is_kept_for_each_key(records: Any, concurrency: int, failing: set[int]) -> None:
    """With any concurrency and failures, records of a key are handled in order, and all are committed."""
    messages = [message(n, partition, key) for n, (partition, key) in enumerate(records)]
    kafka = Kafka(*messages)
    handled: dict[Any, list[int]] = defaultdict(list)
    left = set(failing)

    def handle(item: Decoded) -> None:
        number = item.event.data
        if number in left:
            left.discard(number)
            raise OSError
        name = item.record.partition if item.record.key is None else item.record.key
        handled[name, item.record.partition].append(number)

    counts = kafka.run(handle, concurrency=concurrency, tries=2)
    assert counts.handled == len(records)
    assert all(numbers == sorted(numbers) for numbers in handled.values())
    assert sum(kafka.offsets.values()) == len(records)


def test_other_keys_go_on_while_one_waits() -> None:
    """With concurrency a slow key does not stop others; what is after it is not committed."""
    kafka = Kafka(message(0, key="slow"), *(message(n, key=f"k{n}") for n in range(1, 50)))
    gate, others = threading.Event(), []

    def handle(item: Decoded) -> None:
        if item.event.data == 0:
            assert gate.wait(20)
            return
        others.append(item.event.data)
        if len(others) >= 30:
            time.sleep(0.01)
            offsets.append(dict(kafka.offsets))
            gate.set()

    offsets: list[Any] = []
    counts = kafka.run(handle, concurrency=8)
    assert counts.handled == 50
    assert offsets[0] == {}
    assert kafka.offsets == {("in", 0): 50}


def test_sigterm_ends_within_the_bound() -> None:
    """A handler that hangs delays the end by stop_timeout; its record and what follows are not committed."""
    kafka = numbered(10)
    release = threading.Event()

    def handle(item: Decoded) -> None:
        kafka.handle(item)
        if item.event.data == 4:
            os.kill(os.getpid(), signal.SIGTERM)
            release.wait(20)

    start = time.monotonic()
    counts = kafka.events.run(handle, stop_timeout=0.5)
    assert 0.3 < time.monotonic() - start < 3
    release.set()
    assert counts.handled == 4
    assert kafka.offsets == {("in", 0): 4}
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert kafka.events.stopped


@pytest.mark.parametrize(("bound", "seconds", "committed"), [(5, 0.1, {("in", 0): 4}), (1, 30, {})])
def test_the_last_commit_is_within_the_bound(bound: float, seconds: float, committed: Any) -> None:
    """A part of the bound is for it, also if a handler hangs; a broker that does not answer is left."""
    kafka = numbered(10)
    release = threading.Event()
    commit = kafka.events.consumer.commit

    def commit_slowly(*, asynchronous: bool, **options: Any) -> Any:
        if not asynchronous:
            release.wait(seconds)
            return None if release.is_set() else commit(asynchronous=False, **options)
        return None

    def handle(item: Decoded) -> None:
        if item.event.data == 4:
            kafka.events.stop()
            release.wait(30)

    kafka.events.consumer.commit = commit_slowly  # type: ignore[method-assign]
    start = time.monotonic()
    assert kafka.events.run(handle, stop_timeout=bound).handled == 4
    assert time.monotonic() - start < bound + 5
    assert kafka.offsets == committed
    release.set()


def test_sigterm_lets_handlers_end() -> None:
    """Records in work are done and committed, and no other begins."""
    kafka = numbered(100)

    def handle(item: Decoded) -> None:
        if item.event.data == 4:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)
        kafka.handle(item)

    counts = kafka.events.run(handle, stop_timeout=20)
    assert 5 <= counts.handled < 50
    assert kafka.handled == list(range(counts.handled))
    assert kafka.offsets == {("in", 0): counts.handled}


def test_a_stop_ends_tries() -> None:
    """A record that waits for its next try is left, and so are those after it; the next process has them."""
    kafka = numbered(10)
    threading.Timer(0.3, kafka.events.stop).start()
    start = time.monotonic()
    counts = kafka.events.run(Flaky(kafka, n6=99), tries=99, backoff=30, stop_timeout=20)
    assert time.monotonic() - start < 10
    assert counts == RunResult(handled=6, retried=1)
    assert kafka.offsets == {("in", 0): 6}
    assert kafka.start().run(kafka.handle, idle_timeout=0).handled == 4


def test_a_handler_of_signals_stays() -> None:
    """A program that handles SIGTERM itself calls stop()."""
    kafka = numbered(1)
    mine = signal.signal(signal.SIGTERM, lambda *_: kafka.events.stop())
    try:
        during: list[Any] = []
        kafka.run(lambda _: during.append(signal.getsignal(signal.SIGTERM)))
        assert during == [signal.getsignal(signal.SIGTERM)] != [signal.SIG_DFL]
    finally:
        signal.signal(signal.SIGTERM, mine)


def test_a_full_queue_serves_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """While handlers are slow the client is polled now and then, and its partitions are not paused."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.05)
    kafka = numbered(12)
    begun, polls = threading.Event(), list[int]()
    client = kafka.events.consumer
    poll = client.poll

    def counted(timeout: float = -1) -> Any:
        polls.append(len(kafka.handled))
        return poll(timeout)

    def handle(item: Decoded) -> None:
        begun.set()
        if item.event.data == 0:
            time.sleep(0.3)
        kafka.handle(item)

    monkeypatch.setattr(client, "poll", counted)
    monkeypatch.setattr(client, "pause", Mock(side_effect=AssertionError))
    assert kafka.run(handle, max_ahead=2).handled == 12
    assert 4 <= polls.count(0) <= 3 + 8


def test_a_rebalance_forgets_what_was_in_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are read again are handled again, and offsets never go past one that is not done."""
    kafka = Kafka(*(message(n, partition=n % 2) for n in range(10)))
    poll, polls = kafka.events.consumer.poll, count()

    def poll_with_rebalance(timeout: float = -1) -> Any:
        if next(polls) == 3:
            kafka.events.consumer.rebalance()
        return poll(timeout)

    monkeypatch.setattr(kafka.events.consumer, "poll", poll_with_rebalance)
    kafka.run()
    assert set(kafka.handled) == set(range(10))
    assert kafka.offsets == {("in", 0): 5, ("in", 1): 5}


def test_partitions_of_others_are_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was revoked before the end is another member's, also if it was done."""
    kafka = numbered(10)
    poll, polls = kafka.events.consumer.poll, count()

    def poll_until_revoked(timeout: float = -1) -> Any:
        if next(polls) < 4:
            return poll(timeout)
        while len(kafka.handled) < 4:
            time.sleep(0.001)
        kafka.events.consumer.unsubscribe()
        kafka.events.stop()
        return None

    monkeypatch.setattr(kafka.events.consumer, "poll", poll_until_revoked)
    assert kafka.run().handled == 4
    assert kafka.offsets == {}


@each(
    ("options", "error", "expected"),
    [
        (
            {"on_failure": "ignore"},
            TypeError,
            "on_failure must be 'fail', 'skip', a DeadLetters or a function, got 'ignore'",
        ),
        ({"tries": 0}, ValueError, "tries must be at least 1"),
        ({"backoff": -1}, ValueError, "backoff at least 0"),
        ({"concurrency": 0}, ValueError, "concurrency must be at least 1"),
        ({"stop_timeout": -1}, ValueError, "stop_timeout must be at least 0"),
        ({"max_ahead": 0}, ValueError, "max_ahead must be at least 1, got 0"),
        ({"revoke_timeout": -1}, ValueError, "revoke_timeout must be at least 0"),
        ({"tries": "3"}, TypeError, "tries must be a whole number from 1, got a str; pass tries=6"),
        ({"tries": 2.5}, TypeError, "tries must be a whole number from 1, got a float"),
        ({"backoff": None}, TypeError, "backoff must be a number from 0, got a NoneType; pass backoff=5"),
        ({"concurrency": 2.0}, TypeError, "concurrency must be a whole number from 1, got a float"),
        ({"idle_timeout": True}, TypeError, "idle_timeout must be a number from 0, got a bool"),
        ({"revoke_timeout": "5"}, TypeError, "revoke_timeout must be a number from 0, got a str"),
    ],
)
def test_wrong_options_are_refused(options: Any, error: type[Exception], expected: str) -> None:
    """Errors name the option, its rule and its value."""
    with pytest.raises(error, match=expected):
        numbered(1).events.run(print, **options)


async def waits(_: Any) -> None:
    """Do nothing, later."""


class Waits:
    __call__ = staticmethod(waits)


@each(("handler", "got"), [(waits, "a coroutine"), (Waits(), "a coroutine"), (1, "int")])
def test_a_handler_that_would_not_be_awaited_is_refused(handler: Any, got: str) -> None:
    """Its work would never be done, and its records committed."""
    with pytest.raises(TypeError, match=f"handler must be a function of a record, got {got}"):
        numbered(1).events.run(handler)


def test_a_consumer_that_fails_ends_the_run() -> None:
    """What was done before is committed."""
    kafka = numbered(5)

    def handle(item: Decoded) -> None:
        kafka.handle(item)
        if item.event.data == 4:
            kafka.events.consumer.fail_next("_FATAL")

    with pytest.raises(ConsumeError):
        kafka.events.run(handle)
    assert kafka.offsets == {("in", 0): 5}


@pytest.mark.parametrize("answers_from", [5, 99])
def test_nothing_is_committed_while_the_group_does_not_answer(
    answers_from: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A commit under way would delay the end of the client; it is made as soon as the group answers."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.02)
    kafka = numbered(10)
    client = kafka.events.consumer
    commit, committed, during = client.commit, client.committed, list[int]()

    def ask(*arguments: Any, **options: Any) -> Any:
        if len(kafka.handled) < answers_from:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return committed(*arguments, **options)

    def note(**options: Any) -> Any:
        during.append(len(kafka.handled))
        return commit(**options)

    def handle(item: Decoded) -> None:
        kafka.handle(item)
        time.sleep(0.05)

    monkeypatch.setattr(client, "committed", ask)
    monkeypatch.setattr(client, "commit", note)
    assert kafka.run(handle).handled == 10
    assert all(number >= answers_from for number in during)
    assert kafka.offsets == ({("in", 0): 10} if answers_from < 10 else {})
    if answers_from > 10:
        assert "offsets were not committed: KafkaError{code=_TIMED_OUT" in caplog.text


@pytest.mark.parametrize("auto_commit", [False, True])
def test_what_is_not_done_is_read_again(*, auto_commit: bool) -> None:
    """The next run begins with it, or the next process: also if the client commits what it has read."""
    for again in (True, False):
        kafka = numbered(20)
        reader = FakeConsumer(kafka.log, offsets=kafka.offsets, auto_commit=auto_commit)
        reader.subscribe(["in"])
        with EventConsumer(reader) as events:
            with pytest.raises(ValueError, match="no 7"):
                events.run(Flaky(kafka, n7=1), idle_timeout=0)
            if again:
                assert events.run(kafka.handle, idle_timeout=0).handled == 13
        assert kafka.offsets == {("in", 0): 20 if again else 7}
        assert kafka.handled == list(range(7)) + (list(range(7, 20)) if again else [])


class Slow:
    """A handler whose record 2 stays unfinished until `end`."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, item: Decoded) -> None:
        if item.event.data == 2:
            self.begun.set()
            assert self.may_end.wait(20)


@pytest.fixture
def slow() -> Iterator[Slow]:
    handler = Slow()
    yield handler
    handler.may_end.set()


def commit_at_looks(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, handler: Slow, commit: Callable[[], object]
) -> None:
    """Commit something at each check of the group by `run` while record 2 is unfinished."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.0)
    committed, looks = kafka.events.consumer.committed, count()

    def commit_and_look(*arguments: Any, **options: Any) -> Any:
        if handler.begun.is_set():
            commit()
            if next(looks) == 20:
                kafka.events.stop()
        return committed(*arguments, **options)

    monkeypatch.setattr(kafka.events.consumer, "committed", commit_and_look)


def test_a_client_that_commits_by_itself_is_refused(monkeypatch: pytest.MonkeyPatch, slow: Slow) -> None:
    """One offset after an unfinished record is enough, also while none is read; the group is set back."""
    kafka = numbered(18)
    kafka.events = kafka.start(auto_commit=True)
    commit_at_looks(kafka, monkeypatch, slow, lambda: kafka.offsets.update({("in", 0): 18}))
    with pytest.raises(
        ConsumeError, match=r"in\[0\]: .* enable.auto.commit must be False for run\(\)"
    ) as caught:
        kafka.events.run(slow, stop_timeout=0.1)
    assert "or other code has committed offset 18 while record 2 is unfinished" in str(caught.value)
    assert caught.value.final
    assert kafka.offsets == {("in", 0): 2}
    assert next(kafka.events.items()).record.offset == 2
    kafka.events.seek(TopicPartition("in", 0, 2))
    kafka.events.close()
    assert kafka.offsets == {("in", 0): 2}


def test_offsets_that_the_group_had_are_not_refused(monkeypatch: pytest.MonkeyPatch, slow: Slow) -> None:
    """An earlier process committed them, and the program has sought back."""
    kafka = numbered(18)
    kafka.offsets["in", 0] = 18
    kafka.events.consumer.assign([TopicPartition("in", 0, 0)])
    kafka.events.consumer._topics = []  # not by unsubscribe(), which revokes
    commit_at_looks(kafka, monkeypatch, slow, lambda: None)
    kafka.events.consumer.commit = lambda **_: []  # type: ignore[method-assign]  # nothing arrives
    assert kafka.events.run(slow, stop_timeout=0.1).handled == 2


def test_commits_of_another_member_are_not_refused(monkeypatch: pytest.MonkeyPatch, slow: Slow) -> None:
    """This process was stopped, and the member that has the partition now runs, too, and is further."""
    kafka = numbered(18)
    other = kafka.start().consumer
    commit_at_looks(
        kafka, monkeypatch, slow, lambda: other.commit(offsets=[TopicPartition("in", 0, 9, MARK)])
    )
    assert kafka.events.run(slow, stop_timeout=0.1).handled == 2


@pytest.mark.parametrize("raises", [True, False])
def test_a_member_that_the_group_has_expelled_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, slow: Slow, *, raises: bool
) -> None:
    """Its group refuses to be set back, as a whole or for the partition: another member may have moved on."""
    kafka = numbered(18)
    client = kafka.events.consumer

    def refuse(*, offsets: list[TopicPartition], **_: Any) -> Any:
        error = KafkaError(KafkaError.UNKNOWN_MEMBER_ID)
        if raises:
            raise KafkaException(error)
        return [SimpleNamespace(topic=each.topic, partition=each.partition, error=error) for each in offsets]

    commit_at_looks(kafka, monkeypatch, slow, lambda: kafka.offsets.update({("in", 0): 9}))
    monkeypatch.setattr(client, "commit", refuse)
    assert kafka.events.run(slow, stop_timeout=0.1).handled == 2
    assert kafka.offsets == {("in", 0): 9}


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_handler_may_close_the_consumer(concurrency: int) -> None:
    """The run ends, what was handled is committed, and the client is closed before it returns."""
    kafka = numbered(100)

    def handle(item: Decoded) -> None:
        kafka.handle(item)
        if item.event.data == 7:
            kafka.events.close()

    with kafka.events:
        counts = kafka.events.run(handle, concurrency=concurrency)
        assert kafka.events.consumer._closed
    assert counts.handled == len(kafka.handled) >= 8
    assert kafka.offsets == {("in", 0): counts.handled}


def test_close_of_another_thread_waits_for_the_run() -> None:
    """Unfinished records are handled and committed before the client is closed."""
    kafka, begun, committed = numbered(100), threading.Event(), list[Any]()

    def handle(item: Decoded) -> None:
        begun.set()
        while item.event.data == 7 and not kafka.events.stopped:
            time.sleep(0.001)
        kafka.handle(item)

    def close() -> None:
        begun.wait(20)
        kafka.events.close()
        committed.append((kafka.events.consumer._closed, dict(kafka.offsets)))

    thread = threading.Thread(target=close)
    thread.start()
    counts = kafka.events.run(handle)
    thread.join(20)
    assert committed == [(True, {("in", 0): counts.handled})]
    assert counts.handled == len(kafka.handled)


def test_a_handler_for_signals_may_close_the_consumer() -> None:
    """It runs in the thread of the run, and does not wait for itself."""
    kafka = numbered(100)

    def handle(item: Decoded) -> None:
        kafka.handle(item)
        if item.event.data == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    mine = signal.signal(signal.SIGTERM, lambda *_: kafka.events.close())
    try:
        counts = kafka.events.run(handle)
    finally:
        signal.signal(signal.SIGTERM, mine)
    assert kafka.events.consumer._closed
    assert kafka.offsets == {("in", 0): counts.handled}


class Registry:
    """A codec of data whose server is away for the first calls."""

    def __init__(self, away: int, error: Exception | None = None) -> None:
        self.calls, self.away = 0, away
        self.error = error or ConnectionRefusedError("refused")

    def __call__(self, data: Any) -> bytes:
        self.calls += 1
        if self.calls <= self.away:
            raise self.error
        return b"9.50"


def with_codec(registry: Registry, **options: Any) -> Kafka:
    """Return a broker with one event, whose data a registry's codec decodes."""
    kafka = numbered(1)
    options.setdefault("data_reader", lambda event, record: registry(event))
    kafka.events = EventConsumer(kafka.events.consumer, **options)
    return kafka


def read_data(item: Decoded) -> None:
    assert item.event.data == b"9.50"


@each("strict", [False, True])
@each("eager_data", [False, True])
def test_data_is_read_again_while_its_server_is_away(*, strict: bool, eager_data: bool) -> None:
    """The handler reads it, or the consumer; the record is handled when the server is back."""
    registry = Registry(away=3)
    kafka = with_codec(registry, strict=strict, eager_data=eager_data)
    assert kafka.run(read_data, tries=10) == RunResult(handled=1, retried=3)
    assert registry.calls == 4


def test_data_is_written_again_while_its_server_is_away() -> None:
    """A serializer in the handler raises a DataError, too."""
    registry, kafka = Registry(away=3), numbered(1)

    def write(item: Decoded) -> None:
        serialize_data(item.event, 17, lambda value, _: registry(value), "out")

    assert kafka.run(write, tries=10) == RunResult(handled=1, retried=3)


@pytest.mark.parametrize("eager_data", [False, True])
def test_a_dead_letter_has_the_cause_that_passes(*, eager_data: bool) -> None:
    """Its reader sees that the data was not at fault."""
    kafka = with_codec(Registry(away=99), eager_data=eager_data)
    dead = DeadLetters(EventProducer(FakeProducer()), topic="dead")
    assert kafka.run(read_data, tries=3, on_failure=dead) == RunResult(dead=1, retried=2)
    [letter] = map(DeadLetter.of, map(Record.of, dead.producer.producer.log))
    assert letter is not None
    assert (letter.error or "").endswith("; from ConnectionRefusedError: refused")
    assert letter.attempt == 3


@each("eager_data", [False, True])
@each(
    ("away", "retry_on", "calls"),
    [
        (ConnectionRefusedError(), TimeoutError, 1),
        (ConnectionRefusedError(), DataError, 3),
        (ValueError(), DataError, 3),
        (ValueError(), None, 1),
    ],
)
def test_retry_on_decides_over_errors_of_data(
    away: Exception, retry_on: Any, calls: int, *, eager_data: bool
) -> None:
    """Without it, those are tried again whose cause passes."""
    registry = Registry(99, away)
    kafka = with_codec(registry, eager_data=eager_data)
    kafka.run(read_data, tries=3, retry_on=retry_on, on_failure="skip")
    assert registry.calls == calls


def sends(kafka: Kafka, topic: str = "dead", **options: Any) -> DeadLetters:
    """Return a sender of dead letters to the broker that is read."""
    return DeadLetters(EventProducer(FakeProducer(kafka.log, **options)), topic=topic)


@pytest.mark.parametrize("by_broker", [False, True])
def test_a_dead_letter_that_is_too_large_is_explained(
    monkeypatch: pytest.MonkeyPatch, *, by_broker: bool
) -> None:
    """The client or the broker refuses it: the error has the place, the size, what to do, and both errors."""
    kafka = numbered(3)
    dead = sends(kafka)
    if by_broker:
        dead.producer.producer.fail_next("MSG_SIZE_TOO_LARGE", "MSG_SIZE_TOO_LARGE")
    else:
        refused = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        monkeypatch.setattr(dead.producer.producer, "produce", Mock(side_effect=refused))
    with pytest.raises(DeadLetterError) as caught:
        kafka.run(Flaky(kafka, n1=9), tries=2, on_failure=dead)
    text = str(caught.value)
    assert re.fullmatch(
        r"in\[0\]@1: no dead letter: it was not delivered to dead: KafkaError\{code=MSG_SIZE_TOO_LARGE.*\}; "
        r"it has \d\d\d bytes, and the limits are message.max.bytes of the producer, by default 1,000,000, "
        r"or max_request_size of aiokafka, "
        r"and max.message.bytes of the topic: increase both limits, and start again; the record failed with "
        r"ValueError: no 1",
        text,
    )
    assert caught.value.record.offset == 1
    assert str(caught.value.error) == "no 1"
    assert isinstance(caught.value.__cause__, DeliveryError if by_broker else KafkaException)
    assert "while in[0]@1 was handled, try 2" in caught.value.__notes__
    assert kafka.offsets == {("in", 0): 1}


def raise_error(error: BaseException) -> Any:
    raise error


@each(
    ("handler", "on_failure"),
    [
        (lambda _: raise_error(ValueError("no")), lambda *_: raise_error(KeyError("choice"))),
        (lambda _: raise_error(SystemExit(3)), "skip"),
        (lambda _: raise_error(ValueError("no")), "fail"),
    ],
)
def test_each_failure_has_the_place_of_its_record(handler: Any, on_failure: Any) -> None:
    """Also one of a function that decides, and of a handler that ends the process."""
    kafka = numbered(1)
    with pytest.raises(BaseException) as caught:
        kafka.run(handler, on_failure=on_failure)
    notes = ["while in[0]@0 was handled, try 1", "its handler has failed: ValueError('no')"]
    assert caught.value.__notes__ == notes[: 2 if isinstance(caught.value, KeyError) else 1]


def test_a_mapper_that_fails_names_the_record() -> None:
    """It is called while the record is read."""
    kafka = numbered(1)
    kafka.events = EventConsumer(
        kafka.events.consumer, reverse_key_mapper=lambda *_: raise_error(KeyError("no"))
    )
    with pytest.raises(KeyError) as caught:
        kafka.run()
    assert caught.value.__notes__ == ["while in[0]@0 was read"]


def test_a_record_that_a_function_of_the_user_cannot_read_is_left() -> None:
    """The run ends by the error, and the next one begins with the record."""
    kafka, fails = numbered(4), [True]

    def map_key(event: Event, record: Record) -> Event:
        if event.data == 1 and fails:
            while not kafka.handled:  # otherwise, the run goes back to the record before, and so to this one
                time.sleep(0.001)
            fails.clear()
            raise LookupError("no key")
        return event

    kafka.events = EventConsumer(kafka.events.consumer, reverse_key_mapper=map_key)
    with pytest.raises(LookupError, match="no key"):
        kafka.run()
    kafka.run()
    assert kafka.handled == [0, 1, 2, 3]
    assert kafka.offsets == {("in", 0): 4}


def fail(_: Decoded) -> None:
    raise ValueError("no")


@pytest.mark.parametrize("is_assigned", [False, True])
def test_a_consumer_of_its_own_dead_letters_is_refused(*, is_assigned: bool) -> None:
    """Before a record is handled, if the topic is there: by a pattern, or as it was assigned before."""
    kafka = numbered(3)
    letters = sends(kafka, "in.dead")
    letters.send(Record(value=b"17"), "failed before").result()
    kafka.events.consumer.subscribe(["^in"])
    if is_assigned:
        kafka.events.consumer.consume(0)
        kafka.events.poll()
        kafka.events.discard()
    with pytest.raises(ValueError, match=r"topic that the consumer does not read, got 'in.dead'"):
        kafka.run(fail, on_failure=letters)
    assert len([message for message in kafka.log if message.topic() == "in.dead"]) == 1
    assert not any(kafka.offsets.values())


@pytest.mark.parametrize("by_function", [False, True])
def test_a_dead_letter_that_comes_back_ends_the_run(*, by_function: bool) -> None:
    """The topic appears with the first letter, and the subscription has it: each record has one letter."""
    kafka = numbered(1)
    letters = sends(kafka, "in.dead")
    kafka.events.consumer.subscribe(["^in"])
    on_failure: Any = (lambda *_: letters) if by_function else letters
    with pytest.raises(DeadLetterError if by_function else ValueError, match=r"in\.dead"):
        kafka.events.run(fail, on_failure=on_failure)
    assert len([message for message in kafka.log if message.topic() == "in.dead"]) == 1
    assert kafka.offsets == {("in", 0): 1, ("in.dead", 0): 0}
    assert next(kafka.events.items()).record.where == "in.dead[0]@0"
