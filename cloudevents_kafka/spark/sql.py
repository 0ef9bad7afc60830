"""`register` adds SQL functions that decode records and encode events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.attributes.timestamps import from_datetime
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.primitives.epoch import EPOCH
from cloudevents_kafka.spark._workers import with_registry
from cloudevents_kafka.spark.schema import HEADERS, event_schema, record_schema
from cloudevents_kafka.spark.udf import Extension, Header, PackedRecord, Row, encode_row, result_fields

_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_NOT_WRITTEN: Final = ("mode", "error", "tolerated")
_MODES: Final[Mapping[str, str | None]] = {"binary": None, "structured": "json"}


def register(spark: SparkSession) -> None:
    """Register the SQL functions ``ce_decode``, ``ce_decode_lenient`` and ``ce_encode`` in a session.

    ``ce_decode(value, headers)`` returns a struct of `event_schema`, which contains an event or an ``error``.
    ``ce_decode_lenient`` accepts deviations of known producers, and its struct also contains ``tolerated``.
    ``ce_encode(event, mode)`` encodes a struct with fields of `event_schema`; fields may be missing. ``mode``
    is ``'binary'``, ``'structured'`` or the name of an event format. ``ce_encode`` returns a struct of
    ``value``, ``headers`` and ``error``; ``error`` is null for a valid event. If an argument of ``ce_encode``
    is null, the function returns null.

    The SQL functions send every row to Python workers, so `decode_events` and `encode_events` are many times
    faster than the SQL functions.

    Examples:
        >>> from cloudevents_kafka.spark import register
        >>> register(spark)
        >>> spark.sql("SELECT ce_decode(CAST('17' AS BINARY), NULL).error.verdict AS verdict").first()
        Row(verdict='not-an-event')
    """
    spark.udf.register("ce_decode", F.udf(with_registry(_decode), event_schema()))
    lenient = F.udf(with_registry(_decode_leniently), event_schema(lenient=True))
    spark.udf.register("ce_decode_lenient", lenient)
    spark.udf.register("ce_encode", F.udf(with_registry(_encode), record_schema()))


def _decode(value: Any, headers: Any) -> dict[str, Any]:
    return _decode_record(value, headers, lenient=False)


def _decode_leniently(value: Any, headers: Any) -> dict[str, Any]:
    return _decode_record(value, headers, lenient=True)


def _decode_record(value: Any, headers: Any, *, lenient: bool) -> dict[str, Any]:
    record = PackedRecord(_as_bytes("ce_decode: value", value), _header_list(headers))
    fields = result_fields(record, lenient=lenient)
    if "time" in fields:
        fields["time"] = _to_datetime(fields["time"])
    return fields


def _header_list(headers: Any) -> list[Header | None]:
    try:
        named = [(header["key"], header["value"]) for header in headers or () if header is not None]
    except (TypeError, ValueError, KeyError):  # a map, or a struct with other fields
        raise TypeError(
            f"ce_decode: headers must be {HEADERS.simpleString()}, got another type: "
            "use the option includeHeaders of Kafka's source"
        ) from None
    return [Header(name, _as_bytes("ce_decode: a header's value", value)) for name, value in named]


def _to_datetime(micros: int) -> datetime:
    """Return an instant in UTC.

    For an instant outside the years 1 to 9999, return the nearest instant that Python can represent.
    """
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return _FIRST if micros < 0 else _LAST


def _encode(event: Any, mode: str | None) -> dict[str, Any] | None:
    if event is None or mode is None:
        return None
    if mode not in _MODES and mode not in formats.writable():
        raise ValueError(
            "ce_encode: mode must be 'binary', 'structured' or one of "
            f"{', '.join(formats.writable())}, got {mode!r}"
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
        fields["time"] = _utc_text(fields["time"])
    data, kind = fields.pop("data", None), fields.pop("data_kind", None)
    values, types = fields.pop("extensions", None) or {}, fields.pop("extension_types", None) or {}
    if not (isinstance(values, dict) and isinstance(types, dict)):
        raise TypeError("ce_encode: extensions and extension_types must be maps")
    extensions = [
        Extension(name, _utc_text(value) if isinstance(value, datetime) else value, types.get(name))
        for name, value in sorted(values.items())
        if value is not None
    ]
    return Row(fields, extensions, _as_bytes("ce_encode: data", data, "binary or string"), kind)


def _utc_text(moment: datetime) -> str:
    """Return an instant as text in UTC; PySpark passes instants to a worker in the worker's time zone."""
    return from_datetime(moment.astimezone(UTC))


def _as_bytes(what: str, value: Any, type_name: str = "binary") -> bytes | None:
    if value is None or isinstance(value, bytes | bytearray):
        return None if value is None else bytes(value)
    if isinstance(value, str) and "string" in type_name:
        return value.encode()
    raise TypeError(f"{what} must be {type_name}, got {type(value).__name__}: cast it")
