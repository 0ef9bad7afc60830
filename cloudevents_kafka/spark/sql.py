"""Functions for SQL users: records to events, and events to records, by the library's converters."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.sql.types import BinaryType, StructField, StructType

from cloudevents_kafka import formats
from cloudevents_kafka.convert import decode
from cloudevents_kafka.record import Record
from cloudevents_kafka.spark.encode import HEADERS
from cloudevents_kafka.spark.exact import fields_of
from cloudevents_kafka.spark.schema import error_schema, event_schema
from cloudevents_kafka.spark.workers import informed
from cloudevents_kafka.spark.written import encode_fields
from cloudevents_kafka.timestamps import from_datetime

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_MODES: Final[Mapping[str, str | None]] = {"binary": None, "structured": "json"}


def register(spark: SparkSession) -> None:
    """Register ``ce_decode`` and ``ce_encode`` with a session.

    ``ce_decode(value, headers)`` gives the struct of `event_schema`: an event, or its
    ``error``. ``ce_encode(event, mode)`` takes such a struct, or one with fewer fields,
    and ``'binary'``, ``'structured'``, or the name of an event format; it gives a struct
    of ``value``, ``headers`` and ``error``, where ``error`` is null if all went well.
    Each row goes through Python: for many rows, `decode_events` and `encode_events` are
    faster by far.
    """
    record = StructType(
        [
            StructField("value", BinaryType()),
            StructField("headers", HEADERS),
            StructField("error", error_schema()),
        ]
    )
    functions: tuple[tuple[str, Callable[..., Any], StructType], ...] = (
        ("ce_decode", _decode, event_schema()),
        ("ce_encode", _encode, record),
    )
    for name, function, type_ in functions:
        spark.udf.register(name, F.udf(informed(function), type_))


def _decode(value: bytes | None, headers: list[Any] | None) -> dict[str, Any]:
    pairs = [(header["key"], _as_bytes(header["value"])) for header in headers or ()]
    fields = fields_of(decode(Record(value=_as_bytes(value), headers=pairs)))
    if "time" in fields:
        fields["time"] = _moment(fields["time"])
    return fields


def _moment(micros: int) -> datetime:
    """Name an instant in UTC; the first or last that Python can name where it is beyond."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return _FIRST if micros < 0 else _LAST


def _encode(event: Any, mode: str) -> dict[str, Any]:
    if mode not in _MODES and mode not in formats.writable():
        raise ValueError(
            f"ce_encode: {mode!r} is neither 'binary' nor 'structured' nor one of {formats.writable()}"
        )
    written = encode_fields(_inputs(event.asDict()), _MODES.get(mode, mode))
    if "error" in written:
        return written
    headers = [{"key": header["key"], "value": _decoded(header["value"])} for header in written["headers"]]
    return {"value": _decoded(written["value"]), "headers": headers}


def _inputs(row: dict[str, Any]) -> dict[str, Any]:
    fields = {
        name: value for name, value in row.items() if value is not None and name not in ("mode", "error")
    }
    text = fields.pop("time_text", None)
    if text is not None:
        fields["time"] = text
    elif isinstance(fields.get("time"), datetime):
        fields["time"] = from_datetime(fields["time"].astimezone(UTC))
    if "data" in fields:
        data = fields["data"]
        fields["data"] = base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
    if "extensions" in fields:
        fields["extensions"] = {
            name: value for name, value in fields["extensions"].items() if value is not None
        }
    return fields


def _as_bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
