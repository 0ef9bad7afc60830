"""The exact path of writing: rows through the library's own converters, in Spark's Python workers.

A row comes as one JSON text and goes as one, as in `exact`.
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
_NOT_OURS: Final = frozenset((*CORE, "data"))
_KINDS: Final = {kind.value: kind for kind in DataKind}
_TYPES: Final = {kind.value: kind for kind in AttributeType}


class Extension(NamedTuple):
    """An entry of the column of extensions: its type is that of its value where none is named."""

    name: str
    value: Any
    type: str | None


class Row(NamedTuple):
    """An event's columns; ``core`` has those attributes that are not null."""

    core: dict[str, Any]
    extensions: list[Extension]
    data: bytes | None
    data_kind: str | None


def encode_batch(rows: pd.Series) -> pd.Series:
    """Encode packed rows, one text each; null stays null."""
    return rows.map(encode_packed, na_action="ignore")


def encode_packed(packed: str) -> str:
    """Encode one row, JSON of its columns and ``format``, to JSON of ``value``, ``headers``, ``error``."""
    fields = json.loads(packed)
    given = fields.pop("extensions", ())
    extensions = [Extension(one["key"], one["value"], one.get("type")) for one in given]
    if fields.pop("garbled"):
        return json.dumps({"error": _error("a text of the row is not valid UTF-8 (core: Type System)")})
    data = fields.pop("data", None)
    format_name, kind = fields.pop("format", None), fields.pop("data_kind", None)
    row = Row(fields, extensions, None if data is None else base64.b64decode(data), kind)
    return json.dumps(encode_row(row, format_name), default=_base64)


def encode_row(row: Row, format_name: str | None) -> dict[str, Any]:
    """Make a record of an event's columns, as ``value`` and ``headers``; or return why not, as ``error``."""
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
    """Make the event that the columns say; raises `InvalidEvent` and `EncodeError`."""
    event = Event(**dict.fromkeys(_REQUIRED, "") | row.core | _attributes(row.extensions), data=row.data)
    kind = _KINDS.get(row.data_kind or DataKind.BYTES.value)
    if kind is None:
        words = ", ".join(_KINDS)
        raise EncodeError(f"data_kind must be one of {words}, or null for bytes, got {row.data_kind!r}")
    if event.payload is None or kind is DataKind.BYTES:
        return event
    if structured or event.datacontenttype is None:  # else the bytes go as they are, whatever they came as
        _check_kind(event.payload, kind, event.datacontenttype)
    attributes, _ = raw_parts(event)
    return unchecked_event(attributes, event.payload, kind)


def _attributes(extensions: list[Extension]) -> dict[str, Any]:
    """Return the extensions by name, each of its type."""
    attributes: dict[str, Any] = {}
    for name, value, kind in extensions:
        if name in _NOT_OURS:
            raise EncodeError(f"extensions has an entry {name!r}, which no extension may be called")
        if name in attributes:
            raise EncodeError(f"extensions has two entries {name!r}")
        attributes[name] = value if kind is None else _typed(name, value, kind)
    return attributes


def _typed(name: str, value: Any, kind: str) -> Any:
    wanted = _TYPES.get(kind)
    if wanted is None:
        words = ", ".join(_TYPES)
        raise EncodeError(f"extension_types must be {words}, or null for text, got {kind!r} for {name}")
    try:
        return parse(wanted, value) if isinstance(value, str) else value
    except ValueError as error:
        raise InvalidEvent([Problem(name, str(error), "T-01", preview(value))]) from None


def _check_kind(payload: bytes, kind: DataKind, content_type: str | None) -> None:
    """Raise `EncodeError` where a payload cannot be what ``data_kind`` says."""
    named = "no datacontenttype" if content_type is None else f"datacontenttype {content_type}"
    if kind is DataKind.PROTO:
        if not is_any(payload):
            raise EncodeError("data_kind is proto, but data is no google.protobuf.Any")
        return
    if (kind is DataKind.JSON) is not implies_json(content_type):
        raise EncodeError(f"data_kind is {kind.value}, which data with {named} cannot be")
    try:
        good = is_json(to_utf8(payload, content_type)) if kind is DataKind.JSON else True
        _ = kind is DataKind.TEXT and decode_text(payload, content_type)
    except DataError as error:
        raise EncodeError(f"data_kind is {kind.value}, but {error}") from None
    if not good:
        raise EncodeError("data_kind is json, but data is not JSON")


def _error(reason: str, attribute: str | None = None, clause: str | None = None) -> dict[str, Any]:
    return {"verdict": "broken-event", "reason": reason, "attribute": attribute, "clause": clause}


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"no JSON for a {type(value).__name__}")
