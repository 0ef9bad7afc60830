"""EventProcessor with fakes; tests/test_soak_processor.py kills one with a real broker."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProducer,
    DeadLetter,
    DeadLetters,
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    NotAnEvent,
    Record,
    TransactionError,
    Undecodable,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer


def message(number: int, partition: int = 0, topic: str = "in") -> FakeMessage:
    record = to_record(Event(id=str(number), source="/s", type="t"))
    return FakeMessage(topic, record.value, str(number), record.headers, partition=partition)


class Kafka:
    """A log, a group, and a processor that forwards each record."""

    def __init__(self, count: int = 10, **options: Any) -> None:
        self.log = FakeLog([message(number) for number in range(count)])
        self.offsets: dict[tuple[str, int], int] = {}
        self.reader = FakeConsumer(self.log, offsets=self.offsets, auto_commit=False)
        self.reader.subscribe(["in"])
        self.writer = FakeProducer(self.log, transactional=True)
        self.events = EventConsumer(self.reader)
        self.producer = EventProducer(self.writer, topic="out")
        self.handled: list[str] = []
        self.processor = EventProcessor(
            self.events, self.producer, self.handle, **{"max_records": 4, **options}
        )
        self.before: dict[int, Any] = {}  # what to do before the n-th call of the handler

    def handle(self, item: Decoded | Undecodable) -> None:
        self.before.pop(len(self.handled), lambda: None)()
        self.handled.append((item.record.key or b"").decode())
        self.producer.send_record(item.record)

    def run(self) -> int:
        return self.processor.run(idle_timeout=0)

    def restarted(self, producer: EventProducer[Any] | None = None) -> EventProcessor:
        """A processor of the same consumer, by default with a new producer."""
        self.writer = FakeProducer(self.log, transactional=True)
        self.producer = producer or EventProducer(self.writer, topic="out")
        return EventProcessor(self.events, self.producer, self.handle, max_records=4)

    @property
    def written(self) -> list[int]:
        """The numbers that a consumer reads which sees committed transactions only."""
        return [int(m.key() or b"") for m in self.log if m.topic() == "out"]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudevents_kafka.clients.processor._MAX_PAUSE", 0.0)


def test_records_and_offsets_are_one_transaction() -> None:
    """All records are forwarded, and the group's offsets are after them."""
    kafka = Kafka()
    assert kafka.run() == 10
    assert kafka.written == list(range(10))
    assert kafka.offsets == {("in", 0): 10}
    assert kafka.run() == 0


ABORTS = {
    "commit": lambda kafka: kafka.writer.fail_transaction("_TIMED_OUT"),
    "delivery": lambda kafka: kafka.writer.fail_next("_MSG_TIMED_OUT"),
    "rebalance": lambda kafka: kafka.reader.rebalance(),
    "lost": lambda kafka: kafka.reader.rebalance(lost=True),
}


@pytest.mark.parametrize("abort", ABORTS)
@pytest.mark.parametrize("at", [0, 3, 5, 9])
def test_an_aborted_transaction_is_repeated(abort: str, at: int) -> None:
    """What it has sent is not read, and its records are read again."""
    kafka = Kafka()
    kafka.before[at] = lambda: ABORTS[abort](kafka)
    assert kafka.run() == 10
    assert kafka.written == list(range(10))
    assert kafka.offsets == {("in", 0): 10}
    assert len(kafka.handled) > 10


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(sorted(ABORTS))), max_size=6), st.integers(1, 9)
)
def test_each_record_is_forwarded_once_whatever_aborts(aborts: list[tuple[int, str]], batch: int) -> None:
    """Any mixture of errors and rebalances, in any batches of several partitions, changes nothing."""
    kafka = Kafka(count=0, max_records=batch)
    for number in range(30):
        kafka.log.append(message(number, partition=number % 3))
    kafka.before = {at: (lambda abort=abort: ABORTS[abort](kafka)) for at, abort in aborts}
    assert kafka.run() == 30
    assert sorted(kafka.written) == list(range(30))
    for partition in range(3):
        assert [n for n in kafka.written if n % 3 == partition] == list(range(partition, 30, 3))
    assert sum(kafka.offsets.values()) == 30


