"""`BatchHandler`: handles the records of a batch in a transaction, and tries failed records again.

When a try fails, its transaction is aborted, together with all messages that the handler has sent in it.
Therefore, the failure of a record is remembered until a transaction that includes the record is committed.
The next transaction tries the record again, skips the record, or sends the record as a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cloudevents_kafka.binding import Undecodable
from cloudevents_kafka.clients._places import Item
from cloudevents_kafka.clients._policy import Action, Policy, RunResult, log_outcome
from cloudevents_kafka.clients._sends import Sends
from cloudevents_kafka.clients._transaction_time import TransactionTime
from cloudevents_kafka.clients._transactions import client_error
from cloudevents_kafka.clients.dead_letters import DeadLetters
from cloudevents_kafka.clients.producer import EventProducer


class Handled(NamedTuple):
    """The number of records that were handled, and the pause in seconds before a failed record is retried."""

    number: int
    is_aborted: bool = False  # whether the failed record has sent something, or is the first record
    seconds: float = 0.0


class Failure(NamedTuple):
    """The last failure of a record; ``action`` is None if the record will be tried again."""

    attempt: int
    error: Exception
    action: Action | None


class BatchHandler:
    """Calls the handler of the user, and remembers the records that the handler could not handle.

    With ``passes_all``, the handler is also called with records that are not events, and errors of the
    handler are raised. Raises `ValueError` if the `DeadLetters` do not send with the producer of the
    processor.
    """

    def __init__(
        self,
        handler: Callable[[Any], object],
        policy: Policy,
        producer: EventProducer[Any],
        *,
        passes_all: bool,
    ) -> None:
        self._handler = handler
        self._policy = policy
        self._producer = producer
        self._passes_all = passes_all
        self._failures: dict[object, Failure] = {}
        if isinstance(policy.on_failure, DeadLetters):
            self._check_letters(policy.on_failure)

    def handle(self, batch: Sequence[Item], time: TransactionTime, is_ending: Callable[[], bool]) -> Handled:
        """Handle records until the time is over or a record fails; return the number of handled records.

        At least one record of the batch is handled or fails.
        """
        for number, item in enumerate(batch):
            if number and (is_ending() or time.is_over):
                return Handled(number)
            with time.measured(item.record):
                failed = self._handle_one(number, item)
            if failed is not None:
                return failed
        return Handled(len(batch))

    def note_committed(self, batch: Sequence[Item], counts: RunResult) -> None:
        """Forget failures of committed records; count and log skipped records and dead letters."""
        for item in batch:
            failure = self._failures.pop(_place(item), None)
            if failure is not None and failure.action is not None:
                log_outcome(item, failure.attempt, failure.error, failure.action, counts)
                self._policy.note_outcome(item, failure.attempt, failure.error, failure.action)

    def _handle_one(self, number: int, item: Item) -> Handled | None:
        """Call the handler with a record.

        A record that has finally failed is skipped or sent as a dead letter.
        """
        failure = self._failures.get(_place(item))
        if failure is None or failure.action is None:
            attempt = 1 if failure is None else failure.attempt + 1
            sends = Sends()
            error = self._try(item, attempt, sends)
            if error is None:
                return None
            seconds = self._policy.next_try(item, attempt, error)
            action = self._policy.action(item, error) if seconds is None else None
            self._failures[_place(item)] = failure = Failure(attempt, error, action)
            if seconds is not None or sends.number:
                return Handled(number, sends.number > 0 or not number, seconds or 0.0)
        if isinstance(failure.action, DeadLetters):
            self._check_letters(failure.action)
            letters = failure.action.by(self._producer) if failure.action.is_async else failure.action
            letters.send(item, failure.error, attempt=failure.attempt)
        return None

    def _try(self, item: Item, attempt: int, sends: Sends) -> Exception | None:
        """Call the handler with a record; return the error of the record, or None if it was handled."""
        item = self._policy.read_again(item) if attempt > 1 else item
        if isinstance(item, Undecodable) and not self._passes_all:
            return item.error
        try:
            with self._policy.handling(item), sends.counted():
                self._handler(item)
        except BaseException as error:
            error.add_note(f"while {item.record.where or 'a record'} was handled")
            if self._passes_all or not isinstance(error, Exception) or client_error(error) is not None:
                raise  # after an error of the client, the transaction has failed, not the record
            return error
        return None

    def _check_letters(self, letters: DeadLetters) -> None:
        if letters.producer.producer is not self._producer.producer:
            raise ValueError(
                "on_failure must send dead letters by the producer of the processor, got another producer; "
                "make DeadLetters with the processor's producer, so that its transactions contain them"
            )


def _place(item: Item) -> object:
    record = item.record
    return record.topic, record.partition, record.offset
