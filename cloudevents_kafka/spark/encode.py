"""`encode_events`: from the columns of events to the columns of Spark's Kafka sink.

Compiled column expressions write the rows that they recognize as valid. The library's converters
write or refuse all others in Python workers. Both write the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StringType

from cloudevents_kafka.attributes.types import CORE, SPECVERSION
from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.spark import _event_columns, _patterns
from cloudevents_kafka.spark._columns import PREFIX, internal, quote_name
from cloudevents_kafka.spark._workers import with_registry
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, record_schema
from cloudevents_kafka.spark.udf import encode_batch

_DATA_TEXT: Final = "IF(is_valid_utf8(CAST(__ce_data AS STRING)), CAST(__ce_data AS STRING), NULL)"
_CORE: Final = (*_event_columns.TEXTS, "time")
_JSON: Final = {"ignoreNullFields": "true"}


def encode_events(
    df: DataFrame,
    *,
    mode: ContentMode = "binary",
    format: str | None = None,
    key: Column | str | None = None,
    keep: Sequence[str] = (),
    errors: Literal["raise", "column"] = "raise",
) -> DataFrame:
    """Return a DataFrame of records for Spark's Kafka sink, one for each event.

    ``df`` has columns of `event_schema`, as `decode_events` returns them: ``id``, ``source`` and
    ``type``, and any of ``specversion`` (1.0 if null), ``subject``, ``time``, ``time_text`` (takes
    precedence over ``time``), ``datacontenttype``, ``dataschema``, ``extensions`` (written in the
    order of their names), ``extension_types``, ``data`` (bytes, or text in UTF-8) and
    ``data_kind``. Null means absent; null data is a null value in binary mode. The result has
    ``key``, ``value`` and ``headers``, and ``topic`` and ``partition`` if ``df`` has them.

    Each row becomes the record that `to_record` returns for its event. Extensions are texts, or
    Integers, Booleans, Binary and timestamps by the type of the map's values or by
    ``extension_types``. Data is bytes, or a value of the kind in ``data_kind``: JSON data without a
    content type keeps the one that it implies.

    ``key`` is a column, or the name of a column or an extension; the default is the column ``key``.
    ``keep`` names more columns of ``df`` that the result has, unchanged.
    ``format`` is the event format of structured mode; the default is json.

    A row that is not a valid event fails the job. With ``errors="column"`` it has an ``error``
    instead, in a column that is null for all other rows: write only those.

    Raises `ValueError`, before anything runs, for columns that are missing, of another type, or of
    the same name, and for an unknown mode or format.

    Examples:
        >>> from cloudevents_kafka.spark import encode_events
        >>> events = spark.sql("SELECT '1' AS id, '/shop' AS source, 'order.placed' AS type")
        >>> bytes(encode_events(events, mode="structured").first().value)
        b'{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed"}'
    """
    format_name = _format_name(mode, format)
    df, kept = _event_columns.select(df, key, keep)
    df = df.withColumn(PREFIX + "fast", F.coalesce(_is_valid_fast(), F.lit(False)))
    if format_name is None:
        df = df.withColumn(PREFIX + "fast", internal("fast") & F.coalesce(_implies_kind(), F.lit(False)))
        headers, value = _binary_headers(), internal("data")
    else:
        df = df.withColumn(PREFIX + "member", _data_member())
        headers, value = _structured_headers(format_name), _json_document()
        df = df.withColumn(PREFIX + "fast", _is_written_fast(format_name))
    df = df.withColumn(PREFIX + "encoded", _encoded(format_name))
    error = internal("encoded")["error"]
    fast = internal("fast")
    value = F.when(fast, value).otherwise(internal("encoded")["value"])
    columns = {
        "key": internal("key"),
        "value": F.when(error.isNotNull(), _raise(error)).otherwise(value) if errors == "raise" else value,
        "headers": F.when(fast, headers).otherwise(internal("encoded")["headers"]),
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


# --- rows that are recognized as valid -----------------------------------------------------------


def _is_valid_fast() -> Column:
    """Return whether a row is a valid event; null or false if it is not certain."""
    texts = F.concat_ws(" ", internal("id"), internal("type"), internal("subject"))
    schema, time, media = (internal(name) for name in ("dataschema", "time", "datacontenttype"))
    return (
        (internal("specversion") == SPECVERSION)
        & (internal("id") != "")  # not empty
        & (internal("type") != "")
        & F.coalesce(internal("subject") != "", F.lit(True))
        & texts.rlike(_patterns.TEXT)
        & internal("source").rlike(_patterns.URI_REFERENCE)
        & (time.isNull() | (time.try_cast("timestamp_ltz").isNotNull() & time.rlike(_patterns.TIME)))
        & (
            media.isNull()
            | (media.rlike(_patterns.MEDIA_TYPE) & ~F.lower(media).startswith(formats.media_type_of("")[:-1]))
        )
        & (schema.isNull() | schema.rlike(_patterns.URI))
        & _are_extensions_valid()
    )


def _are_extensions_valid() -> Column:
    extensions = internal("extensions")
    keys = extensions["key"]
    entries = F.transform(extensions, lambda e: F.concat(e["key"], F.lit("="), e["value"]))
    joined = F.array_join(entries, _patterns.SEPARATOR)
    names = F.array_join(keys, _patterns.SEPARATOR)
    has_no_separator = F.size(F.split(joined, _patterns.SEPARATOR)) == F.size(extensions)
    return (F.size(extensions) == 0) | (
        joined.rlike(_patterns.extensions())
        & ~names.contains("=")
        & has_no_separator
        & (F.size(F.array_distinct(keys)) == F.size(extensions))
        & ~F.exists(extensions, lambda e: e["type"].isNotNull())
    )


def _implies_kind() -> Column:
    """Return whether the headers of binary mode determine the kind of the data."""
    named = internal("data").isNull() | internal("datacontenttype").isNotNull()
    is_json = F.expr(_patterns.is_json_sql(_DATA_TEXT))
    return _is_bytes() | (_is("json") & (named | is_json)) | (_is("text") & named)


def _is_bytes() -> Column:
    return internal("data_kind").isNull() | _is("bytes")


def _is(kind: str) -> Column:
    return F.coalesce(internal("data_kind") == kind, F.lit(False))


# --- the columns of records -----------------------------------------------------------------


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _binary_headers() -> Column:
    headers = [
        F.when(
            internal(n).isNotNull(),
            # K-04: content-type is "mapped directly"; K-05: others "are prefixed with ce_"
            _header("content-type" if n == "datacontenttype" else f"ce_{n}", internal(n)),
        )
        for n in CORE
    ]
    extensions = F.transform(
        internal("extensions"),
        lambda e: F.struct(
            F.concat(F.lit("ce_"), e["key"]).alias("key"), e["value"].cast("binary").alias("value")
        ),
    )
    implied = F.when(
        internal("datacontenttype").isNull() & internal("data").isNotNull() & _is("json"),
        _header("content-type", F.lit("application/json")),
    )
    return F.concat(
        F.array_compact(F.array(*headers)).cast(HEADERS),
        extensions.cast(HEADERS),
        F.array_compact(F.array(implied)).cast(HEADERS),
    )


def _structured_headers(format: str) -> Column:
    return F.array(_header("content-type", F.lit(formats.media_type_of(format)))).cast(HEADERS)


def _data_member() -> Column:
    """Return the member for the data with a comma; empty without data, null if it is not certain."""
    data, media = internal("data"), internal("datacontenttype")
    essence = F.substring_index(F.lower(media), ";", 1)
    json = F.coalesce(essence.endswith("/json") | essence.endswith("+json"), F.lit(False))
    parameters = F.substring(F.lower(media), F.length(essence) + 1, F.length(media))
    text = F.expr(_DATA_TEXT)
    value = F.expr(_patterns.is_json_sql(_DATA_TEXT))
    plain = (media.isNull() | parameters.isin("", ";charset=utf-8", "; charset=utf-8")) & value
    as_json = (media.isNull() & _is("json")) | (json & (_is_bytes() | _is("json")))
    encoded = F.regexp_replace(F.base64(data), "[\r\n]", "")
    return (
        F.when(data.isNull(), F.lit(""))
        .when(as_json, F.when(plain, F.concat(F.lit(',"data":'), text)))
        .when(_is_bytes(), F.concat(F.lit(',"data_base64":"'), encoded, F.lit('"')))
    )


def _json_document() -> Column:
    """Return the JSON document of an event: its attributes, extensions and data."""
    core = F.to_json(F.struct(*(internal(name).alias(name) for name in CORE)), _JSON)
    pairs = F.transform(internal("extensions"), lambda e: F.struct(e["key"], e["value"]))
    # Other rows may repeat a name, which fails the job.
    members = F.when(internal("fast") & (F.size(pairs) > 0), F.to_json(F.map_from_entries(pairs), _JSON))
    extensions = F.concat(F.lit(","), F.substring(members, F.lit(2), F.length(members) - 2))
    head = F.substring(core, F.lit(1), F.length(core) - 1)
    return F.concat(head, F.coalesce(extensions, F.lit("")), internal("member"), F.lit("}")).cast("binary")


def _is_written_fast(format: str) -> Column:
    """Return whether column expressions write a row; false for all rows of formats other than json."""
    if format != "json":
        return F.lit(False)
    return internal("fast") & internal("member").isNotNull()


def _encoded(format: str | None) -> Column:
    """Return the records of all other rows, by the converters; rows written here reach Python as nulls."""
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
        F.when(~internal("fast"), row)
    )  # keeps filters above it, as in `decode`
    return F.from_json(text, record_schema(), FROM_JSON)


def _all_texts() -> Column:
    extensions = internal("extensions")
    texts = (internal(name) for name in (*_CORE, "data_kind"))
    return F.concat_ws(" ", *texts, extensions["key"], extensions["value"], extensions["type"])


def _raise(error: Column) -> Column:
    """Return a column that fails the job for a row that cannot be written."""
    message = F.concat(F.lit("encode_events: this row cannot be written: "), error["reason"])
    return F.raise_error(message).cast("binary")
