"""The columns of an event, and the names of its errors."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

KAFKA_COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
"""The columns of Spark's Kafka source, ``includeHeaders`` set."""

KEPT_COLUMNS: Final = ("key", "topic", "partition", "offset", "timestamp")
"""The Kafka columns that stand beside an event unless told otherwise."""

ERROR_FIELDS: Final = ("verdict", "attribute", "reason", "clause")


def error_schema() -> StructType:
    """Return the type of ``error``: verdict, attribute, reason and clause, all text.

    The verdict is one of ``not-an-event``, ``broken-event``, ``unsupported-format``
    and ``batch``; attribute and clause are those of the first broken rule, null where
    there is none; the reason names every broken rule.
    """
    return StructType([StructField(name, StringType()) for name in ERROR_FIELDS])


def event_schema() -> StructType:
    """Return the type of an event: the columns that `decode_events` puts first.

    ``time`` is the instant, cut to microseconds; ``time_text`` is what was received.
    All are null where ``error`` is not, and ``error`` is null where the record is an event.
    """
    return StructType(
        [
            *(StructField(name, StringType()) for name in ("id", "source", "type", "specversion", "subject")),
            StructField("time", TimestampType()),
            *(StructField(name, StringType()) for name in ("time_text", "datacontenttype", "dataschema")),
            StructField("extensions", MapType(StringType(), StringType())),
            StructField("data", BinaryType()),
            StructField("mode", StringType()),
            StructField("error", error_schema()),
        ]
    )


def wire_schema() -> StructType:
    """Return the type of what the converters' side sends back: the time in microseconds of the epoch."""
    fields = event_schema().fields
    return StructType([StructField(f.name, LongType()) if f.name == "time" else f for f in fields])
