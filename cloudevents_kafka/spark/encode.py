"""`encode_events` converts the columns of events to the columns of Spark's Kafka sink.

A Java function writes most rows that are valid events. For all other rows, the library's converters in Python
workers write the record or return an error. If the session cannot use Java classes, the converters process
all rows. Java and Python write the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.spark import _event_columns
from cloudevents_kafka.spark._columns import internal
from cloudevents_kafka.spark._names import PREFIX, quote_name
from cloudevents_kafka.spark._workers import with_registry
from cloudevents_kafka.spark.java.reader import writer_sql
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, record_schema
from cloudevents_kafka.spark.udf import encode_batch

_CORE: Final = (*_event_columns.TEXTS, "time")
_JSON: Final = {"ignoreNullFields": "true"}
_WRITTEN: Final = StructType([StructField("value", BinaryType()), StructField("headers", HEADERS)])


def encode_events(
    df: DataFrame,
    *,
    mode: ContentMode = "binary",
    format: str | None = None,
    key: Column | str | None = None,
    keep: Sequence[str] = (),
    errors: Literal["raise", "column"] = "raise",
) -> DataFrame:
    """Return a DataFrame of records for Spark's Kafka sink, with one record for each event.

    ``df`` must have columns of `event_schema`, as `decode_events` returns them. The columns ``id``,
    ``source`` and ``type`` are required. These columns are optional: ``specversion`` (null means 1.0),
    ``subject``, ``time``, ``time_text`` (which takes precedence over ``time``), ``datacontenttype``,
    ``dataschema``, ``extensions`` (which are written in the order of their names), ``extension_types``,
    ``data`` (bytes, or text, which is written in UTF-8) and ``data_kind``. A null means that the event does
    not have this attribute. In binary mode, null data is written as a null value. The result has the columns
    ``key``, ``value`` and ``headers``, and also ``topic`` and ``partition`` if ``df`` has these columns.

    Each row becomes the record that `to_record` returns for the event of the row. An extension is a text,
    unless the type of the map's values or ``extension_types`` specifies an Integer, a Boolean, a Binary or a
    timestamp. Data is bytes, or a value of the kind in ``data_kind``. JSON data without a content type stays
    JSON data, because the kind ``json`` implies a JSON content type.

    ``key`` is a column, or the name of a column or of an extension; the default is the column ``key``.
    ``keep`` names further columns of ``df``, which are copied unchanged to the result. ``format`` is the
    event format for structured mode; the default is json.

    A row that is not a valid event makes the job fail. This includes rows that were read leniently and still
    contain a value that breaks a rule, although `to_record` writes such an event. With ``errors="column"``,
    the job continues, and the column ``error`` describes the problem of such a row. The column ``error`` is
    null for all valid events. Write only the rows whose ``error`` is null to Kafka.

    Inside Spark, a Java function writes valid events in binary mode and in JSON. The Python converters write
    all other events: events in other formats, JSON in another charset, events with types in
    ``extension_types``, and events with extensions that a user's function checks. In a session that cannot
    use Java classes, the Python converters write all rows.

    Raises `ValueError` before any job runs, for columns that are missing, have a wrong type, or have the same
    name. Raises `ValueError` also for an unknown mode or format.

    Examples:
        >>> from cloudevents_kafka.spark import encode_events
        >>> events = spark.sql("SELECT '1' AS id, '/shop' AS source, 'order.placed' AS type")
        >>> bytes(encode_events(events, mode="structured").first().value)
        b'{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed"}'
    """
    format_name = _format_name(mode, format)
    df, kept = _event_columns.select(df, key, keep)
    df = df.withColumn(PREFIX + "written", _written(df, format_name))
    df = df.withColumn(PREFIX + "encoded", _encoded(format_name))
    written, encoded = internal("written"), internal("encoded")
    error = encoded["error"]
    value, headers = (
        F.when(written.isNotNull(), written[name]).otherwise(encoded[name]) for name in ("value", "headers")
    )
    columns = {
        "key": internal("key"),
        "value": F.when(error.isNotNull(), _raise(error)).otherwise(value) if errors == "raise" else value,
        "headers": headers,
        **{name: F.col(quote_name(name)) for name in kept},
        **({"error": error} if errors == "column" else {}),
    }
    return df.select(*(value.alias(name) for name, value in columns.items()))


def _format_name(mode: str, format: str | None) -> str | None:
    if mode == "binary" and format is None:
        return None
    if mode == "structured" and (format is None or format in formats.writable()):
        return "json" if format is None else format
    raise ValueError(
        "encode_events: mode must be 'binary', or 'structured' with a format of "
        f"{', '.join(formats.writable())}, got mode={mode!r}, format={format!r}"
    )


def _written(df: DataFrame, format: str | None) -> Column:
    """Return the records that Java writes, or null for rows that Python must write."""
    columns = {name: PREFIX + name for name in (*_CORE, "extensions", "data", "data_kind")}
    is_json = format in (None, "json")
    sql = writer_sql(df, columns, structured=format is not None) if is_json else None
    return F.lit(None).cast(_WRITTEN) if sql is None else F.expr(sql)


def _encoded(format: str | None) -> Column:
    """Return the records of rows that Java does not write; all other rows are passed to Python as nulls."""
    fields = {
        "format": F.lit(format).cast("string"),
        "core": F.struct(*(internal(name).alias(name) for name in _CORE)),
        **{name: internal(name) for name in ("extensions", "data", "data_kind")},
        # JSON would replace invalid UTF-8 by another character, which must not be written.
        "has_invalid_utf8": ~F.is_valid_utf8(_all_texts()),
    }
    row = F.to_json(F.struct(*(value.alias(name) for name, value in fields.items())), _JSON)
    encode = pandas_udf(with_registry(encode_batch), StringType())  # type: ignore[call-overload]  # pandas has no types
    text = encode.asNondeterministic()(
        F.when(internal("written").isNull(), row)
    )  # makes filters on the result run after it, as in `decode`
    return F.from_json(text, record_schema(), FROM_JSON)


def _all_texts() -> Column:
    extensions = internal("extensions")
    texts = (internal(name) for name in (*_CORE, "data_kind"))
    return F.concat_ws(" ", *texts, extensions["key"], extensions["value"], extensions["type"])


def _raise(error: Column) -> Column:
    """Return a column that makes the job fail for a row that cannot be written."""
    message = F.concat(F.lit("encode_events: this row cannot be written: "), error["reason"])
    return F.raise_error(message).cast("binary")
