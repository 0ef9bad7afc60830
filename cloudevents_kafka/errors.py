"""The errors of this library, all under one root.

::

    CloudEventsKafkaError
    ├── InvalidEvent (ValueError)        the values given do not make an event
    ├── EncodeError                      an event cannot be written as asked
    ├── DataError (ValueError)           the data is not what its content type says
    ├── DecodeError                      a record cannot be read as an event
    │   ├── NotAnEvent                   it is no CloudEvent: skip it
    │   ├── BrokenEvent (InvalidEvent)   it is one, and breaks rules
    │   ├── UnsupportedFormat            its event format is not known here
    │   └── UnsupportedBatch             it is a batch; Kafka has none
    ├── SigningError                     an event cannot be signed as asked
    ├── VerificationError                an event is not what a trusted key signed
    ├── DeliveryError                    a broker did not take an event
    └── ConsumeError                     the client failed while fetching

Every rule that an event breaks is reported at once, as a `Problem` each. No
message holds a byte of event data: attributes may be logged, data may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.record import Record

_MOST: Final = 20  # problems that a message tells; ``problems`` has all of them
_LONGEST: Final = 60  # characters of a name


class Problem(msgspec.Struct, frozen=True):
    """One broken rule: what it is about, what the rule says, and what was seen.

    ``attribute`` is an attribute or header name, ``"data"``, or None for the
    record as a whole; ``clause`` is an id of `clauses.SECTIONS`.
    """

    attribute: str | None
    rule: str
    clause: str
    value: str | None = None

    def __str__(self) -> str:
        what = "" if self.attribute is None else f"{preview_name(self.attribute)}: "
        got = "" if self.value is None else f", got {self.value}"
        return f"{what}{self.rule}{got} ({self.clause}, {SECTIONS[self.clause]})"


def preview(value: object, limit: int = 60) -> str:
    """Show a value in an error: its `repr`, cut to `limit` characters; of what may be endless, its kind."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def message_without_data(error: Exception) -> str:
    """Return what an error of a codec says, without the character or byte that it names: these are data."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} does not fit ({error.reason})"
    if isinstance(error, UnicodeEncodeError):
        return f"character {error.start} does not fit ({error.reason})"
    return str(error)


def preview_name(name: str | None) -> str:
    """Return a name as it is, or shown, where it is too long or a log would obey it."""
    name = str(name)
    return name if len(name) <= _LONGEST and name.isprintable() else preview(name, _LONGEST)


def _told(problems: Sequence[Problem]) -> str:
    """Tell the first problems, and how many more there are: strangers decide how many."""
    more = f"; and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
    return "; ".join(map(str, problems[:_MOST])) + more


class CloudEventsKafkaError(Exception):
    """The root: catches whatever this library raises."""


class InvalidEvent(CloudEventsKafkaError, ValueError):
    """The values given do not make an event; ``problems`` names every broken rule."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(tuple(problems))
        self.problems: tuple[Problem, ...] = tuple(problems)

    def __str__(self) -> str:
        return "not a valid CloudEvent: " + _told(self.problems)


class EncodeError(CloudEventsKafkaError):
    """The event cannot be written in the mode, format or record asked for."""


class DataError(CloudEventsKafkaError, ValueError):
    """The event's data is not what its datacontenttype says."""


class DecodeError(CloudEventsKafkaError):
    """A record cannot be read as an event; ``record`` is it, untouched.

    ``reason`` says what was seen and which rule it breaks, ``hint`` what to do.
    """

    def __init__(self, reason: str, record: Record, hint: str | None = None) -> None:
        Exception.__init__(self, reason, record, hint)  # what pickle needs; a subclass has two bases
        self.reason = reason
        self.record = record
        self.hint = hint

    def __str__(self) -> str:
        where = self.record.where
        return f"{where + ': ' if where else ''}{self.reason}{f'; {self.hint}' if self.hint else ''}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class NotAnEvent(DecodeError):
    """The record is not a CloudEvent (Kafka binding 3): other traffic on the topic."""


class BrokenEvent(DecodeError, InvalidEvent):
    """The record is a CloudEvent that breaks rules; ``problems`` names every one."""

    def __init__(self, problems: Sequence[Problem], record: Record, hint: str | None = None) -> None:
        reason = "broken CloudEvent: " + _told(problems)
        DecodeError.__init__(self, reason, record, hint)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return DecodeError.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems, self.record, self.hint)


class UnsupportedFormat(DecodeError):
    """The record is a structured CloudEvent in an event format not known here."""

    def __init__(self, media_type: str, record: Record, hint: str | None = None) -> None:
        super().__init__(
            f"event format {preview(media_type)} is not supported (K-10, Kafka binding 3)", record, hint
        )
        self.media_type = media_type

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.media_type, self.record, self.hint)


class UnsupportedBatch(DecodeError):
    """The record is a batch of CloudEvents, a mode that the Kafka binding does not have."""

    def __init__(self, media_type: str, record: Record, hint: str | None = None) -> None:
        super().__init__(
            f"{preview(media_type)} is a batch; Kafka has no batch mode (K-01, Kafka binding 1.3)",
            record,
            hint,
        )
        self.media_type = media_type

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.media_type, self.record, self.hint)