def test_records_of_a_client_that_has_just_joined_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata from before would not be refused after a rebalance, so no transaction begins with it."""
    kafka = Kafka()
    ids, sought = iter(["", "a"]), []
    seek = kafka.events.seek

    def note_and_seek(record: Record) -> None:
        sought.append(record.offset)
        seek(record)

    monkeypatch.setattr(kafka.reader, "memberid", lambda: next(ids, "a"), raising=False)
    monkeypatch.setattr(kafka.events, "seek", note_and_seek)
    assert kafka.run() == 10
    assert kafka.written == list(range(10))
    assert sought == [0]


def test_records_of_before_a_rebalance_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the group moves on while a batch is gathered, its offsets are refused, also if it comes back."""
    kafka = Kafka()
    consume = kafka.reader.consume
    moved: list[bool] = []

    def consume_and_move(number: int, timeout: float) -> Any:
        batch = consume(number, timeout)
        if not moved:
            moved.append(True)
            kafka.reader.rebalance()
            consume(0)  # assigns the partitions again
        return batch

    monkeypatch.setattr(kafka.reader, "consume", consume_and_move)
    assert kafka.run() == 10
    assert kafka.written == list(range(10))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("committed", [0, 3, 4, 9])
def test_a_partition_that_comes_back_is_read_from_the_offset_of_the_group(
    committed: int, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """While a batch is handled, another member commits its records, and a poll reads the next record."""
    monkeypatch.setattr("cloudevents_kafka.clients._serving._PATIENCE", 0)
    kafka, read = Kafka(on_failure="fail", tries=2, backoff=0), list[FakeMessage | None]()
    poll = kafka.reader.poll

    def poll_after_revocation(timeout: float) -> FakeMessage | None:
        if read:
            read.append(poll(timeout))
            return read[-1]
        kafka.reader.rebalance()
        kafka.offsets["in", 0] = committed
        read.append(None)
        return None

    def wait_for_record() -> None:
        end = time.monotonic() + 20
        while all(message is None for message in read) and time.monotonic() < end:
            time.sleep(0.001)
        if fails:
            raise ConnectionError

    monkeypatch.setattr(kafka.reader, "poll", poll_after_revocation)
    kafka.before[0] = wait_for_record
    kafka.run()
    assert kafka.written == list(range(committed, 10))
    assert kafka.offsets == {("in", 0): 10}


def test_an_error_of_the_handler_aborts_and_ends() -> None:
    """The error is raised; the batches before it are committed, and the next run begins with its batch."""
    kafka = Kafka()

    def fail() -> None:
        raise ZeroDivisionError

    kafka.before[6] = fail
    with pytest.raises(ZeroDivisionError) as caught:
        kafka.run()
    assert caught.value.__notes__ == ["while in[0]@6 was handled"]
    assert kafka.written == [0, 1, 2, 3]
    assert kafka.offsets == {("in", 0): 4}
    assert kafka.run() == 6
    assert kafka.written == list(range(10))


def test_a_fatal_error_ends_with_what_to_do() -> None:
    """The error says what happened and what to do; nothing of the batch is read."""
    kafka = Kafka()
    kafka.before[5] = lambda: kafka.writer.fail_transaction("_FENCED", fatal=True)
    with pytest.raises(TransactionError, match=r"another process has the same transactional.id") as caught:
        kafka.run()
    assert caught.value.error.name() == "_FENCED"
    assert kafka.written == [0, 1, 2, 3]
    assert kafka.offsets == {("in", 0): 4}


FENCED = KafkaException(KafkaError(KafkaError._FENCED, fatal=True, txn_requires_abort=False))


def test_a_fatal_error_while_sending_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on its way is not waited for, and no abort is tried: the client can do neither."""
    kafka, calls = Kafka(timeout=60), list[str]()

    def fail(*_: Any, **options: Any) -> None:
        raise FENCED

    kafka.before[5] = lambda: monkeypatch.setattr(kafka.writer, "produce", fail)
    for name in ("purge", "abort_transaction"):
        monkeypatch.setattr(kafka.writer, name, lambda *_, name=name, **options: calls.append(name))
    with pytest.raises(TransactionError, match=r"another process has the same transactional.id"):
        kafka.run()
    assert calls == []
    assert kafka.written == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["purge", "flush", "abort_transaction"])
def test_a_fatal_error_during_an_abort_ends_with_what_to_do(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction that was to be aborted is left to the next process, and nothing of it is read."""
    kafka = Kafka()

    def fail(*_: Any, **options: Any) -> None:
        raise FENCED

    def begin_to_fail() -> None:
        monkeypatch.setattr(kafka.writer, method, fail)
        raise ZeroDivisionError

    kafka.before[5] = begin_to_fail
    with pytest.raises(TransactionError, match=r"another process has the same transactional.id") as caught:
        kafka.run()
    assert caught.value.error.name() == "_FENCED"
    assert kafka.written == [0, 1, 2, 3]
    assert kafka.offsets == {("in", 0): 4}


def test_the_same_records_are_not_tried_forever() -> None:
    """After so many aborted transactions in a row the error has the last one's."""
    kafka = Kafka(transactions=3)
    kafka.before = {at: lambda: kafka.writer.fail_next("MSG_SIZE_TOO_LARGE") for at in (0, 4, 8)}
    with pytest.raises(TransactionError, match=r"3 transactions for 4 records were aborted: .*TOO_LARGE"):
        kafka.run()
    assert kafka.written == []
    assert kafka.run() == 10


def test_failures_are_counted_from_zero_after_a_success() -> None:
    """Only aborted transactions of the same records count towards the bound."""
    kafka = Kafka(transactions=3)
    # Of each batch of four the first two transactions are aborted, after all its records.
    kafka.before = {at: lambda: kafka.writer.fail_next("MSG_SIZE_TOO_LARGE") for at in (0, 4, 12, 16)}
    assert kafka.run() == 10
    assert kafka.written == list(range(10))


def test_a_record_that_a_strict_consumer_refuses_is_not_passed_over() -> None:
    """Its error ends the run, and the next run begins with it."""
    kafka = Kafka(count=3)
    kafka.log.append(FakeMessage("in", b"foreign"))
    kafka.log.append(message(4))
    processor = EventProcessor(EventConsumer(kafka.reader, strict=True), kafka.producer, kafka.handle)
    for _ in range(2):
        with pytest.raises(NotAnEvent, match=r"in\[0\]@3"):
            processor.run(idle_timeout=0)
    assert kafka.written == [0, 1, 2]
    assert kafka.offsets == {("in", 0): 3}


@pytest.mark.parametrize("renews", [False, True])
def test_a_record_that_a_function_of_the_user_cannot_read_is_not_passed_over(*, renews: bool) -> None:
    """Its error ends the run, and the next run begins with it, also with a new consumer of the client."""
    kafka, fails = Kafka(count=4), [True, True]  # for the batch before the record, and for the record itself

    def map_key(event: Event, record: Record) -> Event:
        if event.id == "1" and fails:
            fails.pop()
            raise LookupError("no key")
        return event

    kafka.events = EventConsumer(kafka.reader, reverse_key_mapper=map_key)
    kafka.processor = EventProcessor(kafka.events, kafka.producer, kafka.handle)
    with pytest.raises(LookupError, match="no key"):
        kafka.run()
    assert kafka.offsets == {("in", 0): 1}
    if renews:
        kafka.processor = EventProcessor(EventConsumer(kafka.reader), kafka.producer, kafka.handle)
    assert kafka.run() == 3
    assert kafka.written == [0, 1, 2, 3]


def test_dead_letters_are_in_the_transaction() -> None:
    """A handler sends records that it cannot handle to another topic, exactly once, too."""
    kafka = Kafka(count=3)
    kafka.log.append(FakeMessage("in", b"foreign"))
    dead = DeadLetters(kafka.producer, topic="dead")

    def handle(item: Decoded | Undecodable) -> None:
        if isinstance(item, Undecodable):
            dead.send(item)
        else:
            kafka.producer.send(item.event, like=item.record)

    processor = EventProcessor(kafka.events, kafka.producer, handle)
    kafka.writer.fail_transaction("_TIMED_OUT")
    assert processor.run(idle_timeout=0) == 4
    (letter,) = (m for m in kafka.log if m.topic() == "dead")
    assert Record.of(letter).value == b"foreign"
    assert [m.topic() for m in kafka.log].count("out") == 3


class Plain:
    """A user's client, which has no transactions."""

    produce = poll = flush = staticmethod(lambda *_, **__: 0)


def test_clients_without_transactions_are_refused() -> None:
    """The error names the method that is missing."""
    kafka = Kafka()
    readers: list[Any] = [kafka.reader, AsyncEventConsumer(kafka.reader), object()]
    for reader in readers:
        with pytest.raises(
            TypeError, match=r"consumer must be an EventConsumer .* consumer_group_metadata\(\)"
        ):
            EventProcessor(reader, kafka.producer, print)
    writers: list[Any] = [kafka.writer, AsyncEventProducer(kafka.writer), EventProducer(Plain())]
    for writer in writers:
        with pytest.raises(
            TypeError, match=r"an EventProducer .* send_offsets_to_transaction\(\), got \w+; "
        ):
            EventProcessor(kafka.events, writer, print)

    async def handle(_: object) -> None:
        """Do nothing, later."""

    with pytest.raises(TypeError, match="handler must be a function of a record, got a coroutine function"):
        EventProcessor(kafka.events, kafka.producer, handle)


def test_a_call_that_does_not_return_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """send_offsets_to_transaction of the client may ignore its timeout; the bound is kept."""
    from threading import Event as Flag

    kafka, flag = Kafka(timeout=0.1), Flag()
    monkeypatch.setattr(kafka.writer, "send_offsets_to_transaction", lambda *_: flag.wait(10))
    with pytest.raises(
        TransactionError, match=r"did not return in 0.1 s; end the process and start it again"
    ):
        kafka.run()
    flag.set()


class Fails:
    """A handler that fails for some records, before or after it has sent something."""

    def __init__(self, kafka: Kafka, times: dict[int, int], *, sends_before: bool) -> None:
        self.kafka, self.times, self.sends_before = kafka, dict(times), sends_before

    def __call__(self, item: Decoded | Undecodable) -> None:
        number = int(item.record.key or b"")
        if self.times.get(number, 0):
            self.times[number] -= 1
            if self.sends_before:
                self.kafka.producer.send_record(item.record)
            raise ConnectionError(f"no {number}")
        self.kafka.producer.send_record(item.record)


def failing(kafka: Kafka, times: dict[int, int], *, sends_before: bool, **options: Any) -> EventProcessor:
    handler = Fails(kafka, times, sends_before=sends_before)
    return EventProcessor(kafka.events, kafka.producer, handler, max_records=4, backoff=0, **options)


@pytest.mark.parametrize("sends_before", [False, True])
def test_a_record_that_fails_is_tried_again_in_another_transaction(*, sends_before: bool) -> None:
    """What a failed try has sent is not read; each record is forwarded once."""
    kafka = Kafka()
    processor = failing(kafka, {1: 2, 2: 1, 9: 2}, sends_before=sends_before, tries=3, on_failure="fail")
    assert processor.run(idle_timeout=0) == 10
    assert kafka.written == list(range(10))
    assert kafka.offsets == {("in", 0): 10}


@pytest.mark.parametrize("sends_before", [False, True])
@pytest.mark.parametrize("by_function", [False, True])
@pytest.mark.parametrize("abort", [None, *ABORTS])
def test_a_bad_record_is_set_aside_once(*, sends_before: bool, by_function: bool, abort: str | None) -> None:
    """Its letter is in the transaction, also if that is aborted and repeated."""
    kafka = Kafka()
    letters = DeadLetters(kafka.producer, topic="dead")
    on_failure: Any = (lambda *_: letters) if by_function else letters
    times = {0: 99, 3: 99, 5: 99}
    processor = failing(kafka, times, sends_before=sends_before, tries=2, on_failure=on_failure)
    if abort:
        ABORTS[abort](kafka)
    assert processor.run(idle_timeout=0) == 10
    assert kafka.written == [1, 2, 4, 6, 7, 8, 9]
    dead = [message for message in kafka.log if message.topic() == "dead"]
    assert [int(message.key() or b"") for message in dead] == [0, 3, 5]
    assert [DeadLetter.of(Record.of(message)).attempt for message in dead] == [2, 2, 2]  # type: ignore[union-attr]
    assert kafka.offsets == {("in", 0): 10}


def test_records_that_are_not_events_are_set_aside_without_a_call() -> None:
    """With on_failure the handler gets events only, and another error than a transient one is tried once."""
    kafka = Kafka(count=0)
    for item in (message(0), FakeMessage("in", b"foreign"), message(2)):
        kafka.log.append(item)
    letters = DeadLetters(kafka.producer, topic="dead")
    handled: list[Any] = []
    processor = EventProcessor(kafka.events, kafka.producer, handled.append, on_failure=letters, tries=3)
    assert processor.run(idle_timeout=0) == 3
    assert [type(item) for item in handled] == [Decoded, Decoded]
    assert len([message for message in kafka.log if message.topic() == "dead"]) == 1


def test_an_error_of_the_transaction_is_none_of_the_record() -> None:
    """Sending fails after a delivery has failed: the transaction is repeated, and nothing is set aside."""
    kafka = Kafka()
    kafka.before[2] = lambda: kafka.writer.fail_next("_MSG_TIMED_OUT")
    letters = DeadLetters(kafka.producer, topic="dead")
    processor = EventProcessor(kafka.events, kafka.producer, kafka.handle, on_failure=letters)
    assert processor.run(idle_timeout=0) == 10
    assert kafka.written == list(range(10))
    assert not [message for message in kafka.log if message.topic() == "dead"]


def test_skipped_records_are_committed_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the place and the error, once for each, after the commit."""
    kafka = Kafka()
    assert failing(kafka, {4: 9}, sends_before=True, on_failure="skip").run(idle_timeout=0) == 10
    assert kafka.written == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert caplog.text.count("in[0]@4 is skipped after 1 try: ConnectionError('no 4')") == 1


def test_dead_letters_of_another_producer_are_refused() -> None:
    """They would not be in the transaction."""
    kafka = Kafka()
    letters = DeadLetters(EventProducer(FakeProducer()), topic="dead")
    with pytest.raises(ValueError, match="on_failure must send dead letters by the producer"):
        EventProcessor(kafka.events, kafka.producer, print, on_failure=letters)


def test_a_stop_ends_within_the_bound_whatever_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler or a broker that does not return leaves its transaction, and nothing is committed."""
    kafka, release = Kafka(), threading.Event()

    def hang(item: Decoded | Undecodable) -> None:
        kafka.handle(item)
        if len(kafka.handled) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            release.wait(20)

    kafka.processor = EventProcessor(kafka.events, kafka.producer, hang)
    start = time.monotonic()
    assert kafka.processor.run(stop_timeout=0.5) == 0
    assert 0.4 < time.monotonic() - start < 3
    assert kafka.offsets == {}
    with pytest.raises(TransactionError, match="a handler of an earlier run has not returned"):
        kafka.processor.run()
    release.set()


def leave_open(kafka: Kafka, first: Any = None) -> None:
    """Let a run end in its first record, before the end of the transaction."""
    release, processor = threading.Event(), kafka.processor

    def hang() -> None:
        if first is not None:
            first()
        processor.stop()
        release.wait(20)

    kafka.before[len(kafka.handled)] = hang
    assert processor.run(stop_timeout=0) == 0
    release.set()
    for thread in threading.enumerate():
        if thread.name == "cloudevents_kafka.processor":
            thread.join(20)


def test_a_run_names_the_transaction_that_an_earlier_run_has_left_open() -> None:
    """Only a new producer can end it; another process is not blamed."""
    kafka = Kafka()
    leave_open(kafka)
    with pytest.raises(TransactionError) as caught:
        kafka.restarted(producer=kafka.producer).run(idle_timeout=0)
    assert str(caught.value) == (
        "a transaction of an earlier run is still open in this process: KafkaError{code=_STATE,val=-172,"
        'str="Operation not valid in state InTransaction"}; make a new producer with the same '
        "transactional.id, which ends the open transaction, and a new processor, or start the process again"
    )


def test_a_transaction_that_the_handler_has_ended_is_not_blamed_on_another_process() -> None:
    """The client refuses the next step; no other process has changed anything."""
    kafka = Kafka()
    kafka.before[0] = kafka.writer.abort_transaction
    with pytest.raises(TransactionError, match=r"in state Ready.*; end the process and start it again"):
        kafka.run()


def fail(kafka: Kafka) -> None:
    """Let a run end by an error of the client in its second batch."""
    kafka.before[6] = lambda: kafka.writer.fail_transaction("_FENCED", fatal=True)
    with pytest.raises(TransactionError):
        kafka.run()


def fail_to_begin(kafka: Kafka) -> None:
    leave_open(kafka)
    with pytest.raises(TransactionError, match="still open"):
        kafka.restarted(producer=kafka.producer).run(idle_timeout=0)


def fail_to_abort(kafka: Kafka) -> None:
    def fail_both() -> None:
        kafka.writer.abort_transaction = partial(fail_call, "no abort")  # type: ignore[method-assign]
        raise ZeroDivisionError

    kafka.before[2] = fail_both
    with pytest.raises(TransactionError, match="no abort"):
        kafka.run()


def fail_call(reason: str, *_: object) -> None:
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, reason, fatal=True))


