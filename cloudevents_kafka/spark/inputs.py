"""The columns of events that are to be written: checked, and laid out under names of our own."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cloudevents_kafka.attributes.types import REQUIRED, SPECVERSION
from cloudevents_kafka.spark.columns import Columns, Wanted, is_text, quoted
from cloudevents_kafka.spark.document import PREFIX

TEXTS: Final = (*REQUIRED, "datacontenttype", "dataschema", "subject")

_ENTRY: Final = StructType([StructField("key", StringType()), StructField("value", StringType())])
_DAY: Final = 86_400_000_000  # microseconds
_NEEDED: Final = ("id", "source", "type")


def _is_value(seen: DataType) -> bool:
    """Return whether a type is one that an extension's value may have."""
    return is_text(seen) or isinstance(
        seen, BinaryType | BooleanType | IntegralType | NullType | TimestampType
    )


def _are_extensions(seen: DataType) -> bool:
    return isinstance(seen, MapType) and is_text(seen.keyType) and _is_value(seen.valueType)


def _are_types(seen: DataType) -> bool:
    return isinstance(seen, MapType) and is_text(seen.keyType) and is_text(seen.valueType)


def _is_binary(seen: DataType) -> bool:
    return is_text(seen) or isinstance(seen, BinaryType)


_TEXT: Final = Wanted("string", is_text, "cast it to string, if its text is what is meant")
_BYTES: Final = Wanted("binary or string", _is_binary, "cast it, or write it as JSON by to_json")
_KEY: Final = Wanted("binary or string", _is_binary, "cast it to string, or to the bytes that are meant")
_WANTED: Final = {
    **dict.fromkeys((*TEXTS, "time_text", "data_kind", "topic"), _TEXT),
    "time": Wanted(
        "timestamp or string",
        lambda seen: is_text(seen) or isinstance(seen, TimestampType),
        "a time of an event is an instant: cast it to timestamp_ltz, which takes it for one of the session's "
        "time zone, or give time_text, in RFC 3339",
    ),
    "extensions": Wanted(
        "map<string,string>, or of int, boolean, binary or timestamp",
        _are_extensions,
        "make such a map of it; of values of several types make texts, and name them in extension_types",
    ),
    "extension_types": Wanted(
        "map<string,string>", _are_types, "it names types, such as Integer, by extension"
    ),
    "data": _BYTES,
    "partition": Wanted("int", lambda seen: isinstance(seen, IntegralType), "cast it to int"),
}


def read(df: DataFrame, key: Column | str | None) -> tuple[DataFrame, list[str]]:
    """Select what the converters need of each row, and which of ``topic`` and ``partition`` there are.

    ``extensions`` becomes a list of ``key``, ``value`` and ``type`` in order of their names,
    where one that is there twice is for the converters to refuse. Raises `ValueError`,
    with all that is wrong with the columns.
    """
    columns = Columns(df)
    fields = {name: columns.look_for(name, wanted) for name, wanted in _WANTED.items()}
    for name in _NEEDED:
        if fields[name] is None:
            columns.need(name)
    chosen = _key(df, columns, fields["extensions"], key)
    columns.settle("encode_events", {})
    there = {name: field for name, field in fields.items() if field is not None}
    topics: list[str] = list(filter(there.__contains__, ("topic", "partition")))
    laid_out = {**_laid_out(there), "key": chosen.cast("binary")}
    own = (value.alias(PREFIX + name) for name, value in laid_out.items())
    return df.select(*own, *(_of(there[name]).alias(name) for name in topics)), topics


def _key(df: DataFrame, columns: Columns, extensions: StructField | None, key: Column | str | None) -> Column:
    """Return the column of the key; what it cannot be is a problem of the columns."""
    if isinstance(key, Column):
        columns.check_type("key", df.select(key.alias("key")).schema[0].dataType, _KEY)
        return key
    name = "key" if key is None else key
    field = columns.look_for(name, _KEY)
    if field is not None:
        return _of(field)
    if key is None:
        return F.lit(None)
    if extensions is None:
        columns.report(f"key={key!r} is not a column, and there is no column of extensions to look for it")
        return F.lit(None)
    named = F.filter(_entries(extensions), lambda e: e["key"] == key)
    return F.get(F.transform(named, lambda e: e["value"]), F.lit(0))


def _laid_out(there: dict[str, StructField]) -> dict[str, Column]:
    none = F.lit(None).cast("string")
    texts = {
        name: _of(there[name]).cast("string") if name in there else none for name in (*TEXTS, "data_kind")
    }
    if "specversion" not in there:
        texts["specversion"] = F.lit(SPECVERSION)
    return {
        **texts,
        "time": _time(there),
        "extensions": _extensions(there),
        "data": (_of(there["data"]) if "data" in there else none).cast("binary"),
    }


def _of(field: StructField) -> Column:
    return F.col(quoted(field.name))


def _extensions(there: dict[str, StructField]) -> Column:
    """Lay out extensions by name, as Spark gives maps in no order one could rely on; nulls are absent."""
    field, types = there.get("extensions"), there.get("extension_types")
    if field is None or not isinstance(field.dataType, MapType):  # void
        return _empty(StructType([*_ENTRY, StructField("type", StringType())]))
    named = None if types is None else _of(types).cast(MapType(StringType(), StringType()))
    kind = _type_name(field.dataType.valueType)

    def entry(each: Column) -> Column:
        told = F.lit(kind) if kind is not None or named is None else F.try_element_at(named, each["key"])
        return F.struct(each["key"], each["value"], told.cast("string").alias("type"))

    return F.array_sort(F.transform(_entries(field), entry))


def _entries(field: StructField) -> Column:
    """Return the entries of a map of extensions that are not null, their values as canonical texts."""
    kind = field.dataType.valueType if isinstance(field.dataType, MapType) else NullType()
    entries = F.transform(
        F.filter(F.map_entries(_of(field)), lambda e: e["value"].isNotNull()),
        lambda e: F.struct(e["key"].cast("string").alias("key"), _text(e["value"], kind).alias("value")),
    )
    return F.coalesce(entries, _empty(_ENTRY))


def _empty(of: StructType) -> Column:
    """Return an empty list; one that is empty from the start is of a type that settings choose."""
    return F.array_compact(F.array(F.lit(None).cast(of)))


def _text(value: Column, kind: DataType) -> Column:
    if isinstance(kind, TimestampType):
        return _rfc3339(F.unix_micros(value))
    if isinstance(kind, BinaryType):
        return F.regexp_replace(F.base64(value), "[\r\n]", "")  # older ones break it into lines
    return value.cast("string")


def _type_name(kind: DataType) -> str | None:
    names = {BinaryType: "Binary", BooleanType: "Boolean", IntegralType: "Integer"}
    return next((name for each, name in names.items() if isinstance(kind, each)), None)


def _time(there: dict[str, StructField]) -> Column:
    text = _of(there["time_text"]) if "time_text" in there else F.lit(None)
    if "time" not in there:
        return text.cast("string")
    time = _of(there["time"])
    if isinstance(there["time"].dataType, TimestampType):
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
