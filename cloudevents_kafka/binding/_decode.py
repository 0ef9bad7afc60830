"""The door: from an event to a record, and from a record to an event.

`to_record` writes, `from_record` reads and raises, `decode` reads and never raises:
it gives `Decoded` or `Undecodable`, so that one bad record does not stop a loop.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cloudevents_kafka.attributes.fast_validation import are_valid_texts
from cloudevents_kafka.attributes.media_type import MediaType, media_type
from cloudevents_kafka.binding import _binary, _lenient, _structured
from cloudevents_kafka.binding._headers import CONTENT_TYPE
from cloudevents_kafka.binding._sniffer import decode_error, sniff
from cloudevents_kafka.errors import (
    BrokenEvent,
    DecodeError,
    InvalidEvent,
    Problem,
    preview,
)
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.record import Record, with_bytes_headers


class Decoded(msgspec.Struct, frozen=True):
    """A record that is an event; ``tolerated`` says what lenient reading let pass."""

    event: Event
    record: Record
    tolerated: tuple[Problem, ...] = ()


class Undecodable(msgspec.Struct, frozen=True):
    """A record that could not be read as an event, and why."""

    error: DecodeError
    record: Record


# --- reading -------------------------------------------------------------------


def from_record(record: Record | Any, *, lenient: bool = False) -> Event:
    """Read the event that a record carries, in either mode and any known format.

    The record may be a client's: see `Record.of`. Raises `NotAnEvent`, `BrokenEvent`,
    `UnsupportedFormat` or `UnsupportedBatch`, and nothing else for any bytes; each
    carries the record. ``lenient`` takes what known producers send beside the rules;
    `decode` says what that was.
    """
    if type(record) is not Record:
        record = Record.of(record)
    if lenient:
        return _read_leniently(record)[0]
    attributes = _binary.collect(record.headers)
    if attributes is None:
        return _read_closely(record)
    content_type = attributes.get("datacontenttype")
    if content_type is not None:
        media = media_type(content_type)
        if media.cloudevents:
            return _read_structured(record, media)
        if not media.valid:
            return _read_closely(record)
    if are_valid_texts(attributes, "".join(attributes.values())):
        return unchecked_event(attributes, record.value)
    return _read_closely(record)


def decode(record: Record | Any, *, lenient: bool = False) -> Decoded | Undecodable:
    """Return what `from_record` reads of a record, or the error that it raises.

    The record may be a client's, such as a confluent-kafka ``Message``; what comes back
    has it as a `Record`. Raises `TypeError` or `ValueError` for what is not a record, as
    `Record.of` does.
    """
    if type(record) is not Record:
        record = Record.of(record)
    try:
        if lenient:
            event, tolerated = _read_leniently(record)
            return Decoded(event, record, tolerated)
        return Decoded(from_record(record), record)
    except DecodeError as error:
        return Undecodable(error, record)


def _read_structured(record: Record, media: MediaType) -> Event:
    if media.batch:
        raise decode_error(sniff(record.headers), record)
    try:
        event = _structured.decode(record.value, media)
    except InvalidEvent as error:
        raise BrokenEvent(error.problems, record) from error.__cause__
    if event is None:
        raise decode_error(sniff(record.headers), record)
    return event


def _read_closely(record: Record) -> Event:
    """Read a record that did not pass at first sight; says why it is none, or reads it after all."""
    record = with_bytes_headers(record)
    verdict = sniff(record.headers)
    if verdict.mode == "not-an-event":
        raise decode_error(verdict, record)
    media = media_type(str(verdict.media_type))
    try:
        if verdict.mode == "binary":
            return _binary.decode(record)
        if verdict.mode != "batch":
            _check_content_type(record, media)
    except InvalidEvent as error:
        raise BrokenEvent(error.problems, record) from None
    return _read_structured(record, media)


def _check_content_type(record: Record, media: MediaType) -> None:
    """Raise `InvalidEvent` for what is no one text, with what is wrong in the value, if that can be told."""
    values = [value for name, value in record.headers if name == CONTENT_TYPE and value is not None]
    if len(values) > 1:
        problem = Problem(CONTENT_TYPE, "header occurs more than once", "N-05")
        raise InvalidEvent([problem, *(_faults(record, media) if len(set(values)) == 1 else ())])
    try:
        values[0].decode()
    except UnicodeDecodeError:
        raise InvalidEvent(
            [Problem(CONTENT_TYPE, "header value must be UTF-8", "K-06", preview(values[0]))]
        ) from None


def _faults(record: Record, media: MediaType) -> tuple[Problem, ...]:
    try:
        _structured.decode(record.value, media)
    except InvalidEvent as error:
        return error.problems
    return ()


def _read_leniently(record: Record) -> tuple[Event, tuple[Problem, ...]]:
    record = with_bytes_headers(record)
    strictly = decode(record)
    if isinstance(strictly, Decoded):
        return _lenient.beside(strictly.event, record)
    try:
        return _lenient.read(record)
    except InvalidEvent as error:
        raise BrokenEvent(error.problems, record) from error.__cause__


# --- writing -------------------------------------------------------------------
