"""The fast path: columns that read a record where it is surely a valid event.

Each step adds columns to a DataFrame of Kafka's columns; their names start with
`PREFIX`. The last is ``sure``: whether the others hold the event. All else is left to
the converters (`exact`).

Why it looks as it does, all measured: a step's columns are computed once, where one
big struct would compute shared parts again and again; names are found by position,
and those left over by bits, since maps and lambda functions are not compiled. The two
lambda functions run over next to nothing, a document's headers and long lists of
extensions; and they keep Spark from compiling all steps to one method, which the JVM
would find too big to optimize (8,000 bytes; ten times slower).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know

from cloudevents_kafka.attributes import CORE
from cloudevents_kafka.spark import document, grammar
from cloudevents_kafka.spark.document import JSON, PREFIX, column

_FEW: Final = 4  # extensions and foreign headers that are read without a lambda function
_MOST_NAMES: Final = 62  # the bits of a long, but for its sign's and the next
_EVERY_OTHER: Final = 0x1555_5555_5555_5555
_PLAIN_TYPES: Final = ("application/json", "text/plain", "application/xml", "application/octet-stream")


def read_surely(df: DataFrame) -> DataFrame:
    """Add the columns of an event, and ``sure``, to Kafka's columns."""
    df = document.open_documents(_with_headers(df))
    df = _with_attributes(_with_names(df))
    return _with_verdict(_with_extensions(df))


def _add(df: DataFrame, columns: dict[str, Column]) -> DataFrame:
    return df.withColumns({PREFIX + name: value for name, value in columns.items()})


def _with_headers(df: DataFrame) -> DataFrame:
    """Tell the content mode: ``json`` for structured mode in JSON, ``binary`` for binary mode."""
    keys, values = F.col("headers.key"), F.col("headers.value")
    content_type = F.get(values, F.array_position(keys, F.lit("content-type")).cast("int") - 1).cast("string")
    df = _add(df, {"keys": keys, "content_type": content_type})
    lower = F.lower(column("content_type"))
    structured = F.coalesce(lower.startswith("application/cloudevents"), F.lit(False))
    return _add(df, {"json": F.coalesce(lower.isin(*JSON), F.lit(False)), "binary": ~structured})


def _with_names(df: DataFrame) -> DataFrame:
    """Lay out names alike for both modes; in a document, the texts stand between them."""
    return _add(
        df, {"names": F.when(column("json"), column("members")).when(column("binary"), column("keys"))}
    )


def _name_of(attribute: str) -> Column:
    header = {"datacontenttype": "content-type", "data_base64": None}.get(attribute, f"ce_{attribute}")
    return F.when(column("json"), F.lit(attribute)).otherwise(F.lit(header))


def _value_at(at: Column) -> Column:
    """Return the value of the name at a position, from 1 on."""
    header = F.get(F.col("headers"), at - 1)["value"].cast("string")
    return F.when(column("json"), F.get(column("members"), at)).otherwise(header)


def _with_attributes(df: DataFrame) -> DataFrame:
    """Find the core attributes; ``left`` has a bit for each name that is none."""
    names = column("names")
    df = _add(
        df, {f"at_{name}": F.array_position(names, _name_of(name)).cast("int") for name in document.KNOWN}
    )
    found = {name: column(f"at_{name}") for name in document.KNOWN}
    values = {name: F.when(at > 0, _value_at(at)) for name, at in found.items()}
    taken = reduce(Column.bitwiseOR, (_bit(at - 1) for at in map(_or_none, found.values())))
    places = F.when(column("json"), F.lit(_EVERY_OTHER)).otherwise(F.lit(-1).cast("long"))
    inside = F.when(F.size(names) <= _MOST_NAMES, _bit(F.size(names)) - 1)
    return _add(df, {**values, "left": inside.bitwiseAND(places).bitwiseAND(F.bitwise_not(taken))})


def _or_none(at: Column) -> Column:
    return F.coalesce(at, F.lit(0))  # whose bit is the sign's, which is outside


def _bit(number: Column) -> Column:
    return F.call_function("shiftleft", F.lit(1).cast("long"), number)  # F.shiftleft takes no column


