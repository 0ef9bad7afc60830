"""How batches land in tables of Delta or Iceberg exactly once, and what other landings share with it.

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

from cloudevents_kafka.spark.pipeline._connect_store import is_connect
from cloudevents_kafka.spark.pipeline._counts import BatchCounts
from cloudevents_kafka.spark.pipeline._landing import Landing, Write
from cloudevents_kafka.spark.pipeline._manifests import BatchManifest, BegunBatch, Manifests
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges
from cloudevents_kafka.spark.pipeline._routes import QUARANTINE, TABLE
from cloudevents_kafka.spark.pipeline._sink import Table, write_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline._batch import BatchWriter, Deliver
    from cloudevents_kafka.spark.pipeline._store import Store

_MOST_AT_ONCE: Final = 4  # tables; most of a commit is waiting


class NotedLanding(Landing):
    """Batches that are noted before they are written, because no rename of files lands them."""

    def check_layout(self, column: str) -> None:
        """Do nothing: there are no folders by date."""

    def recover(self) -> int | None:
        """Read the manifests; return None. `finish` completes a batch that was begun."""
        self._read_manifests()
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


def write_kept(writer: BatchWriter, records: DataFrame, batch: BegunBatch, deliver: Deliver) -> BatchCounts:
    """Pass the rows of a batch to a function, read as its note says, and return the counts."""
    return writer.write_kept(
        records,
        batch.offsets,
        deliver,
        in_java=batch.in_java,
        lenient=batch.lenient,
        routes=batch.routes,
    )


class TableBatch:
    """One batch, while it is appended to the tables."""

    def __init__(self, open_table: Callable[[str], Table], batch: BegunBatch) -> None:
        self._open = open_table
        self._batch = batch

    def append(self, table: str, rows: DataFrame, first: OffsetRanges | None = None) -> bool:
        """Return whether rows were appended in one commit: not if the table has them already."""
        key = f"{self._batch.query}/{table}" + ("" if first is None else "/rest")
        return self._open(table).append(rows, key, self._batch.number, first or self._batch.offsets)

    def append_all(self, events: DataFrame, quarantine: DataFrame, counts: BatchCounts) -> None:
        """Append the rows of each table that has some, each in one commit, several at a time."""
        tables = [table for table, count in counts.by_table.items() if count]
        rows = {
            table: (events if len(tables) == 1 else events.where(events[TABLE] == table)).drop(TABLE)
            for table in tables
        }
        if counts.quarantined:
            rows[QUARANTINE] = quarantine
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
        kind: str,
        open_table: Callable[[str], Table],
        routes: Mapping[str, str] | None = None,
        manifests: Manifests | None = None,
    ) -> None:
        super().__init__(store, routes, manifests)
        self.kind = kind
        self._open = cache(open_table)

    def table_name(self, table: str) -> str:
        """Return the name of a table in its catalog, or its URL."""
        return self._open(table).name

    def write_rows(
        self,
        writer: BatchWriter,
        records: DataFrame,
        folder: str,  # noqa: ARG002  # of files
        batch: BegunBatch,
    ) -> BatchCounts:
        """Append the records of a batch to the tables that do not have them, and return the counts."""
        tables = TableBatch(self._open, batch)
        if not batch.routes:
            return writer.write(records, batch.offsets, tables, in_java=batch.in_java, lenient=batch.lenient)
        return write_kept(writer, records, batch, tables.append_all)
