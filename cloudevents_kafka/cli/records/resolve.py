"""Which record a line of JSON means: the exact one it holds, or the one its event makes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka.binding import ContentMode, Decoded, KeyMapper, decode, extra_headers, to_record
from cloudevents_kafka.cli.records.json_lines import Line, with_json_data
from cloudevents_kafka.codecs.payload import decode_text, implies_json, to_utf8
from cloudevents_kafka.errors import DataError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record

_JSON_EVENT: Final[Headers] = [("content-type", b"application/cloudevents+json")]
_GREATEST: Final = sys.float_info.max


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How records are to be written, where it is not as the line says."""

    mode: ContentMode | None = None
    format: str | None = None
    key: bytes | None = None
    key_mapper: KeyMapper | None = None
    headers: Headers = []


class Meant(msgspec.Struct, frozen=True):
    """The record that a line means; ``event`` is None where it holds none."""

    record: Record
    event: Event | None


def meant(line: Line, wanted: Wanted) -> Meant:
    """Make the record that a line means; raises `EncodeError`, and `InvalidEvent` for its event.

    The exact record goes as it is, unless the line's event says otherwise or another
    mode or format is wanted. A record that is no event has no other form: it always
    goes as it is, but for a key and headers given.
    """
    if not line.exact:
        return record_of(line.event(), line, wanted)
    held = _read(line.record, lenient=False)
    if line.told is not None and not (held is not None and line.tells(held)):
        loose = _read(line.record, lenient=True)
        if not _is_told(line, held, loose):
            return record_of(line.event(), line, wanted)
        held = held or loose
    if held is not None and (wanted.mode or wanted.format):
        return record_of(held, line, wanted)
    return Meant(_with(line.record, held, wanted), held)


def _read(record: Record, *, lenient: bool) -> Event | None:
    item = decode(record, lenient=lenient)
    return item.event if isinstance(item, Decoded) else None


def _is_told(line: Line, *readings: Event | None) -> bool:
    """Tell whether the line's event is one of these: what its record says, read either way."""
    if any(event is not None and line.tells(event) for event in readings):
        return True
    # Leniently: what --lenient let pass in the record stands in the line as well.
    told = _read(Record(value=line.told, headers=_JSON_EVENT), lenient=True)
    if told is None:
        return False
    told = with_json_data(told)
    return any(event is not None and same(event, told) for event in readings)


def record_of(event: Event | None, line: Line, wanted: Wanted) -> Meant:
    """Make the record of an event: like that of its line, else as the line and ``wanted`` say."""
    record = line.record
    if event is None:
        raise EncodeError('the line has neither "event" nor "value" (which is null for a tombstone)')
    mode = wanted.mode or (None if line.exact else _mode(line.mode))
    if wanted.format is not None and mode is None:
        mode = "structured"
    format = wanted.format or (line.format if mode == "structured" and line.format != "" else None)
    if line.exact:
        made = to_record(event, mode=mode, format=format, like=record)
    else:
        made = to_record(event, mode=mode, format=format, key=record.key, headers=record.headers)
    placed = msgspec.structs.replace(
        made, topic=record.topic, partition=record.partition, timestamp=record.timestamp
    )
    return Meant(_with(placed, event, wanted), event)


def _mode(text: str | None) -> ContentMode | None:
    if text is None:
        return None
    if text == "binary":
        return "binary"
    if text == "structured":
        return "structured"
    raise EncodeError(f"no content mode {text!r}: it is 'binary' or 'structured'")


def _with(record: Record, event: Event | None, wanted: Wanted) -> Record:
    """Give a record the key and the headers that are wanted."""
    key = wanted.key
    if key is None and wanted.key_mapper is not None and event is not None:
        mapped = wanted.key_mapper(event)
        key = mapped.encode() if isinstance(mapped, str) else mapped
    if key is None and not wanted.headers:
        return record
    headers = record.headers + extra_headers(wanted.headers)
    return msgspec.structs.replace(record, key=record.key if key is None else key, headers=headers)


# --- is it the same event? -------------------------------------------------------


def same(one: Event, other: Event) -> bool:
    """Tell whether two events say the same, numbers in JSON data taken as doubles."""
    if _texts(one) != _texts(other):
        return False
    if one.payload == other.payload:
        return True
    if one.payload is None or other.payload is None:
        return False
    if one.datacontenttype is None and one.kind != other.kind:
        return False
    return bool(_comparable(one) == _comparable(other))


def _texts(event: Event) -> Mapping[str, str | None]:
    return {name: event.text(name) for name in event}


def _comparable(event: Event) -> Any:
    payload, content_type = event.payload or b"", event.datacontenttype
    try:
        if implies_json(content_type):
            return json.loads(to_utf8(payload, content_type), parse_int=_double, parse_float=_double)
        return decode_text(payload, content_type)
    except (DataError, ValueError, RecursionError):
        return payload


def _double(text: str) -> float:
    """Read a number as jq does: a double, the greatest in place of infinity."""
    return max(-_GREATEST, min(_GREATEST, float(text)))
