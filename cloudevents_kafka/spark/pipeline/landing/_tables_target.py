"""How batches land in Delta or Iceberg tables exactly once, by ledgers of landed offsets (`notes.Ledger`).

First, the rows of the batch for each table are staged. Then each table receives its rows in one commit;
the commit to the table of events is the last. If the process is killed between two commits, the next run
finds the offsets and the settings of the batch in the file ``begun.json``. The next run reads the records at
the offsets of this batch again, and counts the records. The next run adds rows of the batch to each table
whose ledger does not contain the batch's offsets. If the file ``begun.json`` was removed, the next run plans
a new batch, which begins at the same offset as the earlier batch. If a table has rows of the earlier batch,
the new batch adds no rows for the same offsets to this table. Readers may see a batch's rows in the
quarantine and in separate tables before the commit to the table of events.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cloudevents_kafka.spark._patterns import patterns_in
from cloudevents_kafka.spark._sql import table_settings
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing._landed import Landed
from cloudevents_kafka.spark.pipeline.landing._target import Target
from cloudevents_kafka.spark.pipeline.tables import LedgerChanged, Staged, Table, filter_offsets
from cloudevents_kafka.spark.typed.shape import VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloudevents_kafka.spark.pipeline.batches import Append, KeptBatch

_MOST_AT_ONCE: Final = 4  # tables that are staged at once
_MOST_TRIES: Final = 100  # attempts to commit, if commits of other pipelines are faster


Compare = Callable[["KeptBatch", "DataFrame | None"], AbstractContextManager["KeptBatch"]]
"""A function that compares a batch with the rows of its table, and yields the part that must land."""


class TablesTarget(Target):
    """Delta or Iceberg tables; ``open_table`` opens a table by a name that `notes.table_names` returns.

    If the function ``compare`` is passed, batches are compared with the rows of the table of events, and two
    more rules are valid:

    1. The rows that a batch lands in the table of events depend on the rows that the table already has. So if
       another pipeline commits between the comparison and the commit of the batch, the run ends, and the next
       run compares the batch again.
    2. The counts of a batch are written into the file ``begun.json`` before the commits of the batch, because
       these counts cannot be computed again after the commits.
    """

    def __init__(
        self,
        landed: Landed,
        open_table: Callable[[str], Table],
        read: notes.ReadSettings | None = None,
        *,
        adopt: bool = False,
        compare: Compare | None = None,
    ) -> None:
        self._landed, self._adopt, self._compare = landed, adopt, compare
        self._read = read or notes.ReadSettings()
        self._open = cache(open_table)
        # The staged rows of the current batch, and the ledgers of the tables, as the pipeline has read them.
        self._staged: dict[str, list[Staged]] = {}
        self._ledgers: dict[str, notes.Ledger] = {}

    def table_name(self, table: str) -> str:
        """Return the name of a table in its catalog, or the URL of the table."""
        return self._open(table).name

    def recover(self) -> None:
        """Read the landed offsets from the ledger of the table of events.

        Raises `WrongTable` if a table is missing, was replaced, or was restored to an earlier version.
        """
        self._landed.use_ledger(self._read_ledger())

    def is_decided(self, batch: notes.BegunBatch) -> bool:
        """Return whether any table already has rows of an unfinished batch.

        The field ``routes`` of the batch determines which tables are checked.
        """
        self._batch, self._ledgers = batch, {}
        return any(self._left(table) != batch.offsets for table in notes.table_names(batch.routes))

    def fit(self, warn: Callable[[str], None] = warnings.warn) -> notes.ReadSettings:
        """Adapt the schemas of events' data to the types in the tables, and return settings with new schemas.

        ``warn`` is called for each schema that differs from the column types in its table. Raises
        `WrongTable` if rows with the new schemas cannot be written into a table. Without this check, each run
        would start, but would fail later, when the run writes a batch.
        """
        read = self._read
        fitting = dict(read.schemas)
        for table in notes.table_names(read.routes)[:-1]:
            for pattern in patterns_in(table, read.routes, read.schemas):
                schema = fitting[pattern]
                column, types = self._open(table).misfits(schema, rescue=read.rescue)
                if types and () not in types:  # a column of another kind ends the run
                    fitting[pattern] = schema.fit(types, column)
                    places = (
                        f"{VALUE}.{'.'.join(path)} {type_.simpleString()}" for path, type_ in types.items()
                    )
                    warn(
                        f"the schema of {pattern} must have the types of the table {self.table_name(table)}, "
                        f"which has {', '.join(places)}: data of other types goes to the quarantine. Land "
                        "this data into a fresh table, or do not change the types"
                    )
        self._read = replace(read, schemas=fitting)
        self._check_tables()
        return self._read

    def _check_tables(self) -> None:
        from cloudevents_kafka.spark.pipeline.batches import Rows
        from cloudevents_kafka.spark.typed.frames import rows_of_table

        read = self._read
        events, quarantine = Rows({}, read).none(self._open(notes.EVENTS).session)
        events = events.drop(notes.TABLE)
        for table in notes.table_names(read.routes):
            is_event = table != notes.QUARANTINE
            found = rows_of_table(events, table, read.schemas, read.routes) if is_event else quarantine
            self._open(table).check_schema(found.schema)

    def _read_ledger(self) -> notes.Ledger:
        """Return the ledger of the table of events.

        Raises `WrongTable` if a table is missing, was replaced, or was restored to an earlier version.
        """
        for table, known in self._noted_ids().items():
            opened = self._open(table)
            found = opened.id() if opened.exists() else None
            if found != known:
                state = "does not exist" if found is None else f"is another table, whose id is {found}"
                raise WrongTable(
                    f"the table {opened.name} must be the table with id {known}, in which the batches of "
                    f"{self._landed.store.url('')} have landed, but it {state}. Restore the table, or use "
                    "its new name; or land into a fresh folder"
                )
        ledger, noted = self._open(notes.EVENTS).ledger(adopt=self._adopt), self._landed.noted
        ids = {topic: self._landed.topic_ids.get(topic, "") for topic in noted.topics}
        if absent := ledger.left(ids, noted.landed(ids)):
            raise WrongTable(
                f"the table {self.table_name(notes.EVENTS)} must have {notes.format_ranges(absent)}, which "
                "have landed in it: the table was set back to an earlier version. Restore the newest "
                "version; or land these offsets again with a fresh folder, which continues after the "
                "rows of the table"
            )
        return ledger

    def _noted_ids(self) -> Mapping[str, str]:
        """Return the ids of the tables in which the last batch has landed."""
        return self._landed.last.tables if self._landed.last else {}

    def ledgers(self, routes: Mapping[str, str]) -> list[notes.Ledger]:
        """Return the ledgers of all tables except the table of events."""
        others = (table for table in notes.table_names(routes) if table != notes.EVENTS)
        return [self._open(table).ledger(adopt=self._adopt) for table in others]

    def start(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchCounts | None:  # noqa: ARG002
        """Discard rows that were staged before, such as rows of another batch.

        If the batch was compared with the table and committed, and only the manifest of the batch is missing,
        return the counts of the batch. Otherwise, return None.
        """
        if self._compare is not None:  # other pipelines may have committed since the last batch
            self._landed.use_ledger(self._read_ledger())
        if batch.upsert is not None:
            self._check_topics(batch)
        self._batch, self._staged, self._ledgers = batch, {}, {notes.EVENTS: self._landed.ledger}
        return batch.counted if batch.counted is not None and not self._left(notes.EVENTS) else None

    def _check_topics(self, batch: notes.BegunBatch) -> None:
        """Raise `WrongTable` if the table has rows of a topic that was deleted and created again."""
        for entry in self._landed.ledger.entries():
            found = batch.ids.get(entry.topic, "")
            if found and entry.topic_id not in {"", found}:
                raise WrongTable(
                    f"the table {self.table_name(notes.EVENTS)} has rows of the topic {entry.topic} that was "
                    f"deleted (id {entry.topic_id}, now {found}), so it is unknown which records are "
                    "newer than the rows. Land into a fresh table"
                )

    def appends(self, batch: notes.BegunBatch) -> Append | None:
        """Return `TablesTarget.append`; None if a batch has several tables or is compared with its table."""
        return None if batch.routes or self._compare is not None else self.append

    def compare(self, batch: KeptBatch) -> AbstractContextManager[KeptBatch]:
        """Return a context manager that yields the part of a batch that must land."""
        if self._compare is None:
            return super().compare(batch)
        table = self._open(notes.EVENTS)
        return self._compare(batch, table.read(batch.events.sparkSession) if table.exists() else None)

    def append(self, table: str, rows: DataFrame) -> bool:
        """Stage rows of a table, and return whether Spark has computed the rows.

        If the table already has all of the rows, Spark does not compute the rows.
        """
        left = self._left(table)
        if not left:
            return False
        if left != self._batch.offsets:
            rows = filter_offsets(rows, left)
        self._staged.setdefault(table, []).append(self._open(table).stage(rows))
        return True

    def take(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Stage the rows of each table that receives rows from this batch, several tables at a time."""
        tables = counts.filled
        rows = {table: self._rows_of(events, table, alone=len(tables) == 1) for table in tables}
        if counts.quarantined:
            self._check_refused(counts)
            rows[notes.QUARANTINE] = quarantine
        if not self._open(notes.EVENTS).exists():  # a ledger needs its table
            rows.setdefault(notes.EVENTS, self._rows_of(events, notes.EVENTS, alone=True).limit(0))
        # These settings are settings of the session, so they must not change until the last table is written.
        with table_settings(events.sparkSession), ThreadPoolExecutor(_MOST_AT_ONCE) as threads:
            for staged in [threads.submit(self.append, table, rows[table]) for table in rows]:
                staged.result()

    def _check_refused(self, counts: notes.BatchCounts) -> None:
        """Raise `WrongTable` if the quarantine may have records that an upsert has refused in another batch.

        The offset at which a batch ends affects which records an upsert refuses. If the file ``begun.json``
        exists, the batch that an earlier run left unfinished ends at the same offsets as in the earlier run.
        """
        is_another = self._batch.counted is None and self._left(notes.QUARANTINE) != self._batch.offsets
        if self._batch.upsert is not None and is_another and "refused" in counts.by_reason:
            raise WrongTable(
                f"{self.table_name(notes.QUARANTINE)} has records of an unfinished batch, but the note "
                f"of this batch is missing. Restore {self._landed.store.url('_batches')}, or land into a "
                "fresh table"
            )

    def _rows_of(self, events: DataFrame, table: str, *, alone: bool) -> DataFrame:
        """Return the batch's rows for a table; if ``alone`` is true, all events belong to this table."""
        from cloudevents_kafka.spark.typed.frames import rows_of_table

        rows = events if alone else events.where(events[notes.TABLE] == table)
        return rows_of_table(rows.drop(notes.TABLE), table, self._batch.schemas, self._batch.routes)

    def commit(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> Mapping[str, Any]:
        """Commit the staged rows; return the id of each table, and the number of rows committed to it.

        The commit to the table of events follows the commits to all other tables. Raises `CountMismatch` if
        the numbers of staged rows differ from the counts of the batch.
        """
        if self._compare is not None and batch.counted != counts:
            self._landed.manifests.write(replace(batch, counted=counts))
        rows = dict(self._counted())
        counts.check_rows(rows, self.table_name)
        tables = [*(table for table in self._staged if table != notes.EVENTS), notes.EVENTS]
        for table in tables:
            self._commit(table)
        self._landed.ledger = self._ledgers[notes.EVENTS]
        opened = {table: self._open(table) for table in tables}
        ids = {table: found.id() for table, found in opened.items() if self._staged or found.exists()}
        return {"tables": {**self._noted_ids(), **ids}, "rows": rows}

    def _counted(self) -> Iterator[tuple[str, int]]:
        """Yield the name and the number of rows of each table whose rows were all staged and counted."""
        for table, staged in self._staged.items():
            numbers = [part.rows for part in staged]
            if None not in numbers and self._left(table) == self._batch.offsets:
                yield table, sum(filter(None, numbers))

    def _commit(self, table: str) -> None:
        """Commit the staged rows of a table; if another program committed first, try again."""
        batch, opened, staged_for = self._batch, self._open(table), self._left(table)
        if not (staged_for if batch.offsets else opened.exists()):
            return  # only the manifest of the batch is missing, or a first batch has no records
        for _ in range(_MOST_TRIES):
            before = self._ledgers[table]
            after = before.add(self._landed.pipeline, batch.ids, batch.planned)
            if table != notes.EVENTS:  # offsets of events count as landed in all tables
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
                        f"another run of pipeline {self._landed.pipeline} has landed "
                        f"{notes.format_ranges(batch.offsets)} in {opened.name} meanwhile, and is still "
                        "running; start each pipeline only once"
                    ) from None
                if self._compare is not None and table == notes.EVENTS:
                    self._check_compared(before)
            else:
                self._ledgers[table] = after
                return
        raise WrongTable(
            f"the table {opened.name} has had {_MOST_TRIES} commits of other pipelines while this pipeline "
            "tried to commit; start again when fewer pipelines write to it"
        )

    def _check_compared(self, before: notes.Ledger) -> None:
        """Raise `WrongTable` if the table has changed since the batch was compared with the table's rows."""
        if self._ledgers[notes.EVENTS].generation != before.generation:
            raise WrongTable(
                f"only one pipeline must use the table {self.table_name(notes.EVENTS)}, but another pipeline "
                "has committed rows after this batch was compared with the table; no record of the batch has "
                "landed in the table. Start again, and run one pipeline at a time"
            )

    def _left(self, table: str) -> notes.OffsetRanges:
        """Return those offsets of the batch whose rows are missing in a table.

        Raises `WrongTable` if another pipeline has landed some of the batch's offsets.
        """
        if table not in self._ledgers:
            self._ledgers[table] = self._open(table).ledger(adopt=self._adopt)
        # A separate table or the quarantine may have rows of another pipeline, if this pipeline was killed
        # before its commit to the table of events.
        owner = self._landed.pipeline if table == notes.EVENTS else None
        return self._ledgers[table].left(self._batch.ids, self._batch.offsets, owner)
