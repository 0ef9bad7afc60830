"""Writing: from an event's columns to the columns that Spark's Kafka sink takes.

Rows that are plain to see are written by compiled column expressions, and all others
by the library's converters, in Python workers, which decide and explain. Both write
the same bytes.
"""

from __future__ import annotations

from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.types import SPECVERSION
from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.spark import grammar, inputs
from cloudevents_kafka.spark.document import PREFIX, column, is_value
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, error_schema
from cloudevents_kafka.spark.udf.encode import encode_batch
from cloudevents_kafka.spark.udf.worker_registry import informed

_DATA_TEXT: Final = "IF(is_valid_utf8(CAST(__ce_data AS STRING)), CAST(__ce_data AS STRING), NULL)"
_PACKED: Final = (*inputs.TEXTS, "time", "extensions", "data", "data_kind")
_JSON: Final = {"ignoreNullFields": "true"}


def encode_events(
    df: DataFrame,
    *,
    mode: ContentMode = "binary",
    format: str | None = None,
    key: Column | str | None = None,
    errors: Literal["raise", "column"] = "raise",
) -> DataFrame:
    """Turn events, one a row, into records for Spark's Kafka sink.

    ``df`` has the columns that `decode_events` makes: ``id``, ``source`` and ``type``,
    and any of ``specversion`` (1.0 where it is null), ``subject``, ``time``,
    ``time_text`` (which counts where it is set), ``datacontenttype``, ``dataschema``,
    ``extensions`` (written in order of their names), ``extension_types``, ``data``
    (bytes, or text in UTF-8) and ``data_kind``. Null is absent, and null data
    in binary mode is a null value. The result has ``key``, ``value`` and ``headers``,
    and ``topic`` and ``partition`` where ``df`` has them.

    Each row becomes what `to_record` makes of such an event. Extensions are texts, or, as
    the values of the map or ``extension_types`` have it, Integers, Booleans, Binary and
    timestamps. Data is bytes, or what ``data_kind`` says, as `decode_events` found it: so
    JSON data without a content type keeps the one that it implies.

    ``key`` is a column, or the name of one or of an extension; ``df``'s own ``key`` by
    default. ``format`` is that of structured mode, json by default.

    A row that cannot be written as an event fails the job, since a record made
    of it would be read as something else. ``errors="column"`` adds the column ``error``
    instead, null for good rows: write only these.

    Raises `ValueError`, before anything runs, for columns that are missing, of another
    type, or there twice, and for a mode or format that is none.
    """
    chosen = _format_of(mode, format)
    df, topics = inputs.read(df, key)
    df = df.withColumn(PREFIX + "sure", F.coalesce(_surely_good(), F.lit(False)))
    if chosen is None:
        df = df.withColumn(PREFIX + "sure", column("sure") & F.coalesce(_surely_told(), F.lit(False)))
        headers, value = _binary_headers(), column("data")
    else:
        df = df.withColumn(PREFIX + "member", _data_member())
        headers, value = _structured_headers(chosen), _document()
        df = df.withColumn(PREFIX + "sure", _surely_written(chosen))
    df = df.withColumn(PREFIX + "exact", _exactly(chosen))
    error = column("exact")["error"]
    sure = column("sure")
    value = F.when(sure, value).otherwise(column("exact")["value"])
    columns = {
        "key": column("key"),
        "value": F.when(error.isNotNull(), _refusal(error)).otherwise(value) if errors == "raise" else value,
        "headers": F.when(sure, headers).otherwise(column("exact")["headers"]),
        **{name: F.col(name) for name in topics},
        **({"error": error} if errors == "column" else {}),
    }
    return df.select(*(value.alias(name) for name, value in columns.items()))


def _format_of(mode: str, format: str | None) -> str | None:
    if mode == "binary" and format is None:
        return None
    if mode == "structured" and (format is None or format in formats.writable()):
        return "json" if format is None else format
    raise ValueError(
        f"mode={mode!r}, format={format!r}: mode is 'binary', or 'structured' with a format of "
        f"{', '.join(formats.writable())}"
    )


# --- what is surely good -----------------------------------------------------------


def _surely_good() -> Column:
    """Tell whether a row is surely a valid event; null is no."""
    texts = F.concat_ws(" ", column("id"), column("type"), column("subject"))
    schema, time, media = (column(name) for name in ("dataschema", "time", "datacontenttype"))
    return (
        (column("specversion") == SPECVERSION)
        & (column("id") != "")
        & (column("type") != "")
        & F.coalesce(column("subject") != "", F.lit(True))
        & texts.rlike(grammar.TEXT)
        & column("source").rlike(grammar.URI_REFERENCE)
        & (time.isNull() | (time.try_cast("timestamp_ltz").isNotNull() & time.rlike(grammar.TIME)))
        & (
            media.isNull()
            | (media.rlike(grammar.MEDIA_TYPE) & ~F.lower(media).startswith(formats.media_type_of("")[:-1]))
        )
        & (schema.isNull() | schema.rlike(grammar.URI))
        & _good_extensions()
    )


def _good_extensions() -> Column:
    extensions = column("extensions")
    keys = extensions["key"]
    entries = F.transform(extensions, lambda e: F.concat(e["key"], F.lit("="), e["value"]))
    joined = F.array_join(entries, grammar.SEPARATOR)
    names = F.array_join(keys, grammar.SEPARATOR)
    one_each = F.size(F.split(joined, grammar.SEPARATOR)) == F.size(extensions)
    return (F.size(extensions) == 0) | (
        joined.rlike(grammar.extensions())
        & ~names.contains("=")
        & one_each
        & (F.size(F.array_distinct(keys)) == F.size(extensions))
        & ~F.exists(extensions, lambda e: e["type"].isNotNull())
    )