@pytest.mark.parametrize("end", [fail, leave_open, fail_to_begin, fail_to_abort])
def test_the_next_run_of_a_consumer_begins_with_the_batch_that_was_not_committed(end: Any) -> None:
    """However a run ends, no record of its last batch is skipped or written twice."""
    kafka = Kafka(count=0)
    for number in range(10):
        kafka.log.append(message(number, partition=number % 2))
    end(kafka)
    kafka.restarted().run(idle_timeout=0)
    assert sorted(kafka.written) == list(range(10))
    assert kafka.offsets == {("in", 0): 5, ("in", 1): 5}


def test_a_run_that_leaves_its_transaction_does_not_seek_in_revoked_partitions() -> None:
    """Another member may have committed their records; the client continues at the group's offset."""
    kafka = Kafka()
    sought = list[Any]()

    def move() -> None:
        kafka.reader.rebalance()
        kafka.offsets["in", 0] = 2  # by another member
        kafka.events.seek = sought.append  # type: ignore[method-assign, assignment]

    leave_open(kafka, first=move)
    assert sought == []
    assert kafka.restarted().run(idle_timeout=0) == 8
    assert kafka.written == list(range(2, 10))


def lose_answer(kafka: Kafka, *, commits: bool) -> None:
    """Let a run end because its producer does not know whether the second commit has succeeded."""
    commit = kafka.writer.commit_transaction

    def commit_and_fail(timeout: float) -> None:
        if commits or len(kafka.handled) == 4:
            commit()
        if len(kafka.handled) == 8:
            fail_call("no answer")

    kafka.writer.commit_transaction = commit_and_fail  # type: ignore[method-assign]
    with pytest.raises(TransactionError, match="no answer"):
        kafka.run()


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("commits", [False, True])
def test_a_run_continues_at_the_offsets_of_the_group_if_a_commit_was_not_answered(
    *, commits: bool, moves: bool
) -> None:
    """Only the group knows whether the batch was committed; it is neither skipped nor written twice."""
    kafka = Kafka()
    lose_answer(kafka, commits=commits)
    if moves:
        kafka.reader.rebalance()
    assert kafka.restarted().run(idle_timeout=0) == (2 if commits else 6)
    assert kafka.written == list(range(10))
    assert kafka.offsets == {("in", 0): 10}


