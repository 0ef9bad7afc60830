"""How a batch of records becomes rows of tables: one pass over the records writes and counts the rows.

`BatchWriter.write` writes the rows while Spark computes them. `BatchWriter.write_kept` first stores all rows
of a batch in Spark. Storing all rows is necessary if the whole batch must be known before its rows are
written. `write_kept` is used if the batch has several tables, each with a separate commit; if the batch is
compared with the rows of a table; or if the target is a user's function.

If the Java function can read a record, Spark writes the row of this record without Python in the query plan.
If the Java function cannot read a record, the driver receives this record together with the counts, and
decodes and counts the record. Usually, only a few records of a batch need Python. If these records are too
large together for the driver, Spark reads them a second time. If many records of a batch need Python,
then Python decodes all records of the next batch while Spark writes the events. If Python decodes a batch,
and only a few records of the batch are not events, the driver receives these records. If many records are not
events, Spark stores all rows of the next batch that Python decodes, until the events and the quarantine are
written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.storagelevel import StorageLevel

from cloudevents_kafka.spark._java import free_checkpoint, stored_rows
from cloudevents_kafka.spark.java.reader import reader_sql
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.batches._batch_rows import (
    DecodedRows,
    Decoding,
    Reading,
    Rows,
    all_counts,
    found_by,
    quarantine_of,
)
from cloudevents_kafka.spark.pipeline.batches._driver_rows import DriverRows

_LARGE_SHARE: Final = 0.25  # if a larger share of a batch needs Python, Python decodes the next batch
_MOST_IN_DRIVER: Final = 5_000  # rows that are decoded in this process
_MOST_ERRORS: Final = 5_000  # if a batch has more errors, the rows of the next batch are stored


Append = Callable[[str, DataFrame], bool]
"""Writes rows of the table ``events`` or ``quarantine``; returns false if the table has the rows already."""

Take = Callable[[DataFrame, DataFrame, notes.BatchCounts], None]
"""A function with three arguments: the events of a batch, the records that are not events, and the counts."""


class KeptBatch(NamedTuple):
    """A batch whose rows are stored; ``records`` are the rows of Spark's source, with all Kafka columns."""

    events: DataFrame
    quarantine: DataFrame
    counts: notes.BatchCounts
    rows: Rows
    records: DataFrame


# Compares a batch with the rows of a table, and yields the part of the batch that must land.
Compare = Callable[[KeptBatch], AbstractContextManager[KeptBatch]]


class BatchWriter:
    """Writes batches; for each batch, either Java reads the records first, or Python reads all records.

    Python reads all records of a batch if Java could not read a large share of the records in earlier
    batches.
    """

    def __init__(self, *, tasks: int) -> None:
        self._tasks = tasks
        self._share = 0.0
        self._has_many_errors = False

    def starts_in_java(self, records: DataFrame) -> bool:
        """Return whether Java reads the records of the next batch first; if not, Python reads all records."""
        return self._share < _LARGE_SHARE and reader_sql(records) is not None

    def write(self, records: DataFrame, batch: notes.BegunBatch, append: Append) -> notes.BatchCounts:
        """Write the records of a batch to the tables, and return the counts.

        ``batch`` contains the settings with which the records are read. If the batch has routes, the rows of
        events have the column `TABLE`. Raises `CountMismatch` if Spark has read records outside the offsets
        of the batch, or has read a record twice.
        """
        rows = Rows(batch.offsets, batch, self._tasks)
        records = records.coalesce(self._tasks)  # one file for each task
        if not batch.in_java:
            return self._write_in_python(records, rows, append)
        reading = Reading(records, rows)
        if not append(notes.EVENTS, reading.events):
            _run(reading.events)
        counts = reading.counts()
        if left := self._left(counts):
            with _rest(reading, left, rows) as rest:
                counts = _add_left(counts, rest.counts, left)
                _append(rest, append)
        return counts

    def write_kept(
        self,
        records: DataFrame,
        batch: notes.BegunBatch,
        take: Take,
        compare: Compare = nullcontext,
    ) -> notes.BatchCounts:
        """Pass all rows of a batch to the function ``take``, and return the counts.

        Spark stores the rows until ``take`` returns.
        """
        rows = Rows(batch.offsets, batch, self._tasks)
        records = records.coalesce(self._tasks)  # one file for each task
        with ExitStack() as kept:
            if not batch.in_java:
                rest: DecodedRows = kept.enter_context(_counted(self._decode(records, rows), rows))
                events, counts = rest.events, rest.counts
            else:
                reading = Reading(records, rows)
                events = kept.enter_context(kept_rows(reading.events))
                counts = reading.counts()
                left = self._left(counts)
                rest = kept.enter_context(_rest(reading, left, rows))
                counts = _add_left(counts, rest.counts, left)
                if rest.counts.events:
                    events = events.unionByName(rest.events)
            decoded = KeptBatch(events, rest.quarantine, counts.check(), rows, records)
            events, quarantine, counts, *_ = kept.enter_context(compare(decoded))
            take(events, quarantine, counts.check())
        return counts

    def _decode(self, records: DataFrame, rows: Rows) -> DataFrame:
        self._share /= 2  # so that Java reads first again after some batches
        return rows.decode(records)

    def _left(self, counts: notes.BatchCounts) -> int:
        """Return the number of records that Java could not read, and store the share of these records."""
        left = counts.read - counts.events
        self._share = left / counts.read if counts.read else 0.0
        return left

    def _write_in_python(self, records: DataFrame, rows: Rows, append: Append) -> notes.BatchCounts:
        """Decode all records in Python, write the events and the other records, and return the counts."""
        decoded = self._decode(records, rows)
        if self._has_many_errors or reader_sql(records) is None:
            with _counted(decoded, rows) as counted:
                _append(counted, append, always=True)
            self._has_many_errors = counted.counts.quarantined > _MOST_ERRORS
            return counted.counts
        decoding = Decoding(decoded, rows)
        if not append(notes.EVENTS, decoding.events):
            _run(decoding.events)
        counts = decoding.counts()
        if counts.quarantined:
            self._has_many_errors = counts.quarantined > _MOST_ERRORS
            append(notes.QUARANTINE, decoding.quarantine(counts.quarantined))
        return counts


