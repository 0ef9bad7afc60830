"""How batches land in tables of Delta or Iceberg exactly once: by the tables' ledgers, see `notes.Ledger`.

1. A note of the batch is created: ``_batches/begun.json``, with its offsets and options.
2. The rows of all tables are staged: their files are written, and no reader sees them.
3. Each table but that of events takes its rows in one commit of the format.
4. The table of events takes its rows, or only its ledger, in one commit: the batch has landed.
5. Its manifest is created in ``_batches``, with the counts.

If the process is killed between 1 and 5, the next run reads the offsets of the note again, as the note says,
for the tables whose ledgers do not have them, and for the counts. Without the note it plans a batch of its
own from the same offset; tables that have rows of it take no others. So between two commits, or until the
next run, a reader sees other records, or events of routes, of a batch whose events it does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing._noted_landing import NotedLanding
from cloudevents_kafka.spark.pipeline.tables import (
    LedgerChanged,
    Staged,
    Table,
    filter_offsets,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter
    from cloudevents_kafka.spark.pipeline.stores import Store

_MOST_AT_ONCE: Final = 4  # tables that are staged at once
_MOST_TRIES: Final = 100  # commits that other pipelines precede


class TableBatch:
    """One batch, while it is staged for the tables and committed to them."""

    def __init__(
        self,
        open_table: Callable[[str], Table],
        batch: notes.BegunBatch,
        pipeline: str,
        events: notes.Ledger,
        *,
        adopt: bool = False,
    ) -> None:
        self._open = open_table
        self._adopt = adopt
        self._batch = batch
        self._pipeline = pipeline
        self._staged: dict[str, list[Staged]] = {}
        self._ledgers = {notes.EVENTS: events}

    def append(self, table: str, rows: DataFrame) -> bool:
        """Stage rows of a table; return whether they were computed: not if the table has all of them."""
        left = self._left(table)
        if not left:
            return False
        if left != self._batch.offsets:
            rows = filter_offsets(rows, left)
        self._staged.setdefault(table, []).append(self._open(table).stage(rows))
        return True

    def append_all(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Stage the rows of each table that has some, several tables at a time."""
        tables = [table for table, count in counts.by_table.items() if count]
        rows = {
            table: (events if len(tables) == 1 else events.where(events[notes.TABLE] == table)).drop(
                notes.TABLE
            )
            for table in tables
        }
        if counts.quarantined:
            rows[notes.QUARANTINE] = quarantine
        if not self._open(notes.EVENTS).exists():  # its ledger needs it
            rows.setdefault(notes.EVENTS, events.drop(notes.TABLE).limit(0))
        # The settings are those of the session: they must stay until the last table is written.
        with write_settings(events.sparkSession), ThreadPoolExecutor(_MOST_AT_ONCE) as threads:
            for staged in [threads.submit(self.append, table, rows[table]) for table in rows]:
                staged.result()

    def commit(self, counts: notes.BatchCounts) -> None:
        """Commit the staged rows, those of events last; raise `CountMismatch` if they are not as counted."""
        self._check(counts)
        for table in self._staged:
            if table != notes.EVENTS:
                self._commit(table)
        self._commit(notes.EVENTS)

    @property
    def ledger(self) -> notes.Ledger:
        """The ledger of the table of events."""
        return self._ledgers[notes.EVENTS]

    @property
    def table_ids(self) -> dict[str, str]:
        """The ids of the tables that took rows."""
        tables = {table: self._open(table) for table in {**self._staged, notes.EVENTS: []}}
        return {table: opened.id() for table, opened in tables.items() if self._staged or opened.exists()}

    def _check(self, counts: notes.BatchCounts) -> None:
        """Raise `CountMismatch` if another number of rows was staged for a table than was counted."""
        by_table = counts.by_table or {notes.EVENTS: counts.events}
        expected = {**by_table, notes.QUARANTINE: counts.quarantined}
        for table, staged in self._staged.items():
            numbers = [part.rows for part in staged]
            is_whole = self._left(table) == self._batch.offsets
            if is_whole and None not in numbers and sum(filter(None, numbers)) != expected.get(table, 0):
                raise notes.CountMismatch(
                    f"the files for {self._open(table).name} must have {expected.get(table, 0):,} rows, as "
                    f"were counted, got {sum(filter(None, numbers)):,}. Start again"
                )

    def _commit(self, table: str) -> None:
        """Commit the staged rows of a table; try again while other commits precede."""
        opened, staged_for = self._open(table), self._left(table)
        if self._batch.offsets and not staged_for:
            return  # only the manifest of the batch is missing
        if not self._batch.offsets and not opened.exists():
            return  # a first batch without records
        for _ in range(_MOST_TRIES):
            before = self._ledgers[table]
            after = before.add(self._pipeline, self._batch.ids, self._batch.planned)
            if table != notes.EVENTS:  # what events have landed has landed here, too
                after = after.merge(self._ledgers[notes.EVENTS])
            try:
                opened.commit(self._staged.get(table, []), before, after)
            except LedgerChanged:
                del self._ledgers[table]
                left = self._left(table)
                if not left and table != notes.EVENTS:
                    return
                if left != staged_for:
                    raise self._faster(opened) from None
            else:
                self._ledgers[table] = after
                return
        raise WrongTable(
            f"the table {opened.name} has had {_MOST_TRIES} commits of other pipelines while one was tried; "
            "start again when fewer write to it"
        )

    def _faster(self, table: Table) -> WrongTable:
        return WrongTable(
            f"another run of pipeline {self._pipeline} has landed "
            f"{notes.format_ranges(self._batch.offsets)} in {table.name} meanwhile, and goes on; "
            "one run of a pipeline is enough"
        )

    def _left(self, table: str) -> notes.OffsetRanges:
        """Return the offsets of the batch whose rows a table does not have; raise `WrongTable`."""
        if table not in self._ledgers:
            self._ledgers[table] = self._open(table).ledger(adopt=self._adopt)
        # Rows next to the events may be those of another pipeline that was killed before its events' commit.
        owner = self._pipeline if table == notes.EVENTS else None
        return self._ledgers[table].left(self._batch.ids, self._batch.offsets, owner)


