"""`DeltaHistory` stores the ledger in the history of a Delta table, if SQL statements commit the rows.

Each SQL statement can commit one transaction identifier of Delta. The version of the transaction identifier
counts the commits that changed the ledger. So if two programs have read the same ledger, only one of the two
programs can commit. The metadata of each commit to the ledger contains the new ledger. Because Delta removes
old commits from the history, the ledger is also written to a property of the table before the next commit.

Two kinds of tables have their ledger in the history: tables with the option ``upsert``, and tables that
earlier versions of this package filled through Spark Connect. If an earlier version of this package filled a
table through Spark Connect, `_delta` moves the ledger of the table to transaction identifiers when the next
batch lands.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from cloudevents_kafka.spark._sql import sql_text
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.notes import Ledger

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

LEDGER: Final = "cloudevents-kafka"
"""The transaction identifier whose version counts the commits to the ledger."""

PROPERTY: Final = f"{LEDGER}.ledger."
"""The prefix in the names of table properties that contain a ledger. The number of the ledger's commits
follows this prefix."""

# The newest commits are read first, because Delta reads a file for each commit.
_NEWEST: Final = "LIMIT 100"


class Commit(msgspec.Struct, frozen=True):
    """The metadata of a commit: the new ledger, and a token that identifies the commit."""

    ledger: Ledger
    token: str

    @classmethod
    def of(cls, ledger: Ledger) -> Commit:
        """Return the metadata of a new commit that stores this ledger."""
        return cls(ledger, uuid.uuid4().hex)

    def options(self) -> dict[str, str]:
        """Return the options with which Delta's writer adds this metadata to its commit."""
        metadata = msgspec.json.encode(self).decode()
        return {
            "txnAppId": LEDGER,
            "txnVersion": str(self.ledger.generation),
            "userMetadata": metadata,
        }


class DeltaHistory:
    """The history of a Delta table; ``sql_name`` is its name in SQL, and ``name`` is its name in messages."""

    def __init__(self, spark: SparkSession, sql_name: str, name: str) -> None:
        self._spark, self._sql_name, self._name = spark, sql_name, name

    def ledger(self, properties: Mapping[str, str]) -> Ledger | None:
        """Return the newest ledger of the table, or None if the table has no ledger.

        Raises `WrongTable` if Delta has removed the commit that contains the ledger.
        """
        noted = list(_ledgers(properties))
        for newest in (_NEWEST, ""):  # without a property, the commit of the ledger is recent
            history = self._read(newest)
            committed = [commit.ledger for commit in _commits(history)]
            found = max([*noted, *committed], key=lambda ledger: ledger.generation, default=None)
            if found in committed:
                break
        if found in noted and not _is_complete(history, found.generation):
            raise WrongTable(
                f"the history of the table {self._name} must go back to commit {found.generation} of "
                "pipelines, but Delta has removed this commit, and perhaps later commits of pipelines. Land "
                "into a fresh table"
            )
        return found

    def note(self, properties: Mapping[str, str], ledger: Ledger) -> None:
        """Write a ledger to a property of the table, and remove the properties with earlier ledgers."""
        known = {found.generation for found in _ledgers(properties)}
        if ledger.generation not in known:
            name, text = f"{PROPERTY}{ledger.generation}", msgspec.json.encode(ledger).decode()
            self._alter(f"SET TBLPROPERTIES ({sql_text(name)} = {sql_text(text)})")
        self._unset(number for number in known if number < ledger.generation)

    def forget(self, properties: Mapping[str, str]) -> None:
        """Remove the table properties that contain ledgers."""
        self._unset(found.generation for found in _ledgers(properties))

    def _unset(self, generations: Iterable[int]) -> None:
        if names := ", ".join(sql_text(f"{PROPERTY}{number}") for number in generations):
            self._alter(f"UNSET TBLPROPERTIES ({names})")

    def _alter(self, change: str) -> None:
        self._spark.sql(f"ALTER TABLE {self._sql_name} {change}")

    def has(self, commit: Commit) -> bool:
        """Return whether the history has a commit; Delta skips a commit if another writer commits first."""
        return any(found.token == commit.token for found in _commits(self._read(_NEWEST)))

    def _read(self, limit: str) -> Sequence[Row]:
        history = self._spark.sql(f"DESCRIBE HISTORY {self._sql_name} {limit}")
        rows: Sequence[Row] = history.select(
            "version", "operation", "operationParameters", "userMetadata"
        ).collect()
        return rows


def _commits(history: Sequence[Row]) -> Iterator[Commit]:
    """Yield those commits in the history that pipelines have made; their metadata contains a ledger."""
    for row in history:
        try:
            yield msgspec.json.decode(row["userMetadata"] or "", type=Commit)
        except msgspec.MsgspecError:
            continue


def _ledgers(properties: Mapping[str, str]) -> Iterator[Ledger]:
    for name, text in properties.items():
        if name.startswith(PROPERTY):
            yield msgspec.json.decode(text, type=Ledger)


def _is_complete(history: Sequence[Row], generation: int) -> bool:
    """Return whether the history contains all commits since a pipeline wrote a ledger to a table property."""
    name = f"{PROPERTY}{generation}"
    return any(
        row["version"] == 0
        or (row["operation"] == "SET TBLPROPERTIES" and name in str(row["operationParameters"]))
        for row in history
    )
