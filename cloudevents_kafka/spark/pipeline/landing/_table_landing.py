"""How batches land in tables of Delta or Iceberg exactly once: by the tables' ledgers, see `notes.Ledger`.

The rows of all tables are staged, then each table takes its rows in one commit, and that of events last. If
the process is killed in between, the next run reads the offsets of the note again, as the note says, for the
tables whose ledgers do not have them, and for the counts. Without the note it plans a batch of its own from
the same offset; tables that have rows of it take no others. So until then a reader may see other records, or
events of routes, of a batch whose events it does not see.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark._patterns import patterns_in
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline._sql import write_settings
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.tables import (
    LedgerChanged,
    Staged,
    Table,
    filter_offsets,
)
from cloudevents_kafka.spark.typed.shape import VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter
    from cloudevents_kafka.spark.pipeline.stores import Store
    from cloudevents_kafka.spark.typed.schemas import DataSchema

_MOST_AT_ONCE: Final = 4  # tables that are staged at once
_MOST_TRIES: Final = 100  # commits that other pipelines precede


class TableLanding(Landing):
    """The batches of tables of Delta or Iceberg, which ``open_table`` opens by the names of `tables`."""

    in_notes = False

    def __init__(
        self,
        store: Store,
        kind: str,
        open_table: Callable[[str], Table],
        routes: Mapping[str, str] | None = None,
        *,
        adopt: bool = False,
    ) -> None:
        super().__init__(store, routes)
        self.kind = kind
        self._adopt = adopt
        self._open = cache(open_table)
        # Of the batch that is written: its rows, and the ledgers of the tables, as they were read.
        self._staged: dict[str, list[Staged]] = {}
        self._ledgers: dict[str, notes.Ledger] = {}

    def table_name(self, table: str) -> str:
        """Return the name of a table in its catalog, or its URL."""
        return self._open(table).name

    def is_decided(self, batch: notes.BegunBatch) -> bool:
        """Return whether a table, by the routes of a batch that was begun, has rows of it."""
        self._batch, self._ledgers = batch, {}
        tables = dict.fromkeys((notes.EVENTS, *batch.routes.values(), notes.QUARANTINE))
        return any(self._left(table) != batch.offsets for table in tables)

    def fit(
        self,
        schemas: Mapping[str, DataSchema],
        warn: Callable[[str], None] = warnings.warn,
        *,
        rescue: bool,
        lenient: bool = False,
    ) -> Mapping[str, DataSchema]:
        """Return schemas by which data is read in the types that its tables have; warn of others.

        Raises `WrongTable` if a table cannot take the rows: a batch that has begun would fail at each start.
        """
        fitting = dict(schemas)
        for table in dict.fromkeys((notes.EVENTS, *self._routes.values())):
            for pattern in patterns_in(table, self._routes, schemas):
                schema = fitting[pattern]
                column, types = self._open(table).misfits(schema, rescue=rescue)
                if types and () not in types:  # a column of another kind ends the run
                    fitting[pattern] = schema.fit(types, column)
                    places = (
                        f"{VALUE}.{'.'.join(path)} {type_.simpleString()}" for path, type_ in types.items()
                    )
                    warn(
                        f"the schema of {pattern} must have the types of the table {self.table_name(table)}, "
                        f"which has {', '.join(places)}: data of other types goes to the quarantine. Land it "
                        "into a fresh table, or keep the types"
                    )
        self._check_tables(fitting, rescue=rescue, lenient=lenient)
        return fitting

    def _check_tables(self, schemas: Mapping[str, DataSchema], *, rescue: bool, lenient: bool) -> None:
        from cloudevents_kafka.spark.pipeline.batches import Rows
        from cloudevents_kafka.spark.typed.frames import rows_of_table

        rows = Rows({}, lenient, {}, schemas, rescue=rescue, upsert=self.upsert)
        events, quarantine = rows.none(self._open(notes.EVENTS).session)
        for table in self.tables:
            is_event = table != notes.QUARANTINE
            found = rows_of_table(events, table, schemas, self._routes) if is_event else quarantine
            self._open(table).check_schema(found.schema)

    def _read_ledger(self) -> notes.Ledger:
        """Return the ledger of events; raise `WrongTable` if tables are not as earlier batches left them."""
        for table, known in (self.last.tables if self.last else {}).items():
            opened = self._open(table)
            found = opened.id() if opened.exists() else None
            if found != known:
                state = "does not exist" if found is None else f"is another table, whose id is {found}"
                raise WrongTable(
                    f"the table {opened.name} must be the one with id {known}, in which the batches of "
                    f"{self.store.url('')} have landed, but it {state}. Restore it, or use its new name; "
                    "or land afresh, with a fresh folder"
                )
        ledger, noted = self._open(notes.EVENTS).ledger(adopt=self._adopt), self._noted
        ids = {topic: self.topic_ids.get(topic, "") for topic in noted.topics}
        if absent := ledger.left(ids, noted.landed(ids)):
            raise WrongTable(
                f"the table {self.table_name(notes.EVENTS)} must have {notes.format_ranges(absent)}, which "
                "have landed in it: it was set back to an earlier version. Restore the newest one; or land "
                "them again, with a fresh folder, which goes on behind what it has"
            )
        return ledger

    def ledgers(self) -> list[notes.Ledger]:
        """Return the ledgers of all tables that have one, that of events first."""
        others = (self._open(table) for table in self.tables if table != notes.EVENTS)
        return [self.ledger, *(table.ledger(adopt=self._adopt) for table in others)]

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Stage the records of a batch, and return the counts."""
        self._batch, self._staged, self._ledgers = batch, {}, {notes.EVENTS: self.ledger}
        if batch.routes:
            return writer.write_kept(records, batch, self._append_all)
        return writer.write(records, batch, self)

    def append(self, table: str, rows: DataFrame) -> bool:
        """Stage rows of a table; return whether they were computed: not if the table has all of them."""
        left = self._left(table)
        if not left:
            return False
        if left != self._batch.offsets:
            rows = filter_offsets(rows, left)
        self._staged.setdefault(table, []).append(self._open(table).stage(rows))
        return True

    def _append_all(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Stage the rows of each table that has some, several tables at a time."""
        tables = [table for table, count in counts.by_table.items() if count]
        rows = {table: self._rows_of(events, table, alone=len(tables) == 1) for table in tables}
        if counts.quarantined:
            rows[notes.QUARANTINE] = quarantine
        if not self._open(notes.EVENTS).exists():  # its ledger needs it
            rows.setdefault(notes.EVENTS, self._rows_of(events, notes.EVENTS, alone=True).limit(0))
        # The settings are those of the session: they must stay until the last table is written.
        with write_settings(events.sparkSession), ThreadPoolExecutor(_MOST_AT_ONCE) as threads:
            for staged in [threads.submit(self.append, table, rows[table]) for table in rows]:
                staged.result()

    def _rows_of(self, events: DataFrame, table: str, *, alone: bool) -> DataFrame:
        """Return the rows of a table, which may have all of them."""
        from cloudevents_kafka.spark.typed.frames import rows_of_table

        rows = events if alone else events.where(events[notes.TABLE] == table)
        return rows_of_table(rows.drop(notes.TABLE), table, self._batch.schemas, self._batch.routes)

    def complete(self, batch: notes.BegunBatch, counts: notes.BatchCounts, **_: Any) -> notes.BatchManifest:
        """Commit the staged rows, those of events last, and return the manifest of the batch.

        Raises `CountMismatch` if the rows are not as they were counted.
        """
        rows = dict(self._counted())
        counts.check().check_rows(rows, self.table_name)
        tables = [*(table for table in self._staged if table != notes.EVENTS), notes.EVENTS]
        for table in tables:
            self._commit(table)
        self.ledger = self._ledgers[notes.EVENTS]
        opened = {table: self._open(table) for table in tables}
        ids = {table: found.id() for table, found in opened.items() if self._staged or found.exists()}
        tables_now = {**(self.last.tables if self.last else {}), **ids}
        return super().complete(batch, counts, tables=tables_now, rows=rows)

    def _counted(self) -> Iterator[tuple[str, int]]:
        """Yield each table of which all rows were staged and counted, and their number."""
        for table, staged in self._staged.items():
            numbers = [part.rows for part in staged]
            if None not in numbers and self._left(table) == self._batch.offsets:
                yield table, sum(filter(None, numbers))

    def _commit(self, table: str) -> None:
        """Commit the staged rows of a table; try again while other commits precede."""
        batch, opened, staged_for = self._batch, self._open(table), self._left(table)
        if not (staged_for if batch.offsets else opened.exists()):
            return  # only the manifest of the batch is missing, or a first batch has no records
        for _ in range(_MOST_TRIES):
            before = self._ledgers[table]
            after = before.add(self.pipeline, batch.ids, batch.planned)
            if table != notes.EVENTS:  # what events have landed has landed here, too
                after = after.merge(self._ledgers[notes.EVENTS].entries())
            try:
                opened.commit(self._staged.get(table, []), before, after)
            except LedgerChanged:
                del self._ledgers[table]
                left = self._left(table)
                if not left and table != notes.EVENTS:
                    return
                if left != staged_for:
                    raise WrongTable(
                        f"another run of pipeline {self.pipeline} has landed "
                        f"{notes.format_ranges(batch.offsets)} in {opened.name} meanwhile, and goes on; one "
                        "run of a pipeline is enough"
                    ) from None
                self._check_compared(table, before)
            else:
                self._ledgers[table] = after
                return
        raise WrongTable(
            f"the table {opened.name} has had {_MOST_TRIES} commits of other pipelines while one was tried; "
            "start again when fewer write to it"
        )

    def _check_compared(self, table: str, before: notes.Ledger) -> None:
        """Raise `WrongTable` if the staged rows depend on rows that have changed since a ledger was read."""

    def _left(self, table: str) -> notes.OffsetRanges:
        """Return the offsets of the batch whose rows a table does not have; raise `WrongTable`."""
        if table not in self._ledgers:
            self._ledgers[table] = self._open(table).ledger(adopt=self._adopt)
        # Rows next to the events may be those of another pipeline that was killed before its events' commit.
        owner = self.pipeline if table == notes.EVENTS else None
        return self._ledgers[table].left(self._batch.ids, self._batch.offsets, owner)