@dataclass(frozen=True)
class _CountedRows:
    """Rows that Spark has decoded and counted."""

    events: DataFrame
    quarantine: DataFrame
    counts: notes.BatchCounts


def _append(decoded: DecodedRows, append: Append, *, always: bool = False) -> None:
    """Write the events and the other records; with ``always``, write even if there are no events."""
    if always or decoded.counts.events:
        append(notes.EVENTS, decoded.events)
    if decoded.counts.quarantined:
        append(notes.QUARANTINE, decoded.quarantine)


@contextmanager
def _rest(reading: Reading, left: int, rows: Rows) -> Iterator[DecodedRows]:
    """Decode and count the records that Java could not read, and yield their rows.

    This process decodes up to `_MOST_IN_DRIVER` records. If the records exceed this number, or are too large
    together, Spark decodes them.
    """
    packed = reading.packed()
    if len(packed) == left <= _MOST_IN_DRIVER:
        yield DriverRows(reading.spark, packed, rows)
    else:
        with _counted(reading.rest(packed if len(packed) == left else None), rows) as counted:
            yield counted


@contextmanager
def kept_rows(rows: DataFrame) -> Iterator[DataFrame]:
    """Yield the rows, which Spark computes once and stores until the end of the block."""
    if not _loses_no_executor(rows.sparkSession):
        kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            _run(kept)
            yield stored_rows(kept)
        finally:
            kept.unpersist()
        return
    # A local checkpoint stores rows as they are. A cache would convert rows to columns and back, which takes
    # longer than to decode the records again.
    kept = rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        free_checkpoint(kept)


def _loses_no_executor(spark: SparkSession) -> bool:
    """Return whether the session's tasks run in the session's own Java process.

    If executors run in other processes, an executor may be lost, and Spark must then compute the executor's
    rows again.
    """
    return bool(re.fullmatch(r"local(\[.*\])?", spark.sparkContext.master or ""))


@contextmanager
def _counted(decoded: DataFrame, rows: Rows) -> Iterator[DecodedRows]:
    """Yield the rows of events and errors with their counts; Spark stores the rows until the block ends."""
    observation = Observation()
    counting = rows.counting(others=True)
    observed = decoded.selectExpr("*", *counting.columns).observe(observation, counting.counts())
    with kept_rows(observed.drop(*counting.names)) as kept:
        yield _CountedRows(rows.events(kept), quarantine_of(kept), all_counts(found_by(observation), rows))


def _run(rows: DataFrame) -> None:
    """Make Spark compute the rows, and count or store them."""
    rows.write.format("noop").mode("overwrite").save()


def _add_left(counts: notes.BatchCounts, others: notes.BatchCounts, left: int) -> notes.BatchCounts:
    """Return ``counts`` plus ``others``, the counts of the records that Java could not read."""
    if others.read != left:
        raise notes.CountMismatch(
            f"Python must decode the {left:,} records that Java has not read, but has decoded "
            f"{others.read:,}. Start again"
        )
    return counts.add_left(others)
