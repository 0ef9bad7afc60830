"""Reading: from the Kafka source's columns to an event's columns, row by row, nothing lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StringType

from cloudevents_kafka.spark import compiled, sure
from cloudevents_kafka.spark.document import PREFIX, column
from cloudevents_kafka.spark.exact import decode_batch
from cloudevents_kafka.spark.schema import KEPT_COLUMNS, event_schema, wire_schema
from cloudevents_kafka.spark.workers import informed


def decode_events(df: DataFrame, *, keep: Sequence[str] | None = None) -> DataFrame:
    """Turn rows of Spark's Kafka source into events, each row into one row.

    ``df`` has the columns ``value`` and ``headers`` (option ``includeHeaders``), of a
    batch or of a stream. The result has the columns of `event_schema`, then those of
    ``df`` that ``keep`` names (by default, of `KEPT_COLUMNS`, those that are there).
    A row that is no event has nulls and its ``error``; no row fails the job.

    Verdicts and values are those of `cloudevents_kafka.decode`. Records that are plain
    to see are read by a function in Java, or by column expressions where Spark cannot be
    given one, as through Spark Connect: that takes two to six times as long. All others are
    read by `decode` itself, in Python workers, which need this package.

    Raises `ValueError` where a column is missing.
    """
    kept = _kept(df, keep)
    sql = compiled.reader(df)
    return _by_columns(df, kept) if sql is None else _by_java(df, sql, kept)


def _by_java(df: DataFrame, sql: str, kept: Sequence[str]) -> DataFrame:
    """Keep the event in one struct up to the end: whole, it is copied in one piece."""
    df = _read_by_java(df, sql, kept).withColumn(PREFIX + "exact", _exactly())
    event = f"{compiled.either(PREFIX + 'read', PREFIX + 'exact')} AS {PREFIX}event"
    return df.selectExpr(event, *map(_quoted, kept)).selectExpr(f"{PREFIX}event.*", *map(_quoted, kept))


def _read_by_java(df: DataFrame, sql: str, kept: Sequence[str]) -> DataFrame:
    """Read the plain records to ``read``, and pack the others in ``packed``; one of both is null."""
    record = (f"{name} AS {PREFIX}{name}" for name in ("value", "headers"))  # some may be kept by their names
    df = df.selectExpr(f"{sql} AS {PREFIX}read", *record, *map(_quoted, kept))
    read = column("read")
    packed = F.when(read.isNull(), _packed(column("value"), column("headers"))).alias(PREFIX + "packed")
    return df.select(read, packed, *map(_quoted, kept))


def _by_columns(df: DataFrame, kept: Sequence[str]) -> DataFrame:
    fast = sure.columns()
    df = _read_by_columns(df, kept).withColumn(PREFIX + "exact", _exactly())
    names = event_schema().names
    return df.selectExpr(*(_either(name, fast=name in fast) for name in names), *map(_quoted, kept))


def _read_by_columns(df: DataFrame, kept: Sequence[str]) -> DataFrame:
    """Read the plain records, and pack the others in ``packed``, which is null for those.

    Only what comes out, and what the converters need, is copied to Python's side of the plan.
    """
    columns = (F.expr(sql).alias(PREFIX + name) for name, sql in sure.columns().items())
    packed = F.when(~column("sure"), _packed(F.col("value"), F.col("headers"))).alias(PREFIX + "packed")
    return sure.read_surely(df).select(*columns, packed, *map(_quoted, kept))


def _either(name: str, *, fast: bool) -> str:
    exact = f"timestamp_micros({PREFIX}exact.time)" if name == "time" else f"{PREFIX}exact.{name}"
    return f"{f'coalesce({PREFIX}{name}, {exact})' if fast else exact} AS {name}"


def cloudevent(value: Column, headers: Column) -> Column:
    """Return one struct of `event_schema` for a record: an event, or its ``error``.

    Every row goes through the converters in Python, some ten times slower than
    `decode_events`; what makes that one fast cannot be one expression.
    """
    read = _unpacked(exact_udf()(_packed(value, headers)))
    return F.struct(
        *((F.timestamp_micros(read[n]) if n == "time" else read[n]).alias(n) for n in event_schema().names)
    )


def _kept(df: DataFrame, keep: Sequence[str] | None) -> list[str]:
    there = df.columns
    missing = [name for name in ("value", "headers", *(keep or ())) if name not in there]
    if missing:
        hint = "; set the Kafka source's option includeHeaders to true" if "headers" in missing else ""
        raise ValueError(f"the DataFrame has no column {', '.join(missing)}, only {', '.join(there)}{hint}")
    return [name for name in KEPT_COLUMNS if name in there] if keep is None else list(keep)


def _packed(value: Column, headers: Column) -> Column:
    """Pack a record into one text for `exact.decode_packed`; bytes become base64."""
    return F.to_json(F.struct(value.alias("value"), headers.alias("headers")))


def _unpacked(text: Column) -> Column:
    return F.from_json(text, wire_schema(), {"maxStringLen": str(2**31 - 1)})


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


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
