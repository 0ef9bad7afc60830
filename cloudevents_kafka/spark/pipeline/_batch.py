"""How a batch of records becomes rows of the tables: in one pass, counted while it is written.

Rows that the Java function reads are written at once, without Python in the plan. The few that it
leaves come to the driver with the counts, and are decoded apart. If these are too many, they are read
a second time; where many rows need Python, it decodes all of them, and they are kept meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.storagelevel import StorageLevel

from cloudevents_kafka.spark._columns import PREFIX
from cloudevents_kafka.spark.decode import decode_events
from cloudevents_kafka.spark.fast.java_reader import few_sql, reader_sql
from cloudevents_kafka.spark.pipeline._counts import BatchCounts, CountMismatch
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline._observed import (
    Labels,
    label_counts,
    metrics,
    partition_counts,
    rule_counts,
)
from cloudevents_kafka.spark.pipeline._offsets import OffsetRange, OffsetRanges, iter_partitions
from cloudevents_kafka.spark.pipeline._tables import (
    KAFKA_COLUMNS,
    MOST_RULES,
    TOLERATED,
    DateOf,
    error_rule,
    select_events,
    select_quarantine,
    tolerated_rules,
)
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS

_READ: Final = PREFIX + "read"
_LEFT: Final = PREFIX + "left"
_MOST_BYTES: Final = 8 << 20  # of the rows that come to the driver
_LARGE_SHARE: Final = 0.25  # of rows that need Python; from here on it decodes all
_PACKED: Final = (
    "topic string, partition int, offset long, micros long, key binary, value binary, "
    f"headers {HEADERS.simpleString()}"
)


class Tables(Protocol):
    """The tables of a pipeline, while one batch is written to them."""

    def append(self, table: str, rows: DataFrame, first: OffsetRanges | None = None) -> bool:
        """Return whether rows were written to ``events`` or ``quarantine``: not if it has them already.

        ``first`` is the offset of one row if these are the second rows of the batch for a table.
        """


class BatchWriter:
    """Writes batches; the share of rows that needed Python in one decides how the next is read."""

    def __init__(self, *, date_of: DateOf, tasks: int) -> None:
        self._date_of = date_of
        self._tasks = tasks
        self._share = 0.0

    def starts_in_java(self, records: DataFrame) -> bool:
        """Return whether the next batch is read in Java first, rather than all of it in Python."""
        return self._share < _LARGE_SHARE and reader_sql(records) is not None

    def write(
        self,
        records: DataFrame,
        offsets: OffsetRanges,
        tables: Tables,
        *,
        in_java: bool,
        lenient: bool = False,
    ) -> BatchCounts:
        """Write records that have these offsets to the tables, and return the counts.

        A batch that is written again must be read in the same way: ``in_java`` is the result of
        `starts_in_java`, ``lenient`` that of `decode_events`. Raises `CountMismatch` if Spark has read
        other records, or one twice.
        """
        if sum(1 for _ in iter_partitions(offsets)) > self._tasks:
            records = records.coalesce(self._tasks)  # as many files
        if not in_java:
            self._share /= 2  # after some batches, Java reads again
            return self._write_decoded(records, offsets, tables, lenient=lenient)
        sql = reader_sql(records, lenient=lenient)
        if sql is None:
            raise PipelineFailed(
                "a batch that was begun must be read by the Java function again, which this session does not "
                "have; start again in a session that has it, see the warning of decode_events"
            )
        counts, left = self._write_read(records, sql, offsets, tables, lenient=lenient)
        self._share = left / counts.read if counts.read else 0.0
        return counts

    def _write_read(
        self, records: DataFrame, sql: str, offsets: OffsetRanges, tables: Tables, *, lenient: bool
    ) -> tuple[BatchCounts, int]:
        """Write what Java reads, then the rows that it leaves; return the counts and the number of these."""
        read = _read_in_java(records, sql)
        observation = Observation()
        event = F.col(_READ)
        labels = {"event": Labels(event.isNotNull(), event["type"], event["mode"])}
        if lenient:
            labels[TOLERATED] = _tolerated_labels(event[TOLERATED])
        observed = read.observe(
            observation,
            F.count(F.lit(1)).alias("records"),
            F.count(event).alias("events"),
            F.to_json(F.collect_list(_LEFT)).alias("left"),
            *metrics(offsets, labels),
        )
        events = observed.where(event.isNotNull()).select(f"{_READ}.*", *map(F.col, KAFKA_COLUMNS))
        rows = select_events(events, self._date_of, lenient=lenient)
        if not tables.append("events", rows):
            rows.write.format("noop").mode("overwrite").save()  # only counted
        found = observation.get
        counts = BatchCounts(
            read=found["records"],
            events=found["events"],
            by_type=label_counts(found, "event"),
            **_tolerated_counts(found),
            offsets=partition_counts(found, offsets),
        )
        left = counts.read - counts.events
        if not left:
            return counts, 0
        packed = json.loads(found["left"])
        rest = _unpack(records, packed) if len(packed) == left else _select_left(read)
        others = self._write_decoded(rest, offsets, tables, lenient=lenient, is_rest=True)
        if others.read != left:
            raise CountMismatch(
                f"Python must decode the {left:,} records of the batch that are left to it, got "
                f"{others.read:,}. Start again"
            )
        return counts.add_left(others), left

    def _write_decoded(
        self,
        records: DataFrame,
        offsets: OffsetRanges,
        tables: Tables,
        *,
        lenient: bool,
        is_rest: bool = False,
    ) -> BatchCounts:
        """Decode records once, write the events and the others, and return the counts.

        ``is_rest`` is whether other events of the batch have been written.
        """
        decoded = decode_events(records, keep=KAFKA_COLUMNS, lenient=lenient)
        observation = Observation()
        is_event = F.col("error").isNull()
        labels = {
            "event": Labels(is_event, F.col("type"), F.col("mode")),
            "error": Labels(~is_event, F.col("error.verdict"), error_rule()),
        }
        if lenient:
            labels[TOLERATED] = _tolerated_labels(F.col(TOLERATED))
        total = F.count(F.lit(1)).alias("records")
        kept = decoded.observe(observation, total, *metrics(offsets, labels)).persist(
            StorageLevel.MEMORY_AND_DISK
        )
        try:
            kept.write.format("noop").mode("overwrite").save()
            found = observation.get
            by_type, by_reason = label_counts(found, "event"), label_counts(found, "error")
            counts = BatchCounts(
                read=found["records"],
                events=_total(by_type),
                quarantined=_total(by_reason),
                by_type=by_type,
                by_reason=by_reason,
                **_tolerated_counts(found),
                offsets=partition_counts(found, offsets),
            )
            if counts.events:
                events = kept.where(is_event)
                first = _first_offset(events) if is_rest else None
                tables.append("events", select_events(events, self._date_of, lenient=lenient), first)
            if counts.quarantined:
                tables.append("quarantine", select_quarantine(kept.where(~is_event)))
        finally:
            kept.unpersist()
        return counts


def _read_in_java(records: DataFrame, sql: str) -> DataFrame:
    """Return the Kafka columns, the events that Java reads, and the text of some rows that it leaves."""
    read = records.selectExpr(f"{sql} AS {_READ}", *KAFKA_COLUMNS)
    row = "struct(topic, partition, offset, unix_micros(timestamp) AS micros, key, value, headers)"
    left = few_sql(f"CASE WHEN {_READ} IS NULL THEN to_json({row}) END", _MOST_BYTES)
    return read.selectExpr(_READ, f"{left} AS {_LEFT}", *KAFKA_COLUMNS)


def _unpack(records: DataFrame, packed: list[str]) -> DataFrame:
    """Return the rows in texts that `_read_in_java` made."""
    texts = records.sparkSession.createDataFrame([(text,) for text in packed], "text string").coalesce(1)
    row = texts.select(F.from_json("text", _PACKED, FROM_JSON).alias("row")).select("row.*")
    return row.withColumn("timestamp", F.timestamp_micros("micros")).select(*KAFKA_COLUMNS)


def _select_left(read: DataFrame) -> DataFrame:
    """Return the rows that Java leaves, which are read again."""
    return read.where(F.col(_READ).isNull()).select(*KAFKA_COLUMNS)


def _tolerated_labels(tolerated: Column) -> Labels:
    return Labels(tolerated.isNotNull(), F.lit(""), tolerated_rules(tolerated))


def _tolerated_counts(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of events that were read leniently, if they were observed."""
    if f"{TOLERATED}_counts" not in found:
        return {}
    by_label = label_counts(found, TOLERATED)
    rules = rule_counts(next(iter(by_label.values()), {}), MOST_RULES)
    return {"tolerated": _total(by_label), "by_tolerated": rules}


def _first_offset(rows: DataFrame) -> OffsetRanges:
    """Return the offset of the first of some rows."""
    place = ("topic", "partition", "offset")
    topic, partition, offset = rows.select(*place).orderBy(*place).head(1)[0]
    return {topic: {str(partition): OffsetRange(offset, offset + 1)}}


def _total(counts: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(sum(inner.values()) for inner in counts.values())
