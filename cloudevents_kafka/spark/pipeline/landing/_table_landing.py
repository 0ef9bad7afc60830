"""How batches land in tables of Delta or Iceberg exactly once.

1. A note of the batch is created: ``_batches/begun.json``, with its offsets.
2. Its rows are appended to the tables, each in one commit of the format, which knows the batch.
3. Its manifest is created in ``_batches``. The batch has landed in all tables.

If the process is killed between 1 and 3, the next start reads exactly the offsets of the note from
Kafka, appends the rows to the tables that do not have the batch, and creates the manifest. So between
two commits, or until the next start, a reader sees the events of a batch without its quarantined
records. Notes and manifests are files of the pipeline's folder, where no maintenance removes them.

Without ``routes`` a batch is written in one pass, in two commits if some events needed Python.
With ``routes`` its rows are kept, and each table that has some of them takes them in one commit. The note
has the routes, so a batch that was begun ends as it began, also if the option was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.landing._noted_landing import NotedLanding
from cloudevents_kafka.spark.pipeline.stores import is_connect
from cloudevents_kafka.spark.pipeline.tables import Table, write_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter
    from cloudevents_kafka.spark.pipeline.stores import Store

_MOST_AT_ONCE: Final = 4  # tables that are written at once; most of a commit is waiting


class TableBatch:
    """One batch, while it is appended to the tables."""

    def __init__(self, open_table: Callable[[str], Table], batch: notes.BegunBatch) -> None:
        self._open = open_table
        self._batch = batch

    def append(self, table: str, rows: DataFrame, first: notes.OffsetRanges | None = None) -> bool:
        """Return whether rows were appended in one commit: False if the table has them already."""
        key = f"{self._batch.query}/{table}" + ("" if first is None else "/rest")
        return self._open(table).append(rows, key, self._batch.number, first or self._batch.offsets)

    def append_all(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Append the rows of each table that has some, each in one commit, several at a time."""
        tables = [table for table, count in counts.by_table.items() if count]
        rows = {
            table: (events if len(tables) == 1 else events.where(events[notes.TABLE] == table)).drop(
                notes.TABLE
            )
            for table in tables
        }
        if counts.quarantined:
            rows[notes.QUARANTINE] = quarantine
        failed = Event()

        def append(table: str) -> None:
            if not failed.is_set():
                try:
                    self.append(table, rows[table])
                except BaseException:
                    failed.set()
                    raise

        spark = events.sparkSession
        # The settings are those of the session: they must stay until the last table is written.
        with write_settings(spark), ThreadPoolExecutor(1 if is_connect(spark) else _MOST_AT_ONCE) as threads:
            for written in [threads.submit(append, table) for table in rows]:
                written.result()


class TableLanding(NotedLanding):
    """The batches of tables of Delta or Iceberg, which ``open_table`` opens by the names of `tables`."""

    def __init__(
        self,
        store: Store,
        manifests: notes.Manifests,
        kind: str,
        open_table: Callable[[str], Table],
        routes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(store, manifests, routes)
        self.kind = kind
        self._open = cache(open_table)

    def table_name(self, table: str) -> str:
        """Return the name of a table in its catalog, or its URL."""
        return self._open(table).name

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Append the records of a batch to the tables that do not have them, and return the counts."""
        tables = TableBatch(self._open, batch)
        if batch.routes:
            return writer.write_kept(records, batch, tables.append_all)
        return writer.write(records, batch, tables)
