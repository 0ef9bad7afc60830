"""The columns of an event, and the names of its errors."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
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

HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
"""The type of a record's headers."""

FROM_JSON: Final = {
    "maxStringLen": str(2**31 - 1),
    # The session's own name for it may be that of a field, which would then be taken for it.
    "columnNameOfCorruptRecord": "__ce_corrupt",
}
"""Options to read what the converters' side sends back."""

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
    ``extension_types`` names the types that the texts of extensions do not say: it has
    ``Integer``, ``Boolean`` or ``Binary`` by the extension's name, and is null where all
    are text, or of the type that is known for their name. ``data_kind`` is ``json``,
    ``text`` or ``proto`` where the data came as such a value (see `Event.kind`), and null
    where it is bytes, as always in binary mode. `encode_events` reads both.
    All are null where ``error`` is not, and ``error`` is null where the record is an event.
    """
    return StructType(
        [
            *(StructField(name, StringType()) for name in ("id", "source", "type", "specversion", "subject")),
            StructField("time", TimestampType()),
            *(StructField(name, StringType()) for name in ("time_text", "datacontenttype", "dataschema")),
            StructField("extensions", MapType(StringType(), StringType())),
            StructField("extension_types", MapType(StringType(), StringType())),
            StructField("data", BinaryType()),
            StructField("data_kind", StringType()),
            StructField("mode", StringType()),
            StructField("error", error_schema()),
        ]
    )


def wire_schema() -> StructType:
    """Return the type of what the converters' side sends back: the time in microseconds of the epoch."""
    fields = event_schema().fields
    return StructType([StructField(f.name, LongType()) if f.name == "time" else f for f in fields])
