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
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cloudevents_kafka import formats
from cloudevents_kafka.attributes import REQUIRED, SPECVERSION
from cloudevents_kafka.convert import ContentMode
from cloudevents_kafka.spark import grammar
from cloudevents_kafka.spark.document import PREFIX, column, is_value
from cloudevents_kafka.spark.schema import error_schema
from cloudevents_kafka.spark.workers import informed
from cloudevents_kafka.spark.written import encode_batch

HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_TEXTS: Final = (*REQUIRED, "datacontenttype", "dataschema", "subject")
_DAY: Final = 86_400_000_000  # microseconds
_DATA_TEXT: Final = "IF(is_valid_utf8(CAST(__ce_data AS STRING)), CAST(__ce_data AS STRING), NULL)"
_PACKED: Final = (*_TEXTS, "time", "extensions", "data")


def encode_events(
    df: DataFrame,
    *,
    mode: ContentMode = "binary",
    format: str | None = None,
    key: Column | str | None = None,
    errors: Literal["raise", "column"] = "raise",
) -> DataFrame:
    """Turn events, one a row, into records for Spark's Kafka sink.

    ``df`` has the columns that `decode_events` gives: ``id``, ``source`` and ``type``,
    and any of ``specversion`` (1.0 where it is null), ``subject``, ``time``,
    ``time_text`` (which counts where it is set), ``datacontenttype``, ``dataschema``,
    ``extensions`` (written in order of their names) and ``data`` (bytes, or text in
    UTF-8). Null is absent, and null data
    in binary mode is a null value. The result has ``key``, ``value`` and ``headers``,
    and ``topic`` and ``partition`` where ``df`` has them.

    ``key`` is a column, or the name of one or of an extension; ``df``'s own ``key`` by
    default. ``format`` is that of structured mode, json by default.

    A row that is no valid event fails the job when it is written, since a record made
    of it would be read as something else. ``errors="column"`` adds the column ``error``
    instead, null for good rows: write only these.

    Raises `ValueError` for missing columns, and for a mode or format that is none.
    """
    chosen = _format_of(mode, format)
    topics = [name for name in ("topic", "partition") if name in df.columns]
    df = df.withColumn(PREFIX + "key", _key(df, key).cast("binary")).withColumns(_inputs(df))
    df = df.withColumn(PREFIX + "sure", F.coalesce(_surely_good(), F.lit(False)))
    if chosen is None:
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


# --- what comes in -----------------------------------------------------------------


def _key(df: DataFrame, key: Column | str | None) -> Column:
    if isinstance(key, Column):
        return key
    if key is None:
        return F.col("key") if "key" in df.columns else F.lit(None)
    if key in df.columns:
        return F.col(key)
    if "extensions" in df.columns:
        return F.col("extensions")[key]
    raise ValueError(f"key={key!r} is no column, and there is no column of extensions to look for it")


def _inputs(df: DataFrame) -> dict[str, Column]:
    """Lay out what the converters need of a row, under names of our own."""
    missing = [name for name in ("id", "source", "type") if name not in df.columns]
    if missing:
        raise ValueError(f"the DataFrame has no column {', '.join(missing)}, only {', '.join(df.columns)}")
    none = F.lit(None).cast("string")
    texts = {name: F.col(name).cast("string") if name in df.columns else none for name in _TEXTS}
    if "specversion" not in df.columns:
        texts["specversion"] = F.lit(SPECVERSION)
    extensions = F.col("extensions") if "extensions" in df.columns else F.lit(None)
    inputs = {
        **texts,
        "time": _time(df),
        "extensions": _in_order(extensions.cast("map<string,string>")),
        "data": (F.col("data") if "data" in df.columns else none).cast("binary"),
    }
    return {PREFIX + name: value for name, value in inputs.items()}


def _in_order(extensions: Column) -> Column:
    """Sort extensions by name, as Spark gives maps in no order one could rely on; nulls are absent."""
    there = F.map_filter(extensions, lambda _, value: value.isNotNull())
    return F.map_from_entries(F.array_sort(F.map_entries(there)))


def _time(df: DataFrame) -> Column:
    text = F.col("time_text") if "time_text" in df.columns else F.lit(None)
    if "time" not in df.columns:
        return text.cast("string")
    time = F.col("time")
    if isinstance(df.schema["time"].dataType, TimestampType):
        time = _rfc3339(F.unix_micros(time))
    return F.coalesce(text.cast("string"), time.cast("string"))


