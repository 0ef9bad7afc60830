"""The tables of a pipeline: their columns, of which the last is the date of their folders.

If the events have several tables, `TABLE` names that of each row until it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.spark.fast.java_reader import foreign_sql
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges, iter_partitions
from cloudevents_kafka.spark.pipeline._routes import EVENTS, TABLE, route_regex

DateOf = Literal["time", "timestamp"]

RECORD_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key")
KAFKA_COLUMNS: Final = (*RECORD_COLUMNS, "value", "headers")
EVENT_COLUMNS: Final = (
    *("id", "source", "type", "specversion", "subject", "time", "time_text"),
    *("datacontenttype", "dataschema", "extensions", "extension_types", "data", "data_kind", "mode"),
)
TOLERATED: Final = "tolerated"  # a column of events that were read leniently

RECORD_DATE: Final = "record_date"
_SECONDS_PER_DAY: Final = 86_400
# The rule of a reason such as "broken CloudEvent: time: must be …, got '…' (T-12, core: …)".
# With the value, each bad record could have a reason of its own.
_RULE: Final = (
    r"(?s)^(?:broken CloudEvent: |not a CloudEvent: )?(.+?)(?:, got |, but | \([A-Z]-[0-9]|$|(?<=.{120}))"
)

MOST_RULES: Final = 8  # of one event that are counted one by one
_LONGEST_RULES: Final = 512  # the names in them are untrusted input


def utc_date(time: Column) -> Column:
    """Return the UTC date of a timestamp, independent of the session's time zone."""
    days = F.floor(F.unix_seconds(time) / F.lit(_SECONDS_PER_DAY))
    return F.date_from_unix_date(days.cast("int"))


def date_column(date_of: DateOf) -> str:
    """Return the name of the column of events that names their folders."""
    return "event_date" if date_of == "time" else RECORD_DATE


def filter_offsets(records: DataFrame, offsets: OffsetRanges) -> DataFrame:
    """Return the records with these offsets."""
    conditions = [
        (F.col("topic") == topic)
        & (F.col("partition") == int(partition))
        & F.col("offset").between(range_.start, range_.end - 1)
        for topic, partition, range_ in iter_partitions(offsets)
    ]
    return records.where(reduce(Column.__or__, conditions))


def table_of(type_: Column, routes: Mapping[str, str]) -> Column:
    """Return the name of the table for events of a type: of the first pattern that matches."""
    found: Any = F  # the first `when` is a function, the others are methods
    for pattern, table in routes.items():
        found = found.when(_matches(type_, pattern), F.lit(table))
    column: Column = found.otherwise(F.lit(EVENTS))
    return column


def _matches(type_: Column, pattern: str) -> Column:
    if "*" not in pattern:
        return type_ == pattern
    if pattern.index("*") == len(pattern) - 1:
        return type_.startswith(pattern[:-1])
    return type_.rlike(route_regex(pattern))


def select_events(
    records: DataFrame,
    date_of: DateOf,
    *,
    lenient: bool = False,
    routes: Mapping[str, str] | None = None,
    also: Sequence[str] = (),
    by_java: bool = False,
) -> DataFrame:
    """Return the columns of events; the last is that of their folders.

    ``records`` are events with all Kafka columns. An event keeps its foreign headers only. If they were
    read leniently, what was tolerated is the last column but one. With ``routes`` the first is `TABLE`.
    Columns of ``also`` come after all. ``by_java`` is whether the session has the Java functions.
    """
    stamp = F.coalesce("time", "timestamp") if date_of == "time" else F.col("timestamp")
    table = [table_of(F.col("type"), routes).alias(TABLE)] if routes else []
    return records.select(
        *table,
        *EVENT_COLUMNS,
        *RECORD_COLUMNS,
        (F.expr(foreign_sql("headers")) if by_java else _foreign(F.col("headers"))).alias("headers"),
        *([TOLERATED] if lenient else []),
        utc_date(stamp).alias(date_column(date_of)),
        *also,
    )


def _foreign(headers: Column) -> Column:
    """Return the headers that are not of an event, or null if there are none."""
    foreign = F.filter(headers, lambda header: ~_is_event_header(header["key"]))
    return F.when(F.size(foreign) > 0, foreign)


def _is_event_header(name: Column) -> Column:
    return name.startswith("ce_") | (name == "content-type")


def select_quarantine(records: DataFrame) -> DataFrame:
    """Return the columns of records that are not events: unchanged, with their errors."""
    return records.select(
        "error", *RECORD_COLUMNS, "value", "headers", utc_date(F.col("timestamp")).alias(RECORD_DATE)
    )


def error_rule() -> Column:
    """Return the rule and the clause of the column ``error``, without the value that breaks it."""
    rule = F.regexp_extract("error.reason", _RULE, 1)
    return F.concat_ws(" ", rule, F.concat(F.lit("["), F.col("error.clause"), F.lit("]")))


def rule_of_error(error: Mapping[str, str | None]) -> str:
    """Return what `error_rule` does, for one error."""
    found = re.search(_RULE, error["reason"] or "")
    rule, clause = found[1] if found else "", error["clause"]
    return rule if clause is None else f"{rule} [{clause}]"


def tolerated_rules(tolerated: Column) -> tuple[Column, Column]:
    """Return two texts of what was tolerated: the clauses with commas between them, the rules with newlines.

    Of an event with very many there are `MOST_RULES`, and one more, which stands for the others.
    """
    few = F.slice(tolerated, 1, MOST_RULES + 1)
    rules = F.substring(F.array_join(few["rule"], "\n"), 1, _LONGEST_RULES)
    return F.array_join(few["clause"], ","), rules


def texts_of_tolerated(tolerated: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return what `tolerated_rules` does, for one event."""
    few = tolerated[: MOST_RULES + 1]
    rules = "\n".join(problem["rule"] for problem in few)
    return ",".join(problem["clause"] for problem in few), rules[:_LONGEST_RULES]
