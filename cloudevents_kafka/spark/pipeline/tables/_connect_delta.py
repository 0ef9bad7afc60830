"""`ConnectDeltaTable`: a table of Delta that takes batches through Spark Connect, where Java is out of reach.

Spark's writer commits one transaction identifier with the rows: its version counts the commits to the ledger,
so that of two commits after one ledger only one succeeds. The metadata of that commit has the ledger itself.
The table's history forgets old commits, so before the next commit the ledger becomes a property of the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline._sql import sql_text, write_settings
from cloudevents_kafka.spark.pipeline.notes import Ledger
from cloudevents_kafka.spark.pipeline.tables._delta import CONNECT, LEDGER, DeltaTable
from cloudevents_kafka.spark.pipeline.tables._sink import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


# Delta reads a file for each commit.
_NEWEST: Final = "LIMIT 100"


class _Commit(msgspec.Struct, frozen=True):
    """The metadata of a commit."""

    ledger: Ledger
    token: str


class ConnectDeltaTable(DeltaTable):
    """A Delta table in a session of Spark Connect."""

    def id(self) -> str:
        """Return the id of the table in Delta."""
        return str(self._detail()["id"])

    def _read_ledger(self) -> tuple[Ledger | None, int]:
        detail = self._detail()
        noted = list(_ledgers(detail["properties"]))
        for newest in (_NEWEST, ""):  # a commit that is not noted yet is a recent one
            history = self._history(newest)
            committed = [commit.ledger for commit in self._commits(history)]
            found = max([*noted, *committed], key=lambda ledger: ledger.generation, default=None)
            if found in committed:
                break
        if found in noted and not _is_complete(history, found.generation):
            raise WrongTable(
                f"the history of the table {self.name} must go back to commit {found.generation} of "
                "pipelines, but Delta has removed it, perhaps with one that followed. Land into a fresh table"
            )
        return found, detail["numFiles"]

    def stage(self, rows: DataFrame) -> Staged:
        """Return computed rows, which the server keeps until `commit`; see `Table.stage`."""
        kept = self._prepare(rows).persist()
        kept.write.format("noop").mode("overwrite").save()
        return Staged(kept, None)

    def commit(self, staged: Sequence[Staged], before: Ledger, after: Ledger) -> None:
        """Make staged rows and a new ledger part of the table; see `Table.commit`."""
        commit = _Commit(after, uuid.uuid4().hex)
        options = {
            "txnAppId": LEDGER,
            "txnVersion": str(after.generation),
            "userMetadata": msgspec.json.encode(commit).decode(),
        }
        with self._committing(), write_settings(self._spark):
            self._note(before)
            self._write([part.files for part in staged], options)
        # Delta skips a version that another commit has reached, and reports nothing.
        if all(found.token != commit.token for found in self._commits(self._history(_NEWEST))):
            raise self._changed()
        for part in staged:
            part.files.unpersist()

    def _write(self, frames: Sequence[DataFrame], options: Mapping[str, str]) -> None:
        """Write rows in one commit, with these options of Delta's writer."""
        rows = self.read().limit(0)
        for frame in frames:
            rows = rows.unionByName(frame)
        rows.writeTo(self._sql_name).options(**options).append()

    def _note(self, ledger: Ledger) -> None:
        """Make a ledger a property of the table, in place of earlier ones."""
        alter = f"ALTER TABLE {self._sql_name}"
        known = {found.generation for found in _ledgers(self._detail()["properties"])}
        if ledger.generation not in known:
            name, text = f"{CONNECT}{ledger.generation}", msgspec.json.encode(ledger).decode()
            self._spark.sql(f"{alter} SET TBLPROPERTIES ({sql_text(name)} = {sql_text(text)})")
        old = ", ".join(sql_text(f"{CONNECT}{number}") for number in known if number < ledger.generation)
        if old:
            self._spark.sql(f"{alter} UNSET TBLPROPERTIES ({old})")

    def _history(self, limit: str) -> Sequence[Row]:
        history = self._spark.sql(f"DESCRIBE HISTORY {self._sql_name} {limit}")
        rows: Sequence[Row] = history.select(
            "version", "operation", "operationParameters", "userMetadata"
        ).collect()
        return rows

    def _commits(self, history: Sequence[Row]) -> Iterator[_Commit]:
        """Yield the commits of pipelines; raise `WrongTable` if some came from a session with Java."""
        for row in history:
            text = row["userMetadata"] or ""
            if text.startswith(LEDGER):
                raise WrongTable(
                    f"the table {self.name} must be landed in by a session with Java, as before: Spark "
                    "Connect has no access to the transactions of Delta that have its ledger. Use such a "
                    "session, or land into a fresh table"
                )
            try:
                yield msgspec.json.decode(text, type=_Commit)
            except msgspec.MsgspecError:  # the commit of another writer has other metadata
                continue


def _ledgers(properties: Mapping[str, str]) -> Iterator[Ledger]:
    for name, text in properties.items():
        if name.startswith(CONNECT):
            yield msgspec.json.decode(text, type=Ledger)


def _is_complete(history: Sequence[Row], generation: int) -> bool:
    """Return whether the history has all commits since the property of a ledger was set."""
    name = f"{CONNECT}{generation}"
    return any(
        row["version"] == 0
        or (row["operation"] == "SET TBLPROPERTIES" and name in str(row["operationParameters"]))
        for row in history
    )
