"""How a batch of records becomes rows of the tables: in one pass, counted while it is written.

`BatchWriter.write` writes so. `BatchWriter.write_kept` keeps the rows first, for what needs a batch as
a whole: several tables, each with a commit of its own; another topic; a function.

Rows that the Java function reads are written at once, without Python in the plan. The few that it
leaves come to the driver with the counts, and are decoded there. If these are too many, they are read
a second time; where many rows need Python, it decodes all of them in the pass that writes the events, and
the few other records come to the driver. Where these are many, all rows are kept meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from cloudevents_kafka.spark.pipeline._routes import EVENTS, QUARANTINE
from cloudevents_kafka.spark.pipeline._tables import (
    KAFKA_COLUMNS,
    MOST_RULES,
    TOLERATED,
    DateOf,
    error_rule,
    select_events,
    select_quarantine,
    table_of,
    tolerated_rules,
)
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, error_schema, event_schema, wire_schema
from cloudevents_kafka.spark.udf import decode_packed

_READ: Final = PREFIX + "read"
_LEFT: Final = PREFIX + "left"
_MOST_BYTES: Final = 8 << 20  # of the rows that come to the driver
_LARGE_SHARE: Final = 0.25  # of rows that need Python; from here on it decodes all
_MOST_IN_DRIVER: Final = 5_000  # rows that are decoded in the driver
_PACKED: Final = (
    "topic string, partition int, offset long, micros long, key binary, value binary, "
    f"headers {HEADERS.simpleString()}"
)
_PACKED_ERROR: Final = f"{_PACKED}, error {error_schema().simpleString()}"
_RECORD: Final = "topic, partition, offset, unix_micros(timestamp) AS micros, key, value, headers"


# Takes the events of a batch, its other records, and its counts.
Deliver = Callable[[DataFrame, DataFrame, BatchCounts], None]
Routes = Mapping[str, str]


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
        self._has_many_errors = False

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
        routes: Routes | None = None,
    ) -> BatchCounts:
        """Write records that have these offsets to the tables, and return the counts.

        With ``routes`` the rows of events have the column `TABLE`. A batch that is written again must
        be read in the same way: ``in_java`` is the result of `starts_in_java`, ``lenient`` that of
        `decode_events`. Raises `CountMismatch` if Spark has read other records, or one twice.
        """
        rows = _Rows(offsets, self._date_of, lenient, routes or {})
        records = self._limit_tasks(records, offsets)
        if not in_java:
            return self._write_in_python(records, rows, tables)
        reading = _Reading(records, rows)
        if not tables.append(EVENTS, reading.events):
            _run(reading.events)
        counts = reading.counts()
        if left := self._left(counts):
            others = self._write_decoded(reading.rest(left), rows, tables, is_rest=True)
            counts = _add_left(counts, others, left)
        return counts

    def write_kept(
        self,
        records: DataFrame,
        offsets: OffsetRanges,
        deliver: Deliver,
        *,
        in_java: bool,
        lenient: bool = False,
        routes: Routes | None = None,
    ) -> BatchCounts:
        """Pass all rows of the tables to a function at once, kept until it returns, and return the counts.

        The parameters are those of `write`.
        """
        rows = _Rows(offsets, self._date_of, lenient, routes or {})
        records = self._limit_tasks(records, offsets)
        with ExitStack() as kept:
            if not in_java:
                decoded, counts = kept.enter_context(_counted(self._decode(records, rows), rows))
                events = rows.events(decoded)
            else:
                reading = _Reading(records, rows)
                events = kept.enter_context(_kept(reading.events))
                counts = reading.counts()
                left = self._left(counts)
                decoded = reading.rest(left)
                if left:
                    decoded, rest = kept.enter_context(_counted(decoded, rows))
                    counts = _add_left(counts, rest, left)
                    events = events.unionByName(rows.events(decoded))
            deliver(events, _quarantine(decoded), counts.check())
        return counts

    def _limit_tasks(self, records: DataFrame, offsets: OffsetRanges) -> DataFrame:
        if sum(1 for _ in iter_partitions(offsets)) > self._tasks:
            return records.coalesce(self._tasks)  # as many files
        return records

    def _decode(self, records: DataFrame, rows: _Rows) -> DataFrame:
        self._share /= 2  # after some batches, Java reads again
        return rows.decode(records)

    def _left(self, counts: BatchCounts) -> int:
        """Return the number of records that Java has left, and note their share."""
        left = counts.read - counts.events
        self._share = left / counts.read if counts.read else 0.0
        return left

    def _write_in_python(self, records: DataFrame, rows: _Rows, tables: Tables) -> BatchCounts:
        """Write the events and the other records, all decoded in Python, and return the counts."""
        decoded = self._decode(records, rows)
        if self._has_many_errors or reader_sql(records) is None:
            counts = self._write_decoded(decoded, rows, tables)
            self._has_many_errors = counts.quarantined > _MOST_IN_DRIVER
            return counts
        decoding = _Decoding(decoded, rows)
        if not tables.append(EVENTS, decoding.events):
            _run(decoding.events)
        counts = decoding.counts()
        if counts.quarantined:
            self._has_many_errors = counts.quarantined > _MOST_IN_DRIVER
            tables.append(QUARANTINE, decoding.quarantine(counts.quarantined))
        return counts

    def _write_decoded(
        self, decoded: DataFrame, rows: _Rows, tables: Tables, *, is_rest: bool = False
    ) -> BatchCounts:
        """Write the events and the other records, decoded once, and return the counts.

        ``is_rest`` is whether other events of the batch have been written.
        """
        with _counted(decoded, rows) as (kept, counts):
            if counts.events:
                events = rows.events(kept)
                tables.append(EVENTS, events, _first_offset(events) if is_rest else None)
            if counts.quarantined:
                tables.append(QUARANTINE, _quarantine(kept))
        return counts


@dataclass(frozen=True)
class _Rows:
    """How the rows of a batch are read, laid out and counted."""

    offsets: OffsetRanges
    date_of: DateOf
    lenient: bool
    routes: Routes

    def decode(self, records: DataFrame) -> DataFrame:
        return decode_events(records, keep=KAFKA_COLUMNS, lenient=self.lenient)

    def events(self, decoded: DataFrame) -> DataFrame:
        return self.select(decoded.where(F.col("error").isNull()))

    def select(self, events: DataFrame, *also: str, by_java: bool = False) -> DataFrame:
        """Return the columns of the table, and others after them; ``by_java`` uses the Java functions."""
        return select_events(
            events, self.date_of, lenient=self.lenient, routes=self.routes, also=also, by_java=by_java
        )

    def labels(self, is_event: Column) -> dict[str, Labels]:
        """Return the labels by which events are counted."""
        labels = {"event": Labels(is_event, F.col("type"), F.col("mode"))}
        if self.lenient:
            tolerated = F.col(TOLERATED)
            labels[TOLERATED] = Labels(tolerated.isNotNull(), *tolerated_rules(tolerated))
        if self.routes:
            labels["table"] = Labels(is_event, F.lit(""), table_of(F.col("type"), self.routes))
        return labels


class _Reading:
    """The rows of a batch that Java reads, the counts of these, and the rows that it leaves."""

    def __init__(self, records: DataFrame, rows: _Rows) -> None:
        sql = reader_sql(records, lenient=rows.lenient)
        if sql is None:
            raise PipelineFailed(
                "a batch that was begun must be read by the Java function again, which this session does not "
                "have; start again in a session that has it, see the warning of decode_events"
            )
        self._rows = rows
        self._records = records
        self._read = _read_in_java(records, sql)
        self._observation = Observation()
        # The columns of the table are selected first: value and headers are not copied for the counts.
        read = self._read.select(f"{_READ}.*", *map(F.col, KAFKA_COLUMNS), _LEFT)
        event = F.col("id")
        observed = rows.select(read, _LEFT, by_java=True).observe(
            self._observation,
            F.count(F.lit(1)).alias("records"),
            F.count(event).alias("events"),
            F.to_json(F.collect_list(_LEFT)).alias("left"),
            *metrics(rows.offsets, rows.labels(event.isNotNull())),
        )
        self.events = observed.where(event.isNotNull()).drop(_LEFT)

    def counts(self) -> BatchCounts:
        """Return the counts, after the events were read; all other records are left."""
        found = self._observation.get
        return BatchCounts(
            read=found["records"],
            events=found["events"],
            by_type=label_counts(found, "event"),
            **_other_counts(found),
            offsets=partition_counts(found, self._rows.offsets),
        )

    def rest(self, left: int) -> DataFrame:
        """Return the records that Java leaves, decoded in Python."""
        packed = json.loads(self._observation.get["left"])
        if len(packed) == left <= _MOST_IN_DRIVER:
            return _decode_in_driver(self._records, packed, lenient=self._rows.lenient)
        if len(packed) == left:
            return self._rows.decode(_unpack(self._records, packed))
        read_again = self._read.where(F.col(_READ).isNull())
        return self._rows.decode(read_again.select(*KAFKA_COLUMNS))


class _Decoding:
    """The rows of a batch that Python decodes: the events, the counts, and the other records."""

    def __init__(self, decoded: DataFrame, rows: _Rows) -> None:
        self._rows = rows
        self._decoded = decoded
        self._observation = Observation()
        text = f"CASE WHEN error IS NOT NULL THEN to_json(struct({_RECORD}, error)) END"
        packed = decoded.selectExpr("*", f"{few_sql(text, _MOST_BYTES)} AS {_LEFT}")
        observed = rows.select(packed, "error", _LEFT, by_java=True).observe(
            self._observation,
            F.count(F.lit(1)).alias("records"),
            F.to_json(F.collect_list(_LEFT)).alias("left"),
            *metrics(rows.offsets, _all_labels(rows)),
        )
        self.events = observed.where(F.col("error").isNull()).drop("error", _LEFT)

    def counts(self) -> BatchCounts:
        """Return the counts, after the events were read."""
        return _all_counts(self._observation.get, self._rows)

    def quarantine(self, number: int) -> DataFrame:
        """Return the rows of the quarantine, of which there are so many."""
        packed = json.loads(self._observation.get["left"])
        if len(packed) < number:
            return _quarantine(self._decoded)
        texts = self._decoded.sparkSession.createDataFrame([(text,) for text in packed], "text string")
        row = texts.coalesce(1).select(F.from_json("text", _PACKED_ERROR, FROM_JSON).alias("row"))
        rows = row.select("row.*").withColumn("timestamp", F.timestamp_micros("micros"))
        return select_quarantine(rows)


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Yield rows that are computed, and kept within this block."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        _run(kept)
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def _counted(decoded: DataFrame, rows: _Rows) -> Iterator[tuple[DataFrame, BatchCounts]]:
    """Yield rows of events and errors, kept within this block, and their counts."""
    observation = Observation()
    total = F.count(F.lit(1)).alias("records")
    with _kept(decoded.observe(observation, total, *metrics(rows.offsets, _all_labels(rows)))) as kept:
        yield kept, _all_counts(observation.get, rows)


def _all_labels(rows: _Rows) -> dict[str, Labels]:
    """Return the labels by which events and other records are counted."""
    is_event = F.col("error").isNull()
    errors = Labels(~is_event, F.col("error.verdict"), error_rule())
    return {**rows.labels(is_event), "error": errors}


def _all_counts(found: Mapping[str, Any], rows: _Rows) -> BatchCounts:
    by_type, by_reason = label_counts(found, "event"), label_counts(found, "error")
    return BatchCounts(
        read=found["records"],
        events=_total(by_type),
        quarantined=_total(by_reason),
        by_type=by_type,
        by_reason=by_reason,
        **_other_counts(found),
        offsets=partition_counts(found, rows.offsets),
    )


def _run(rows: DataFrame) -> None:
    """Compute rows, to count or to keep them."""
    rows.write.format("noop").mode("overwrite").save()


def _quarantine(decoded: DataFrame) -> DataFrame:
    return select_quarantine(decoded.where(F.col("error").isNotNull()))


def _add_left(counts: BatchCounts, others: BatchCounts, left: int) -> BatchCounts:
    """Return the counts plus those of the records that Java has left."""
    if others.read != left:
        raise CountMismatch(
            f"Python must decode the {left:,} records of the batch that are left to it, got "
            f"{others.read:,}. Start again"
        )
    return counts.add_left(others)


def _other_counts(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of what was read leniently, and by table, if they were observed."""
    counts: dict[str, Any] = {}
    if f"{TOLERATED}_counts" in found:
        by_label = label_counts(found, TOLERATED)
        rules = rule_counts(by_label, MOST_RULES)
        counts |= {"tolerated": _total(by_label), "by_tolerated": rules}
    if "table_counts" in found:
        tables = next(iter(label_counts(found, "table").values()), {})
        counts["routed"] = {name: tables[name] for name in sorted(tables) if name != EVENTS}
    return counts


