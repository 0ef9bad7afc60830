"""How batches land in a table with whose rows they are compared: without duplicates, or as changes of rows.

The law of landing holds, see `_table_landing`, and two more sentences:

1. What a batch lands as depends on the rows of its table. So if another pipeline commits between the
   comparison and the commit of the batch, the run ends, and the next start compares again.
2. The counts of a batch are noted before its commits: after a kill behind them, they cannot be found again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing._table_landing import TableLanding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter, KeptBatch

    Compare = Callable[[KeptBatch, DataFrame | None], AbstractContextManager[KeptBatch]]


class ComparedLanding(TableLanding):
    """The batches of a table that are compared with its rows, by the function in ``compare``."""

    compare: Compare

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Stage what is to land of a batch, and return the counts."""
        # Others may have committed since the last batch.
        self.ledger = self._read_ledger().merge(self._noted.begins())
        self._batch, self._staged, self._ledgers = batch, {}, {notes.EVENTS: self.ledger}
        if batch.counted is not None and not self._left(notes.EVENTS):
            return batch.counted  # only its manifest is missing
        return writer.write_kept(records, batch, self._append_all, self._compared)

    def _compared(self, batch: KeptBatch) -> AbstractContextManager[KeptBatch]:
        table = self._open(notes.EVENTS)
        return self.compare(batch, table.read(batch.events.sparkSession) if table.exists() else None)

    def complete(self, batch: notes.BegunBatch, counts: notes.BatchCounts, **own: Any) -> notes.BatchManifest:
        """Note the counts of a batch, commit it, and return its manifest; see `TableLanding.complete`."""
        if batch.counted != counts.check():
            self.manifests.write(replace(batch, counted=counts))
        return super().complete(replace(batch, counted=None), counts, **own)

    def _check_compared(self, table: str, before: notes.Ledger) -> None:
        if table == notes.EVENTS and self._ledgers[table].generation != before.generation:
            raise WrongTable(
                f"no other pipeline must commit to {self.table_name(table)} while a batch is compared with "
                "its rows, but one has; nothing of the batch has landed there. Start again, and run one "
                "pipeline at a time"
            )


class UpsertLanding(ComparedLanding):
    """The batches of a table that has one row for each key."""

    @property
    def upsert(self) -> notes.Upsert | None:
        """How records change the rows of the table."""
        return self._open(notes.EVENTS).upsert

    def begun(self) -> notes.BegunBatch | None:
        """Return the batch that must be finished; earlier versions did not note how records change rows."""
        batch = super().begun()
        return batch and replace(batch, upsert=batch.upsert or self.upsert)

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Stage the changes of rows in a batch, and return the counts; raise `WrongTable`."""
        for entry in self.ledger.entries():
            found = batch.ids.get(entry.topic, "")
            if found and entry.topic_id not in {"", found}:
                raise WrongTable(
                    f"the table {self.table_name(notes.EVENTS)} has rows of the topic {entry.topic} that was "
                    f"deleted (id {entry.topic_id}, now {found}), so which record is newer than its row is "
                    "unknown. Land into a fresh table"
                )
        return super().write(writer, records, batch)

    def _append_all(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Stage the changes of rows, and the records of the quarantine."""
        if set(counts.changes) - {"older"} or not self._open(notes.EVENTS).exists():
            self.append(notes.EVENTS, events)
        if not counts.quarantined:
            return
        # Which records are refused depends on where a batch ends: that of the note ends where it did before.
        is_another = self._batch.counted is None and self._left(notes.QUARANTINE) != self._batch.offsets
        if is_another and "refused" in counts.by_reason:
            raise WrongTable(
                f"{self.table_name(notes.QUARANTINE)} has records of a batch that was begun, but the note of "
                f"that is gone. Restore {self.store.url('_batches')}, or land into a fresh table"
            )
        self.append(notes.QUARANTINE, quarantine)