def test_a_commit_is_in_doubt_only_until_a_run_has_asked_for_the_offsets() -> None:
    """Later runs continue where their consumer is, for example after a seek of the user."""
    kafka = Kafka()
    lose_answer(kafka, commits=True)
    assert kafka.restarted().run(idle_timeout=0) == 2
    kafka.events.seek(TopicPartition("in", 0, 7))
    assert kafka.restarted().run(idle_timeout=0) == 3


def test_a_commit_stays_in_doubt_while_a_run_cannot_begin() -> None:
    """It may still succeed in the same producer; the run with a new one asks the group again."""
    kafka = Kafka()
    commit = kafka.writer.commit_transaction
    lose_answer(kafka, commits=False)
    with pytest.raises(TransactionError, match="still open in this process"):
        kafka.restarted(producer=kafka.producer).run(idle_timeout=0)
    commit()
    assert kafka.restarted().run(idle_timeout=0) == 2
    assert kafka.written == list(range(10))


def test_a_seek_that_is_refused_does_not_hide_the_error() -> None:
    """The run raises the error itself, and the next run continues at the offsets of the group."""
    kafka = Kafka()
    seek = kafka.reader.seek

    def fail_twice() -> None:
        kafka.writer.fail_transaction("_FENCED", fatal=True)
        kafka.reader.seek = partial(fail_call, "no seek")  # type: ignore[method-assign]

    kafka.before[6] = fail_twice
    with pytest.raises(TransactionError) as caught:
        kafka.run()
    assert any("seeking back has failed" in note for note in caught.value.__notes__)
    kafka.reader.seek = seek  # type: ignore[method-assign]
    assert kafka.restarted().run(idle_timeout=0) == 6
    assert kafka.written == list(range(10))


