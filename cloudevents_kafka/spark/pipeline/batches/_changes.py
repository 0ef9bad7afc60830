"""The changes that a batch of records makes in a table with one row for each key.

These rules hold for each key:

1. The row of a key contains the values, topic, partition and offset of the record that was applied last. The
   records of a key come from one partition of one topic, and are applied in the order of their offsets. If
   the last record deletes the row, the row stays in the table, and its column `DELETED` is true.
2. A record is applied only if its offset is higher than the offset in the row. So if a batch is applied
   again, no row changes.
3. A record is refused if the row of its key comes from another partition, because Kafka does not order
   records of different partitions. If the key has no row yet, and the batch has records of the key from
   several partitions, only the records from the first of these partitions are applied. The partitions are
   ordered by topic and number.

Records are counted as if they were applied one by one, so the counts do not depend on where batches end. A
refused record goes to the quarantine. A record counts as `older` if its offset is not higher than the offset
in the row, and as `deleted` if it deletes the row. Any other record counts as `inserted` if its key has no
row or a deleted row, and otherwise as `updated`. If a batch has several records of a key, only the last
record is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from msgspec.structs import replace
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.spark._names import PREFIX
from cloudevents_kafka.spark.pipeline.batches._batch import KeptBatch, kept_rows
from cloudevents_kafka.spark.pipeline.batches._batch_rows import Rows, count_now, event_counts
from cloudevents_kafka.spark.pipeline.batches._observed import Counting, Labels, label_counts
from cloudevents_kafka.spark.pipeline.notes import DELETED, BatchCounts, Upsert
from cloudevents_kafka.spark.pipeline.tables import error_rule, select_quarantine
from cloudevents_kafka.spark.typed.shape import VALUE

_PLACE: Final = ("topic", "partition", "offset")
_TOMBSTONE: Final = "`value` IS NULL AND `key` IS NOT NULL AND error.verdict = 'not-an-event'"
_OUTCOME: Final = f"{PREFIX}outcome"
_REASON: Final = f"{PREFIX}reason"
_CHANGES: Final = ("inserted", "updated", "deleted", "older")
_REFUSED: Final = "refused"


@contextmanager
def row_changes(batch: KeptBatch, table: DataFrame | None, upsert: Upsert) -> Iterator[KeptBatch]:
    """Compare a batch with the rows of ``table``, and yield a batch whose events are the rows to merge."""
    keys = [f"{PREFIX}key{number}" for number in range(len(upsert.keys))]
    changes = _changes(batch, upsert)
    names = changes.columns
    changes = changes.selectExpr(
        "*", *(f"{sql} AS {key}" for sql, key in zip(upsert.key_sql(), keys, strict=True))
    )
    joined = _with_rows(changes, table, upsert, keys)
    with ExitStack() as kept:
        found = kept.enter_context(kept_rows(_with_outcomes(joined, keys)))
        numbers = Counter({row[_OUTCOME]: row["count"] for row in found.groupBy(_OUTCOME).count().collect()})
        counts, quarantine = batch.counts, batch.quarantine
        refused, tombstones = (
            numbers[_REFUSED],
            found.where(f"id IS NULL AND {_OUTCOME} <> '{_REFUSED}'").count(),
        )
        if refused or tombstones:
            refused_rows = found.where(f"{_OUTCOME} = '{_REFUSED}'")
            quarantine = kept.enter_context(kept_rows(_quarantine(batch, refused_rows, upsert)))
            applied = found.where(f"id IS NOT NULL AND {_OUTCOME} <> '{_REFUSED}'")
            counts = _counts(counts, applied, quarantine, batch.rows)
        applied_numbers = {name: numbers[name] for name in _CHANGES if numbers[name]}
        counts = replace(counts, tombstones=tombstones, changes=applied_numbers)
        rows = found.where(f"{PREFIX}last AND {_OUTCOME} IN ('inserted', 'updated', 'deleted')")
        data = {name: f"CASE WHEN NOT `{DELETED}` THEN `{name}` END AS `{name}`" for name in ("data", VALUE)}
        merged = rows.selectExpr(*(data.get(name, f"`{name}`") for name in names))
        yield batch._replace(events=merged, quarantine=quarantine, counts=counts)


def _changes(batch: KeptBatch, upsert: Upsert) -> DataFrame:
    """Return the events and tombstones of a batch, with a column that is true if a record deletes its row."""
    if upsert.keys != ("key",) or not batch.counts.quarantined:
        return batch.events
    columns = ("topic", "partition", "offset", "timestamp", "key", "record_date")
    found = batch.quarantine.where(_TOMBSTONE).selectExpr(
        *(f"`{name}`" for name in columns), f"true AS `{DELETED}`"
    )
    return batch.events.unionByName(found, allowMissingColumns=True)


def _with_rows(changes: DataFrame, table: DataFrame | None, upsert: Upsert, keys: list[str]) -> DataFrame:
    """Add to each record the table's row with the same key; if there is no such row, the columns are null."""
    types = {"topic": "string", "partition": "int", "offset": "bigint", DELETED: "boolean"}
    if table is None:
        nothing = (f"CAST(NULL AS {type_}) AS {PREFIX}{name}" for name, type_ in types.items())
        return changes.selectExpr("*", *nothing)
    sql = zip(upsert.key_sql(), keys, strict=True)
    of_row = (f"`{name}` AS {PREFIX}{name}" for name in types)
    rows = table.selectExpr(*(f"{key} AS {name}" for key, name in sql), *of_row)
    return changes.join(rows, keys, "left")


