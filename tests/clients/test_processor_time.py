"""How long an EventProcessor keeps a transaction open, by a clock that only handlers move."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    TransactionError,
    Undecodable,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer


class Clock:
    """The clock of transactions."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Writer(FakeProducer):
    """A producer whose broker ends a transaction after ``timeout`` seconds, which is a fatal error."""

    def __init__(self, log: FakeLog, clock: Clock, timeout: float) -> None:
        super().__init__(log, transactional=True)
        self.open: list[float] = []  # how long each transaction was, when it was to be committed
        self._clock, self._timeout, self._began = clock, timeout, 0.0

    def begin_transaction(self) -> None:
        super().begin_transaction()
        self._began = self._clock.now

    def commit_transaction(self, timeout: float = -1) -> None:
        self.open.append(self._clock.now - self._began)
        if self.open[-1] >= self._timeout:
            self.fail_transaction("_FENCED", fatal=True)
        super().commit_transaction(timeout)


def message(number: int, partition: int = 0) -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t"))
    return FakeMessage("in", record.value, str(number), record.headers, partition=partition)


class Kafka:
    """A log, a group, and processors that forward each record, one after the other."""

    def __init__(self, clock: Clock, count: int = 100, partitions: int = 1, timeout: float = 60.0) -> None:
        self.clock, self.timeout, self.count = clock, timeout, count
        self.log = FakeLog([message(number, number % partitions) for number in range(count)])
        self.offsets: dict[tuple[str, int], int] = {}
        self.seconds: Callable[[int], float] = lambda _: 0.15  # for the n-th call of the handler
        self.calls: list[int] = []
        self.before: dict[int, Callable[[Kafka], object]] = {}
        self.restart()

    def restart(self, **options: Any) -> EventProcessor:
        """Begin with other clients, as another process does."""
        self.reader = FakeConsumer(self.log, offsets=self.offsets, auto_commit=False)
        self.reader.subscribe(["in"])
        self.writer = Writer(self.log, self.clock, self.timeout)
        self.events = EventConsumer(self.reader)
        self.producer = EventProducer(self.writer, topic="out")
        return self.renew(**options)

    def renew(self, **options: Any) -> EventProcessor:
        """Begin with another processor of the same clients."""
        self.processor = EventProcessor(self.events, self.producer, self.handle, **options)
        return self.processor

    def handle(self, item: Decoded | Undecodable) -> None:
        call = len(self.calls)
        self.calls.append(int(item.record.key or b""))
        self.clock.now += self.seconds(call)
        self.producer.send_record(item.record)
        self.before.pop(call, lambda _: None)(self)

    @property
    def written(self) -> list[int]:
        """The numbers that a consumer reads which sees committed transactions only."""
        return [int(m.key() or b"") for m in self.log if m.topic() == "out"]


@pytest.fixture(autouse=True)
def clock() -> Iterator[Clock]:
    clock = Clock()
    with (
        patch("cloudevents_kafka.clients._transaction_time.time", clock),
        patch("cloudevents_kafka.clients.processor._MAX_PAUSE", 0.0),
    ):
        yield clock


def test_a_batch_ends_by_time(clock: Clock) -> None:
    """With all defaults no transaction is open for longer than a tenth of its time-out, and one record."""
    kafka = Kafka(clock, count=1000)
    assert kafka.processor.run(idle_timeout=0) == 1000
    assert kafka.written == list(range(1000))
    assert kafka.offsets == {("in", 0): 1000}
    assert all(6 <= seconds < 6.2 for seconds in kafka.writer.open[:-1])
    assert kafka.calls == list(range(1000))


@pytest.mark.parametrize(
    ("options", "expected"), [({"max_seconds": 1.4}, 1.5), ({"transaction_timeout": 5}, 0.6)]
)
def test_the_time_is_that_which_is_passed(clock: Clock, options: Any, expected: float) -> None:
    """It is max_seconds, or a tenth of the time-out of the transactions."""
    kafka = Kafka(clock)
    kafka.restart(**options).run(idle_timeout=0)
    assert kafka.written == list(range(100))
    assert {round(seconds, 2) for seconds in kafka.writer.open[:-1]} == {expected}