def _rfc3339(micros: Column) -> Column:
    """Write an instant in UTC as `timestamps.from_datetime` does; Spark would use the session's zone."""
    within = F.pmod(micros, F.lit(_DAY))
    days = ((micros - within) / F.lit(_DAY)).cast("int")
    seconds, fraction = F.floor(within / F.lit(1_000_000)), within % F.lit(1_000_000)
    clock = F.format_string(
        "%02d:%02d:%02d",
        F.floor(seconds / F.lit(3600)),
        F.floor(seconds / F.lit(60)) % F.lit(60),
        seconds % F.lit(60),
    )
    digits = F.when(fraction == 0, F.lit("")).otherwise(F.format_string(".%06d", fraction))
    return F.concat(F.date_from_unix_date(days).cast("string"), F.lit("T"), clock, digits, F.lit("Z"))


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
        & (time.isNull() | (F.try_to_timestamp(time).isNotNull() & time.rlike(grammar.TIME)))
        & (
            media.isNull()
            | (media.rlike(grammar.MEDIA_TYPE) & ~F.lower(media).startswith(formats.media_type_of("")[:-1]))
        )
        & (schema.isNull() | schema.rlike(grammar.URI))
        & _good_extensions()
    )


def _good_extensions() -> Column:
    extensions = column("extensions")
    entries = F.transform(F.map_entries(extensions), lambda e: F.concat(e["key"], F.lit("="), e["value"]))
    joined = F.array_join(entries, grammar.SEPARATOR)
    names = F.array_join(F.map_keys(extensions), grammar.SEPARATOR)
    one_each = F.size(F.split(joined, grammar.SEPARATOR)) == F.size(extensions)
    return (
        extensions.isNull()
        | (F.size(extensions) == 0)
        | (joined.rlike(grammar.extensions()) & ~names.contains("=") & one_each)
    )


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
        F.map_entries(column("extensions")),
        lambda e: F.struct(
            F.concat(F.lit("ce_"), e["key"]).alias("key"), e["value"].cast("binary").alias("value")
        ),
    )
    none = F.array().cast(HEADERS)
    return F.concat(F.array_compact(F.array(*headers)).cast(HEADERS), F.coalesce(own.cast(HEADERS), none))


def _structured_headers(format: str) -> Column:
    return F.array(_header("content-type", F.lit(formats.media_type_of(format)))).cast(HEADERS)


def _data_member() -> Column:
    """Write the data's member with its comma, empty where there is no data; null where that is not sure."""
    data, media = column("data"), column("datacontenttype")
    essence = F.substring_index(F.lower(media), ";", 1)
    json = essence.endswith("/json") | essence.endswith("+json")
    parameters = F.substring(F.lower(media), F.length(essence) + 1, F.length(media))
    text = F.when(F.is_valid_utf8(data.cast("string")), data.cast("string"))
    plain = parameters.isin("", ";charset=utf-8", "; charset=utf-8") & F.expr(is_value(_DATA_TEXT))
    encoded = F.regexp_replace(F.base64(data), "[\r\n]", "")
    return (
        F.when(data.isNull(), F.lit(""))
        .when(F.coalesce(json, F.lit(False)), F.when(plain, F.concat(F.lit(',"data":'), text)))
        .otherwise(F.concat(F.lit(',"data_base64":"'), encoded, F.lit('"')))
    )


def _document() -> Column:
    """Write a JSON document: the attributes, the extensions, the data."""
    ordered = ("specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time")
    core = F.to_json(F.struct(*(column(name).alias(name) for name in ordered)))
    own = F.when(
        F.size(column("extensions")) > 0,
        F.concat(F.lit(","), F.substring(F.to_json(column("extensions")), F.lit(2), F.lit(2**31 - 1))),
    )
    head = F.substring(core, F.lit(1), F.length(core) - 1)
    rest = F.coalesce(F.substring(own, F.lit(1), F.length(own) - 1), F.lit(""))
    return F.concat(head, rest, column("member"), F.lit("}")).cast("binary")


def _surely_written(format: str) -> Column:
    """Narrow down to the rows that column expressions write as `JsonFormat` does; none for other formats."""
    if format != "json":
        return F.lit(False)
    return column("sure") & column("member").isNotNull()


def _exactly(format: str | None) -> Column:
    """Write the rows that are not surely good by the converters; the others reach Python as nulls."""
    fields = [column(name).alias(name) for name in _PACKED]
    chosen = F.lit(format).cast("string").alias("format")
    packed = F.when(~column("sure"), F.to_json(F.struct(chosen, *fields)))
    written = StructType(
        [
            StructField("value", BinaryType()),
            StructField("headers", HEADERS),
            StructField("error", error_schema()),
        ]
    )
    encode = pandas_udf(informed(encode_batch), StringType())  # type: ignore[call-overload]  # no types of pandas to tell
    text = encode.asNondeterministic()(packed)  # as in `decode`: keeps filters from being pushed below it
    return F.from_json(text, written, {"maxStringLen": str(2**31 - 1)})


def _refusal(error: Column) -> Column:
    """Fail the job where a row is no event."""
    said = F.concat(F.lit("encode_events: this row is no valid event: "), error["reason"])
    return F.raise_error(said).cast("binary")
