"""Finds the record to send for a JSON line: the line's record, or the record of an edited event."""

from __future__ import annotations

import json
import sys
from decimal import Decimal, DecimalException
from typing import Any, Final, cast

import msgspec

from cloudevents_kafka.binding import ContentMode, Decoded, KeyMapper, decode, extra_headers, to_record
from cloudevents_kafka.cli.records.json_lines import JsonLine, restore_json_data
from cloudevents_kafka.codecs.payload import decode_text, implies_json, to_utf8
from cloudevents_kafka.errors import DataError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record

_JSON_EVENT: Final[Headers] = [("content-type", b"application/cloudevents+json")]
_MAX_DOUBLE: Final = sys.float_info.max


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command that override the content of a JSON line."""

    mode: ContentMode | None = None
    format: str | None = None
    key: bytes | None = None
    key_mapper: KeyMapper | None = None
    headers: Headers = []


def resolve_line(line: JsonLine, overrides: Overrides) -> Record:
    """Return the record that is sent for a JSON line.

    The event in the line is encoded in three cases: the line does not contain an exact record; the event was
    edited; or an option requests another mode or format. In all other cases, the result is the exact record,
    with the key and the additional headers of ``overrides``. If the record is not an event, only the key and
    the headers can be overridden. Raises `EncodeError` if the event cannot be encoded, and `InvalidEvent` if
    the line's event breaks a rule.
    """
    if not line.exact:
        return encode_event(line.event(), line, overrides)
    event = _decode_event(line.record, lenient=False)
    if line.event_text is not None and not (event is not None and line.has_text_of(event)):
        lenient_event = _decode_event(line.record, lenient=True)
        if _was_edited(line, event, lenient_event):
            return encode_event(line.event(), line, overrides)
        event = event or lenient_event
    if event is not None and (overrides.mode or overrides.format):
        return encode_event(event, line, overrides)
    return _apply_overrides(line.record, event, overrides)


def _decode_event(record: Record, *, lenient: bool) -> Event | None:
    item = decode(record, lenient=lenient)
    return item.event if isinstance(item, Decoded) else None


def _was_edited(line: JsonLine, *decoded: Event | None) -> bool:
    """Return whether a line's event differs from both strict and lenient reading of its record."""
    if any(event is not None and line.has_text_of(event) for event in decoded):
        return False
    # Lenient: problems that --lenient tolerated in the record are in the line's event, too.
    in_line = _decode_event(Record(value=line.event_text, headers=_JSON_EVENT), lenient=True)
    if in_line is None:
        return True
    in_line = restore_json_data(in_line)
    return not any(event is not None and _equal_events(event, in_line) for event in decoded)


def encode_event(event: Event | None, line: JsonLine, overrides: Overrides) -> Record:
    """Return the record of an event.

    It is encoded like the record of the line, unless ``overrides`` says otherwise.
    """
    record = line.record
    if event is None:
        # K-07: null is an event "with no data", too, so a missing value is not read as null.
        raise EncodeError('the line must have "event" or "value" (null for a tombstone)')
    mode = overrides.mode
    if mode is None and not line.exact:
        mode = cast("ContentMode | None", line.mode)  # to_record checks it
    if overrides.format is not None and mode is None:
        mode = "structured"
    format = overrides.format or (line.format if mode == "structured" and line.format != "" else None)
    if line.exact:
        encoded = to_record(event, mode=mode, format=format, like=record)
    else:
        encoded = to_record(event, mode=mode, format=format, key=record.key, headers=record.headers)
    placed = msgspec.structs.replace(
        encoded, topic=record.topic, partition=record.partition, timestamp=record.timestamp
    )
    return _apply_overrides(placed, event, overrides)


def _apply_overrides(record: Record, event: Event | None, overrides: Overrides) -> Record:
    """Return a record with the key and the additional headers of ``overrides``."""
    key = overrides.key
    if key is None and overrides.key_mapper is not None and event is not None:
        mapped = overrides.key_mapper(event)  # K-14: the mapper "MUST NOT modify the CloudEvent"
        key = mapped.encode() if isinstance(mapped, str) else mapped
    if key is None and not overrides.headers:
        return record
    headers = record.headers + extra_headers(overrides.headers)
    return msgspec.structs.replace(record, key=record.key if key is None else key, headers=headers)


# --- comparing events ----------------------------------------------------------


def _equal_events(first: Event, second: Event) -> bool:
    """Return whether a tool may have written ``second`` for ``first``, by converting numbers to doubles."""
    if _comparable_attributes(first) != _comparable_attributes(second):
        return False
    if first.payload is None or second.payload is None or first.payload == second.payload:
        return first.payload == second.payload
    if first.datacontenttype is None and first.kind != second.kind:
        return False
    return bool(_comparable_data(first) == _comparable_data(second))


def _comparable_attributes(event: Event) -> dict[str, tuple[str | None, bool]]:
    """Return the text of each attribute, and whether the attribute is an Integer or a Boolean.

    In JSON, all other types are strings.
    """
    return {name: (event.text(name), isinstance(event[name], int)) for name in event}


def _comparable_data(event: Event) -> Any:
    payload, content_type = event.payload or b"", event.datacontenttype
    try:
        if implies_json(content_type):
            return json.loads(to_utf8(payload, content_type), parse_int=_Number, parse_float=_Number)
        return decode_text(payload, content_type)
    except (DataError, ValueError, RecursionError):
        return payload


class _Number:
    """A JSON number, which equals the numbers that a tool such as jq may write for it.

    Such a tool converts the number to a double. The largest double replaces infinity. The tool writes the
    double with the fewest digits, with 17 digits, or with all digits. Therefore, if two numbers are the same
    double, but the second number is none of these texts, the two numbers differ.
    """

    __hash__ = None  # type: ignore[assignment]  # equality is not symmetric

    def __init__(self, text: str) -> None:
        double = max(-_MAX_DOUBLE, min(_MAX_DOUBLE, float(text)))
        self._value = _exact(text)
        self._written = (self._value, Decimal(repr(double)), Decimal(f"{double:.17g}"), Decimal(double))

    def __eq__(self, other: object) -> bool:
        """Return whether a tool may write the number ``other`` for this number."""
        return isinstance(other, _Number) and other._value in self._written


def _exact(text: str) -> Decimal | str:
    """Return the value of a JSON number, or its text if its exponent is too large for a Decimal."""
    try:
        return Decimal(text)
    except DecimalException:
        return text
