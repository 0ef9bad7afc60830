"""The policy of a run: how often a record is tried, and what happens after the last try has failed.

`Policy` decides what to do after a failure. The loops for threads and for asyncio, and `EventProcessor`, call
the handler. After a failure, they do what `Policy` decides.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

import msgspec

from cloudevents_kafka.binding import Undecodable
from cloudevents_kafka.clients._deliveries import DeliveryError
from cloudevents_kafka.clients._places import Item
from cloudevents_kafka.clients._protocols import add_observers, find_fatal
from cloudevents_kafka.clients.dead_letters import DeadLetterError, DeadLetters
from cloudevents_kafka.clients.passing import find_passing
from cloudevents_kafka.errors import DataError, DecodeError
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.primitives.plural import pluralize, with_article
from cloudevents_kafka.primitives.preview import text_by
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.observing import Observer
    from cloudevents_kafka.clients.observing.calls import Observers

Action = Literal["fail", "skip"] | DeadLetters
"""What to do with a record whose last try has failed."""
OnFailure = Action | Callable[[Item, Exception], Action]
"""An `Action`, or a function that takes a record and its error and returns an `Action`."""

_LEAST: Final[Mapping[str, int]] = {
    "concurrency": 1,
    "max_ahead": 1,
    "max_bytes": 1,
    "max_age": 0,
    "revoke_timeout": 0,
    "stop_timeout": 0,
    "idle_timeout": 0,
}
_WHOLE: Final = ("tries", "concurrency")
_MAY_BE_NONE: Final = ("max_age", "revoke_timeout", "idle_timeout")
_MAX_BACKOFF: Final = 30.0  # seconds between two tries
_LASTING: Final = (DecodeError, DataError)  # another try helps only if the cause is transient
_log: Final = logging.getLogger("cloudevents_kafka.run")


class RunResult(msgspec.Struct):
    """The numbers of records that were handled, skipped, or sent as dead letters, and the number of retries.

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


class RunOptions(TypedDict, total=False):
    """The options of `EventConsumer.run`."""

    on_failure: OnFailure
    tries: int
    backoff: float
    retry_on: type[Exception] | tuple[type[Exception], ...] | None
    concurrency: int
    max_ahead: int
    max_bytes: int
    max_age: float | None
    revoke_timeout: float | None
    stop_timeout: float
    idle_timeout: float | None
    observers: Sequence[Observer]