def _surely_told() -> Column:
    """Tell whether headers surely say what data is: it has a content type, or is JSON, or just bytes."""
    told = column("data").isNull() | column("datacontenttype").isNotNull()
    return _is_bytes() | (_is("json") & (told | F.expr(is_value(_DATA_TEXT)))) | (_is("text") & told)


def _is_bytes() -> Column:
    return column("data_kind").isNull() | _is("bytes")


def _is(kind: str) -> Column:
    return F.coalesce(column("data_kind") == kind, F.lit(False))


# --- what goes out -----------------------------------------------------------------


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _binary_headers() -> Column:
    ordered = ("specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time")
    headers = [
        F.when(
            column(n).isNotNull(), _header("content-type" if n == "datacontenttype" else f"ce_{n}", column(n))
        )
        for n in ordered
    ]
    own = F.transform(
        column("extensions"),
        lambda e: F.struct(
            F.concat(F.lit("ce_"), e["key"]).alias("key"), e["value"].cast("binary").alias("value")
        ),
    )
    implied = F.when(
        column("datacontenttype").isNull() & column("data").isNotNull() & _is("json"),
        _header("content-type", F.lit("application/json")),
    )
    return F.concat(
        F.array_compact(F.array(*headers)).cast(HEADERS),
        own.cast(HEADERS),
        F.array_compact(F.array(implied)).cast(HEADERS),
    )


def _structured_headers(format: str) -> Column:
    return F.array(_header("content-type", F.lit(formats.media_type_of(format)))).cast(HEADERS)


def _data_member() -> Column:
    """Write the data's member with its comma, empty where there is no data; null where that is not sure."""
    data, media = column("data"), column("datacontenttype")
    essence = F.substring_index(F.lower(media), ";", 1)
    json = F.coalesce(essence.endswith("/json") | essence.endswith("+json"), F.lit(False))
    parameters = F.substring(F.lower(media), F.length(essence) + 1, F.length(media))
    text = F.when(F.is_valid_utf8(data.cast("string")), data.cast("string"))
    value = F.expr(is_value(_DATA_TEXT))
    plain = (media.isNull() | parameters.isin("", ";charset=utf-8", "; charset=utf-8")) & value
    as_json = (media.isNull() & _is("json")) | (json & (_is_bytes() | _is("json")))
    encoded = F.regexp_replace(F.base64(data), "[\r\n]", "")
    return (
        F.when(data.isNull(), F.lit(""))
        .when(as_json, F.when(plain, F.concat(F.lit(',"data":'), text)))
        .when(_is_bytes(), F.concat(F.lit(',"data_base64":"'), encoded, F.lit('"')))
    )


def _document() -> Column:
    """Write a JSON document: the attributes, the extensions, the data."""
    ordered = ("specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time")
    core = F.to_json(F.struct(*(column(name).alias(name) for name in ordered)), _JSON)
    pairs = F.transform(column("extensions"), lambda e: F.struct(e["key"], e["value"]))
    # Not for the rows that are not sure, whose names may be no keys of a map: it would fail the job.
    members = F.when(column("sure") & (F.size(pairs) > 0), F.to_json(F.map_from_entries(pairs), _JSON))
    own = F.concat(F.lit(","), F.substring(members, F.lit(2), F.length(members) - 2))
    head = F.substring(core, F.lit(1), F.length(core) - 1)
    return F.concat(head, F.coalesce(own, F.lit("")), column("member"), F.lit("}")).cast("binary")


def _surely_written(format: str) -> Column:
    """Narrow down to the rows that column expressions write as `JsonFormat` does; none for other formats."""
    if format != "json":
        return F.lit(False)
    return column("sure") & column("member").isNotNull()


def _exactly(format: str | None) -> Column:
    """Write the rows that are not surely good by the converters; the others reach Python as nulls."""
    fields = [column(name).alias(name) for name in _PACKED]
    # JSON would have another sign in place of what is not UTF-8: that must not be written as the user's.
    fields.append((~F.is_valid_utf8(_all_texts())).alias("garbled"))
    chosen = F.lit(format).cast("string").alias("format")
    packed = F.when(~column("sure"), F.to_json(F.struct(chosen, *fields), _JSON))
    written = StructType(
        [
            StructField("value", BinaryType()),
            StructField("headers", HEADERS),
            StructField("error", error_schema()),
        ]
    )
    encode = pandas_udf(informed(encode_batch), StringType())  # type: ignore[call-overload]  # no types of pandas to tell
    text = encode.asNondeterministic()(packed)  # as in `decode`: keeps filters from being pushed below it
    return F.from_json(text, written, FROM_JSON)


def _all_texts() -> Column:
    extensions = column("extensions")
    texts = (column(name) for name in (*inputs.TEXTS, "time", "data_kind"))
    return F.concat_ws(" ", *texts, extensions["key"], extensions["value"], extensions["type"])


def _refusal(error: Column) -> Column:
    """Return a column that fails the job where a row cannot be written."""
    said = F.concat(F.lit("encode_events: this row cannot be written: "), error["reason"])
    return F.raise_error(said).cast("binary")
