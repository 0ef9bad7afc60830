"""Structured content mode: the record's value contains the whole event, in an event format.

The content-type header names the format. Other headers do not affect the event; they may include ``ce_``
headers with copies of attributes (K-17).
"""

from __future__ import annotations

from collections.abc import Sequence

from cloudevents_kafka.attributes.media_type import MediaType
from cloudevents_kafka.binding._headers import CONTENT_TYPE, decode_text, preview_all
from cloudevents_kafka.errors import EncodeError, InvalidEvent, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.json_reader import NAME
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.record import Headers, Record


def json_format() -> JsonFormat | None:
    """Return the built-in JSON format, or None if a user has registered another JSON format."""
    try:
        form = formats.find(NAME)
    except Exception:  # noqa: BLE001  # of a user's factory; `decode_structured` reports it
        return None
    return form if type(form) is JsonFormat else None


def decode_structured(value: bytes | None, media: MediaType) -> Event | None:
    """Return the event in a value with this media type, or None if the event format is unknown.

    Raises `InvalidEvent` if the value is not a valid event; the error lists every problem.
    """
    try:
        form = formats.find(media.format)
    except Exception as error:  # a user's factory may raise anything, and must not stop a loop
        raise InvalidEvent([_unreadable(_raised_by(media.format, "make", error))]) from error
    if form is None:
        return None
    if value is None:
        raise InvalidEvent([null_value()])
    if not media.utf8:
        raise InvalidEvent([charset_problem(media)])
    try:
        event = form.decode(value)
    except InvalidEvent:
        raise
    except Exception as error:  # a user's format may raise anything, too
        raise InvalidEvent([_unreadable(_raised_by(media.format, "decode", error))]) from error
    if type(event) is not Event and not isinstance(event, Event):
        raise InvalidEvent(
            [_unreadable(f"its decode returned {with_article(type(event).__name__)}, not an Event")]
        )
    return event


class InvalidContentType(InvalidEvent):
    """The content-type header breaks a rule.

    ``outcome`` is the event in the value, or the error that was raised when the value was read. If the header
    does not name exactly one format, ``outcome`` is None.
    """

    def __init__(self, problems: Sequence[Problem], outcome: Event | InvalidEvent | None = None) -> None:
        super().__init__(problems)
        self.outcome = outcome


def check_content_type(record: Record, media: MediaType) -> None:
    """Raise `InvalidContentType` if the content-type header occurs twice or is not UTF-8.

    If the header occurs twice with the same content, the format is known, and the error also reports what is
    wrong in the record's value.
    """
    values = [value for name, value in record.headers if name == CONTENT_TYPE and value is not None]
    problems: list[Problem] = []
    if (repeated := repeated_type(values)) is not None:
        outcome = _outcome(record.value, media) if len(set(values)) == 1 else None
        raise InvalidContentType([repeated, *getattr(outcome, "problems", ())], outcome)
    if decode_text(CONTENT_TYPE, values[0], problems) is None:
        raise InvalidContentType(problems)


def repeated_type(values: list[bytes]) -> Problem | None:
    """Return the problem of several content-type headers with these values, or None for one header."""
    if len(values) < 2:
        return None
    # N-05: "MUST only appear at most once"
    return Problem(CONTENT_TYPE, "header occurs more than once", "N-05", preview_all(values))


def _outcome(value: bytes | None, media: MediaType) -> Event | InvalidEvent | None:
    try:
        return decode_structured(value, media)
    except InvalidEvent as error:
        return error


def null_value() -> Problem:
    """Return the problem of a structured record whose value is null."""
    # K-08: "a Kafka message which still has a data section"
    return Problem(None, "the value of a structured record must be an event, got null", "K-08")


def charset_problem(media: MediaType) -> Problem:
    """Return the problem of a content-type that names an event format and a charset other than UTF-8."""
    rule = "the charset of an event format must be UTF-8"
    return Problem(CONTENT_TYPE, rule, "K-15", preview(media.charset))


def encode_structured(event: Event, name: str) -> tuple[Headers, bytes]:
    """Return the content-type header and the value that represent an event in a format.

    Raises `EncodeError` if the format is unknown or cannot represent the event, or if a format that a user
    registered raises any error.
    """
    try:
        form = formats.find(name)
    except Exception as error:
        raise _unwritable(name, _raised_by(name, "make", error)) from error
    if form is None:
        raise EncodeError(f"format must be one of {', '.join(formats.writable())}, got {name!r}")
    try:
        value = form.encode(event)
    except EncodeError:
        raise
    except Exception as error:
        raise _unwritable(name, _raised_by(name, "encode", error)) from error
    if type(value) is not bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _unwritable(name, f"its encode returned {with_article(type(value).__name__)}, not bytes")
        value = bytes(value)
    # K-15: "MUST be set to the media type of an event format"
    return [(CONTENT_TYPE, formats.content_type_of(name))], value


def _raised_by(name: str | None, function: str, error: Exception) -> str:
    """Return a message about the error of a user's format; re-raise the error of a built-in format."""
    if name not in formats.registered():
        raise error
    return f"its {function} raised {type(error).__name__}"


def _unreadable(reason: str) -> Problem:
    rule = f"the value must be an event in the format that content-type names, but {reason}"
    return Problem(None, rule, "K-15")


def _unwritable(name: str, reason: str) -> EncodeError:
    return EncodeError(f"the event cannot be written in the format {name!r}: {reason}")