def _with_outcomes(changes: DataFrame, keys: list[str]) -> DataFrame:
    """Add three columns: a record's outcome, whether it is the key's last record, and why it is refused."""
    of_key = Window.partitionBy(*keys)
    mine = Window.partitionBy(*keys, "`topic`", "`partition`").orderBy("`offset`")
    here = F.struct("`topic`", "`partition`")
    there = F.expr(
        f"CASE WHEN {PREFIX}topic IS NOT NULL THEN "
        f"struct({PREFIX}topic AS topic, {PREFIX}partition AS `partition`) END"
    )
    changes = changes.withColumn(f"{PREFIX}owner", F.coalesce(there, F.min(here).over(of_key)))
    after = F.expr(f"CASE WHEN `offset` <= {PREFIX}offset THEN {PREFIX}deleted ELSE `{DELETED}` END")
    before = F.coalesce(F.lag(after).over(mine), F.col(f"{PREFIX}deleted"), F.lit(True))
    changes = changes.withColumns(
        {f"{PREFIX}before": before, f"{PREFIX}last": F.lead("`offset`").over(mine).isNull()}
    )
    keyless = " OR ".join(f"{key} IS NULL" for key in keys)
    misplaced = f"struct(`topic`, `partition`) <> {PREFIX}owner"
    outcome = (
        f"CASE WHEN {keyless} OR {misplaced} THEN '{_REFUSED}' WHEN `offset` <= {PREFIX}offset THEN 'older' "
        f"WHEN `{DELETED}` THEN 'deleted' WHEN {PREFIX}before THEN 'inserted' ELSE 'updated' END"
    )
    reason = (
        f"CASE WHEN {keyless} THEN 'upsert: a key must not be null' ELSE "
        "concat('upsert: a key must stay in one partition, got one of ', "
        f"{PREFIX}owner.topic, '[', {PREFIX}owner.`partition`, ']') END"
    )
    return changes.withColumns({_OUTCOME: F.expr(outcome), _REASON: F.expr(reason)})


def _quarantine(batch: KeptBatch, refused: DataFrame, upsert: Upsert) -> DataFrame:
    """Return the rows of the quarantine: tombstones are removed, and the refused records are added.

    The refused records are selected from the rows of Spark's source, because rows of events do not have all
    headers.
    """
    rows = batch.quarantine.where(f"NOT ({_TOMBSTONE})") if upsert.keys == ("key",) else batch.quarantine
    why = refused.selectExpr(*(f"`{name}`" for name in _PLACE), _REASON)
    error = (
        f"named_struct('verdict', '{_REFUSED}', 'attribute', CAST(NULL AS STRING), "
        f"'reason', {_REASON}, 'clause', CAST(NULL AS STRING)) AS error"
    )
    records = batch.records.join(why, list(_PLACE)).selectExpr("*", error)
    return rows.unionByName(select_quarantine(records))


def _counts(counts: BatchCounts, events: DataFrame, quarantine: DataFrame, rows: Rows) -> BatchCounts:
    """Count the rows of events and of the quarantine again, and return the counts with these numbers."""
    errors = Labels("error IS NOT NULL", "error.verdict", error_rule())
    found = count_now(quarantine, Counting(rows.offsets, {"error": errors}, by_java=False))
    by_reason = label_counts(found, "error")
    return replace(
        counts,
        **event_counts(count_now(events, rows.counting())),
        quarantined=sum(sum(inner.values()) for inner in by_reason.values()),
        by_reason=by_reason,
    )