def test_a_run_begins_with_no_record_while_the_offsets_of_the_group_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error says what to do; the next run asks again."""
    kafka = Kafka()
    lose_answer(kafka, commits=True)
    with monkeypatch.context() as patch:
        patch.setattr(kafka.reader, "committed", partial(fail_call, "no offsets"))
        with pytest.raises(TransactionError) as caught:
            kafka.restarted().run(idle_timeout=0)
    assert str(caught.value) == (
        "the last commit was not answered, and the offsets of the group are not known: "
        'KafkaError{FATAL,code=_TIMED_OUT,val=-185,str="no offsets"}; run again when the brokers answer, '
        "with a new producer that has the same transactional.id, or start the process again"
    )
    assert kafka.restarted().run(idle_timeout=0) == 2
    assert kafka.written == list(range(10))


def test_a_processor_does_not_begin_while_a_handler_of_another_has_the_records() -> None:
    """A record is never in two handlers at once; when the first returns, a run reads the record again."""
    kafka, release = Kafka(), threading.Event()
    processor = kafka.processor

    def hang() -> None:
        processor.stop()
        release.wait(20)

    kafka.before[0] = hang
    assert processor.run(stop_timeout=0) == 0
    with pytest.raises(TransactionError, match="a handler of an earlier run has not returned"):
        kafka.restarted().run(idle_timeout=0)
    assert kafka.handled == []
    threading.Timer(0.2, release.set).start()
    assert kafka.restarted().run(idle_timeout=0) == 10
    assert kafka.written == list(range(10))


def close_in_a_thread(kafka: Kafka) -> None:
    thread = threading.Thread(target=kafka.events.close)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.parametrize("close", [lambda kafka: kafka.events.close(), close_in_a_thread])
def test_a_consumer_that_is_closed_during_a_run_is_closed_at_its_end(close: Any) -> None:
    """What was handled is committed first, no other record begins, and nobody waits for the run."""
    kafka, closed = Kafka(), list[bool]()
    kafka.before[2] = lambda: (close(kafka), closed.append(kafka.reader._closed))
    assert kafka.run() == 3
    assert closed == [False]
    assert kafka.reader._closed
    assert kafka.written == [0, 1, 2]
    assert kafka.offsets == {("in", 0): 3}
    with pytest.raises(RuntimeError, match="got a closed consumer"):
        kafka.run()


def test_a_consumer_that_is_closed_while_a_batch_is_read_is_closed_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None of the batch is handled."""
    kafka = Kafka()
    consume = kafka.reader.consume

    def close_and_consume(number: int, timeout: float) -> Any:
        kafka.events.close()
        return consume(number, timeout)

    monkeypatch.setattr(kafka.reader, "consume", close_and_consume)
    assert kafka.run() == 0
    assert kafka.reader._closed
    assert kafka.handled == []


