"""`DeltaHistory` is the ledger in the history of a Delta table whose rows are committed by SQL statements.

A statement commits one transaction identifier, whose version counts the commits to the ledger. So if two
programs have read the same ledger, only one of them can commit. The metadata of the commit contains the
ledger itself. Delta removes old commits from the history, so the ledger becomes a property of the table
before the next commit.

The ledger of a table with the option ``upsert`` is in the history. The ledger of a table that earlier
versions of this package filled through Spark Connect is in the history, too; with the first batch, `_delta`
moves such a ledger to transaction identifiers.
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
"""The beginning of a table property's name; the number of the ledger's commits follows, and the value is the
ledger."""

# Delta reads a file for each commit.
_NEWEST: Final = "LIMIT 100"


class Commit(msgspec.Struct, frozen=True):
    """The metadata of a commit: the ledger, and a token that identifies the commit."""

    ledger: Ledger
    token: str

    @classmethod
    def of(cls, ledger: Ledger) -> Commit:
        """Return the metadata of a new commit with this ledger."""
        return cls(ledger, uuid.uuid4().hex)

    def options(self) -> dict[str, str]:
        """Return the options with which Delta's writer commits this metadata."""
        metadata = msgspec.json.encode(self).decode()
        return {
            "txnAppId": LEDGER,
            "txnVersion": str(self.ledger.generation),
            "userMetadata": metadata,
        }


class DeltaHistory:
    """The history of a table, which is named by its quoted name, and by another name in messages."""

    def __init__(self, spark: SparkSession, sql_name: str, name: str) -> None:
        self._spark, self._sql_name, self._name = spark, sql_name, name

    def ledger(self, properties: Mapping[str, str]) -> Ledger | None:
        """Return the newest ledger, or None if there is no ledger.

        Raises `WrongTable` if Delta has removed the ledger.
        """
        noted = list(_ledgers(properties))
        for newest in (_NEWEST, ""):  # a commit that is not noted yet is a recent one
            history = self._read(newest)
            committed = [commit.ledger for commit in _commits(history)]
            found = max([*noted, *committed], key=lambda ledger: ledger.generation, default=None)
            if found in committed:
                break
        if found in noted and not _is_complete(history, found.generation):
            raise WrongTable(
                f"the history of the table {self._name} must go back to commit {found.generation} of "
                "pipelines, but Delta has removed it, perhaps with one that followed. Land into a fresh table"
            )
        return found

    def note(self, properties: Mapping[str, str], ledger: Ledger) -> None:
        """Make a ledger a property of the table, and remove the properties with earlier ledgers."""
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
        """Return whether a commit has just succeeded: Delta skips a commit if another commit was faster."""
        return any(found.token == commit.token for found in _commits(self._read(_NEWEST)))

    def _read(self, limit: str) -> Sequence[Row]:
        history = self._spark.sql(f"DESCRIBE HISTORY {self._sql_name} {limit}")
        rows: Sequence[Row] = history.select(
            "version", "operation", "operationParameters", "userMetadata"
        ).collect()
        return rows


def _commits(history: Sequence[Row]) -> Iterator[Commit]:
    """Yield the commits of pipelines, which are recognized by their metadata."""
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
    """Return whether the history contains all commits since a ledger became a property of the table."""
    name = f"{PROPERTY}{generation}"
    return any(
        row["version"] == 0
        or (row["operation"] == "SET TBLPROPERTIES" and name in str(row["operationParameters"]))
        for row in history
    )
