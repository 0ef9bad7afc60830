"""How batches land in folders of Parquet files exactly once: files are staged, then renamed into the tables.

The folder of a pipeline contains these files, next to ``_batches``::

    events/record_date=…/batch-00000012-part-….parquet       plain Parquet, for any reader
    quarantine/record_date=…/batch-00000012-part-….parquet   records that are not events
    _staging/00000012-…/      files of a batch before it lands

Events of some types may go to separate tables, in folders next to ``events``. Without schemas of data, Spark
writes all tables of events in one pass. After such a pass, the folder ``__ce_table=orders`` in the staging
folder of the batch contains the files of the table ``orders``.

A batch has landed as soon as its manifest exists. If a run ends before all files of a landed batch are
renamed, the next run first renames the remaining files.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark._patterns import patterns_in
from cloudevents_kafka.spark._sql import write_settings
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing._landed import Landed
from cloudevents_kafka.spark.pipeline.landing._target import Target
from cloudevents_kafka.spark.pipeline.stores import without_patterns
from cloudevents_kafka.spark.pipeline.tables import RECORD_DATE, names_in, two_cases
from cloudevents_kafka.spark.typed.shape import VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloudevents_kafka.spark.pipeline.batches import Append
    from cloudevents_kafka.spark.typed.schemas import DataSchema

STAGING: Final = "_staging"
_FEW_FILES: Final = 32  # files whose rows are counted without a job


@dataclass(frozen=True)
class ParquetFiles:
    """The files of one batch: each table has a folder, which contains a folder for each date.

    The folder of a table has the name of the table, or the name ``__ce_table=NAME`` if Spark writes several
    tables in one pass.
    """

    _spark: SparkSession
    _folder: str

    def append(self, table: str, rows: DataFrame) -> bool:
        """Write rows, and return True.

        The last column of the rows is the date of the record; the rows may also have the column `TABLE`.
        """
        is_routed = rows.columns[0] == notes.TABLE
        folders = [*([notes.TABLE] if is_routed else []), rows.columns[-1]]
        path = self._folder if is_routed else f"{self._folder}/{table}"
        with write_settings(self._spark):
            rows.write.mode("append").partitionBy(*folders).parquet(path)
        return True

    def check(self, counts: notes.BatchCounts) -> dict[str, int]:
        """Return the number of rows in the files of each table; ``counts`` contains the expected numbers.

        Raises `CountMismatch` if the number of rows in the files of a table differs from the number in
        ``counts``.
        """
        found = {**dict.fromkeys(counts.rows, 0), **self._count()}
        counts.check_rows(found, lambda table: f"{self._folder}/{table}")
        return found

    def _count(self) -> Counter[str]:
        """Return the number of rows in the files of each table.

        The footers of the Parquet files contain these numbers, and are read if the files are few and local.
        If the files are many or not local, a Spark job counts the rows.
        """
        from pyarrow.parquet import read_metadata
        from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

        counts: Counter[str] = Counter()
        local = Path(self._folder.removeprefix("file://"))
        files = sorted(local.rglob("*.parquet")) if self._folder.startswith("file:///") else []
        if 0 < len(files) <= _FEW_FILES:
            for file in files:
                table = file.relative_to(local).parts[0].removeprefix(f"{notes.TABLE}=")
                counts[table] += read_metadata(file).num_rows
            return counts
        # These options turn off partition discovery, which would guess types from the names of folders.
        reader = self._spark.read.schema("topic string").option("recursiveFileLookup", True)
        name = F.regexp_extract("_metadata.file_path", rf"/(?:{notes.TABLE}=)?([^/]+)/[^/]+/[^/]+\z", 1)
        rows = reader.parquet(without_patterns(self._folder)).groupBy(name.alias("table")).count()
        return Counter({row["table"]: row["count"] for row in rows.collect()})


class ParquetTarget(Target):
    """The Parquet tables in a pipeline's folder; a batch lands when its manifest is created."""

    def __init__(self, landed: Landed, read: notes.ReadSettings, *, adopt: bool = False) -> None:
        self._landed, self._store, self._read = landed, landed.store, read
        self._staging = ""
        self._checks_files = not adopt
        self._names: dict[str, tuple[tuple[str, ...], ...]] = {}

    def check_names(self, spark: SparkSession) -> None:
        """Raise `WrongTable` if names of fields in typed data and in the files differ only in case.

        A reader such as Spark would find two columns for such a field, or would find only one of the two
        columns.
        """
        last = self._landed.manifests.last()
        if last is not None:
            self._names = {**self._names_of(spark, last.schemas, last.routes), **last.names}
        for table, names in self._names_of(spark, self._read.schemas, self._read.routes).items():
            known = self._names.get(table, ())
            self._names[table] = tuple(dict.fromkeys((*known, *names)))
            if found := two_cases(self._names[table]):
                raise WrongTable(
                    f"the column {found[1]} must be written as in {self.table_name(table)}, which has "
                    f"{found[0]}: for most readers, which ignore case, both are the same name. Use the name "
                    "in the table, or choose another name"
                )

    def _names_of(
        self, spark: SparkSession, schemas: Mapping[str, DataSchema], routes: Mapping[str, str]
    ) -> dict[str, tuple[tuple[str, ...], ...]]:
        return {
            table: tuple(names_in(schemas[pattern].type_in(spark, rescue=self._read.rescue), (VALUE,)))
            for table in (notes.EVENTS, *routes.values())
            for pattern in patterns_in(table, routes, schemas)[:1]
        }

    def table_name(self, table: str) -> str:
        """Return the URL of a table."""
        return self._store.url(table)

    def recover(self) -> int | None:
        """Finish the last landed batch, and remove staged files of batches that have not landed.

        Return the number of the last landed batch if some of its files were not renamed yet, otherwise None.
        Raises `WrongCheckpoint` if the manifests cannot be read or do not match the tables.
        """
        last = self._landed.last
        finished = None if last is None else self._rename(last)
        self._check_tables()
        for leftover in self._store.list_names(STAGING):
            self._store.remove(f"{STAGING}/{leftover}")
        return finished

    def start(self, spark: SparkSession, batch: notes.BegunBatch) -> None:
        """Choose a new staging folder for a batch."""
        self._staging = f"{STAGING}/{batch.number:08d}-{uuid.uuid4().hex[:8]}"
        self._batch, self._files = batch, ParquetFiles(spark, self._store.url(self._staging))

    def appends(self, batch: notes.BegunBatch) -> Append | None:
        """Return the method `append`, or None if the columns of the tables of events may differ."""
        return None if batch.routes and batch.schemas else self.append

    def append(self, table: str, rows: DataFrame) -> bool:
        """Write rows to the staging folder, and return True; see `ParquetFiles.append`."""
        return self._files.append(table, rows)

    def take(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Write the rows of each table that receives rows from this batch."""
        from cloudevents_kafka.spark.typed.frames import rows_of_table

        for table in counts.filled:
            rows = events.where(events[notes.TABLE] == table).drop(notes.TABLE)
            self.append(table, rows_of_table(rows, table, self._batch.schemas, self._batch.routes))
        if counts.quarantined:
            self.append(notes.QUARANTINE, quarantine)

    def commit(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> Mapping[str, Any]:
        """Make the staged files durable, and return their names; `finish` moves the files into the tables."""
        rows = self._files.check(counts)
        files = tuple(self._store.list_files(self._staging, ".parquet"))
        if self._checks_files:
            self._check_unused(files, batch.number)
            self._checks_files = False
        self._store.sync(f"{self._staging}/{file}" for file in files)
        return {"staging": self._staging, "files": files, "rows": rows, "names": self._names}

    def finish(self, manifest: notes.BatchManifest) -> None:
        """Move the staged files of a landed batch into the tables."""
        self._rename(manifest)

    def _check_tables(self) -> None:
        """Raise `WrongCheckpoint` if a table does not match the files in ``_batches``.

        A table does not match the files in ``_batches`` in three cases. Either the table is missing, or no
        manifest lists some files of the table, or the folders of the table are named by the dates of events
        instead of the dates of records.
        """
        for table, count in {
            **dict.fromkeys(notes.table_names(self._read.routes), 0),
            **self._landed.total.rows,
        }.items():
            if count and not self._store.exists(table):
                raise notes.WrongCheckpoint(
                    f"{self._store.url(table)} must have {count:,} rows that have landed, but the table "
                    "was removed or renamed. Restore the table, or land into a fresh folder with a fresh "
                    "checkpoint"
                )
            for name in self._store.list_names(table):
                column, equals, _ = name.partition("=")
                if equals and self._landed.last is None and self._checks_files:
                    raise self._no_manifest(f"{table}/{name}")
                if equals and column != RECORD_DATE:
                    ends = {
                        topic: {number: range_.end for number, range_ in parts.items()}
                        for topic, parts in self._landed.landed.items()
                    }
                    raise notes.WrongCheckpoint(
                        f"the folders of {self._store.url(table)} must be partitioned by {RECORD_DATE}, got "
                        f"{column}. Land into a fresh folder from the end offsets of this folder, with the "
                        f"option start (--from) {json.dumps(ends)}; for dates of events, see "
                        "docs/how-to/each_batch.md"
                    )

    def _check_unused(self, files: Iterable[str], number: int) -> None:
        """Raise `WrongCheckpoint` if the tables have files of an earlier batch with this batch's number.

        Files of an earlier batch with the same number exist only if the manifest of the earlier batch was
        removed. The earlier batch and the new batch begin with the same records, so at least one folder
        contains files of both batches.
        """
        for path in {final_path(file[: file.rindex("/") + 1], number) for file in files}:
            folder, _, prefix = path.rpartition("/")
            for name in self._store.list_names(folder):
                if name.startswith(prefix):
                    raise self._no_manifest(f"{folder}/{name}")

    def _no_manifest(self, path: str) -> notes.WrongCheckpoint:
        return notes.WrongCheckpoint(
            f"{self._store.url(path)} belongs to a batch that has no manifest in {notes.BATCHES}: "
            "the records of this batch would land twice. Restore the manifests, or use a fresh folder and "
            "checkpoint; or adopt the files (--adopt): then the files stay, and all records land again"
        )

    def _rename(self, manifest: notes.BatchManifest) -> int | None:
        """Rename the staged files of a landed batch into the tables.

        Return the number of the batch if some of its files were still staged, otherwise None. Raises
        `WrongCheckpoint` if files of the batch are neither staged nor in the tables.
        """
        staged = set(self._store.list_files(manifest.staging, ".parquet"))
        missing = []
        for file in manifest.files:
            final = final_path(file, manifest.number)
            if file in staged:
                self._store.rename(f"{manifest.staging}/{file}", final)
            elif not self._store.exists(final):
                missing.append(final)
        if missing:
            more = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
            raise notes.WrongCheckpoint(
                f"{self._store.url(missing[0])}{more} must exist, because batch {manifest.number} with "
                f"{notes.format_ranges(manifest.offsets)} has landed, but the files, or the staged files in "
                f"{manifest.staging}, were removed. Restore the files, or use a fresh folder and checkpoint"
            )
        self._store.remove(manifest.staging)
        return manifest.number if staged else None


def final_path(file: str, number: int) -> str:
    """Return the path to which a staged file is renamed; the new file name contains the batch number."""
    folder, _, name = file.removeprefix(f"{notes.TABLE}=").rpartition("/")
    return f"{folder}/batch-{number:08d}-{name}"
