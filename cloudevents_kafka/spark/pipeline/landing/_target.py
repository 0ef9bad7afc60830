"""`Target` is where the rows of batches go: to files, to tables, or to a function of the user.

`BatchLander` calls the methods of a target for each batch. First, `BatchLander` calls `Target.start`. If rows
are computed while they are written, `BatchLander` then calls the function that `appends` returns. Otherwise,
`BatchLander` passes all rows at once to the method `take`. Then `BatchLander` calls `commit`, and calls
`finish` after the batch has its manifest.
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
        """Finish the last batch that landed; return its number if any work remained, otherwise None.

        Before this call, the files in ``_batches`` must be read. Raises an error if the tables do not match
        these files.
        """
        return None

    def is_decided(self, batch: notes.BegunBatch) -> bool:  # noqa: ARG002  # tables need it
        """Return whether an unfinished batch must be read with the settings that were written for the batch.

        While no table has a row of the batch, only the offsets that were written for the batch have an
        effect. If the target is a function, the pipeline cannot know what the function has done with the
        batch. So the settings that were written for the batch must be used.
        """
        return True

    def ledgers(self) -> list[notes.Ledger]:
        """Return the ledgers of all tables except the table of events."""
        return []

    @abstractmethod
    def start(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchCounts | None:
        """Start a batch, and forget rows that were staged for another batch.

        Return the counts of the batch if all of its rows have landed, otherwise None.
        """

    def appends(self, batch: notes.BegunBatch) -> Append | None:  # noqa: ARG002  # tables need it
        """Return a function that stages some rows of a table, or None if the method `take` needs all rows."""
        return None

    def compare(self, batch: KeptBatch) -> AbstractContextManager[KeptBatch]:
        """Return a context manager that yields the part of a batch that must land.

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
