"""A `Target` receives the rows of batches: it writes files or tables, or calls a user's function.

For each batch, `BatchLander` first calls the methods `Target.start` and `Target.appends`. If `Target.appends`
returns a function, this function receives rows of the batch while Spark computes the rows. If
`Target.appends` returns None, Spark stores all rows of the batch. The method `Target.compare` then yields the
stored rows that must land, and the method `Target.take` receives these rows. Then `BatchLander` calls
`commit`. After the manifest of the batch is created, `BatchLander` calls the method `Target.finish`.
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
        """Finish the last landed batch; return its number, or None if the batch was finished already.

        The caller must first call `Landed.recover`, which reads the files in ``_batches``. Raises an error if
        the tables do not match the files in ``_batches``.
        """
        return None

    def is_decided(self, batch: notes.BegunBatch) -> bool:  # noqa: ARG002  # tables need it
        """Return whether an unfinished batch must be read with the settings of the run that began the batch.

        If no table has a row of the unfinished batch, this run reads the same offsets as the earlier run, but
        uses its own settings. If the target is a function, the pipeline cannot know what the function has
        done with the batch. So for a function, this run must read the batch with the settings of the earlier
        run.
        """
        return True

    def ledgers(self, routes: Mapping[str, str]) -> list[notes.Ledger]:  # noqa: ARG002  # tables need it
        """Return the ledgers of all tables except the table of events."""
        return []

    @abstractmethod
    def start(self, spark: SparkSession, batch: notes.BegunBatch) -> notes.BatchCounts | None:
        """Start a batch, and discard rows that were staged for another batch.

        If all rows of the batch have landed and the counts of the batch are known, return the counts; if not,
        return None.
        """

    def appends(self, batch: notes.BegunBatch) -> Append | None:  # noqa: ARG002  # tables need it
        """Return a function that stages rows of a table, or None if `Target.take` needs all rows at once."""
        return None

    def compare(self, batch: KeptBatch) -> AbstractContextManager[KeptBatch]:
        """Return a context manager that yields those rows of a batch that must be added to the tables.

        This method is called only for batches whose rows are passed to the method `Target.take`.
        """
        return nullcontext(batch)

    @abstractmethod
    def take(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Stage the rows of all tables; Spark stores the rows of the batch until this method returns."""

    @abstractmethod
    def commit(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> Mapping[str, Any]:
        """Make the staged rows durable; return fields for the batch's manifest, a `notes.BatchManifest`.

        Raises `CountMismatch` if the numbers of staged rows differ from the counts of the batch.
        """

    def finish(self, manifest: notes.BatchManifest) -> None:  # noqa: B027  # only files need it
        """Do the work of the target that must follow the creation of the batch's manifest."""