class TableLanding(NotedLanding):
    """The batches of tables of Delta or Iceberg, which ``open_table`` opens by the names of `tables`."""

    def __init__(
        self,
        store: Store,
        manifests: notes.Manifests,
        kind: str,
        open_table: Callable[[str], Table],
        routes: Mapping[str, str] | None = None,
        *,
        adopt: bool = False,
    ) -> None:
        super().__init__(store, manifests, routes)
        self.kind = kind
        self._adopt = adopt
        self._open = cache(open_table)
        self._ids: notes.TopicIds = {}
        self._ledger = notes.Ledger()
        self._staged: TableBatch | None = None

    def table_name(self, table: str) -> str:
        """Return the name of a table in its catalog, or its URL."""
        return self._open(table).name

    def recover(self) -> int | None:
        """Return None; read the manifests, the tables' ids and the ledger of events, see `Landing.recover`.

        Raises `WrongTable` if a table is gone, or is not the one in which earlier batches have landed.
        """
        super().recover()
        for table, known in (self.last.tables if self.last else {}).items():
            self._check_table(table, known)
        self._ledger = self._open(notes.EVENTS).ledger(adopt=self._adopt)
        self._is_noted = bool(self.manifests.beginning().start)
        return None

    def _check_table(self, table: str, known: str) -> None:
        opened = self._open(table)
        found = opened.id() if opened.exists() else None
        if found != known:
            state = "does not exist" if found is None else f"is another table, whose id is {found}"
            raise WrongTable(
                f"the table {opened.name} must be the one with id {known}, in which the batches of "
                f"{self.store.url('')} have landed, but it {state}. Restore it, or use its new name; "
                "or land afresh, with a fresh folder"
            )

    @property
    def landed(self) -> notes.OffsetRanges:
        """The last range of each partition that the table of events has, of the topics with the known ids.

        Of a partition that it does not have, the notes may have where the pipeline began.
        """
        found = {topic: dict(numbers) for topic, numbers in self._ledger.landed(self._ids).items()}
        for topic, number, range_ in notes.iter_partitions(self._noted):
            if range_.start == range_.end:
                found.setdefault(topic, {}).setdefault(number, range_)
        return found

    def use_topic_ids(self, ids: notes.TopicIds) -> None:
        """Let `landed` be about the topics with these ids.

        Raises `WrongTable` if the table does not have all offsets that the manifests have.
        """
        self._ids = ids
        noted = {topic: numbers for topic, numbers in self._noted.items() if topic in ids}
        if absent := notes.subtract_landed(noted, self.landed):
            raise WrongTable(
                f"the table {self.table_name(notes.EVENTS)} must have {notes.format_ranges(absent)}, which "
                "have landed in it: it was set back to an earlier version. Restore the newest one; or land "
                "them again, with a fresh folder, which goes on behind what it has"
            )

    def check(self, query_id: str | None, committed: notes.BatchPlan | None) -> None:
        """Raise `WrongCheckpoint` if the tables do not have what is before a checkpoint."""
        self._is_noted = self._is_noted or query_id is None
        super().check(query_id, committed)

    @property
    def _has_landed(self) -> bool:
        # A checkpoint whose folder has no notes may begin anywhere: only the ledger knows what is before it.
        return self._ledger.generation > 0 or self.last is not None or not self._is_noted

    def _check_query(self, query_id: str | None) -> None:
        """Do nothing: the ledger decides what has landed, under any checkpoint."""

    def _left(self, plan: notes.BatchPlan, topic_ids: notes.TopicIds) -> notes.OffsetRanges:
        return self._ledger.left(topic_ids, plan.ranges, self.pipeline)

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Stage the records of a batch, and return the counts."""
        self._staged = TableBatch(self._open, batch, self.pipeline, self._ledger, adopt=self._adopt)
        if batch.routes:
            return writer.write_kept(records, batch, self._staged.append_all)
        return writer.write(records, batch, self._staged)

    def complete(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> notes.BatchManifest:
        """Return the manifest of a batch, after its staged records are committed."""
        assert self._staged is not None  # `write` comes first
        self._staged.commit(counts.check())
        self._ledger = self._staged.ledger
        ids = {**(self.last.tables if self.last else {}), **self._staged.table_ids}
        return self._add(batch, counts, tables=ids)