def _read_in_java(records: DataFrame, sql: str) -> DataFrame:
    """Return the Kafka columns, the events that Java reads, and the text of some rows that it leaves."""
    read = records.selectExpr(f"{sql} AS {_READ}", *KAFKA_COLUMNS)
    left = few_sql(f"CASE WHEN {_READ} IS NULL THEN to_json(struct({_RECORD})) END", _MOST_BYTES)
    return read.selectExpr(_READ, f"{left} AS {_LEFT}", *KAFKA_COLUMNS)


def _decode_in_driver(records: DataFrame, packed: list[str], *, lenient: bool) -> DataFrame:
    """Return the rows of `decode_events` for rows in texts, which are decoded in this process."""
    texts = [(text, decode_packed(text, lenient=lenient)) for text in packed]
    rows = records.sparkSession.createDataFrame(texts, "record string, event string").coalesce(1)
    rows = rows.select(
        F.from_json("record", _PACKED, FROM_JSON).alias("record"),
        F.from_json("event", wire_schema(lenient=lenient), FROM_JSON).alias("event"),
    )
    fields = {name: F.col(f"event.{name}") for name in event_schema(lenient=lenient).names}
    fields |= {name: F.col(f"record.{name}") for name in KAFKA_COLUMNS if name != "timestamp"}
    fields["time"] = F.timestamp_micros(fields["time"])
    fields["timestamp"] = F.timestamp_micros("record.micros")
    return rows.select(*(column.alias(name) for name, column in fields.items()))


def _unpack(records: DataFrame, packed: list[str]) -> DataFrame:
    """Return the rows in texts that `_read_in_java` made."""
    texts = records.sparkSession.createDataFrame([(text,) for text in packed], "text string").coalesce(1)
    row = texts.select(F.from_json("text", _PACKED, FROM_JSON).alias("row")).select("row.*")
    return row.withColumn("timestamp", F.timestamp_micros("micros")).select(*KAFKA_COLUMNS)


def _first_offset(rows: DataFrame) -> OffsetRanges:
    """Return the offset of the first of some rows."""
    place = ("topic", "partition", "offset")
    topic, partition, offset = rows.select(*place).orderBy(*place).head(1)[0]
    return {topic: {str(partition): OffsetRange(offset, offset + 1)}}


def _total(counts: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(sum(inner.values()) for inner in counts.values())
