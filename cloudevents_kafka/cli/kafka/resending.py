"""Send records, some of which may be bad. Each good record is sent once, and each bad record is reported.

The rules:

1. A record is refused if its topic has an impossible name or does not exist, or if the user is not allowed to
   write to the topic. A record is also refused if the client or the broker does not accept the record when it
   is sent alone. A broker refuses a whole batch because of one record, and does not write any record of the
   batch. Therefore, all records of the batch are then sent again, one at a time.
2. A refused record is reported once, stays in the topic from which it was read, and does not delay other
   records.
3. All other failures of sending, such as a broker that does not answer, may be temporary. A temporary failure
   ends the sending. The caller then receives the records that were not delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.cli.kafka.sender import TopicSender
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# Errors of a record or of its topic, by `KafkaError.name()`.
_REFUSALS: Final = frozenset(
    (
        *("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG", "INVALID_MSG_SIZE", "INVALID_RECORD"),
        *("_INVALID_DIFFERENT_RECORD", "INVALID_TIMESTAMP", "UNSUPPORTED_FOR_MESSAGE_FORMAT"),
        *("POLICY_VIOLATION", "TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION"),
        *("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"),
    )
)
OnOutcome = Callable[[str, str], None]


@dataclass
class _Letter:
    """A record to send, the original record from which it was made, and the outcome of sending it."""

    origin: Record
    record: Record
    error: KafkaError | None = None
    is_done: bool = False

    @property
    def is_refused(self) -> bool:
        return self.error is not None and self.error.name() in _REFUSALS

    def answer(self, error: KafkaError | None) -> None:
        self.error, self.is_done = error, error is None


class Resender:
    """Sends records.

    ``refused`` is the number of refused records; ``failure`` is the error that ended sending.
    """

    def __init__(self, sender: TopicSender, report: OnOutcome) -> None:
        """``report`` is called with the position of each record that is not sent, and the reason."""
        self._sender, self._report = sender, report
        self.refused = 0
        self.failure: BrokerFailure | None = None

    def send(self, records: Iterable[tuple[Record, Record]]) -> list[Record]:
        """Send the second record of each pair of records.

        Return the first record of each pair whose second record was neither delivered nor refused. The
        records of the returned pairs may be sent later; ``failure`` says why sending has ended.
        """
        letters = [_Letter(origin, record) for origin, record in records]
        try:
            for letter in letters:
                self._queue(letter)
            self._sender.flush()
            for letter in letters:
                if letter.is_refused:
                    self._send_alone(letter)
        except BrokerFailure as failure:
            self.failure = failure
        left = [letter for letter in letters if not letter.is_done]
        for letter in left:
            if letter.error is not None:
                self._report(letter.origin.where, f"not delivered: {letter.error.str()}")
        if left and self.failure is None:
            self.failure = BrokerFailure(f"{pluralize(len(left), 'record')} not delivered; see above")
        return [letter.origin for letter in left]

    def _queue(self, letter: _Letter) -> None:
        try:
            self._sender.send(letter.record, letter.origin.where, letter.answer)
        except (BadUsage, BrokerFailure) as error:
            if isinstance(error, BrokerFailure) and not error.is_of_topic:
                raise
            self._refuse(letter, error.format_message())

    def _send_alone(self, letter: _Letter) -> None:
        alone = _Letter(letter.origin, letter.record)
        self._queue(alone)
        self._sender.flush()
        if alone.error is not None and alone.is_refused:
            self._refuse(alone, f"not delivered: {alone.error.str()}")
        letter.error, letter.is_done = alone.error, alone.is_done

    def _refuse(self, letter: _Letter, reason: str) -> None:
        letter.is_done = True
        self.refused += 1
        self._report(letter.origin.where, reason)
