"""Reading: from the Kafka source's columns to an event's columns, row by row, nothing lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, StringType, StructField

from cloudevents_kafka.spark import sure
from cloudevents_kafka.spark.columns import Columns, Wanted, is_headers, quoted, same_name
from cloudevents_kafka.spark.document import PREFIX, column
from cloudevents_kafka.spark.fast import java_reader
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, KEPT_COLUMNS, event_schema, wire_schema
from cloudevents_kafka.spark.udf.decode import decode_batch
from cloudevents_kafka.spark.udf.worker_registry import informed

_WANTED: Final = {
    "value": Wanted(
        "binary",
        lambda seen: isinstance(seen, BinaryType),
        "cast it to binary (it is text where Parquet was read with spark.sql.parquet.binaryAsString)",
    ),
    "headers": Wanted(
        HEADERS.simpleString(),
        is_headers,
        "take it as Kafka's source has it with the option includeHeaders, or make it such a list",
    ),
}
_HINTS: Final = {"headers": "set the Kafka source's option includeHeaders to true"}


def decode_events(df: DataFrame, *, keep: Sequence[str] | None = None) -> DataFrame:
    """Turn rows of Spark's Kafka source into events, each row into one row.

    ``df`` has the columns ``value`` and ``headers`` (option ``includeHeaders``), of a
    batch or of a stream. The result has the columns of `event_schema`, then those of
    ``df`` that ``keep`` names (by default, of `KEPT_COLUMNS`, those that are there).
    A row that is no event has nulls and its ``error``; no row fails the job. What stands
    in ``headers`` without a name, or is null itself, is not a header and says nothing.

    Verdicts and values are those of `cloudevents_kafka.decode`. Records that are plain
    to see are read by a function in Java, or by column expressions where Spark cannot be
    given one, as through Spark Connect: that takes two to six times as long. All others are
    read by `decode` itself, in Python workers, which need this package.

    Raises `ValueError`, with all that is wrong, before anything runs: for a column that is
    missing, of another type, or there twice, and for what ``keep`` cannot keep, such as a
    name that a column of the event has.
    """
    fields, kept = _checked(df, keep)
    df, inner = _records(df, fields, kept)
    sql = java_reader.reader(df)
    outer = [
        f"{quoted(own)} AS {quoted(name)}" if own != name else quoted(name) for name, own in inner.items()
    ]
    names = list(inner.values())
    return _by_columns(df, names, outer) if sql is None else _by_java(df, sql, names, outer)


def _by_java(df: DataFrame, sql: str, kept: Sequence[str], outer: Sequence[str]) -> DataFrame:
    """Keep the event in one struct up to the end: whole, it is copied in one piece."""
    df = _read_by_java(df, sql, kept).withColumn(PREFIX + "exact", _exactly())
    event = f"{java_reader.either(PREFIX + 'read', PREFIX + 'exact')} AS {PREFIX}event"
    return df.selectExpr(event, *map(quoted, kept)).selectExpr(f"{PREFIX}event.*", *outer)


def _read_by_java(df: DataFrame, sql: str, kept: Sequence[str]) -> DataFrame:
    """Read the plain records to ``read``, and pack the others in ``packed``; one of both is null."""
    record = (f"`{name}` AS {PREFIX}{name}" for name in ("value", "headers"))
    df = df.selectExpr(f"{sql} AS {PREFIX}read", *record, *map(quoted, kept))
    read = column("read")
    packed = F.when(read.isNull(), _packed(column("value"), column("headers"))).alias(PREFIX + "packed")
    return df.select(read, packed, *map(quoted, kept))


def _by_columns(df: DataFrame, kept: Sequence[str], outer: Sequence[str]) -> DataFrame:
    fast = sure.columns()
    df = _read_by_columns(df, kept).withColumn(PREFIX + "exact", _exactly())
    return df.selectExpr(*(_either(name, fast=name in fast) for name in event_schema().names), *outer)


def _read_by_columns(df: DataFrame, kept: Sequence[str]) -> DataFrame:
    """Read the plain records, and pack the others in ``packed``, which is null for those.

    Only what comes out, and what the converters need, is copied to Python's side of the plan.
    """
    columns = (F.expr(sql).alias(PREFIX + name) for name, sql in sure.columns().items())
    packed = F.when(~column("sure"), _packed(F.col("value"), F.col("headers"))).alias(PREFIX + "packed")
    return sure.read_surely(df).select(*columns, packed, *map(quoted, kept))


def _either(name: str, *, fast: bool) -> str:
    exact = f"{PREFIX}exact.{quoted(name)}"  # some of these names are reserved words of ANSI's SQL
    if name == "time":
        exact = f"timestamp_micros({exact})"
    return f"{f'coalesce({PREFIX}{name}, {exact})' if fast else exact} AS {quoted(name)}"


def cloudevent(value: Column, headers: Column) -> Column:
    """Return one struct of `event_schema` for a record: an event, or its ``error``.

    Every row goes through the converters in Python, some ten times slower than
    `decode_events`; what makes that one fast cannot be one expression.
    """
    # Texts become bytes, and fields are found by their names: what has others, Spark refuses at once.
    named = F.transform(headers, lambda header: F.struct(_text_of(header), _bytes_of(header)))
    read = _unpacked(exact_udf()(_packed(value.cast("binary"), named)))
    return F.struct(
        *((F.timestamp_micros(read[n]) if n == "time" else read[n]).alias(n) for n in event_schema().names)
    )


def _text_of(header: Column) -> Column:
    return header["key"].cast("string").alias("key")


def _bytes_of(header: Column) -> Column:
    return header["value"].cast("binary").alias("value")


def _checked(df: DataFrame, keep: Sequence[str] | None) -> tuple[list[StructField], list[str]]:
    """Return the fields of a record, and the names to keep; raises `ValueError`."""
    columns = Columns(df)
    fields = [columns.need(name, wanted) for name, wanted in _WANTED.items()]
    kept = (
        [name for name in KEPT_COLUMNS if columns.find(name)] if keep is None else _asked_for(columns, keep)
    )
    columns.settle("decode_events", _HINTS)
    return [field for field in fields if field is not None], kept


def _asked_for(columns: Columns, keep: Sequence[str]) -> list[str]:
    if isinstance(keep, str):
        columns.report(f"keep must be a list of names, not a text: keep=[{keep!r}]")
        return []
    asked = list(keep)
    names = [name for name in asked if isinstance(name, str)]
    if len(names) < len(asked):
        columns.report("keep must be a list of names: some of these are no texts")
    for name in names:
        columns.need(name)
    again = same_name(names, columns.fold)
    if again:
        columns.report(f"keep names {', '.join(again)} twice")
    ours = {columns.fold(name) for name in event_schema().names}
    clashing = [name for name in names if columns.fold(name) in ours]
    if clashing:
        columns.report(f"keep names {', '.join(clashing)}, which the event has a column for: rename it first")
    return names


def _records(
    df: DataFrame, fields: Sequence[StructField], kept: Sequence[str]
) -> tuple[DataFrame, dict[str, str]]:
    """Select ``value``, ``headers`` and what is kept, this under names that clash with none of ours.

    Returns these by the names to keep.
    """
    taken = ("value", "headers")
    inner = {
        name: f"{PREFIX}kept_{n}" if name.lower() in taken or name.lower().startswith(PREFIX) else name
        for n, name in enumerate(kept)
    }
    value, headers = (F.col(quoted(field.name)) for field in fields)
    value = value.cast(BinaryType()) if not isinstance(fields[0].dataType, BinaryType) else value
    if fields[1].dataType.simpleString() != HEADERS.simpleString():  # of another collation, or void
        headers = headers.cast(HEADERS)
    others = (F.col(quoted(name)).alias(own) if own != name else quoted(name) for name, own in inner.items())
    return df.select(value.alias("value"), headers.alias("headers"), *others), inner


def _packed(value: Column, headers: Column) -> Column:
    """Pack a record into one text for `exact.decode_packed`; bytes become base64."""
    return F.to_json(F.struct(value.alias("value"), headers.alias("headers")))


def _unpacked(text: Column) -> Column:
    return F.from_json(text, wire_schema(), FROM_JSON)


def exact_udf() -> Any:
    """Return the converters as a function on packed records, one Arrow batch at a time."""
    return pandas_udf(informed(decode_batch), StringType())  # type: ignore[call-overload]  # no types of pandas to tell


def _exactly() -> Column:
    """Read the packed rows by the converters; the others reach Python as nulls."""
    packed = column("packed")
    # Called non-deterministic, it stops filters on the result from being pushed below it, through all steps
    # of `sure` and into one expression that takes the optimizer minutes. Named twice, ``packed`` is computed
    # before the rows go to Python, so that these need no headers.
    return F.when(packed.isNotNull(), _unpacked(exact_udf().asNondeterministic()(packed)))
