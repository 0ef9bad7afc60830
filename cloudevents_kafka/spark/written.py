"""The exact path of writing: rows through the library's own converters, in Spark's Python workers.

A row comes as one JSON text and goes as one, as in `exact`.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # published without types

from cloudevents_kafka.convert import to_record
from cloudevents_kafka.errors import EncodeError, InvalidEvent
from cloudevents_kafka.event import Event


def encode_batch(rows: pd.Series) -> pd.Series:
    """Encode packed rows, one text each; null stays null."""
    return rows.map(encode_packed, na_action="ignore")


def encode_packed(packed: str) -> str:
    """Encode one row, JSON of its columns and ``format``, to JSON of ``value``, ``headers``, ``error``."""
    fields = json.loads(packed)
    format_name = fields.pop("format", None)
    return json.dumps(encode_fields(fields, format_name))


def encode_fields(fields: dict[str, Any], format_name: str | None) -> dict[str, Any]:
    """Make a record of an event's columns, bytes as base64; or say why there is none."""
    data = fields.pop("data", None)
    payload = None if data is None else base64.b64decode(data)
    extensions = fields.pop("extensions", None) or {}
    clashing = [name for name in extensions if name in fields or name == "data"]
    if clashing:
        return {"error": _error(f"extensions hold {', '.join(clashing)}, which no extension may be called")}
    given = {name: fields.get(name, "") for name in ("id", "source", "type")} | fields | extensions
    try:
        event = Event(**given, data=payload)
        record = to_record(event, mode="structured" if format_name else "binary", format=format_name)
    except InvalidEvent as error:
        problem = error.problems[0]
        return {"error": _error(str(error), problem.attribute, problem.clause)}
    except EncodeError as error:
        return {"error": _error(str(error))}
    headers = [{"key": name, "value": _base64(value)} for name, value in record.headers]
    return {"value": _base64(record.value), "headers": headers}


def _error(reason: str, attribute: str | None = None, clause: str | None = None) -> dict[str, Any]:
    return {"verdict": "broken-event", "reason": reason, "attribute": attribute, "clause": clause}


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
