"""`Target`: where the rows of batches go, which are files, tables or a function of the user.

`BatchLander` calls it for each batch. First it calls `Target.start`. If rows are computed while they are
written, it then calls the functions that `appends` returns; otherwise it passes all rows at once to `take`.
Then it calls `commit`, and `finish` once the batch has its manifest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.spark.pipeline import notes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloudevents_kafka.spark.pipeline.batches import Append, KeptBatch


class Target(ABC):
    """Where the rows of batches go; most kinds need only some of the steps."""

    @abstractmethod
    def table_name(self, table: str) -> str:
        """Return the name or the URL of a table, for messages and summaries."""

    def recover(self) -> int | None:
        """Finish the last batch that landed; return its number if there was something to do.

        The notes have been read. Raises an error if the tables are not as they were left.
        """
        return None

    def is_decided(self, batch: notes.BegunBatch) -> bool:  # noqa: ARG002  # tables need it
        """Return whether a batch that was begun must be read as its note says.

        While no table has a row of the batch, only the offsets of its note have an effect. Without tables
        nobody knows what a function has done with the batch, so the note decides.
        """
        return True

    def ledgers(self) -> list[notes.Ledger]:
        """Return the ledgers of tables next to that of events."""
        return []

    @abstractmethod
    def start(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchCounts | None:
        """Start a batch, and forget what was staged; return its counts if all of its rows have landed."""

    def appends(self, batch: notes.BegunBatch) -> Append | None:  # noqa: ARG002  # tables need it
        """Return what stages a part of the rows of a table, or None if `take` needs all rows of a batch."""
        return None

    def compare(self, batch: KeptBatch) -> AbstractContextManager[KeptBatch]:
        """Return what yields the part of a batch that is to land, of one that `take` is called for."""
        return nullcontext(batch)

    @abstractmethod
    def take(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Stage the rows of all tables, which are stored until it returns."""

    @abstractmethod
    def commit(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> Mapping[str, Any]:
        """Make the staged rows durable; return fields of the manifest, see `notes.BatchManifest`.

        Raises `CountMismatch` if the rows are not as they were counted.
        """

    def finish(self, manifest: notes.BatchManifest) -> None:  # noqa: B027  # only files need it
        """Do what is left when a batch has its manifest."""
