"""`Target` is where the rows of batches go: to files, to tables, or to a function of the user.

For each batch, `BatchLander` first calls the methods `start` and `appends` of the target. If `appends`
returns a function, this function receives rows while Spark computes them. If `appends` returns None, Spark
stores all rows of the batch. The method `compare` then yields the rows that must land, and the method `take`
receives these rows. Then `BatchLander` calls `commit`. After the manifest of the batch is created,
`BatchLander` calls `finish`.
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
    """The base class of targets: files, tables or a function, which receive the rows of batches."""

    @abstractmethod
    def table_name(self, table: str) -> str:
        """Return the name or the URL of a table, for messages and summaries."""

    def recover(self) -> int | None:
        """Finish the last batch that landed; return the batch's number if any work remained, otherwise None.

        The caller must first read the files in ``_batches`` with `Landed.recover`. Raises an error if the
        tables do not match these files.
        """
        return None

    def is_decided(self, batch: notes.BegunBatch) -> bool:  # noqa: ARG002  # tables need it
        """Return whether an unfinished batch must be read with the settings of the run that began the batch.

        If no table has a row of the batch, this run reads the same offsets as the earlier run, but uses its
        own settings. If the target is a function, the pipeline cannot know what the function has done with
        the batch. So this run must use the settings of the earlier run.
        """
        return True

    def ledgers(self, routes: Mapping[str, str]) -> list[notes.Ledger]:  # noqa: ARG002  # tables need it
        """Return the ledgers of all tables except the table of events."""
        return []

    @abstractmethod
    def start(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchCounts | None:
        """Start a batch, and discard rows that were staged for another batch.

        If the counts of the batch are known and all of its rows have landed, return the counts; otherwise
        return None.
        """

    def appends(self, batch: notes.BegunBatch) -> Append | None:  # noqa: ARG002  # tables need it
        """Return a function that stages some rows of a table, or None if the method `take` needs all rows."""
        return None

    def compare(self, batch: KeptBatch) -> AbstractContextManager[KeptBatch]:
        """Return a context manager that yields those rows of a batch that must land.

        This method is called only for batches whose rows are passed to the method `take`.
        """
        return nullcontext(batch)

    @abstractmethod
    def take(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Stage the rows of all tables; Spark stores the rows until this method returns."""

    @abstractmethod
    def commit(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> Mapping[str, Any]:
        """Make the staged rows durable, and return fields of the manifest: see `notes.BatchManifest`.

        Raises `CountMismatch` if the staged rows differ from the counts.
        """

    def finish(self, manifest: notes.BatchManifest) -> None:  # noqa: B027  # only files need it
        """Do the work that remains after the manifest of a batch was created."""