def _with_extensions(df: DataFrame) -> DataFrame:
    """Join what is left as ``name=value`` texts; a repeated or misplaced name leaves a mark."""
    few = F.concat_ws(grammar.SEPARATOR, *map(_extension, _places(column("left"))))
    places = F.filter(
        F.sequence(F.lit(1), F.size(column("names"))),
        lambda at: column("left").bitwiseAND(_bit(at - 1)) != 0,
    )
    many = F.array_join(F.transform(places, _extension), grammar.SEPARATOR)
    count = F.bit_count(column("left"))
    return _add(
        df, {"extensions": F.when(count == 0, F.lit("")).when(count <= _FEW, few).when(count > _FEW, many)}
    )


def _places(bits: Column) -> Iterator[Column]:
    """Return the positions of the lowest bits, from 1 on; when there are no more, 65, where no name is."""
    for _ in range(_FEW):
        yield F.bit_count(bits.bitwiseAND(-bits) - 1) + 1
        bits = bits.bitwiseAND(bits - 1)


def _extension(at: Column) -> Column:
    name = F.get(column("names"), at - 1)
    value = _value_at(at)
    good = (F.array_position(column("names"), name) == at) & ~value.contains(grammar.SEPARATOR)
    text = F.concat(F.when(column("json"), name).otherwise(F.substring(name, 4, 1000)), F.lit("="), value)
    marked = F.when(value.isNotNull(), F.when(good, text).otherwise(F.lit(grammar.MARK)))
    return F.when(column("json") | name.startswith("ce_"), marked).when(
        name == "content-type", F.lit(grammar.MARK)
    )


def _with_verdict(df: DataFrame) -> DataFrame:
    df = _add(df, {"instant": F.try_to_timestamp(column("time")), "data": document.data()})
    none = column("no_data") & column("data_base64").isNull()
    read = F.when(column("json"), column("data").isNotNull() | none).otherwise(column("binary"))
    return _add(df, {"sure": F.coalesce(read & _good_attributes(), F.lit(False))})


def _good_attributes() -> Column:
    """Tell whether attributes surely break no rule; null is no."""
    time, media = column("time"), column("datacontenttype")
    texts = grammar.between(
        column("id"),
        column("type"),
        column("source"),
        F.coalesce(column("subject"), F.lit("-")),
        F.coalesce(column("dataschema"), F.lit("a:")),
        column("extensions"),
    )
    text = F.concat(*(part if isinstance(part, Column) else F.lit(part) for part in texts))
    return (
        (column("specversion") == "1.0")
        & (time.isNull() | (column("instant").isNotNull() & (_is_plain(time) | time.rlike(grammar.TIME))))
        & (media.isNull() | media.isin(*_PLAIN_TYPES) | media.rlike(grammar.MEDIA_TYPE))
        & (text.rlike(grammar.attributes(ascii_only=True)) | text.rlike(grammar.attributes()))
    )


def _is_plain(time: Column) -> Column:
    """Tell whether a text that Spark reads as a timestamp is RFC 3339 in UTC, as nearly all are."""
    marks = {5: "-", 8: "-", 11: "T", 14: ":", 17: ":"}  # two digits have room between them
    length = F.length(time)
    shape = reduce(Column.__and__, (F.substring(time, at, 1) == mark for at, mark in marks.items()))
    fraction = (length == 20) | ((length >= 22) & (length <= 30) & (F.substring(time, 20, 1) == "."))
    years = (time >= "1900") & (time < "2200") & ~time.contains(" ")
    return time.endswith("Z") & fraction & shape & years


def columns() -> dict[str, Column]:
    """Return the event's columns by their names in `event_schema`; null where it is not sure."""
    sure = column("sure")
    texts = {name: column(name) for name in CORE if name != "time"}
    pairs = F.str_to_map(column("extensions"), F.lit(grammar.SEPARATOR), F.lit("="))
    none = F.create_map().cast("map<string,string>")
    return {
        name: F.when(sure, value)
        for name, value in {
            **texts,
            "time": column("instant"),
            "time_text": column("time"),
            "extensions": F.when(column("extensions") == "", none).otherwise(pairs),
            "data": F.when(column("json"), column("data")).otherwise(F.col("value")),
            "mode": F.when(column("json"), F.lit("structured")).otherwise(F.lit("binary")),
        }.items()
    }
