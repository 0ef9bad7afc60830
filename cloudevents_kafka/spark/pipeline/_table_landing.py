"""How batches land in tables of Delta or Iceberg exactly once.

1. A note of the batch is created: ``_batches/begun.json``, with its offsets.
2. Its rows are appended to the tables, each in one commit of the format, which knows the batch.
3. Its manifest is created in ``_batches``. The batch has landed in all tables.

If the process is killed between 1 and 3, the next start reads exactly the offsets of the note from
Kafka, appends the rows to the tables that do not have the batch, and creates the manifest. So between
two commits, or until the next start, a reader sees the events of a batch without its quarantined
records. Notes and manifests are files next to the tables, or in the checkpoint's folder for tables of
a catalog, where no maintenance of the format removes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cloudevents_kafka.spark.pipeline._counts import BatchCounts
from cloudevents_kafka.spark.pipeline._landing import Landing, Write
from cloudevents_kafka.spark.pipeline._manifests import BatchManifest, BegunBatch, Manifests
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges
from cloudevents_kafka.spark.pipeline._sink import Table
from cloudevents_kafka.spark.pipeline._store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableBatch:
    """One batch, while it is appended to the tables."""

    def __init__(self, tables: Mapping[str, Table], batch: BegunBatch) -> None:
        self._tables = tables
        self._batch = batch

    def append(self, table: str, rows: DataFrame, first: OffsetRanges | None = None) -> bool:
        """Return whether rows were appended in one commit: not if the table has them already."""
        key = f"{self._batch.query}/{table}" + ("" if first is None else "/rest")
        return self._tables[table].append(rows, key, self._batch.number, first or self._batch.offsets)

    def check(self, counts: BatchCounts) -> None:
        """Do nothing: each commit is complete."""


class TableLanding(Landing):
    """The batches of tables of Delta or Iceberg."""

    def __init__(self, store: Store, tables: Mapping[str, Table], manifests: Manifests | None = None) -> None:
        super().__init__(store, manifests)
        self.tables = tables

    def table_name(self, table: str) -> str:
        """Return the name of a table in its catalog, or its URL."""
        return self.tables[table].name

    def check_layout(self, column: str) -> None:
        """Do nothing: `Table.append` checks the columns."""

    def recover(self) -> int | None:
        """Read the manifests; return None. `finish` completes a batch that was begun."""
        self._first_topic_ids = self.manifests.first_topic_ids()
        self.last = self.manifests.last()
        return None

    def begun(self) -> BegunBatch | None:
        """Return the batch that was begun and has no manifest, or None."""
        batch = self.manifests.begun()
        return None if batch is None or (self.last and batch.number <= self.last.number) else batch

    def finish(self, batch: BegunBatch, write: Write) -> BatchManifest:
        """Complete a batch that was begun, and return its manifest."""
        return self._add(batch, write("", batch).check(), "", ())

    def _write(self, batch: BegunBatch, write: Write) -> BatchManifest:
        self.manifests.begin(batch)
        return self.finish(batch, write)
