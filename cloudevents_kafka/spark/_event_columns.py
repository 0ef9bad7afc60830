"""Checks the columns of events for `encode_events`, and selects them under internal names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
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
from cloudevents_kafka.spark._columns import ColumnType, InputColumns, is_text
from cloudevents_kafka.spark._names import PREFIX, quote_name

TEXTS: Final = (*REQUIRED, "datacontenttype", "dataschema", "subject")

_ENTRY: Final = StructType([StructField("key", StringType()), StructField("value", StringType())])
_MICROS_PER_DAY: Final = 86_400_000_000
_REQUIRED_COLUMNS: Final = ("id", "source", "type")
_RECORD_COLUMNS: Final = ("key", "value", "headers", "topic", "partition", "error")


def _is_extension_value(data_type: DataType) -> bool:
    types = BinaryType | BooleanType | IntegralType | NullType | TimestampType
    return is_text(data_type) or isinstance(data_type, types)


def _is_map(data_type: DataType, accepts: Callable[[DataType], bool]) -> bool:
    """Return whether a type is a map from texts to values of an accepted type."""
    return isinstance(data_type, MapType) and is_text(data_type.keyType) and accepts(data_type.valueType)


def _is_bytes(data_type: DataType) -> bool:
    return is_text(data_type) or isinstance(data_type, BinaryType)


_TEXT: Final = ColumnType("string", is_text, "cast it to string if its text is the value")
_BYTES: Final = ColumnType("binary or string", _is_bytes, "cast it, or use to_json to write JSON")
_KEY: Final = ColumnType("binary or string", _is_bytes, "cast it to string or binary")
_COLUMN_TYPES: Final = {
    **dict.fromkeys((*TEXTS, "time_text", "data_kind", "topic"), _TEXT),
    "time": ColumnType(
        "timestamp or string",
        lambda data_type: is_text(data_type) or isinstance(data_type, TimestampType),
        "the time of an event is an instant: cast it to timestamp_ltz, which uses the session's time zone, "
        "or set time_text to a text of RFC 3339",
    ),
    "extensions": ColumnType(
        "map<string,string>, or of int, boolean, binary or timestamp",
        lambda data_type: _is_map(data_type, _is_extension_value),
        "convert it to such a map; convert values of several types to texts and set extension_types",
    ),
    "extension_types": ColumnType(
        "map<string,string>",
        lambda data_type: _is_map(data_type, is_text),
        "it maps extensions to types, such as Integer",
    ),
    "data": _BYTES,
    "partition": ColumnType("int", lambda data_type: isinstance(data_type, IntegralType), "cast it to int"),
}


def select(df: DataFrame, key: Column | str | None, keep: Sequence[str] = ()) -> tuple[DataFrame, list[str]]:
    """Return a DataFrame with the columns to encode, and the names of the columns to keep.

    In the returned DataFrame, the columns to encode have internal names. The columns to keep are ``topic``
    and ``partition``, if the DataFrame has these columns, and the columns that ``keep`` names. ``extensions``
    becomes a list of structs with the fields ``key``, ``value`` and ``type``, ordered by name. The converters
    reject an extension name that occurs twice. Raises `ValueError` with all problems of the columns.
    """
    columns = InputColumns(df)
    fields = {name: columns.find(name, type_) for name, type_ in _COLUMN_TYPES.items()}
    for name in _REQUIRED_COLUMNS:
        if fields[name] is None:
            columns.require(name)
    key_column = _key(df, columns, fields["extensions"], key)
    others = {name: columns.require(name) for name in keep}
    if reserved := [name for name in others if columns.fold(name) in _RECORD_COLUMNS]:
        columns.report(
            f"keep must not name {', '.join(reserved)}, which is a column of the records; rename it"
        )
    columns.raise_problems("encode_events", {})
    present = {name: field for name, field in fields.items() if field is not None}
    topics = filter(present.__contains__, ("topic", "partition"))
    kept = {name: present[name] for name in topics}
    kept |= {name: field for name, field in others.items() if field is not None}
    values = {**_values(present), "key": key_column.cast("binary")}
    renamed = (value.alias(PREFIX + name) for name, value in values.items())
    return df.select(*renamed, *(_column(field).alias(name) for name, field in kept.items())), list(kept)


def _key(
    df: DataFrame, columns: InputColumns, extensions: StructField | None, key: Column | str | None
) -> Column:
    """Return the key's column; report a problem if this column is missing or has a wrong type."""
    if isinstance(key, Column):
        columns.check_type("key", df.select(key.alias("key")).schema[0].dataType, _KEY)
        return key
    name = "key" if key is None else key
    field = columns.find(name, _KEY)
    if field is not None:
        return _column(field)
    if key is None:
        return F.lit(None)
    if extensions is None:
        columns.report(
            f"key must be a column or an extension, got {key!r}, but the rows have no column extensions"
        )
        return F.lit(None)
    named = F.filter(_entries(extensions), lambda e: e["key"] == key)
    return F.get(F.transform(named, lambda e: e["value"]), F.lit(0))


