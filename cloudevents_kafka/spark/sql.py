"""Functions for SQL users: records to events, and events to records, by the library's converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.sql.types import BinaryType, StructField, StructType

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.timestamps import from_datetime
from cloudevents_kafka.binding import decode
from cloudevents_kafka.primitives.epoch import EPOCH
from cloudevents_kafka.record import Headers, Record
from cloudevents_kafka.spark.schema import HEADERS, error_schema, event_schema
from cloudevents_kafka.spark.udf.decode import fields_of
from cloudevents_kafka.spark.udf.encode import Extension, Row, encode_row
from cloudevents_kafka.spark.udf.worker_registry import informed

_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_NOT_WRITTEN: Final = ("mode", "error")
_MODES: Final[Mapping[str, str | None]] = {"binary": None, "structured": "json"}


def register(spark: SparkSession) -> None:
    """Register ``ce_decode`` and ``ce_encode`` with a session.

    ``ce_decode(value, headers)`` gives the struct of `event_schema`: an event, or its
    ``error``. ``ce_encode(event, mode)`` takes such a struct, or one with fewer fields,
    and ``'binary'``, ``'structured'``, or the name of an event format; it gives a struct
    of ``value``, ``headers`` and ``error``, where ``error`` is null if all went well, and
    null for a null.
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


def _decode(value: Any, headers: Any) -> dict[str, Any]:
    fields = fields_of(decode(Record(value=_as_bytes("ce_decode: value", value), headers=_pairs(headers))))
    if "time" in fields:
        fields["time"] = _moment(fields["time"])
    return fields


def _pairs(headers: Any) -> Headers:
    """Return the headers; what is null, or has a null for its name, is not one that Kafka can carry."""
    try:
        named = [(header["key"], header["value"]) for header in headers or () if header is not None]
    except (TypeError, ValueError, KeyError):  # a map, or fields of other names
        raise TypeError(
            f"ce_decode: headers must be {HEADERS.simpleString()}, as Kafka's source has them "
            "with the option includeHeaders"
        ) from None
    return [
        (name, _as_bytes("ce_decode: a header's value", value)) for name, value in named if name is not None
    ]


def _moment(micros: int) -> datetime:
    """Name an instant in UTC; the first or last that Python can name where it is beyond."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return _FIRST if micros < 0 else _LAST


def _encode(event: Any, mode: str | None) -> dict[str, Any] | None:
    if event is None or mode is None:
        return None
    if mode not in _MODES and mode not in formats.writable():
        raise ValueError(
            f"ce_encode: {mode!r} is neither 'binary' nor 'structured' nor one of {formats.writable()}"
        )
    return encode_row(_row(event.asDict()), _MODES.get(mode, mode))


def _row(columns: dict[str, Any]) -> Row:
    fields = {
        name: value for name, value in columns.items() if value is not None and name not in _NOT_WRITTEN
    }
    text = fields.pop("time_text", None)
    if text is not None:
        fields["time"] = text
    elif isinstance(fields.get("time"), datetime):
        fields["time"] = _in_utc(fields["time"])
    data, kind = fields.pop("data", None), fields.pop("data_kind", None)
    given, types = fields.pop("extensions", None) or {}, fields.pop("extension_types", None) or {}
    if not (isinstance(given, dict) and isinstance(types, dict)):
        raise TypeError("ce_encode: extensions and extension_types must be maps")
    extensions = [
        Extension(name, _in_utc(value) if isinstance(value, datetime) else value, types.get(name))
        for name, value in sorted(given.items())
        if value is not None
    ]
    return Row(fields, extensions, _as_bytes("ce_encode: data", data, "binary or string"), kind)


def _in_utc(moment: datetime) -> str:
    """Write an instant, which PySpark names in the time zone of the worker."""
    return from_datetime(moment.astimezone(UTC))


def _as_bytes(what: str, value: Any, wanted: str = "binary") -> bytes | None:
    if value is None or isinstance(value, bytes | bytearray):
        return None if value is None else bytes(value)
    if isinstance(value, str) and "string" in wanted:
        return value.encode()
    raise TypeError(f"{what} must be {wanted}, got {type(value).__name__}: cast it")
