"""The fast path: columns that read a record where it is surely a valid event.

Each step adds columns to a DataFrame of Kafka's columns; their names start with
`PREFIX`. The last is ``sure``: whether the others hold the event. All else is left to
the converters (`exact`).

Why it looks as it does, all measured: a step's columns are computed once, where one
big struct would compute shared parts again and again; names are found by position,
since maps and lambda functions are not compiled. The two lambda functions run over
next to nothing, a document's headers and what is left when the core attributes are
found; and they keep Spark from compiling all steps to one method, which the JVM would
find too big to optimize (8,000 bytes; ten times slower).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know

from cloudevents_kafka.attributes import CORE
from cloudevents_kafka.spark import document, grammar
from cloudevents_kafka.spark.document import JSON, PREFIX, column

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
    """Lay out names and values alike for both modes: ``value_at`` is the step from one to the other."""
    json, members, keys = column("json"), column("members"), column("keys")
    once = F.size(F.filter(keys, lambda key: key == "content-type")) == 1
    return _add(
        df,
        {
            "names": F.when(json, F.when(once, members)).when(column("binary"), keys),
            "values": F.when(json, members).otherwise(F.col("headers.value").cast("array<string>")),
            "value_at": F.when(json, F.lit(0)).otherwise(
                F.lit(-1)
            ),  # array_position counts from 1, get from 0
        },
    )


def _name_of(attribute: str) -> Column:
    header = {"datacontenttype": "content-type", "data_base64": None}.get(attribute, f"ce_{attribute}")
    return F.when(column("json"), F.lit(attribute)).otherwise(F.lit(header))


def _with_attributes(df: DataFrame) -> DataFrame:
    """Find the core attributes, and where the names are that are none."""
    names = column("names")
    df = _add(
        df, {f"at_{name}": F.array_position(names, _name_of(name)).cast("int") for name in document.KNOWN}
    )
    found = {name: column(f"at_{name}") for name in document.KNOWN}
    step = F.when(column("json"), F.lit(2)).otherwise(F.lit(1))
    slots = F.when(F.size(names) > 0, F.sequence(F.lit(1), F.size(names), step))
    columns = {
        name: F.when(at > 0, F.get(column("values"), at + column("value_at"))) for name, at in found.items()
    }
    return _add(df, {**columns, "left": F.array_except(slots, F.array(*found.values()))})


def _with_extensions(df: DataFrame) -> DataFrame:
    """Join what is left as ``name=value`` texts; a repeated or misplaced name leaves a mark."""
    names, json = column("names"), column("json")

    def extension(at: Column) -> Column:
        name = F.get(names, at - 1)
        first = F.array_position(names, name) == at
        text = F.concat(
            F.when(json, name).otherwise(F.substring(name, 4, 1000)),
            F.lit("="),
            F.get(column("values"), at + column("value_at")),
        )
        mark = F.lit(grammar.MARK)
        good = F.when(first & ~text.contains(grammar.SEPARATOR), text).when(text.isNotNull(), mark)
        return F.when(json | name.startswith("ce_"), good).when(name == "content-type", mark)

    joined = F.array_join(F.transform(column("left"), extension), grammar.SEPARATOR)
    return _add(df, {"extensions": F.when(F.size(column("left")) > 0, F.nullif(joined, F.lit("")))})


def _with_verdict(df: DataFrame) -> DataFrame:
    data = document.data()
    df = _add(df, {"instant": F.try_to_timestamp(column("time")), "data": data})
    none = column("no_data") & column("data_base64").isNull()
    read = F.when(column("json"), column("data").isNotNull() | none).otherwise(column("binary"))
    return _add(df, {"sure": F.coalesce(read & _good_attributes(), F.lit(False))})


def _good_attributes() -> Column:
    """Tell whether attributes surely break no rule; null is no."""
    texts = F.concat_ws(" ", column("id"), column("type"), column("subject"))
    filled = (column("id") != "") & (column("type") != "") & F.coalesce(column("subject") != "", F.lit(True))
    schema, time, media, extensions = (
        column(n) for n in ("dataschema", "time", "datacontenttype", "extensions")
    )
    return (
        (column("specversion") == "1.0")
        & filled
        & (texts.rlike(grammar.ASCII) | texts.rlike(grammar.TEXT))
        & column("source").rlike(grammar.URI_REFERENCE)
        & (time.isNull() | (column("instant").isNotNull() & time.rlike(grammar.TIME)))
        & (media.isNull() | media.isin(*_PLAIN_TYPES) | media.rlike(grammar.MEDIA_TYPE))
        & (schema.isNull() | schema.rlike(grammar.URI))
        & (extensions.isNull() | extensions.rlike(grammar.extensions()))
    )


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
            "extensions": F.when(column("extensions").isNull(), none).otherwise(pairs),
            "data": F.when(column("json"), column("data")).otherwise(F.col("value")),
            "mode": F.when(column("json"), F.lit("structured")).otherwise(F.lit("binary")),
        }.items()
    }
