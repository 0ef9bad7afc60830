"""Encode rows in Spark's Python workers, by `to_record`.

A row arrives as one JSON text, and its record leaves as one, as in `decode`.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final, NamedTuple

import pandas as pd  # type: ignore[import-untyped]  # published without types

from cloudevents_kafka.attributes.types import CORE, AttributeType, parse
from cloudevents_kafka.binding import to_record
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import DataKind, decode_text, implies_json, to_utf8
from cloudevents_kafka.errors import DataError, EncodeError, InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats.protobuf_decoder import is_any

_REQUIRED: Final = ("id", "source", "type")
_NOT_EXTENSIONS: Final = frozenset((*CORE, "data"))
_KINDS: Final = {kind.value: kind for kind in DataKind}
_TYPES: Final = {kind.value: kind for kind in AttributeType}


class Extension(NamedTuple):
    """An entry of the column of extensions; without a type, it has the type of its value."""

    name: str
    value: Any
    type: str | None


class Row(NamedTuple):
    """The columns of an event; ``core`` has the attributes that are not null."""

    core: dict[str, Any]
    extensions: list[Extension]
    data: bytes | None
    data_kind: str | None


def encode_batch(rows: pd.Series) -> pd.Series:
    """Return the JSON of records for packed rows; null for null."""
    return rows.map(encode_packed, na_action="ignore")


def encode_packed(packed: str) -> str:
    """Return JSON of ``value``, ``headers`` and ``error`` for a row, JSON of its columns and ``format``."""
    fields = json.loads(packed)
    entries = fields.pop("extensions", ())
    extensions = [Extension(entry["key"], entry["value"], entry.get("type")) for entry in entries]
    if fields.pop("garbled"):
        return json.dumps({"error": _error("a text of the row is not valid UTF-8 (core: Type System)")})
    data = fields.pop("data", None)
    format_name, kind = fields.pop("format", None), fields.pop("data_kind", None)
    row = Row(fields, extensions, None if data is None else base64.b64decode(data), kind)
    return json.dumps(encode_row(row, format_name), default=_base64)


def encode_row(row: Row, format_name: str | None) -> dict[str, Any]:
    """Return the ``value`` and ``headers`` of a row's record, or its ``error``."""
    try:
        event = _event_of(row, structured=format_name is not None)
        record = to_record(event, mode="structured" if format_name else "binary", format=format_name)
    except InvalidEvent as error:
        problem = error.problems[0]
        return {"error": _error(str(error), problem.attribute, problem.clause)}
    except EncodeError as error:
        return {"error": _error(str(error))}
    return {
        "value": record.value,
        "headers": [{"key": name, "value": value} for name, value in record.headers],
    }


def _event_of(row: Row, *, structured: bool) -> Event:
    """Return the event of a row; raise `InvalidEvent` or `EncodeError`."""
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
    """Return the extensions by name, converted to their types."""
    attributes: dict[str, Any] = {}
    for name, value, kind in extensions:
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
    """Raise `EncodeError` if a payload is not of the kind in ``data_kind``."""
    described = "no datacontenttype" if content_type is None else f"datacontenttype {content_type}"
    if kind is DataKind.PROTO:
        if not is_any(payload):
            raise EncodeError("data_kind is proto, but data is not a google.protobuf.Any")
        return
    if (kind is DataKind.JSON) is not implies_json(content_type):
        raise EncodeError(f"data_kind is {kind.value}, which data with {described} cannot be")
    try:
        valid = is_json(to_utf8(payload, content_type)) if kind is DataKind.JSON else True
        _ = kind is DataKind.TEXT and decode_text(payload, content_type)
    except DataError as error:
        raise EncodeError(f"data_kind is {kind.value}, but {error}") from None
    if not valid:
        raise EncodeError("data_kind is json, but data is not JSON")


def _error(reason: str, attribute: str | None = None, clause: str | None = None) -> dict[str, Any]:
    return {"verdict": "broken-event", "reason": reason, "attribute": attribute, "clause": clause}


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"value must be bytes, got {type(value).__name__}")
