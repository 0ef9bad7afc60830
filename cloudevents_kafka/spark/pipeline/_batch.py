"""How a batch of records becomes rows of the tables: in one pass, counted while it is written.

`BatchWriter.write` writes so. `BatchWriter.write_kept` keeps the rows first, for what needs a batch as
a whole: several tables, each with a commit of its own; another topic; a function.

Rows that the Java function reads are written at once, without Python in the plan. The few that it
leaves come to the driver with the counts, and are decoded there. If these are too many, they are read
a second time; where many rows need Python, it decodes all of them in the pass that writes the events, and
the few other records come to the driver. Where these are many, all rows are kept meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Protocol

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.storagelevel import StorageLevel

from cloudevents_kafka.spark.fast.java_reader import reader_sql
from cloudevents_kafka.spark.pipeline._batch_rows import (
    Decoding,
    Reading,
    Routes,
    Rows,
    all_counts,
    all_labels,
    quarantine_of,
)
from cloudevents_kafka.spark.pipeline._counts import BatchCounts, CountMismatch
from cloudevents_kafka.spark.pipeline._observed import metrics
from cloudevents_kafka.spark.pipeline._offsets import OffsetRange, OffsetRanges, iter_partitions
from cloudevents_kafka.spark.pipeline._routes import EVENTS, QUARANTINE
from cloudevents_kafka.spark.pipeline._tables import DateOf

_LARGE_SHARE: Final = 0.25  # of rows that need Python; from here on it decodes all
_MOST_ERRORS: Final = 5_000  # for which the rows of a batch are not kept


# Takes the events of a batch, its other records, and its counts.
Deliver = Callable[[DataFrame, DataFrame, BatchCounts], None]


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
        rows = Rows(offsets, self._date_of, lenient, routes or {})
        records = self._limit_tasks(records, offsets)
        if not in_java:
            return self._write_in_python(records, rows, tables)
        reading = Reading(records, rows)
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
        rows = Rows(offsets, self._date_of, lenient, routes or {})
        records = self._limit_tasks(records, offsets)
        with ExitStack() as kept:
            if not in_java:
                decoded, counts = kept.enter_context(_counted(self._decode(records, rows), rows))
                events = rows.events(decoded)
            else:
                reading = Reading(records, rows)
                events = kept.enter_context(_kept(reading.events))
                counts = reading.counts()
                left = self._left(counts)
                decoded = reading.rest(left)
                if left:
                    decoded, rest = kept.enter_context(_counted(decoded, rows))
                    counts = _add_left(counts, rest, left)
                    events = events.unionByName(rows.events(decoded))
            deliver(events, quarantine_of(decoded), counts.check())
        return counts

    def _limit_tasks(self, records: DataFrame, offsets: OffsetRanges) -> DataFrame:
        if sum(1 for _ in iter_partitions(offsets)) > self._tasks:
            return records.coalesce(self._tasks)  # as many files
        return records

    def _decode(self, records: DataFrame, rows: Rows) -> DataFrame:
        self._share /= 2  # after some batches, Java reads again
        return rows.decode(records)

    def _left(self, counts: BatchCounts) -> int:
        """Return the number of records that Java has left, and note their share."""
        left = counts.read - counts.events
        self._share = left / counts.read if counts.read else 0.0
        return left

    def _write_in_python(self, records: DataFrame, rows: Rows, tables: Tables) -> BatchCounts:
        """Write the events and the other records, all decoded in Python, and return the counts."""
        decoded = self._decode(records, rows)
        if self._has_many_errors or reader_sql(records) is None:
            counts = self._write_decoded(decoded, rows, tables)
            self._has_many_errors = counts.quarantined > _MOST_ERRORS
            return counts
        decoding = Decoding(decoded, rows)
        if not tables.append(EVENTS, decoding.events):
            _run(decoding.events)
        counts = decoding.counts()
        if counts.quarantined:
            self._has_many_errors = counts.quarantined > _MOST_ERRORS
            tables.append(QUARANTINE, decoding.quarantine(counts.quarantined))
        return counts

    def _write_decoded(
        self, decoded: DataFrame, rows: Rows, tables: Tables, *, is_rest: bool = False
    ) -> BatchCounts:
        """Write the events and the other records, decoded once, and return the counts.

        ``is_rest`` is whether other events of the batch have been written.
        """
        with _counted(decoded, rows) as (kept, counts):
            if counts.events:
                events = rows.events(kept)
                tables.append(EVENTS, events, _first_offset(events) if is_rest else None)
            if counts.quarantined:
                tables.append(QUARANTINE, quarantine_of(kept))
        return counts


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
def _counted(decoded: DataFrame, rows: Rows) -> Iterator[tuple[DataFrame, BatchCounts]]:
    """Yield rows of events and errors, kept within this block, and their counts."""
    observation = Observation()
    total = F.count(F.lit(1)).alias("records")
    with _kept(decoded.observe(observation, total, *metrics(rows.offsets, all_labels(rows)))) as kept:
        yield kept, all_counts(observation.get, rows)


def _run(rows: DataFrame) -> None:
    """Compute rows, to count or to keep them."""
    rows.write.format("noop").mode("overwrite").save()


def _add_left(counts: BatchCounts, others: BatchCounts, left: int) -> BatchCounts:
    """Return the counts plus those of the records that Java has left."""
    if others.read != left:
        raise CountMismatch(
            f"Python must decode the {left:,} records of the batch that are left to it, got "
            f"{others.read:,}. Start again"
        )
    return counts.add_left(others)


def _first_offset(rows: DataFrame) -> OffsetRanges:
    """Return the offset of the first of some rows."""
    place = ("topic", "partition", "offset")
    topic, partition, offset = rows.select(*place).orderBy(*place).head(1)[0]
    return {topic: {str(partition): OffsetRange(offset, offset + 1)}}
