"""The schemas of Kafka's source, of events and of errors."""

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
    """Return the type of ``error``: verdict, attribute, reason and clause, all text.

    The verdict is ``not-an-event``, ``broken-event``, ``unsupported-format`` or ``batch``.
    Attribute and clause belong to the first problem, or are null; the reason names all problems.
    """
    return StructType(
        [StructField(name, StringType()) for name in ("verdict", "attribute", "reason", "clause")]
    )


def tolerated_schema() -> ArrayType:
    """Return the type of ``tolerated``: a deviation that was accepted, with the value if it was left out.

    The attribute or header, the rule, its clause and the value are texts; a value that is not UTF-8 is in
    ``value_bytes`` instead. Both are null if the event has the value.
    """
    texts = [StructField(name, StringType()) for name in ("attribute", "rule", "clause", "value")]
    return ArrayType(StructType([*texts, StructField("value_bytes", BinaryType())]))


def event_schema(*, lenient: bool = False) -> StructType:
    """Return the type of an event: the first columns of `decode_events`.

    ``time`` is the instant, truncated to microseconds; ``time_text`` is the received text.
    ``extension_types`` maps names of extensions to ``Integer``, ``Boolean`` or ``Binary``: those that are not
    texts, and do not have the type that is registered for their name. It is null if there are none.
    ``data_kind`` is ``json``, ``text`` or ``proto`` if the data was received as such a value (see
    `Event.kind`), and null for bytes, as always in binary mode. `encode_events` reads both. Either ``error``
    is null, or all other columns are.

    If ``lenient`` is true, there is one more column, ``tolerated``: the problems that lenient reading
    accepted, in the order of `Decoded.tolerated`. Each has the attribute or header, the rule and its clause.
    If the value was left out, it is in ``value``, as a text, or in ``value_bytes``, if it is not UTF-8. The
    column is null if there are no problems.

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
    """Return the type of a record that was encoded, or of its error."""
    return StructType(
        [
            StructField("value", BinaryType()),
            StructField("headers", HEADERS),
            StructField("error", error_schema()),
        ]
    )


def wire_schema(*, lenient: bool = False) -> StructType:
    """Return the type of the results of Python workers: ``time`` is in microseconds since the epoch."""
    fields = event_schema(lenient=lenient).fields
    return StructType([StructField(f.name, LongType()) if f.name == "time" else f for f in fields])