def _values(present: dict[str, StructField]) -> dict[str, Column]:
    none = F.lit(None).cast("string")
    names = (*TEXTS, "data_kind")
    texts = {name: _column(present[name]).cast("string") if name in present else none for name in names}
    if "specversion" not in present:
        texts["specversion"] = F.lit(SPECVERSION)
    return {
        **texts,
        "time": _time(present),
        "extensions": _extensions(present),
        "data": (_column(present["data"]) if "data" in present else none).cast("binary"),
    }


def _column(field: StructField) -> Column:
    return F.col(quote_name(field.name))


def _extensions(present: dict[str, StructField]) -> Column:
    """Return the extensions that are not null, sorted by name, because Spark's maps have no defined order."""
    field, types = present.get("extensions"), present.get("extension_types")
    if field is None or not isinstance(field.dataType, MapType):  # a column of type void
        return _empty(StructType([*_ENTRY, StructField("type", StringType())]))
    named = None if types is None else _column(types).cast(MapType(StringType(), StringType()))
    kind = _type_name(field.dataType.valueType)

    def entry(pair: Column) -> Column:
        type_ = F.lit(kind) if kind is not None or named is None else F.try_element_at(named, pair["key"])
        return F.struct(pair["key"], pair["value"], type_.cast("string").alias("type"))

    return F.array_sort(F.transform(_entries(field), entry))


def _entries(field: StructField) -> Column:
    """Return the entries of a map, without the entries whose value is null.

    The values are changed to their canonical texts.
    """
    kind = field.dataType.valueType if isinstance(field.dataType, MapType) else NullType()
    entries = F.transform(
        F.filter(F.map_entries(_column(field)), lambda e: e["value"].isNotNull()),
        lambda e: F.struct(e["key"].cast("string").alias("key"), _text(e["value"], kind).alias("value")),
    )
    return F.coalesce(entries, _empty(_ENTRY))


def _empty(of: StructType) -> Column:
    """Return a column of empty lists, whose items have the type ``of``.

    ``F.array()`` is not used, because the type of its result depends on the session's settings.
    """
    return F.array_compact(F.array(F.lit(None).cast(of)))


def _text(value: Column, kind: DataType) -> Column:
    if isinstance(kind, TimestampType):
        return _rfc3339(F.unix_micros(value))
    if isinstance(kind, BinaryType):
        return F.regexp_replace(F.base64(value), "[\r\n]", "")  # Spark 3 and some settings add line breaks
    return value.cast("string")


def _type_name(kind: DataType) -> str | None:
    names = {BinaryType: "Binary", BooleanType: "Boolean", IntegralType: "Integer"}
    return next((name for types, name in names.items() if isinstance(kind, types)), None)


def _time(present: dict[str, StructField]) -> Column:
    text = _column(present["time_text"]) if "time_text" in present else F.lit(None)
    if "time" not in present:
        return text.cast("string")
    time = _column(present["time"])
    if isinstance(present["time"].dataType, TimestampType):
        time = _rfc3339(F.unix_micros(time))
    return F.coalesce(text.cast("string"), time.cast("string"))


def _rfc3339(micros: Column) -> Column:
    """Return an instant as text in UTC, in the form that `from_datetime` returns.

    Spark's own functions are not used, because they use the session's time zone.
    """
    within = F.pmod(micros, F.lit(_MICROS_PER_DAY))
    days = ((micros - within) / F.lit(_MICROS_PER_DAY)).cast("int")
    seconds, fraction = F.floor(within / F.lit(1_000_000)), within % F.lit(1_000_000)
    clock = F.format_string(
        "%02d:%02d:%02d",
        F.floor(seconds / F.lit(3600)),
        F.floor(seconds / F.lit(60)) % F.lit(60),
        seconds % F.lit(60),
    )
    digits = F.when(fraction == 0, F.lit("")).otherwise(F.format_string(".%06d", fraction))
    return F.concat(F.date_from_unix_date(days).cast("string"), F.lit("T"), clock, digits, F.lit("Z"))