class Policy(msgspec.Struct, kw_only=True):
    """Decides what to do after failures; `EventConsumer.run` describes the options.

    Raises `ValueError` or `TypeError` for a wrong option.
    """

    read: Callable[[Record], Item]
    on_failure: OnFailure = "fail"
    tries: int = 1
    backoff: float = 0.5
    retry_on: type[Exception] | tuple[type[Exception], ...] | None = None
    observers: Sequence[Observer] = ()
    observed: Observers | None = None
    """The observers of the consumer; the constructor adds the observers of the run."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.on_failure not in ("fail", "skip") and not (
            isinstance(self.on_failure, DeadLetters) or callable(self.on_failure)
        ):
            raise TypeError(
                f"on_failure must be 'fail', 'skip', a DeadLetters or a function, got {self.on_failure!r}"
            )
        check_callbacks(on_failure=self.on_failure)
        _check_numbers(self, {"tries": 1, "backoff": 0})
        if self.tries < 1 or not self.backoff >= 0:
            raise ValueError(
                f"tries must be at least 1 and backoff at least 0, got {self.tries} and {self.backoff}"
            )
        self.observed = add_observers(self.observed, self.observers)

    def handling(self, item: Item) -> AbstractContextManager[object]:
        """Return a context manager; the handler of a record is called in its block."""
        return nullcontext() if self.observed is None else self.observed.handling(item)

    def note_outcome(
        self, item: Item, attempt: int, error: Exception, action: Action, seconds: float | None = None
    ) -> None:
        """Call observers with a record that was skipped or sent as a dead letter; see `log_outcome`."""
        if self.observed is not None:
            name = "skipped" if action == "skip" else "dead_lettered"
            self.observed.of_item(name, item, error=error, attempt=attempt, seconds=seconds)

    def next_try(self, item: Item, attempt: int, error: Exception) -> float | None:
        """Log a failed try, and return the pause in seconds before the next try, or None if no try follows.

        The pause before the second try lasts between half of ``backoff`` seconds and ``backoff`` seconds. The
        pause doubles with each further try, up to 30 seconds. Within its limits, the length of a pause is
        random, so that records that failed together are not retried together.
        """
        if attempt >= self.tries or not self._may_pass(error):
            return None
        text = f"try {attempt} of {self.tries} failed: {_reason(error)}"
        _log.info("%s: %s", item.record.where, text, extra=fields_of(item, attempt, error))
        seconds = min(self.backoff * 2 ** min(attempt - 1, 30), _MAX_BACKOFF)
        seconds *= random.uniform(0.5, 1)
        if self.observed is not None:
            self.observed.of_item("retried", item, error=error, attempt=attempt, seconds=seconds)
        return float(seconds)

    def _may_pass(self, error: Exception) -> bool:
        if self.retry_on is not None:
            return isinstance(error, self.retry_on)
        return not isinstance(error, _LASTING) or find_passing(error) is not None

    def read_again(self, item: Item) -> Item:
        """Read a record again for another try, and return the new item with the original data.

        An earlier try of a handler may have changed the data in place. In addition, data that could not be
        read before may be readable now.
        """
        return read_or_refuse(partial(self.read, item.record)) or item

    def action(self, item: Item, error: Exception) -> Action:
        """Return what to do with a record whose last try has failed.

        If the action is "fail", the record's error is raised. A function that decides receives the item
        with the original data.
        """
        action = self.on_failure
        if not isinstance(action, str | DeadLetters):
            action = action(self.read_again(item), error)  # the handler may have changed the data
        if isinstance(action, DeadLetters) or action == "skip":
            return action
        raise error

    def check_topics(self, assigned: list[TopicPartition]) -> None:
        """Raise `ValueError` if the consumer reads its own dead letters, which would be an endless loop."""
        topic = self.on_failure.topic if isinstance(self.on_failure, DeadLetters) else None
        if any(place.topic == topic for place in assigned):
            raise ValueError(
                f"on_failure must send to a topic that the consumer does not read, got {topic!r}, which it "
                "reads; exclude it from the subscription, or send dead letters to another topic"
            )


class RunPolicy(Policy, kw_only=True):
    """What a run does after failures, and its limits; `EventConsumer.run` describes the options.

    A fatal error of a client ends the run: the record is not at fault, and each further record would fail.

    Raises `ValueError` or `TypeError` for a wrong option.
    """

    expels: tuple[str, float] | None = None  # see `expels_after`
    concurrency: int = 1
    max_ahead: int = 1000
    max_bytes: int = 67_108_864
    max_age: float | None = 300.0
    revoke_timeout: float | None = None  # None: half of the time after which the group expels the member
    stop_timeout: float = 20.0
    idle_timeout: float | None = None

    def __post_init__(self) -> None:
        """Check the values of the options; the group must not expel the member during ``revoke_timeout``."""
        super().__post_init__()
        _check_numbers(self, _LEAST)
        for option, least in _LEAST.items():
            value = getattr(self, option)
            if value is not None and not value >= least:
                raise ValueError(f"{option} must be at least {least}, got {value!r}")
        name, seconds = self.expels or ("", math.inf)
        if self.revoke_timeout is None:
            self.revoke_timeout = min(60.0, seconds / 2)
        elif self.revoke_timeout >= seconds:
            raise ValueError(
                f"revoke_timeout must be below {name}, which is {seconds:g} s, got {self.revoke_timeout!r}"
            )

    def next_try(self, item: Item, attempt: int, error: Exception) -> float | None:
        """Return as `Policy.next_try` does, or None for a fatal error of a client."""
        return None if _ends_a_client(error) else super().next_try(item, attempt, error)

    def action(self, item: Item, error: Exception) -> Action:
        """Return as `Policy.action` does; raise a fatal error of a client."""
        if _ends_a_client(error):
            raise error
        return super().action(item, error)


def _ends_a_client(error: Exception) -> bool:
    """Return whether an error, or the report of a delivery, has ended a Kafka client."""
    if isinstance(error, DeliveryError):
        return any(find_fatal(each._client_error) is not None for each in error.failed)  # noqa: SLF001
    return find_fatal(error) is not None


def _check_numbers(options: object, least: Mapping[str, int]) -> None:
    """Raise `TypeError` for an option of a wrong type; the error names the lowest allowed value."""
    for name, lowest in least.items():
        value = getattr(options, name)
        is_number = isinstance(value, int if name in _WHOLE else int | float) and not isinstance(value, bool)
        if not (is_number or (value is None and name in _MAY_BE_NONE)):
            kind, got = "whole number" if name in _WHOLE else "number", with_article(type(value).__name__)
            raise TypeError(f"{name} must be a {kind} from {lowest}, got {got}; pass {name}={lowest + 5}")


def log_outcome(item: Item, attempt: int, error: Exception, action: Action, counts: RunResult) -> None:
    """Count and log a record that was skipped or sent as a dead letter."""
    if action == "skip":
        counts.skipped += 1
    else:
        counts.dead += 1
    outcome = "is skipped" if action == "skip" else "is a dead letter"
    text = f"{outcome} after {pluralize(attempt, 'try', 'tries')}: {_reason(error)}"
    _log.warning("%s %s", item.record.where or "a record", text, extra=fields_of(item, attempt, error))


def fields_of(item: Item, attempt: int, error: Exception | None = None) -> dict[str, Any]:
    """Return the extra fields of a log entry about a Kafka record."""
    record = item.record
    key = None if record.key is None else record.key.decode(errors="backslashreplace")
    place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    return {**place, "key": key, "attempt": attempt, "error": None if error is None else _reason(error)}


def note_failure(failure: BaseException, item: Item, attempt: int, error: Exception | None = None) -> None:
    """Add notes to the error that ends a run; they name the record that was handled and its handler's error.

    If the run ends with the error of the handler itself, this error is not repeated in a note.
    """
    failure.add_note(f"while {item.record.where or 'a record'} was handled, try {attempt}")
    if error is not None and failure is not error and not isinstance(failure, DeadLetterError):
        failure.add_note(f"its handler has failed: {text_by(repr, error)}")


def _reason(error: Exception) -> str:
    """Return the `repr` of a record's error, without the topic, partition and offset of the record."""
    if isinstance(error, DecodeError):
        return f"{type(error).__name__}({error.reason!r})"
    return text_by(repr, error)


def read_or_refuse(read: Callable[[], Item | None]) -> Item | None:
    """Return the item that ``read`` returns, or an `Undecodable` if it raises a `DecodeError`."""
    try:
        return read()
    except DecodeError as error:  # raised by a consumer with `strict`: on_failure decides
        return Undecodable(error, error.record)
