"""Structured content mode: the whole event in the record's value, by an event format.

The content-type header names the format. Other headers, ``ce_`` copies among them,
say nothing about the event (Kafka binding 3.3).
"""

from __future__ import annotations

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.media_type import MediaType
from cloudevents_kafka.binding._headers import CONTENT_TYPE
from cloudevents_kafka.errors import EncodeError, InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers


def decode(value: bytes | None, media: MediaType) -> Event | None:
    """Read a structured value by the format its media type names; None where that is unknown.

    Raises `InvalidEvent`, naming every problem.
    """
    try:
        found = formats.find(media.format)
    except Exception as error:  # of what makes a format of the user's: one bad record must not stop a loop
        raise InvalidEvent([_unread(_told(media.format, "make", error))]) from error
    if found is None:
        return None
    if value is None:
        raise InvalidEvent([Problem(None, "a structured event stands in the value, which is null", "K-08")])
    if not media.utf8:
        check_charset(media)
    try:
        event = found.decode(value)
    except InvalidEvent:
        raise
    except Exception as error:  # the same
        raise InvalidEvent([_unread(_told(media.format, "decode", error))]) from error
    if not isinstance(event, Event):
        raise InvalidEvent([_unread(f"its decode gave a {type(event).__name__}, not an Event")])
    return event


def _told(name: str | None, doing: str, error: Exception) -> str:
    """Tell what a format of the user's raised; raises it again where the format is the library's own."""
    if name not in formats.registered():
        raise error
    return f"its {doing} raised {type(error).__name__}"


def _unread(why: str) -> Problem:
    rule = f"the value must be an event in the format that content-type names, but {why}"
    return Problem(None, rule, "K-15")


def check_charset(media: MediaType) -> None:
    """Raise `InvalidEvent` where an event format's media type names a charset other than UTF-8."""
    if not media.utf8:
        rule = "an event format's charset must be UTF-8"
        raise InvalidEvent([Problem(CONTENT_TYPE, rule, "K-15", preview(media.charset))])


def encode(event: Event, name: str) -> tuple[Headers, bytes]:
    """Write an event as one header and a value, in the format of that name.

    Raises `EncodeError` for an unknown format, where the format cannot hold the event, and for
    whatever one of the user's raises.
    """
    try:
        found = formats.find(name)
    except Exception as error:
        raise _unwritten(name, _told(name, "make", error)) from error
    if found is None:
        raise EncodeError(f"no event format {name!r}; known: {', '.join(formats.writable())}")
    try:
        value = found.encode(event)
    except EncodeError:
        raise
    except Exception as error:
        raise _unwritten(name, _told(name, "encode", error)) from error
    if type(value) is not bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _unwritten(name, f"its encode gave a {type(value).__name__}, not bytes")
        value = bytes(value)
    return [(CONTENT_TYPE, formats.content_type_of(name))], value


def _unwritten(name: str, why: str) -> EncodeError:
    return EncodeError(f"the event cannot be written in the format {name!r}: {why}")
