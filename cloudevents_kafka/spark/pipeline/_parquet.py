"""The Parquet files of a batch, which all readers interpret the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from cloudevents_kafka.spark.pipeline._counts import BatchCounts, CountMismatch
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges
from cloudevents_kafka.spark.pipeline._store import without_patterns

# Spark's default, INT96, has no time zone, and other readers decode it as nanoseconds, which range
# from 1677 to 2262; its dates before 1582 may be in the Julian calendar.
_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}


class ParquetFiles:
    """The files of one batch below a folder; each table has a folder, and one in it for each date."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder
        self._tables: set[str] = set()

    def append(self, table: str, rows: DataFrame, first: OffsetRanges | None = None) -> bool:  # noqa: ARG002
        """Write rows, whose last column is their date; return True."""
        with _settings(self._spark):
            rows.write.mode("append").partitionBy(rows.columns[-1]).parquet(f"{self._folder}/{table}")
        self._tables.add(table)
        return True

    def check(self, counts: BatchCounts) -> None:
        """Raise `CountMismatch` if the files have not as many rows as were counted."""
        for table, expected in (("events", counts.events), ("quarantine", counts.quarantined)):
            found = self._count(table) if table in self._tables else 0
            if found != expected:
                raise CountMismatch(
                    f"the files of {table} must have {expected:,} records, as were written, "
                    f"got {found:,} in {self._folder}. Start again"
                )

    def _count(self, table: str) -> int:
        # Without partition discovery, which would guess types from the names of folders.
        reader = self._spark.read.schema("topic string").option("recursiveFileLookup", True)
        return reader.parquet(without_patterns(f"{self._folder}/{table}")).count()


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """Set the session to write Parquet in this way within this block."""
    before = {name: str(spark.conf.get(name)) for name in _SETTINGS}
    try:
        for name, value in _SETTINGS.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
