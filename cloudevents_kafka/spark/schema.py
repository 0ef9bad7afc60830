"""The schemas of Spark's Kafka source, of events and of errors in DataFrames."""

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

KEPT_COLUMNS: Final = ("key", "topic", "partition", "offset", "timestamp")
"""The columns that `decode_events` keeps by default."""

HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
"""The type of a record's headers."""

FROM_JSON: Final = {
    "maxStringLen": str(2**31 - 1),
    # The session's default may be the name of a field, which Spark would then set to null.
    "columnNameOfCorruptRecord": "__ce_corrupt",
}
"""Options of ``from_json`` for the results of Python workers."""


def error_schema() -> StructType:
    """Return the type of the column ``error``, a struct of four texts: verdict, attribute, reason and clause.

    The verdict is ``not-an-event``, ``broken-event``, ``unsupported-format`` or ``batch``. The attribute and
    the clause of the specification describe the first problem of the record, or are null. The reason
    describes all problems of the record.
    """
    return StructType(
        [StructField(name, StringType()) for name in ("verdict", "attribute", "reason", "clause")]
    )


def tolerated_schema() -> ArrayType:
    """Return the type of the column ``tolerated``, a list of accepted deviations from the specification.

    Each deviation contains three texts: the name of the attribute or header, the rule, and the clause of the
    specification with this rule. If the event does not contain the value of the attribute or header, the
    deviation contains this value. The value is a text in ``value``, or bytes in ``value_bytes`` if the value
    is not UTF-8. If the event contains the value, ``value`` and ``value_bytes`` are null.
    """
    texts = [StructField(name, StringType()) for name in ("attribute", "rule", "clause", "value")]
    return ArrayType(StructType([*texts, StructField("value_bytes", BinaryType())]))


def event_schema(*, lenient: bool = False) -> StructType:
    """Return the type of an event; its fields are the first columns of a result of `decode_events`.

    ``time`` is the instant, truncated to microseconds; ``time_text`` is the received text.
    ``extension_types`` maps names of extensions to ``Integer``, ``Boolean`` or ``Binary``.
    ``extension_types`` contains an extension only if its value is not a text, and the type of this value is
    not registered for the extension. If no extension of the event fulfills both conditions,
    ``extension_types`` is null. ``data_kind`` is ``json``, ``text`` or ``proto`` if the data was received as
    a JSON value, a text or a Protobuf message (see `Event.kind`). ``data_kind`` is null if the data is bytes.
    In binary mode, the data of an event is always bytes. `encode_events` reads ``extension_types`` and
    ``data_kind``. In each row, either the column ``error`` is null, or all other columns are null.

    If ``lenient`` is true, the type has one more column, ``tolerated``. The column ``tolerated`` lists the
    problems that lenient reading has accepted, in the order of `Decoded.tolerated`. Each entry of the column
    ``tolerated`` contains the name of the attribute or header, the rule, and the clause of the specification
    with this rule. If the event does not contain the value of the attribute or header, the entry contains
    this value: as a text in ``value``, or as bytes in ``value_bytes`` if the value is not UTF-8. The column
    ``tolerated`` is null if the record has no problems.

    Examples:
        >>> from cloudevents_kafka.spark import event_schema
        >>> event_schema().names[:4]
        ['id', 'source', 'type', 'specversion']
    """
    more = [StructField("tolerated", tolerated_schema())] if lenient else []
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
            *more,
        ]
    )


def record_schema() -> StructType:
    """Return the type of an encoded record: its value and headers, or the error of an invalid event."""
    return StructType(
        [
            StructField("value", BinaryType()),
            StructField("headers", HEADERS),
            StructField("error", error_schema()),
        ]
    )


def wire_schema(*, lenient: bool = False) -> StructType:
    """Return the type of the results of Python workers; ``time`` is in microseconds since the epoch."""
    fields = event_schema(lenient=lenient).fields
    return StructType([StructField(f.name, LongType()) if f.name == "time" else f for f in fields])
