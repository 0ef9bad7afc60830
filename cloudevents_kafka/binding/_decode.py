"""Read a record as an event.

`from_record` raises an error for a record that is not a valid event; `decode` returns `Decoded`
or `Undecodable`, so that one bad record does not stop a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.validation import are_valid_texts, is_valid_fast
from cloudevents_kafka.binding._binary import decode_binary, read_text_attributes
from cloudevents_kafka.binding._lenient import read_lenient
from cloudevents_kafka.binding._sniffer import Mode, Verdict, decode_error, sniff
from cloudevents_kafka.binding._structured import check_content_type, decode_structured
from cloudevents_kafka.errors import BrokenEvent, DecodeError, InvalidEvent, Problem
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.record import Record, RecordInput, with_bytes_headers


class Decoded(msgspec.Struct, frozen=True):
    """A record that is an event; ``tolerated`` are the problems that lenient reading accepted."""

    event: Event
    record: Record
    tolerated: tuple[Problem, ...] = ()


class Undecodable(msgspec.Struct, frozen=True):
    """A record that is not a valid event, and the reason."""

    error: DecodeError
    record: Record


def from_record(record: RecordInput, *, lenient: bool = False) -> Event:
    """Return the event of a record, in either content mode and any known event format.

    The record may be a client's: see `Record.of`. ``lenient`` accepts deviations of known
    producers; `decode` lists them. Raises `NotAnEvent`, `BrokenEvent`, `UnsupportedFormat` or
    `UnsupportedBatch`, which have the record, if it is not a valid event, and no other error
    for any bytes.
    """
    if type(record) is not Record:
        record = Record.of(record)
    if lenient:
        return _read_lenient(record)[0]
    try:
        # The fast path, before the table of readers: most records have only headers of texts, and one
        # pass over these finds both the attributes and the mode.
        attributes = read_text_attributes(record.headers)
        if attributes is not None:
            content_type = attributes.get("datacontenttype")
            media = None if content_type is None else media_type(content_type)
            if media is not None and media.cloudevents:  # K-09: "prefixed with the CloudEvents media type"
                event = decode_structured(record.value, media)
                if event is not None:  # otherwise a batch, or an unknown format
                    return event
            elif (media is None or media.valid) and are_valid_texts(attributes, "".join(attributes.values())):
                return unchecked_event(attributes, record.value)
        return _read_slow(record)
    except InvalidEvent as error:
        raise BrokenEvent(error.problems, with_bytes_headers(record)) from error.__cause__


def decode(record: RecordInput, *, lenient: bool = False) -> Decoded | Undecodable:
    """Return the event that `from_record` returns for a record, or the error that it raises.

    The record may be a client's, such as a confluent-kafka ``Message``; the result has it as a
    `Record`. Raises `TypeError` or `ValueError` if the object is not a record, as
    `Record.of` does.
    """
    if type(record) is not Record:
        record = Record.of(record)
    try:
        if lenient:
            event, tolerated = _read_lenient(record)
            return Decoded(event, record, tolerated)
        return Decoded(from_record(record), record)
    except DecodeError as error:
        return Undecodable(error, record)


def _read_slow(record: Record) -> Event:
    """Return the event of any record; raise `InvalidEvent` or a `DecodeError` if it has none."""
    record = with_bytes_headers(record)
    sniffed = sniff(record.headers)
    return _READERS[sniffed.mode](record, sniffed)


def _read_structured(record: Record, sniffed: Verdict) -> Event:
    media = media_type(str(sniffed.media_type))
    check_content_type(record, media)
    event = decode_structured(record.value, media)
    if event is None:
        raise decode_error(sniffed, record)
    return event


def _refuse(record: Record, sniffed: Verdict) -> NoReturn:
    raise decode_error(sniffed, record)


_READERS: Final[dict[Mode, Callable[[Record, Verdict], Event]]] = {
    "binary": lambda record, _: decode_binary(record),
    "structured": _read_structured,
    "unsupported-format": _read_structured,
    "batch": _refuse,
    "not-an-event": _refuse,
}


def _read_lenient(record: Record) -> tuple[Event, tuple[Problem, ...]]:
    """Return the event of a record and the problems that lenient reading accepts."""
    record = with_bytes_headers(record)
    sniffed = sniff(record.headers)
    outcome: Event | InvalidEvent | DecodeError
    try:
        attributes = read_text_attributes(record.headers) if sniffed.mode == "binary" else None
        if attributes is not None and is_valid_fast(attributes):
            outcome = unchecked_event(attributes, record.value)
        else:
            outcome = _READERS[sniffed.mode](record, sniffed)
    except (InvalidEvent, DecodeError) as error:
        outcome = error
    try:
        return read_lenient(record, sniffed, outcome)
    except InvalidEvent as error:
        raise BrokenEvent(error.problems, record) from error.__cause__
