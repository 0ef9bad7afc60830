"""The door: from an event to a record, and from a record to an event.

`to_record` writes, `from_record` reads and raises, `decode` reads and never raises:
it gives `Decoded` or `Undecodable`, so that one bad record does not stop a loop.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cloudevents_kafka import binary, structured
from cloudevents_kafka import lenient as lenient_reading
from cloudevents_kafka.attributes import AttributeType
from cloudevents_kafka.errors import (
    BrokenEvent,
    DecodeError,
    EncodeError,
    InvalidEvent,
    Problem,
    shown,
)
from cloudevents_kafka.event import Event, held, trusted
from cloudevents_kafka.extensions import type_of
from cloudevents_kafka.glance import surely_valid
from cloudevents_kafka.keys import KeyMapper
from cloudevents_kafka.media_type import MediaType, media_type
from cloudevents_kafka.record import HeaderInput, Headers, Record, as_bytes, as_headers, in_bytes
from cloudevents_kafka.sniff import CONTENT_TYPE, PREFIX, refused, sniff

ContentMode = Literal["binary", "structured"]

_COPY = "ce_datacontenttype"  # some write it beside content-type


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
    attributes = binary.collect(record.headers)
    if attributes is None:
        return _read_closely(record)
    content_type = attributes.get("datacontenttype")
    if content_type is not None:
        media = media_type(content_type)
        if media.cloudevents:
            return _read_structured(record, media)
        if not media.valid:
            return _read_closely(record)
    if surely_valid(attributes, "".join(attributes.values())):
        return trusted(attributes, record.value)
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
        raise refused(sniff(record.headers), record)
    try:
        event = structured.decode(record.value, media)
    except InvalidEvent as error:
        raise BrokenEvent(error.problems, record) from error.__cause__
    if event is None:
        raise refused(sniff(record.headers), record)
    return event


def _read_closely(record: Record) -> Event:
    """Read a record that did not pass at first sight; says why it is none, or reads it after all."""
    record = in_bytes(record)
    verdict = sniff(record.headers)
    if verdict.mode == "not-an-event":
        raise refused(verdict, record)
    media = media_type(str(verdict.media_type))
    try:
        if verdict.mode == "binary":
            return binary.decode(record)
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
            [Problem(CONTENT_TYPE, "header value must be UTF-8", "K-06", shown(values[0]))]
        ) from None


def _faults(record: Record, media: MediaType) -> tuple[Problem, ...]:
    try:
        structured.decode(record.value, media)
    except InvalidEvent as error:
        return error.problems
    return ()


def _read_leniently(record: Record) -> tuple[Event, tuple[Problem, ...]]:
    record = in_bytes(record)
    strictly = decode(record)
    if isinstance(strictly, Decoded):
        return lenient_reading.beside(strictly.event, record)
    try:
        return lenient_reading.read(record)
    except InvalidEvent as error:
        raise BrokenEvent(error.problems, record) from error.__cause__


# --- writing -------------------------------------------------------------------


def to_record(
    event: Any,
    *,
    mode: ContentMode | None = None,
    format: str | None = None,
    key: bytes | str | None = None,
    key_mapper: KeyMapper | None = None,
    headers: HeaderInput = None,
    topic: str | None = None,
    like: Record | Any | None = None,
) -> Record:
    """Write an event, or an SDK's event, as a record; neither is changed.

    ``mode`` is binary unless told otherwise, ``format`` (of structured mode) is json.
    ``key`` wins over what ``key_mapper`` gives; there is no key without either. Other
    ``headers`` go behind the event's; none of them may be one of its.

    ``like`` is the record that the event came from, a client's too (see `Record.of`):
    mode, format, key, header order and foreign headers are taken from it, where the call
    does not say otherwise, so that an event that was not changed gives the same record,
    byte for byte.

    Raises `EncodeError`, and `InvalidEvent` for an SDK's event that breaks rules.
    """
    if type(event) is not Event:
        event = Event.of(event)
    made = None if key is None and key_mapper is None else _key(event, key, key_mapper)
    if like is not None:
        return _like(event, like, mode=mode, format=format, key=made, headers=headers, topic=topic)
    if mode is None or mode == "binary":
        if format is not None:
            raise EncodeError(
                f"binary mode has no event format, but format={format!r} was given; use mode='structured'"
            )
        written, value = binary.encode(event)
    elif mode == "structured":
        written, value = structured.encode(event, "json" if format is None else format)
    else:
        raise no_mode(mode)
    if headers:
        written += foreign(headers)
    return Record(key=made, value=value, headers=written, topic=topic)


def no_mode(mode: object) -> EncodeError:
    """Make the error for what is none of the two content modes."""
    return EncodeError(f"no content mode {mode!r}: it is 'binary' or 'structured'")


def _key(event: Event, key: bytes | str | None, key_mapper: KeyMapper | None) -> bytes | None:
    if key is None and key_mapper is not None:
        key = key_mapper(event)
    try:
        return as_bytes(key)
    except ValueError as error:
        raise EncodeError(f"the key cannot be written: {error}") from None


def check_names(headers: Headers) -> None:
    """Refuse names that cannot be sent: `EncodeError` for no UTF-8 (K-06), `TypeError` for no text."""
    for name, _ in headers:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is a text, not a {type(name).__name__}")
        if not name.isascii() and any("\ud800" <= sign <= "\udfff" for sign in name):
            raise EncodeError(f"header {name!r} has a name that UTF-8 cannot hold (K-06): send it without")


def foreign(headers: HeaderInput) -> Headers:
    """Check and copy headers that a user adds; `EncodeError` for those that are the event's.

    `TypeError` for names that are no texts, and values that are neither text, bytes nor None.
    """
    try:
        added = as_headers(headers)
    except ValueError as error:
        raise EncodeError(f"a header cannot be written: {error}") from None
    check_names(added)
    for name, _ in added:
        folded = name.lower()
        if folded == CONTENT_TYPE or folded.startswith(PREFIX):
            raise EncodeError(
                f"header {name!r} belongs to the event: set the attribute instead "
                f"({'datacontenttype' if folded == CONTENT_TYPE else folded[len(PREFIX) :]})"
            )
    return added


def _like(
    event: Event,
    like: Record | Any,
    *,
    mode: ContentMode | None,
    format: str | None,
    key: bytes | None,
    headers: HeaderInput,
    topic: str | None,
) -> Record:
    try:
        like = in_bytes(Record.of(like))
    except ValueError as error:
        raise EncodeError(f"the record in like cannot be written: {error}") from None
    verdict = sniff(like.headers)
    if mode is None:
        mode = "structured" if verdict.mode == "structured" else "binary"
    if format is None and mode == "structured":
        format = verdict.format
    written = to_record(event, mode=mode, format=format)
    _, wire = held(event)
    if wire is not None and written.value is wire[1] and wire[1] == like.value:
        kept = list(like.headers)  # the very event of that record: its content-type and its ce_ copies too
    else:
        kept = _in_place(written.headers, like.headers, same=mode == verdict.mode)
    return Record(
        key=like.key if key is None else key,
        value=written.value,
        headers=kept + foreign(headers),
        topic=topic,
    )


def _in_place(written: Headers, like: Headers, *, same: bool) -> Headers:
    """Put written headers where their namesakes stood, foreign ones as they stood, new ones last.

    In the same mode, a null header that stands for an absent attribute stays too; so does
    a copy of the content-type that still is one.
    """
    fresh = dict(written)
    copy = (_COPY, fresh.get(CONTENT_TYPE))
    told = {name for name, value in like if value is not None}
    kept: Headers = []
    for name, value in like:
        attribute = binary.attribute_of(name)
        if name in fresh and (value is not None or name not in told):
            new = fresh.pop(name)
            kept.append((name, value if _means_same(attribute, value, new) else new))
        elif attribute is None or (same and value is None) or (name, value) == copy:
            kept.append((name, value))
    return kept + list(fresh.items())


def _means_same(attribute: str | None, received: bytes | None, written: bytes | None) -> bool:
    """Tell that two texts are one Integer: of all types it alone has two texts for a value."""
    zeros = received == b"-0" and written == b"0"
    return zeros and attribute is not None and type_of(attribute) is AttributeType.INTEGER
