"""Decode records in Spark's Python workers, by `decode`.

A record arrives as one JSON text, and its event leaves as one; both are null for a row that Java has
read. A text column of nulls costs almost nothing on its way to Python and back; a struct column
would cost the sum of its fields for every row.
"""

from __future__ import annotations

import base64
import json
import sys
import zipimport
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # published without types

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.timestamps import to_datetime
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.attributes.validation import native_type
from cloudevents_kafka.binding import Decoded, Undecodable, decode, sniff
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import DecodeError
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.primitives.epoch import EPOCH, MICROSECOND
from cloudevents_kafka.record import Headers, Record


def decode_batch(records: pd.Series) -> pd.Series:  # PySpark reads these types
    """Return the JSON of decoded events for packed records; null for null."""
    _speed_up_next_task()
    if not records.notna().any():
        return records
    return records.map(decode_packed, na_action="ignore")


def decode_packed(packed: str) -> str:
    """Return JSON of `wire_schema` for a record, JSON ``{"value": base64, "headers": [...]}``."""
    record = json.loads(packed)
    decoded = decode(Record(value=_bytes(record.get("value")), headers=_headers(record.get("headers"))))
    return json.dumps(result_fields(decoded), default=_base64)


def _headers(headers: list[dict[str, str | None] | None] | None) -> Headers:
    """Return the headers that are not null and have a name: Kafka has no others."""
    named = ((header.get("key"), header.get("value")) for header in headers or () if header is not None)
    return [(name, _bytes(value)) for name, value in named if name is not None]


def result_fields(decoded: Decoded | Undecodable) -> dict[str, Any]:
    """Return the fields of `event_schema` that are not null; ``time`` is in microseconds since the epoch."""
    if isinstance(decoded, Undecodable):
        return {"error": _error_fields(decoded.error)}
    fields = event_fields(decoded.event)
    fields["mode"] = sniff(decoded.record.headers).mode
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
    """Return the types of those extensions whose texts alone would be read as another type."""
    attributes, _ = raw_parts(event)
    typed = {name: native_type(value) for name, value in attributes.items() if type(value) is not str}
    return {name: kind.value for name, kind in typed.items() if type_of(name) is not kind}


def _error_fields(error: DecodeError) -> dict[str, Any]:
    fields: dict[str, Any] = {"verdict": error.verdict, "reason": error.reason}
    if error.problems:
        fields |= {"attribute": error.problems[0].attribute, "clause": error.problems[0].clause}
    return fields


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"value must be bytes, got {type(value).__name__}")


def _speed_up_next_task() -> None:
    """Save the next task of this worker about 0.2 s.

    PySpark calls `importlib.invalidate_caches` before each task, which reads the directory of
    pyspark.zip once for every package in it. Finders that are not cached need no refresh; an
    import creates them again.
    """
    cache = sys.path_importer_cache
    for path in [path for path, finder in cache.items() if isinstance(finder, zipimport.zipimporter)]:
        del cache[path]
