"""Lands the staged rows of a replay: commits to Delta and Iceberg tables, or renames Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing import ParquetFiles
from cloudevents_kafka.spark.pipeline.replays._replay_notes import ReplayNote
from cloudevents_kafka.spark.pipeline.stores import Store, without_patterns
from cloudevents_kafka.spark.pipeline.tables import RECORD_DATE, LedgerChanged, Staged, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_TRIES: Final = 100  # attempts to commit, if other commits are faster
Rows = Callable[[str], "DataFrame"]
"""A function that returns the staged rows of a replay for a table; its argument is the table's name."""


class TablesReplay:
    """Lands replays in Delta or Iceberg tables.

    ``open_table`` is a function that opens a table by name. ``by_type`` contains the names of the separate
    tables for some types of events.
    """

    def __init__(
        self, open_table: Callable[[str], Table], by_type: Iterable[str], spark: SparkSession
    ) -> None:
        self._open, self._spark = open_table, spark
        self._tables = (notes.EVENTS, *dict.fromkeys(by_type))
        self._staged: dict[str, Staged] = {}  # the rows of each table, for this run's replay

    def next_number(self, last: int) -> int:
        """Return the number of the next replay: 1 more than the number of the last replay.

        Raises `WrongTable` if files in the folder ``_replays``, or rows of the table of outcomes, were
        removed.
        """
        outcomes = self._open(notes.OUTCOMES).ledger().replays
        for table in map(self._open, self._tables):
            if (found := table.ledger().replays) > outcomes:
                raise WrongTable(
                    f"the table {table.name} has replay {found}, but the outcomes in "
                    f"{self._open(notes.OUTCOMES).name} end with replay {outcomes}: files in _replays, or "
                    "rows of the outcomes, were removed. Restore these files or rows, because otherwise "
                    "records could land twice"
                )
        return max(last, outcomes) + 1

    def read(self, table: str) -> DataFrame | None:
        """Return the rows of the table's newest version, or None if the table does not exist."""
        opened = self._open(table)
        return opened.read(self._spark) if opened.exists() else None

    def prepare(self, note: ReplayNote, rows: Rows) -> ReplayNote:
        """Stage the rows of all tables, and return ``note``.

        If the rows cannot be staged, an error is raised before the replay is decided. If a replay were
        decided before its rows are staged, each later run would fail when it tries to finish the replay.
        """
        self._staged = {table: self._open(table).stage(rows(table)) for table in _tables_of(note)}
        return note

    def has_landed(self, note: ReplayNote) -> bool:
        """Return whether any table has rows of a replay that was decided."""
        return any(self._open(table).ledger().replays >= note.number for table in _tables_of(note))

    def land(self, note: ReplayNote, rows: Rows) -> None:
        """Commit the staged rows to each table whose ledger does not count the replay yet.

        The last two commits are to the table of events and then to the table of outcomes.
        """
        for table in _tables_of(note):
            self._commit(table, note, rows)

    def _commit(self, table: str, note: ReplayNote, rows: Rows) -> None:
        opened, number = self._open(table), note.number
        found = opened.ledger().replays
        if found >= number:
            return
        if table == notes.EVENTS and found < number - 1:
            raise WrongTable(
                f"the table {opened.name} must have replay {number - 1}, got {found}: the table was set back "
                "to an earlier version. Restore the newest version"
            )
        staged = self._staged.pop(table, None) or opened.stage(rows(table))
        counted = sum(note.outcomes.values()) if table == notes.OUTCOMES else note.tables.get(table, 0)
        if staged.rows not in {None, counted}:
            raise notes.CountMismatch(
                f"replay {number} must add {counted:,} rows to {opened.name}, got {staged.rows:,}. "
                "Start again"
            )
        for _ in range(_MOST_TRIES):
            before = opened.ledger()
            if before.replays >= number:
                return
            with suppress(LedgerChanged):  # another program has committed meanwhile
                opened.commit([staged], before, before.add_replay(number))
                return
        raise WrongTable(
            f"a commit to the table {opened.name} failed {_MOST_TRIES} times, because other commits were "
            "faster; start again when fewer programs write to the table"
        )


def _tables_of(note: ReplayNote) -> tuple[str, ...]:
    """Return the tables to which a replay adds rows, in the order in which the replay commits to them."""
    by_type = [table for table, number in note.tables.items() if number and table != notes.EVENTS]
    return (*by_type, notes.EVENTS, notes.OUTCOMES)


class ParquetReplay:
    """Lands replays in folders of Parquet files; no pipeline may use the folders during a replay."""

    def __init__(self, store: Store, spark: SparkSession, routes: Iterable[str]) -> None:
        self._store, self._spark, self._tables = store, spark, (notes.EVENTS, *routes)

    def next_number(self, last: int) -> int:
        """Return the number of the next replay: 1 more than the number of the last replay.

        Raises `WrongTable` if a table is partitioned by a column other than `RECORD_DATE`.
        """
        for table in self._tables:
            for column, equals, _ in (name.partition("=") for name in self._store.list_names(table)):
                if equals and column != RECORD_DATE:
                    raise WrongTable(
                        f"the folders of {self._store.url(table)} must be partitioned by {RECORD_DATE}, got "
                        f"{column}, so a replay cannot add files to them. Read the quarantine with "
                        "decode_events, and write the records that are events now with your own program"
                    )
        return last + 1

    def read(self, table: str) -> DataFrame | None:
        """Return the rows in the Parquet files of a folder, or None if the folder has no such files."""
        if not self._store.list_files(table, ".parquet"):
            return None
        return self._spark.read.parquet(without_patterns(self._store.url(table)))

    def prepare(self, note: ReplayNote, rows: Rows) -> ReplayNote:
        """Write the files of all tables to the staging folder, and return ``note`` with the files' names."""
        folder = f"{note.staging}/files"
        files = ParquetFiles(self._spark, self._store.url(folder))
        for table in (*note.tables, notes.OUTCOMES):
            files.append(table, rows(table))
        names = tuple(self._store.list_files(folder, ".parquet"))
        self._store.sync(f"{folder}/{name}" for name in names)
        return replace(note, files=names)

    def has_landed(self, note: ReplayNote) -> bool:  # noqa: ARG002  # tables need it
        """Return True: a decided replay of Parquet files counts as landed before `land` moves the files."""
        return True

    def land(self, note: ReplayNote, rows: Rows) -> None:  # noqa: ARG002  # tables need them
        """Move the files of a replay into the tables; raise `WrongCheckpoint` if a file is missing."""
        staged = set(self._store.list_files(f"{note.staging}/files", ".parquet"))
        for file in note.files:
            folder, _, name = file.rpartition("/")
            final = f"{folder}/replay-{note.number:08d}-{name}"
            if file in staged:
                self._store.rename(f"{note.staging}/files/{file}", final)
            elif not self._store.exists(final):
                raise notes.WrongCheckpoint(
                    f"{self._store.url(final)} must exist, because replay {note.number} was decided, but "
                    f"this file, or the staged file in {note.staging}, was removed. Restore the file"
                )
