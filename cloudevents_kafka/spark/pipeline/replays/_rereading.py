"""Reads records of the quarantine again, and counts the outcomes.

Only the function `read_again` decides whether a record is an event now, or is refused again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import getmodule
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.spark.pipeline.notes import EVENTS, ReadSettings
from cloudevents_kafka.spark.pipeline.replays._replay_notes import LANDED, REFUSED, ReplayNote
from cloudevents_kafka.spark.pipeline.replays._replay_options import PLACE
from cloudevents_kafka.spark.pipeline.tables import error_rule, event_columns, record_date, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.typed.framed import Writers
    from cloudevents_kafka.spark.udf import Mend

_MOST_COUNTS: Final = 1000  # because the texts of reasons are untrusted
_PACKED: Final = (
    "to_json(struct(key, `value`, headers, topic, `partition`, `offset`, "
    "unix_millis(`timestamp`) AS `timestamp`))"
)


def read_again(
    quarantined: DataFrame,
    mend: Mend | None,
    read: ReadSettings,
    find_writers: Callable[[DataFrame], Writers | None],
) -> DataFrame:
    """Return quarantined rows with the replay's outcome, and with the columns of the new event or error.

    The column ``was`` contains the error from the quarantine. All quarantined rows are decoded in Python,
    because the Java function could not read most of these rows before. If the data of an event does not fit
    its schema, the event is refused.
    """
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    from cloudevents_kafka.spark.schema import event_schema
    from cloudevents_kafka.spark.typed.frames import refuse_misfits
    from cloudevents_kafka.spark.typed.values import value_names

    again = _again(mend, lenient=read.lenient)
    rows = quarantined.select("error", *PLACE, again(_PACKED).alias("again"))
    fields = {name: f"again.event.`{name}`" for name in event_schema(lenient=read.lenient).names}
    fields |= {"time": "timestamp_micros(again.event.`time`)", **{name: f"`{name}`" for name in PLACE}}
    fields |= {"was": "`error`", **{name: f"again.{name}" for name in ("outcome", "key", "headers")}}
    decoded = rows.selectExpr(*(f"{value} AS `{name}`" for name, value in fields.items()))
    if not read.schemas:
        return decoded
    outcome = f"CASE WHEN outcome = '{LANDED}' AND error IS NOT NULL THEN '{REFUSED}' ELSE outcome END"
    checked = refuse_misfits(decoded, read.schemas, find_writers(decoded), rescue=read.rescue)
    return checked.drop(*value_names(read.schemas).values()).withColumn("outcome", F.expr(outcome))


def _again(mend: Mend | None, *, lenient: bool) -> Any:
    """Return a function that takes SQL for packed records, and returns a column.

    The column contains the result of `reread_packed` for each packed record.
    """
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.sql.types import BinaryType, StringType, StructType

    from cloudevents_kafka.spark._workers import with_registry
    from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, wire_schema
    from cloudevents_kafka.spark.udf import reread_batch

    schema = StructType().add("outcome", StringType()).add("event", wire_schema(lenient=lenient))
    schema = schema.add("key", BinaryType()).add("headers", HEADERS)
    with _by_value(mend):
        reread = with_registry(reread_batch(mend, lenient=lenient))
    udf: Any = pandas_udf(reread, StringType())  # type: ignore[call-overload]  # pandas has no types
    return lambda packed: F.from_json(udf(F.expr(packed)), schema, FROM_JSON)


@contextmanager
def _by_value(mend: Mend | None) -> Iterator[None]:
    """Send the user's function to Spark's workers with its code, because workers do not import its module."""
    from pyspark import cloudpickle as cloudpickle_module

    cloudpickle: Any = cloudpickle_module  # the module has no types
    module = None if mend is None else getmodule(mend)
    if module is None or module.__name__ == "__main__":
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def count_outcomes(rows: DataFrame, routes: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of `ReplayCounts` as a dict; the counts are computed from the rows.

    If the rows have too many different reasons, `OTHERS` counts the records with the rarest reasons.
    """
    table = table_of("`type`", routes) if routes else f"'{EVENTS}'"
    kinds = rows.selectExpr("outcome", f"{table} AS landed_in").groupBy("outcome", "landed_in").count()
    outcomes: dict[str, int] = {}
    tables: dict[str, int] = {}
    for row in kinds.collect():
        outcomes[row["outcome"]] = outcomes.get(row["outcome"], 0) + row["count"]
        if row["outcome"] == LANDED:
            tables[row["landed_in"]] = row["count"]
    reasons = rows.selectExpr("was AS error", "outcome")
    reasons = reasons.selectExpr("error.verdict", f"{error_rule()} AS reason", "outcome")
    groups = reasons.groupBy("verdict", "reason", "outcome").count().orderBy("count", ascending=False)
    counts: dict[str, dict[str, dict[str, int]]] = {}
    rest = dict(outcomes)
    for row in groups.limit(_MOST_COUNTS).collect():
        by_outcome = counts.setdefault(row["verdict"] or "", {}).setdefault(row["reason"], {})
        by_outcome[row["outcome"]] = row["count"]
        rest[row["outcome"]] -= row["count"]
    if others := {outcome: number for outcome, number in rest.items() if number}:
        counts[OTHERS] = {OTHERS: others}
    return {"counts": counts, "outcomes": outcomes, "tables": tables}


def event_rows(staged: DataFrame, note: ReplayNote, table: str) -> DataFrame:
    """Return those of the staged rows that land in a table of events."""
    from cloudevents_kafka.spark.typed.frames import rows_of_table, typed_columns
    from cloudevents_kafka.spark.typed.values import read_checked

    landed = staged.where(f"outcome = '{LANDED}'")
    if note.routes:
        landed = landed.where(f"{table_of('`type`', note.routes)} = '{table}'")
    if note.schemas:
        landed = read_checked(landed, note.schemas, rescue=note.rescue)
    typed = typed_columns(note.schemas, "")
    rows = landed.selectExpr(*event_columns("", lenient=note.lenient, typed=typed))
    return rows_of_table(rows, table, note.schemas, note.routes)


def outcome_rows(staged: DataFrame, note: ReplayNote) -> DataFrame:
    """Return the outcome of each record, with the topic, partition, offset and timestamp of the record.

    The last column of the result is the date by which the table of outcomes is partitioned.
    """
    table = table_of("`type`", note.routes) if note.routes else f"'{EVENTS}'"
    return staged.selectExpr(
        *(f"`{name}`" for name in PLACE),
        "outcome",
        f"CASE WHEN outcome = '{LANDED}' THEN {table} END AS landed_in",
        "`type`",
        "error",
        "was",
        f"CAST({note.number} AS BIGINT) AS replay",
        f"'{note.run}' AS run",
        f"timestamp_micros({note.micros}) AS replayed_at",
        record_date(),
    )