def test_one_record_is_handled_however_long_it_takes(clock: Clock) -> None:
    """Each transaction has at least one record, so a slow one does not stop the others."""
    kafka = Kafka(clock, count=4)
    kafka.seconds = lambda _: 59.0
    assert kafka.processor.run(idle_timeout=0) == 4
    assert kafka.writer.open == [59.0] * 4


def test_a_batch_that_ended_by_time_makes_the_next_smaller(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that are left are fetched again, so the next batch has twice as many as were handled."""
    kafka, numbers = Kafka(clock, count=2000), list[int]()
    kafka.seconds = lambda call: 1.0 if call < 12 else 0.0
    consume = kafka.reader.consume

    def note(number: int, timeout: float) -> Any:
        numbers.append(number)
        return consume(number, timeout)

    monkeypatch.setattr(kafka.reader, "consume", note)
    assert kafka.processor.run(idle_timeout=0) == 2000
    assert numbers[:9] == [500, 12, 12, 24, 48, 96, 192, 384, 500]


@pytest.mark.parametrize("which", ["processor", "events"])
def test_stop_ends_after_the_record(clock: Clock, which: str) -> None:
    """What was handled is committed, no other record begins, and the next processor goes on with it."""
    kafka = Kafka(clock, count=10)
    kafka.before[5] = lambda kafka: getattr(kafka, which).stop()
    assert kafka.processor.run() == 6
    assert kafka.offsets == {("in", 0): 6}
    kafka.events = EventConsumer(kafka.reader)
    assert kafka.renew().run(idle_timeout=0) == 4
    assert kafka.calls == kafka.written == list(range(10))


def test_a_stop_while_a_batch_is_read_handles_none_of_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records are read by the next processor of the same client."""
    kafka = Kafka(clock, count=10)
    consume = kafka.reader.consume

    def stop_and_consume(number: int, timeout: float) -> Any:
        kafka.processor.stop()
        return consume(number, timeout)

    with monkeypatch.context() as patched:
        patched.setattr(kafka.reader, "consume", stop_and_consume)
        assert kafka.processor.run() == 0
    assert kafka.calls == []
    assert kafka.renew().run(idle_timeout=0) == 10


TIMED_OUT = "the broker timed the transaction out: it was open for"


@pytest.mark.parametrize("code", ["_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"])
def test_a_transaction_that_timed_out_is_reported_as_that(clock: Clock, code: str) -> None:
    """The error has the seconds, the slowest record, the setting and what to do, and accuses no process."""
    kafka = Kafka(clock)
    kafka.seconds = lambda call: 8.0 if call == 7 else 0.01
    kafka.before[7] = lambda kafka: kafka.writer.fail_transaction(code, fatal=True)
    with pytest.raises(TransactionError) as caught:
        kafka.restart(transaction_timeout=5, max_seconds=4).run(idle_timeout=0)
    text = str(caught.value)
    assert f"{TIMED_OUT} 8.1 s, 8.0 s of them for in[0]@7, and transaction.timeout.ms is 5 s: " in text
    assert "set transaction.timeout.ms of the Producer above the time of the slowest record" in text
    assert "another process" not in text
    assert kafka.written == []
    assert caught.value.error.name() == code


def test_many_records_that_took_too_long_are_reported_with_the_bound(clock: Clock) -> None:
    """If no single record was too slow, the advice is a smaller max_seconds."""
    kafka = Kafka(clock, count=500)
    with pytest.raises(TransactionError, match=rf"{TIMED_OUT} 75.0 s.*; pass max_seconds well below"):
        kafka.restart(max_seconds=1000).run(idle_timeout=0)
    assert kafka.written == []


def test_a_time_out_that_is_not_known_is_probable(clock: Clock) -> None:
    """After more than max_seconds a shorter setting than Kafka's default is the likely reason of an end."""
    kafka = Kafka(clock, timeout=8)
    kafka.seconds = lambda call: 9.0 if call == 3 else 0.1
    with pytest.raises(TransactionError) as caught:
        kafka.processor.run(idle_timeout=0)
    text = str(caught.value)
    assert "the broker has probably timed the transaction out: it was open for 9.3 s" in text
    assert "9.0 s of them for in[0]@3, and transaction.timeout.ms is 60 s by default" in text
    assert "another process has" not in text
    assert "if this setting is longer, start each process with its own transactional.id" in text


@pytest.mark.parametrize(
    ("options", "seconds", "hint"),
    [({}, 0.5, False), ({}, 2.0, True), ({"transaction_timeout": 60}, 59.0, False)],
)
def test_another_process_is_named_if_no_time_out_can_be_the_reason(
    clock: Clock, options: Any, seconds: float, *, hint: bool
) -> None:
    """A fenced producer in time is one of two with the same id; a short setting is a hint only."""
    kafka = Kafka(clock)
    kafka.seconds = lambda call: seconds if call == 0 else 0.0
    kafka.before[0] = lambda kafka: kafka.writer.fail_transaction("_FENCED", fatal=True)
    with pytest.raises(TransactionError, match=r"another process has the same transactional.id") as caught:
        kafka.restart(**options).run(idle_timeout=0)
    assert ("if this setting is short" in str(caught.value)) is hint


def test_a_record_that_took_longer_than_a_transaction_may_is_named(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Its place, its seconds and the setting are logged, if the broker has committed or aborted it."""
    kafka = Kafka(clock, count=3, timeout=1000)
    kafka.seconds = lambda call: 61.0 if call < 2 else 0.0
    kafka.before[0] = lambda kafka: kafka.writer.fail_transaction("_TIMED_OUT")
    with caplog.at_level(logging.WARNING):
        assert kafka.processor.run(idle_timeout=0) == 3
    aborted, committed = [each.message for each in caplog.records]
    expected = "in[0]@0 alone took 61.0 s, but transaction.timeout.ms is 60 s by default: set"
    assert committed.startswith(expected)
    assert "was aborted" in aborted
    assert expected in aborted


@pytest.mark.parametrize("name", ["max_seconds", "transaction_timeout"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_times_are_above_zero(clock: Clock, name: str, value: float) -> None:
    """Other values are refused by name."""
    with pytest.raises(ValueError, match=f"{name} must be more than 0 seconds, or None, got"):
        Kafka(clock).renew(**{name: value})


class Killed(BaseException):
    """The end of a process."""


def end_by(error: BaseException) -> Callable[[Kafka], object]:
    def end(_: Kafka) -> None:
        raise error

    return end


EVENTS: dict[str, Callable[[Kafka], object]] = {
    "stop": lambda kafka: kafka.processor.stop(),
    "error": end_by(ZeroDivisionError()),
    "kill": end_by(Killed()),
    "commit": lambda kafka: kafka.writer.fail_transaction("_TIMED_OUT"),
    "delivery": lambda kafka: kafka.writer.fail_next("_MSG_TIMED_OUT"),
    "rebalance": lambda kafka: kafka.reader.rebalance(),
}


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.9, 2.5]), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 90), st.sampled_from(sorted(EVENTS))), max_size=8),
    st.integers(1, 20),
    st.integers(1, 3),
)
def test_each_record_is_committed_once_and_in_order(
    seconds: list[float], events: list[tuple[int, str]], size: int, partitions: int
) -> None:
    """Any times of handlers, stops, errors, kills and rebalances change nothing but the transactions."""
    clock = Clock()
    with patch("cloudevents_kafka.clients._transaction_time.time", clock):
        kafka = Kafka(clock, count=40, partitions=partitions, timeout=20)
        kafka.seconds = lambda call: seconds[call % len(seconds)]
        kafka.before = {at: EVENTS[name] for at, name in events}
        options = {"max_records": size, "transaction_timeout": 20.0, "transactions": 100}
        processor = kafka.restart(**options)
        while len(kafka.written) < 40:
            try:
                processor.run(idle_timeout=0)
            except Killed:
                processor = kafka.restart(**options)
            except ZeroDivisionError:
                continue
            else:
                processor = kafka.renew(**options)
            check(kafka, partitions)
        check(kafka, partitions)
        assert sorted(kafka.written) == list(range(40))
        assert sum(kafka.offsets.values()) == 40
        assert max(kafka.writer.open, default=0) < 2.0 + max(seconds) + 0.001


def check(kafka: Kafka, partitions: int) -> None:
    """Check that what is committed is a beginning of each partition, in order, and what the offsets say."""
    for partition in range(partitions):
        numbers = [number for number in kafka.written if number % partitions == partition]
        assert all(after - before == partitions for before, after in pairwise(numbers))
        assert kafka.offsets.get(("in", partition), 0) == len(numbers)