def test_no_run_begins_while_the_handler_of_an_interrupted_run_is_at_work() -> None:
    """What it sends is in no later transaction; when it has returned, a run reads its records again."""
    kafka, release, interrupts = Kafka(count=3), threading.Event(), [True]

    def handle(item: Decoded | Undecodable) -> None:
        if interrupts:
            interrupts.clear()
            os.kill(os.getpid(), signal.SIGINT)
            release.wait(20)
        kafka.handle(item)

    kafka.processor = EventProcessor(kafka.events, kafka.producer, handle)
    with pytest.raises(KeyboardInterrupt):
        kafka.run()
    with pytest.raises(TransactionError, match="a handler of an earlier run has not returned"):
        kafka.run()
    release.set()
    end = time.monotonic() + 20
    while not kafka.written and time.monotonic() < end:
        with suppress(TransactionError):
            kafka.run()
    assert kafka.written == [0, 1, 2]
    assert kafka.offsets == {("in", 0): 3}


def test_a_stop_during_the_wait_for_a_try_is_at_once() -> None:
    """The record is read again by the next process."""
    kafka = Kafka()
    handler = Fails(kafka, {1: 9}, sends_before=False)
    processor = EventProcessor(kafka.events, kafka.producer, handler, tries=9, backoff=60, on_failure="fail")
    threading.Timer(0.3, processor.stop).start()
    start = time.monotonic()
    assert processor.run() == 1
    assert time.monotonic() - start < 5
    assert kafka.offsets == {("in", 0): 1}
