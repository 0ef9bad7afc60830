"""The Parquet files of a batch, which all readers interpret the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.pipeline.notes import QUARANTINE, TABLE, BatchCounts, CountMismatch
from cloudevents_kafka.spark.pipeline.stores import without_patterns
from cloudevents_kafka.spark.pipeline.tables._sink import write_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FEW_FILES: Final = 32  # files whose rows are counted without a job


class ParquetFiles:
    """The files of one batch below a folder; each table has a folder, and one in it for each date.

    The folder of a table is its name, or ``__ce_table=NAME`` where rows of several tables are written.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder
        self._tables: set[str] = set()

    def append(self, table: str, rows: DataFrame) -> bool:
        """Write rows, whose last column is their date, and which may have the column `TABLE`; return True."""
        folders = [rows.columns[-1]]
        path = f"{self._folder}/{table}"
        if rows.columns[0] == TABLE:
            folders.insert(0, TABLE)
            path = self._folder
        with write_settings(self._spark):
            rows.write.mode("append").partitionBy(*folders).parquet(path)
        self._tables.add(path)
        return True

    def check(self, counts: BatchCounts) -> None:
        """Raise `CountMismatch` if the files have another number of rows than were counted."""
        expected = {**counts.by_table, QUARANTINE: counts.quarantined}
        found = self._count_tables() if self._folder in self._tables else self._count_folders(expected)
        if Counter(found) != Counter(expected):
            raise CountMismatch(
                f"the files of a batch must have as many records as were written, {_text(expected)}, "
                f"got {_text(found)} in {self._folder}. Start again"
            )

    def _count_folders(self, tables: Iterable[str]) -> dict[str, int]:
        """Return the numbers of rows by table; each table has a folder."""
        folders = {table: f"{self._folder}/{table}" for table in tables}
        return {table: self._count(path) for table, path in folders.items() if path in self._tables}

    def _count(self, folder: str) -> int:
        """Return the number of rows in a folder: from the ends of few local files, or by a job of Spark."""
        from pyarrow.parquet import read_metadata

        local = Path(folder.removeprefix("file://"))
        files = sorted(local.rglob("*.parquet")) if folder.startswith("file:///") else []
        if 0 < len(files) <= _FEW_FILES:
            return sum(read_metadata(file).num_rows for file in files)
        return int(self._rows(folder).count())  # the type checker sees Any without PySpark

    def _count_tables(self) -> dict[str, int]:
        """Return the numbers of rows by table, in one job."""
        from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

        table = F.regexp_extract("_metadata.file_path", rf"/(?:{TABLE}=)?([^/]+)/[^/]+/[^/]+\z", 1)
        rows = self._rows(self._folder).groupBy(table.alias("table")).count()
        return {row["table"]: row["count"] for row in rows.collect()}

    def _rows(self, folder: str) -> DataFrame:
        # Without partition discovery, which would guess types from the names of folders.
        reader = self._spark.read.schema("topic string").option("recursiveFileLookup", True)
        return reader.parquet(without_patterns(folder))


def _text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{table}: {count:,}" for table, count in counts.items())
