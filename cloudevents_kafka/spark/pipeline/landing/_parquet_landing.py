"""How batches land in folders of Parquet files exactly once: staged, then renamed into the tables.

The folder of a pipeline has, next to what `_landing` describes::

    events/record_date=…/batch-00000012-part-….parquet       plain Parquet, for any reader
    quarantine/record_date=…/batch-00000012-part-….parquet   records that are not events
    _staging/00000012-…/      files of a batch before it lands

Events of some types may have tables of their own, in folders next to ``events``. One pass writes all
tables of events: in the staging folder, a folder ``__ce_table=orders`` has the files of ``orders``.

1. All tables of a batch are written to its staging folder.
2. Its manifest is created in ``_batches`` in one step. At this moment the batch has landed.
3. Its files are renamed into the tables, each in one step.

If the process is killed before step 2, Spark runs the batch again, and the staged files are
removed. If it is killed after step 2, the next start finishes the renames before anything else,
and the batch is not written again. So a reader sees no record twice, and no file disappears; a
kill between two renames leaves a part of the batch invisible until the next start.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.stores import FileStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter

STAGING: Final = "_staging"


class ParquetLanding(Landing):
    """The batches of a folder of Parquet tables."""

    kind = "parquet"

    def __init__(
        self,
        store: FileStore,
        routes: Mapping[str, str] | None = None,
        folders_by: str = "record_date",
        *,
        adopt: bool = False,
    ) -> None:
        super().__init__(store, notes.FileManifests(store), routes)
        self._files = store
        self._folders_by = folders_by
        self._staging = ""
        self._checks_files = not adopt

    def table_name(self, table: str) -> str:
        """Return the URL of a table."""
        return self.store.url(table)

    def recover(self) -> int | None:
        """Finish the last landed batch and remove staged files of batches that never landed.

        Return the number of that batch if its renames were unfinished, otherwise None. Raises
        `WrongCheckpoint` if the manifests do not match the tables or cannot be read.
        """
        super().recover()
        self._check_tables()
        self._check_layout()
        unfinished = self.last is not None and self._rename(self.last)
        self._check_rows()
        for leftover in self.store.list_names(STAGING):
            self._files.remove(f"{STAGING}/{leftover}")
        return self.last.number if self.last is not None and unfinished else None

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Write the records of a batch to its staging folder, and return the counts."""
        from cloudevents_kafka.spark.pipeline.tables import ParquetFiles

        files = ParquetFiles(records.sparkSession, self.stage(batch))
        counts = writer.write(records, batch, files)
        files.check(counts)
        return counts

    def stage(self, batch: notes.BegunBatch) -> str:
        """Return the URL of a new staging folder for a batch."""
        self._staging = f"{STAGING}/{batch.number:08d}-{uuid.uuid4().hex[:8]}"
        return self.store.url(self._staging)

    def complete(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> notes.BatchManifest:
        """Land the staged files of a batch, and return its manifest."""
        counts.check()
        files = self._sync_files(self._staging, batch.number)
        manifest = self._add(batch, counts, self._staging, files)
        self._rename(manifest)
        return manifest

    def _sync_files(self, staging: str, number: int) -> tuple[str, ...]:
        """Return the staged files, which survive a power failure; raise `WrongCheckpoint` as below."""
        files = tuple(self.store.list_files(staging, ".parquet"))
        if self._checks_files:
            self._check_unused(files, number)
            self._checks_files = False
        self._files.sync(f"{staging}/{file}" for file in files)
        return files

    def _check_rows(self) -> None:
        """Raise `WrongCheckpoint` if the folder of a table in which rows have landed is gone."""
        rows = {**self.total.by_table, notes.QUARANTINE: self.total.quarantined}
        for table, count in rows.items():
            if count and not self.store.exists(table):
                raise notes.WrongCheckpoint(
                    f"{self.store.url(table)} must have {count:,} rows that have landed, but it was removed "
                    "or renamed. Restore it, or land afresh with a fresh folder and checkpoint"
                )

    def _check_tables(self) -> None:
        """Raise `WrongCheckpoint` if the folder has tables but no manifest."""
        for table in self.tables if self.last is None and self._checks_files else ():
            for name in self.store.list_names(table):
                if "=" in name:
                    raise self._no_manifest(f"{table}/{name}")

    def _check_layout(self) -> None:
        """Raise `WrongCheckpoint` if the events have folders by another column."""
        for table in self._event_tables:
            for name in self.store.list_names(table):
                other, equals, _ = name.partition("=")
                if equals and other != self._folders_by:
                    raise notes.WrongCheckpoint(
                        f"the folders of {self.store.url(table)} must be by {self._folders_by}, got {other}. "
                        "Use the option date_of (--date-of) of the run that made them, "
                        "or a fresh folder and checkpoint"
                    )

    def _check_unused(self, files: Iterable[str], number: int) -> None:
        """Raise `WrongCheckpoint` if the tables have files of a batch of this number.

        Its manifest was removed. It began with the same records, so at least one of its folders
        is among those of this batch.
        """
        for folder in {final_path(file, number).rpartition("/")[0] for file in files}:
            for name in self.store.list_names(folder):
                if name.startswith(_file_name(number, "")):
                    raise self._no_manifest(f"{folder}/{name}")

    def _no_manifest(self, path: str) -> notes.WrongCheckpoint:
        return notes.WrongCheckpoint(
            f"{self.store.url(path)} is of a batch that has no manifest in {notes.BATCHES}: "
            "its records would land twice. Restore the manifests, or use a fresh folder and checkpoint; or "
            "adopt the files (--adopt): all records land next to them"
        )

    def _rename(self, manifest: notes.BatchManifest) -> bool:
        """Rename the staged files of a landed batch into the tables; return whether some were staged.

        Raises `WrongCheckpoint` if files of the batch are neither staged nor in the tables.
        """
        staged = set(self.store.list_files(manifest.staging, ".parquet"))
        missing = []
        for file in manifest.files:
            final = final_path(file, manifest.number)
            if file in staged:
                self._files.rename(f"{manifest.staging}/{file}", final)
            elif not self.store.exists(final):
                missing.append(final)
        if missing:
            more = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
            raise notes.WrongCheckpoint(
                f"{self.store.url(missing[0])}{more} must exist, because batch {manifest.number} with "
                f"{notes.format_ranges(manifest.offsets)} has landed, but they were removed, or staged in "
                f"{manifest.staging}, which was removed. Restore them, or use a fresh folder and checkpoint"
            )
        self._files.remove(manifest.staging)
        return bool(staged)


def final_path(file: str, number: int) -> str:
    """Return the path of a staged file in its table, where the number of its batch prefixes its name."""
    folder, _, name = file.removeprefix(f"{notes.TABLE}=").rpartition("/")
    return f"{folder}/{_file_name(number, name)}"


def _file_name(number: int, name: str) -> str:
    return f"batch-{number:08d}-{name}"
