"""The functions that Spark's Python workers run; the functions call the library's own converters.

A row arrives at the worker as one JSON text, and the result for the row is returned as one JSON text. Both
JSON texts are null for a row that does not need Python. Spark can send a text column of nulls to Python and
back at almost no cost. In a struct column, each null would cost as much as all fields of the struct. This
module imports neither PySpark nor a Kafka client.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pandas as pd  # type: ignore[import-untyped]  # published without types

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.timestamps import to_datetime
from cloudevents_kafka.attributes.types import CORE, AttributeType, parse
from cloudevents_kafka.attributes.validation import native_type
from cloudevents_kafka.binding import Undecodable, decode, to_record
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import DataKind, decode_text, implies_json, to_utf8
from cloudevents_kafka.errors import DataError, EncodeError, InvalidEvent, LeftOut, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats.protobuf_decoder import is_any
from cloudevents_kafka.primitives.epoch import EPOCH, MICROSECOND
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.record import Record, with_bytes_headers
from cloudevents_kafka.spark._names import MAX_NAME

_REQUIRED: Final = ("id", "source", "type")
_NOT_EXTENSIONS: Final = frozenset((*CORE, "data"))
_KINDS: Final = {kind.value: kind for kind in DataKind}
_LONGEST_REASON: Final = 500  # characters of an error of a user's function
_TYPES: Final = {kind.value: kind for kind in AttributeType}


# --- decode ---


class Header(msgspec.Struct):
    """A header of a Kafka record."""

    key: str | None = None
    value: bytes | None = None


class PackedRecord(msgspec.Struct):
    """A Kafka record; in the JSON of the record, bytes are written in base64."""

    value: bytes | None = None
    headers: list[Header | None] | None = None


def decode_batch(records: pd.Series) -> pd.Series:  # PySpark reads these types
    """Decode records in JSON of `PackedRecord`, and return events in JSON; the result for null is null."""
    return records.map(decode_packed, na_action="ignore")


def decode_batch_leniently(records: pd.Series) -> pd.Series:
    """Return the same results as `decode_batch`, but accept deviations of known producers."""
    return records.map(functools.partial(decode_packed, lenient=True), na_action="ignore")


def decode_packed(packed: str, *, lenient: bool = False) -> str:
    """Decode the JSON of a `PackedRecord`, and return the result as JSON of a `wire_schema`."""
    record = msgspec.json.decode(packed, type=PackedRecord)
    return msgspec.json.encode(result_fields(record, lenient=lenient)).decode()


def result_fields(record: PackedRecord, *, lenient: bool = False) -> dict[str, Any]:
    """Return the fields of `event_schema` that are not null; ``time`` is in microseconds since the epoch."""
    # In Kafka, a header is never null and always has a name.
    headers = [(pair.key, pair.value) for pair in record.headers or () if pair and pair.key is not None]
    decoded = decode(Record(value=record.value, headers=headers), lenient=lenient)
    if isinstance(decoded, Undecodable):
        error = decoded.error
        return {"error": _error_fields(error.verdict, error.reason, next(iter(error.problems), None))}
    fields = event_fields(decoded.event)
    if (longest := max(map(len, fields["extensions"]), default=0)) > MAX_NAME:
        rule = f"the name of an extension must have at most {MAX_NAME:,} characters in Spark"
        return {"error": _error_fields("broken-event", f"{rule}, got {longest:,}")}
    if decoded.tolerated:
        fields["tolerated"] = [_tolerated_fields(problem) for problem in decoded.tolerated]
    return {**fields, "mode": decoded.mode}


def _tolerated_fields(problem: Problem) -> dict[str, Any]:
    fields: dict[str, Any] = {"attribute": problem.attribute, "rule": problem.rule, "clause": problem.clause}
    if isinstance(problem, LeftOut) and problem.value is not None:
        fields["value" if isinstance(problem.value, str) else "value_bytes"] = problem.value
    return fields


def event_fields(event: Event) -> dict[str, Any]:
    """Return the fields of an event, by their names in `event_schema`."""
    texts = {name: event.text(name) for name in event}
    types = _extension_types(event)
    fields: dict[str, Any] = {name: texts.pop(name) for name in CORE if name in texts}
    if (time := fields.pop("time", None)) is not None:
        fields |= {"time_text": time, "time": (to_datetime(time) - EPOCH) // MICROSECOND}
    if types:
        fields["extension_types"] = types
    if event.kind is not DataKind.BYTES:
        fields["data_kind"] = event.kind.value
    return fields | {"extensions": texts, "data": event.payload}


def _extension_types(event: Event) -> dict[str, str]:
    """Return the types of those extensions whose texts would be read as values of another type."""
    attributes, _ = raw_parts(event)
    typed = {name: native_type(value) for name, value in attributes.items() if type(value) is not str}
    return {name: kind.value for name, kind in typed.items() if type_of(name) is not kind}


# --- read quarantined records again ---


class _QuarantinedRecord(PackedRecord):
    key: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


Mend = Callable[[Record], Record | None]
"""A function that repairs a record, or returns None for a record that it cannot repair."""


def reread_batch(mend: Mend | None, *, lenient: bool) -> Callable[[pd.Series], pd.Series]:
    """Return a function that receives quarantined records in JSON, and returns their new outcomes in JSON."""

    def reread(records: pd.Series) -> pd.Series:
        return records.map(functools.partial(reread_packed, mend=mend, lenient=lenient), na_action="ignore")

    return reread


def reread_packed(packed: str, mend: Mend | None, *, lenient: bool) -> str:
    """Repair a record with the function ``mend``, read the repaired record, and return the result as JSON.

    The JSON result contains the outcome, and the event or the error. For an event, the JSON result also
    contains the ``key`` and the ``headers`` of the repaired record. The outcome is ``landed`` for an event,
    ``refused`` if the record is still not an event, ``unmended`` if the function ``mend`` returned None, and
    ``failed`` if ``mend`` raised an error. If the outcome is ``failed``, the reason in the result is the text
    of the error that ``mend`` raised.
    """
    row = msgspec.json.decode(packed, type=_QuarantinedRecord)
    headers = [(pair.key, pair.value) for pair in row.headers or () if pair and pair.key is not None]
    names = ("key", "value", "topic", "partition", "offset", "timestamp")
    record = Record(headers=headers, **{name: getattr(row, name) for name in names})
    if mend is None:
        return _reread(record, lenient=lenient)
    try:
        mended = mend(record)
        if mended is None:
            return '{"outcome":"unmended"}'
        if not isinstance(mended, Record):
            raise TypeError(f"the function mend must return a Record or None, got {type(mended).__name__}")  # noqa: TRY301  # one place handles all errors
        return _reread(with_bytes_headers(mended), lenient=lenient)
    except Exception as error:  # noqa: BLE001  # of the user's function, for this record only
        text = f"{type(error).__name__}: {error}"[:_LONGEST_REASON].encode(errors="replace").decode()
        return msgspec.json.encode(
            {"outcome": "failed", "event": {"error": _error_fields("mend", text)}}
        ).decode()


def _reread(record: Record, *, lenient: bool) -> str:
    headers = [Header(name, value) for name, value in record.headers]
    fields = result_fields(PackedRecord(record.value, list(headers)), lenient=lenient)
    found: dict[str, Any] = {"outcome": "refused" if "error" in fields else "landed", "event": fields}
    if "error" not in fields:
        found |= {"key": record.key, "headers": headers}
    return msgspec.json.encode(found).decode()


# --- encode ---


class Extension(msgspec.Struct):
    """An entry of the column ``extensions``; without ``type``, the extension has the type of its value."""

    key: str
    value: Any
    type: str | None = None


class Row(msgspec.Struct):
    """The columns of an event; ``core`` contains the attributes that are not null."""

    core: dict[str, Any]
    extensions: list[Extension]
    data: bytes | None = None
    data_kind: str | None = None


class PackedRow(Row):
    """A row, with the event format in which its record is written.

    ``format`` is None if the record is written in binary mode. In the JSON of a `PackedRow`, the data of the
    event is in base64.
    """

    format: str | None = None
    has_invalid_utf8: bool = False


def encode_batch(rows: pd.Series) -> pd.Series:
    """Encode rows in JSON of `PackedRow`, and return records in JSON; the result for null is null."""
    return rows.map(encode_packed, na_action="ignore")


def encode_packed(packed: str) -> str:
    """Encode the event in the JSON of a `PackedRow`, and return the record as JSON of a `record_schema`."""
    row = msgspec.json.decode(packed, type=PackedRow)
    if row.has_invalid_utf8:
        reason = "a text of the row is not valid UTF-8 (core: Type System)"
        return msgspec.json.encode({"error": _error_fields("broken-event", reason)}).decode()
    return msgspec.json.encode(encode_row(row, row.format)).decode()


def encode_row(row: Row, format_name: str | None) -> dict[str, Any]:
    """Return the ``value`` and ``headers`` of the record for a row, or an ``error``."""
    try:
        event = _event_of(row, structured=format_name is not None)
        record = to_record(event, mode="structured" if format_name else "binary", format=format_name)
    except InvalidEvent as error:
        return {"error": _error_fields("broken-event", str(error), error.problems[0])}
    except EncodeError as error:
        return {"error": _error_fields("broken-event", str(error))}
    return {
        "value": record.value,
        "headers": [{"key": name, "value": value} for name, value in record.headers],
    }


def _event_of(row: Row, *, structured: bool) -> Event:
    """Return the event in a row; raise `InvalidEvent` or `EncodeError` if the row is not a valid event."""
    event = Event(**dict.fromkeys(_REQUIRED, "") | row.core | _attributes(row.extensions), data=row.data)
    kind = _KINDS.get(row.data_kind or DataKind.BYTES.value)
    if kind is None:
        words = ", ".join(_KINDS)
        raise EncodeError(f"data_kind must be one of {words}, or null for bytes, got {row.data_kind!r}")
    if event.payload is None or kind is DataKind.BYTES:
        return event
    if structured or event.datacontenttype is None:  # otherwise the bytes are written unchanged
        _check_kind(event.payload, kind, event.datacontenttype)
    attributes, _ = raw_parts(event)
    return unchecked_event(attributes, event.payload, kind)


def _attributes(extensions: list[Extension]) -> dict[str, Any]:
    """Return the extensions in a row by their names, converted to their types."""
    attributes: dict[str, Any] = {}
    for extension in extensions:
        name, value, kind = extension.key, extension.value, extension.type
        if name in _NOT_EXTENSIONS:
            raise EncodeError(f"the name of an extension must not be {name!r}")
        if name in attributes:
            raise EncodeError(f"extensions must have each name once, got {name!r} twice")
        attributes[name] = value if kind is None else _typed(name, value, kind)
    return attributes


def _typed(name: str, value: Any, kind: str) -> Any:
    type_ = _TYPES.get(kind)
    if type_ is None:
        words = ", ".join(_TYPES)
        raise EncodeError(f"extension_types must be {words}, or null for text, got {kind!r} for {name}")
    try:
        return parse(type_, value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidEvent([Problem(name, str(error), "T-01", preview(value))]) from None


def _check_kind(payload: bytes, kind: DataKind, content_type: str | None) -> None:
    """Raise `EncodeError` if the data of an event is not of the kind in ``data_kind``."""
    described = "no datacontenttype" if content_type is None else f"datacontenttype {content_type}"
    if kind is DataKind.PROTO:
        if not is_any(payload):
            raise EncodeError("data must be a google.protobuf.Any if data_kind is proto")
        return
    if (kind is DataKind.JSON) is not implies_json(content_type):
        raise EncodeError(f"data_kind must match the content type, got {kind.value} with {described}")
    try:
        valid = is_json(to_utf8(payload, content_type)) if kind is DataKind.JSON else True
        _ = kind is DataKind.TEXT and decode_text(payload, content_type)
    except DataError as error:
        raise EncodeError(f"data must be of its data_kind {kind.value}: {error}") from None
    if not valid:
        raise EncodeError("data must be JSON if data_kind is json")


def _error_fields(verdict: str, reason: str, problem: Problem | None = None) -> dict[str, Any]:
    attribute, clause = (problem.attribute, problem.clause) if problem else (None, None)
    return {"verdict": verdict, "reason": reason, "attribute": attribute, "clause": clause}
