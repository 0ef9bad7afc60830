"""Read a record as an event.

`from_record` raises an error for a record that is not a valid event; `decode` returns `Decoded`
or `Undecodable`, so that one bad record does not stop a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NoReturn

import msgspec

from cloudevents_kafka.attributes.extension_checks import Check
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.fast_validation import are_valid_texts
from cloudevents_kafka.attributes.media_type import MediaType, media_type
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.binding._binary import decode_binary, is_misspelled, read_headers
from cloudevents_kafka.binding._corrections import corrections
from cloudevents_kafka.binding._headers import CONTENT_TYPE
from cloudevents_kafka.binding._lenient import read_lenient, read_misspelled, read_texts
from cloudevents_kafka.binding._lenient_json import Found, read_marked_json, read_unmarked_json
from cloudevents_kafka.binding._sniffer import Mode, Verdict, decode_error, sniff
from cloudevents_kafka.binding._structured import check_content_type, decode_structured
from cloudevents_kafka.errors import BrokenEvent, DecodeError, InvalidEvent, Problem
from cloudevents_kafka.event import DataT_co, Event, unchecked_event
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember
from cloudevents_kafka.record import Headers, Record, RecordInput, with_bytes_headers

_FEWEST: Final = len(REQUIRED)  # the number of attributes that an event in binary mode has at least


class _EventTypes(dict[bytes, MediaType | None]):
    """The media types in content-type headers, and None unless they start like that of CloudEvents."""

    def __missing__(self, value: bytes) -> MediaType | None:
        media = _structured_type([(CONTENT_TYPE, value)])
        return remember(self, value, media) if len(value) <= MAX_KEY_LENGTH else media


_event_types: Final = _EventTypes()


class Decoded(msgspec.Struct, Generic[DataT_co], frozen=True):
    """A record that is an event; ``tolerated`` are the problems that lenient reading accepted.

    Examples:
        >>> from cloudevents_kafka import Decoded, Event, decode, to_record
        >>> item = decode(to_record(Event(id="1", source="/shop", type="order.placed"), key="customer-4"))
        >>> if isinstance(item, Decoded):
        ...     print(item.event.type, item.record.key)
        order.placed b'customer-4'
    """

    event: Event[DataT_co]
    record: Record
    tolerated: tuple[Problem, ...] = ()


class Undecodable(msgspec.Struct, frozen=True):
    """A record that is not a valid event, and the reason.

    Examples:
        >>> from cloudevents_kafka import Record, Undecodable, decode
        >>> item = decode(Record(value=b"17", topic="orders", partition=2, offset=1741))
        >>> if isinstance(item, Undecodable):
        ...     print(item.error.verdict, item.record.where)
        not-an-event orders[2]@1741
    """

    error: DecodeError
    record: Record


def from_record(record: RecordInput, *, lenient: bool = False) -> Event:
    """Return the event of a record, in either content mode and any known event format.

    The record may be a client's: see `Record.of`. ``lenient`` accepts deviations of known
    producers; `decode` lists them. Raises `NotAnEvent`, `BrokenEvent`, `UnsupportedFormat` or
    `UnsupportedBatch`, which have the record, if it is not a valid event, and no other error
    for any bytes.

    Examples:
        >>> from cloudevents_kafka import Record, from_record
        >>> headers = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/"), ("ce_type", b"t")]
        >>> from_record(Record(value=b"17", headers=headers))
        Event(id='1', source='/', type='t', data=<2 bytes>)
    """
    if type(record) is not Record:
        record = Record.of(record)
    if lenient:
        return _read_lenient(record)[0]
    try:
        return _read_valid(record) or _read_slow(record)
    except InvalidEvent as error:
        raise _broken(error, record) from error.__cause__


def _broken(error: InvalidEvent, record: Record) -> BrokenEvent:
    return BrokenEvent(error.problems, with_bytes_headers(record))


def decode(record: RecordInput, *, lenient: bool = False) -> Decoded | Undecodable:
    """Return the event that `from_record` returns for a record, or the error that it raises.

    The record may be a client's, such as a confluent-kafka ``Message``; the result has it as a
    `Record`. Raises `TypeError` or `ValueError` if the object is not a record, as
    `Record.of` does.

    Examples:
        >>> from cloudevents_kafka import Decoded, decode
        >>> item = decode({"value": b"17", "topic": "orders", "partition": 2, "offset": 1741})
        >>> item.event if isinstance(item, Decoded) else item.error.verdict
        'not-an-event'
    """
    if type(record) is not Record:
        record = Record.of(record)
    try:
        if lenient:
            event, tolerated = _read_lenient(record)
            return Decoded(event, record, tolerated)
        return Decoded(_read_valid(record) or _read_slow(record), record)
    except DecodeError as error:
        return Undecodable(error, record)
    except InvalidEvent as error:
        broken = _broken(error, record)
        broken.__cause__ = error.__cause__
        return Undecodable(broken, record)


def _read_valid(record: Record) -> Event | None:
    """Return the event of a record, or None if it is not an event or `_read_slow` finds its problems.

    Raises `InvalidEvent` for a structured event that breaks rules. One pass over the headers
    finds the attributes, and these show the mode.
    """
    headers = record.headers
    match headers:  # faster than len()
        case [header]:  # as most records of structured mode have
            name, text = header
            if name == CONTENT_TYPE and type(text) is bytes and (media := _event_types[text]) is not None:
                return decode_structured(record.value, media)
    found = read_headers(headers, current.table)
    if found is None:
        media = _structured_type(headers)  # whose other headers do not affect the event (K-17)
        return None if media is None else decode_structured(record.value, media)
    attributes, checks = found
    valid_type = False
    if "datacontenttype" in attributes:
        media = media_type(attributes["datacontenttype"])
        if media.cloudevents:  # K-09: "prefixed with the CloudEvents media type"
            return decode_structured(record.value, media)
        valid_type = media.valid
    if not are_valid_texts(attributes, "".join(attributes.values()), False, valid_type):
        return None
    if checks is not None and not _keep_rules(attributes, checks):
        return None
    return unchecked_event(attributes, record.value)


def _keep_rules(attributes: dict[str, Any], checks: list[Check]) -> bool:
    """Return whether the attributes that have checks keep their rules; texts of known types become values."""
    for check in checks:  # noqa: SIM110  # a generator would take longer
        if not check(attributes):
            return False
    return True


def _structured_type(headers: Headers) -> MediaType | None:
    """Return the media type in the only content-type header if it is prefixed with that of CloudEvents."""
    values = [value for name, value in headers if name == CONTENT_TYPE and value is not None]
    try:
        media = media_type(values[0].decode()) if len(values) == 1 else None
    except (AttributeError, UnicodeDecodeError):  # the value is not bytes, or not UTF-8
        return None
    return media if media is not None and media.cloudevents else None


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


def _read_lenient(record: Record) -> Found:
    """Return the event of a record and the problems that lenient reading accepts.

    A valid event is read as by `_read_valid`.
    """
    attributes = media = None
    if not corrections.names:
        headers = record.headers
        match headers:  # as in `_read_valid`
            case [header]:
                name, text = header
                if name == CONTENT_TYPE and type(text) is bytes and (media := _event_types[text]) is not None:
                    read = read_marked_json(record.value, media)
                    return read or _read_deviating(record, {"datacontenttype": text.decode()}, media)
        found = read_headers(headers, current.table)
        if found is not None and (found[1] is None or is_misspelled not in found[1]):
            attributes, checks = found
            valid_type = False
            if "datacontenttype" in attributes:
                media = media_type(attributes["datacontenttype"])
                valid_type = media.valid
            if len(attributes) < _FEWEST or (media is not None and media.cloudevents):
                read = _read_json(record, attributes, media)
                if read is not None:
                    return read
            elif (
                not corrections.values
                and are_valid_texts(attributes, "".join(attributes.values()), False, valid_type)
                and (checks is None or _keep_rules(attributes, checks))
            ):
                return unchecked_event(attributes, record.value), ()
    return _read_deviating(record, attributes, media)


def _read_json(record: Record, attributes: dict[str, Any], media: MediaType | None) -> Found | None:
    """Return the event in JSON, also without its content-type, and the accepted problems, or None."""
    if media is not None and media.cloudevents:
        return read_marked_json(record.value, media)
    found = read_unmarked_json(record.value, attributes.get("datacontenttype"))
    if found is not None and len(attributes) != len(record.headers):
        with_bytes_headers(record)  # raises an error for a header of another type
    return found


def _read_deviating(record: Record, attributes: dict[str, Any] | None, media: MediaType | None) -> Found:
    """Return the same for a record that is not valid, with the attributes in its headers if these are."""
    try:
        found = read_misspelled(record) if attributes is None else read_texts(record.value, attributes, media)
        if found is not None:
            if attributes is None or len(attributes) != len(record.headers):
                with_bytes_headers(record)  # raises an error for a header of another type
            return found
        record = with_bytes_headers(record)
        return read_lenient(record, _read_valid)
    except InvalidEvent as error:
        raise _broken(error, record) from error.__cause__
