"""What becomes of a record in `EventConsumer.run`: its tries, and the action after the last that fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients._passing import find_passing
from cloudevents_kafka.clients._protocols import check_handler
from cloudevents_kafka.clients.dead_letters import DeadLetterError, DeadLetters, deliver
from cloudevents_kafka.errors import DataError, DecodeError
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

Item = Decoded | Undecodable
Action = Literal["fail", "skip"] | DeadLetters
"""What becomes of a record that failed."""
OnFailure = Action | Callable[[Item, Exception], Action]
"""An `Action`, or a function that returns one for a record and its error."""

_MAX_BACKOFF: Final = 30.0  # seconds between two tries
_LASTING: Final = (DecodeError, DataError)  # trying again does not help, unless the cause is transient
_log: Final = logging.getLogger("cloudevents_kafka.clients._run")


class RunResult(msgspec.Struct):
    """The numbers of records that were handled, were skipped, became dead letters, and of further tries.

    Examples:
        >>> from cloudevents_kafka import EventConsumer
        >>> with EventConsumer(consumer) as events:
        ...     counts = events.run(lambda item: None, idle_timeout=0.1)
        >>> counts
        RunResult(handled=2, skipped=0, dead=0, retried=0)
    """

    handled: int = 0
    skipped: int = 0
    dead: int = 0
    retried: int = 0


class Policy(msgspec.Struct, kw_only=True):
    """The handler, and what becomes of its failures; see `EventConsumer.run`."""

    handler: Callable[[Any], object]
    read: Callable[[Record], Item]
    on_failure: OnFailure
    tries: int
    backoff: float
    retry_on: type[Exception] | tuple[type[Exception], ...] | None

    def __post_init__(self) -> None:
        """Check the values. Raises `ValueError`, `TypeError`."""
        check_handler(self.handler)
        if self.on_failure not in ("fail", "skip") and not (
            isinstance(self.on_failure, DeadLetters) or callable(self.on_failure)
        ):
            raise TypeError(
                f"on_failure must be 'fail', 'skip', a DeadLetters or a function, got {self.on_failure!r}"
            )
        if self.tries < 1 or not self.backoff >= 0:
            raise ValueError(f"tries must be from 1 and backoff from 0, got {self.tries} and {self.backoff}")

    def handle(self, item: Item, counts: RunResult, ending: threading.Event) -> bool:
        """Handle one record, in one or more tries; return False if ``ending`` prevented a further one.

        Raises the error of a record that fails finally.
        """
        for attempt in count(1):
            error = self._try(item, attempt)
            if error is None:
                counts.handled += 1
                return True
            if attempt >= self.tries or not self._may_pass(error):
                self._give_up(item, error, attempt, counts)
                return True
            _log.info("%s: try %d of %d failed: %s", item.record.where, attempt, self.tries, _reason(error))
            counts.retried += 1
            if ending.wait(min(self.backoff * 2 ** min(attempt - 1, 30), _MAX_BACKOFF)):
                return False
            item = self._read_again(item)
        raise AssertionError

    def _may_pass(self, error: Exception) -> bool:
        """Return whether another try is made after an error."""
        if self.retry_on is not None:
            return isinstance(error, self.retry_on)
        return not isinstance(error, _LASTING) or find_passing(error) is not None

    def _read_again(self, item: Item) -> Item:
        """Return the item of a record whose data may be read now."""
        if isinstance(item, Decoded):
            return item
        return read_or_refuse(partial(self.read, item.record)) or item

    def _try(self, item: Item, attempt: int) -> Exception | None:
        if isinstance(item, Undecodable):
            return item.error
        try:
            self.handler(item)
        except Exception as error:  # noqa: BLE001  # a user's function may raise any error
            return error
        except BaseException as error:
            _note_place(error, item, attempt)
            raise
        return None

    def _give_up(self, item: Item, error: Exception, attempt: int, counts: RunResult) -> None:
        try:
            self._act(item, error, attempt, counts)
        except BaseException as failure:
            _note_place(failure, item, attempt)
            if failure is not error and not isinstance(failure, DeadLetterError):
                failure.add_note(f"its handler has failed: {error!r}")
            raise

    def _act(self, item: Item, error: Exception, attempt: int, counts: RunResult) -> None:
        action = self.on_failure
        if not isinstance(action, str | DeadLetters):
            action = action(item, error)
        if isinstance(action, DeadLetters):
            deliver(action, item, error, attempt=attempt)
            counts.dead += 1
            outcome = "is a dead letter"
        elif action == "skip":
            counts.skipped += 1
            outcome = "is skipped"
        else:
            raise error
        tries = pluralize(attempt, "try", "tries")
        _log.warning("%s %s after %s: %s", item.record.where or "a record", outcome, tries, _reason(error))

    def check_topics(self, assigned: list[TopicPartition]) -> None:
        """Raise `ValueError` if the consumer reads its own dead letters, which would have no end."""
        topic = self.on_failure.topic if isinstance(self.on_failure, DeadLetters) else None
        if any(place.topic == topic for place in assigned):
            raise ValueError(
                f"on_failure must send to a topic that the consumer does not read, got {topic!r}, which it "
                "reads; exclude it from the subscription, or send dead letters to another topic"
            )


def _note_place(error: BaseException, item: Item, attempt: int) -> None:
    error.add_note(f"while {item.record.where or 'a record'} was handled, try {attempt}")


def _reason(error: Exception) -> str:
    """Return an error as its `repr`, without the topic, partition and offset of the record."""
    return f"{type(error).__name__}({error.reason!r})" if isinstance(error, DecodeError) else repr(error)


def read_or_refuse(read: Callable[[], Item | None]) -> Item | None:
    """Return the item that a read returns, or an `Undecodable` if it raises a `DecodeError`."""
    try:
        return read()
    except DecodeError as error:  # raised by a consumer with `strict`: on_failure decides
        return Undecodable(error, error.record)
