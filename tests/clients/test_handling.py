"""How the records of a batch are handled in a transaction, each with its tries."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cloudevents_kafka import Decoded, Event, EventProducer, Undecodable, decode, to_record
from cloudevents_kafka.clients._handling import BatchHandler, Handled
from cloudevents_kafka.clients._policy import Policy, RunResult
from cloudevents_kafka.clients._transaction_time import TransactionTime
from cloudevents_kafka.testing import FakeProducer

RECORD = to_record(Event(id="1", source="/s", type="t"))
BATCH = [decode(replace(RECORD, topic="in", partition=0, offset=number)) for number in range(4)]


class Handling:
    """A handler that fails for some records, and may send before it does."""

    def __init__(self, fails: set[int], *, sends: bool = False, tries: int = 1) -> None:
        self.fails, self.sends = fails, sends
        self.calls: list[int] = []
        self.is_ending = False
        self.producer = EventProducer(FakeProducer(), topic="out")
        self.producer.count_sends()
        policy = Policy(read=decode, on_failure="skip", tries=tries, backoff=0, retry_on=ValueError)
        self._handler = BatchHandler(self.handle, policy, self.producer, passes_all=False)

    def handle(self, item: Decoded | Undecodable) -> None:
        number = int(item.record.offset or 0)
        self.calls.append(number)
        if self.sends:
            self.producer.send_record(item.record)
        if number in self.fails:
            raise ValueError(number)

    def transaction(self, begin: int = 0, time: Any = None) -> Handled:
        time = time or TransactionTime(None, None)
        return self._handler.handle(BATCH[begin:], time, lambda: self.is_ending)

    def commit(self, begin: int, end: int) -> RunResult:
        counts = RunResult()
        self._handler.note_committed(BATCH[begin:end], counts)
        return counts


def test_a_batch_ends_before_a_record_that_is_tried_again() -> None:
    """What was handled before can be committed, and the next transaction begins with the record."""
    handling = Handling({2}, tries=2)
    assert handling.transaction() == Handled(2)
    assert handling.commit(0, 2) == RunResult()
    assert handling.transaction(2) == Handled(2)  # its last try has sent nothing, so the batch goes on
    assert handling.calls == [0, 1, 2, 2, 3]
    assert handling.commit(2, 4) == RunResult(skipped=1)


def test_what_a_failed_try_has_sent_is_aborted() -> None:
    """The transaction after it does not call the handler for the record: it is known what becomes of it."""
    handling = Handling({1}, sends=True)
    assert handling.transaction() == Handled(1, is_aborted=True)
    assert handling.transaction() == Handled(4)
    assert handling.calls == [0, 1, 0, 2, 3]
    assert handling.commit(0, 4) == RunResult(skipped=1)


def test_a_commit_ends_what_is_known() -> None:
    """A record that is read again after its commit has all its tries again."""
    handling = Handling({0}, tries=2)
    for _ in range(2):
        assert handling.transaction() == Handled(0, is_aborted=True)
        assert handling.transaction() == Handled(4)
        assert handling.commit(0, 4) == RunResult(skipped=1)
    assert handling.calls == 2 * [0, 0, 1, 2, 3]


def test_at_least_one_record_is_handled() -> None:
    """No further record begins when the time is over, or the run is to end."""
    slow = TransactionTime(None, 1e-9)
    slow.begin()
    assert Handling(set()).transaction(time=slow) == Handled(1)
    ending = Handling(set())
    ending.is_ending = True
    assert ending.transaction() == Handled(1)
