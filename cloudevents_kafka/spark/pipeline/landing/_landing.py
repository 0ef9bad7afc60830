"""How batches land exactly once: `Landing`, which knows what has landed, and decides what is new.

`Landing.begin` decides which records of a batch have not landed yet, `Landing.write` writes these, and
`Landing.complete` creates its manifest. The life of a batch in docs/design.md has what is left after a kill.

Offsets decide whether a record has landed, together with the id of its topic (see `_topics`), by one
ledger: that of the table of events, or of the last manifest. The number of a batch does not: a checkpoint
that was set back plans the same number with other offsets. If a batch overlaps what has landed, only its
other records land; a batch that begins after its end or before its start ends the run.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.removed import TOPICS
from cloudevents_kafka.spark.pipeline.stores import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter
    from cloudevents_kafka.spark.typed.framed import Writers
    from cloudevents_kafka.spark.typed.schemas import DataSchema


class Landing(ABC):
    """The batches of a folder; call `recover` first."""

    kind: str
    """What the batches land in; a folder has one kind, because its notes are about that."""

    continued: tuple[str, ...] = ()
    """Other kinds, in whose folders it goes on."""

    in_notes = True
    """Whether the last manifest has the ledger that decides, rather than the table of events."""

    notes_begun = True
    """Whether the offsets of a batch are noted before it is written, so that another run finishes it."""

    def __init__(self, store: Store, routes: Mapping[str, str] | None = None) -> None:
        self.store = store
        self.manifests = notes.Manifests(store)
        self.last: notes.BatchManifest | None = None
        self.ledger = notes.Ledger()
        self.pipeline = uuid.uuid4().hex[:12]
        self._routes = dict(routes or {})
        self.schemas: Mapping[str, DataSchema] = {}
        self.rescue = False
        self.find_writers: Callable[[], Writers | None] = lambda: None  # of the batch that is begun
        self._ids: notes.TopicIds = {}
        self.beginning = notes.Beginning()
        self._is_noted = True  # whether it is known where the checkpoint begins

    @property
    def upsert(self) -> notes.Upsert | None:
        """How records change rows, if the table has one row for each key."""
        return None

    @abstractmethod
    def table_name(self, table: str) -> str:
        """Return the name or the URL of a table, for messages and summaries."""

    @abstractmethod
    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Write the records of a batch, in the way that its note names, and return the counts."""

    def begun(self) -> notes.BegunBatch | None:
        """Return the batch that an earlier run has begun and this one must finish, or None."""
        batch = self.manifests.find(notes.BegunBatch) if self.notes_begun else None
        return None if batch is None or (self.last and batch.number <= self.last.number) else batch

    def is_decided(self, batch: notes.BegunBatch) -> bool:  # noqa: ARG002  # tables need it
        """Return whether a batch that was begun must be read as its note says.

        A note decides nothing before a table has a row of its batch: until then only the offsets are kept.
        Without tables it is unknown what has been done with the batch, so the note decides.
        """
        return True

    def recover(self) -> int | None:
        """Read the notes; return the number of a landed batch that had to be finished, or None.

        Raises `WrongCheckpoint` if the notes cannot be read, or are of another kind of tables.
        """
        self.last = self.manifests.last()
        self.beginning = self.manifests.find(notes.Beginning) or notes.Beginning()
        newest = self.last or self.manifests.find(notes.BegunBatch)
        if newest is not None and newest.to not in {self.kind, *self.continued}:
            how = f"Continue with {newest.to}, or use a fresh folder and checkpoint"
            raise notes.WrongCheckpoint(
                f"the batches of {self.store.url('')} landed in {newest.to}, not in {self.kind}. "
                f"{TOPICS if newest.to == 'kafka' else how}"
            )
        self.pipeline = self.beginning.pipeline or (newest.pipeline if newest else "") or self.pipeline
        self._is_noted = self.in_notes or bool(self.beginning.start)
        self.ledger = self._read_ledger().merge(self._noted.begins())
        return None

    def _read_ledger(self) -> notes.Ledger:
        """Return the ledger that decides."""
        return notes.Ledger() if self.last is None else self.last.ledger

    @property
    def _noted(self) -> notes.Ledger:
        """What notes have: all batches of the folder, and what was there before them."""
        return Landing._read_ledger(self).merge(self.beginning.landed.entries())

    @property
    def total(self) -> notes.BatchCounts:
        """The counts of all batches in the folder."""
        return notes.BatchCounts() if self.last is None else self.last.total

    @property
    def landed(self) -> notes.OffsetRanges:
        """The last range of each partition that has landed, or where it begins, of the known topics."""
        return self.ledger.landed(self._ids or self.topic_ids)

    def use_topic_ids(self, ids: notes.TopicIds) -> None:
        """Let `landed` be about the topics with these ids, and others that the folder knows."""
        self._ids = {**self.topic_ids, **ids}

    @property
    def topic_ids(self) -> notes.TopicIds:
        """The known ids of the topics that fill the folder."""
        return self.beginning.ids if self.last is None else self.last.ids

    @property
    def tables(self) -> dict[str, str]:
        """The names of all tables, by those in the counts; the last is the quarantine."""
        tables = dict.fromkeys((notes.EVENTS, *self._routes.values(), notes.QUARANTINE))
        return {table: self.table_name(table) for table in tables}

    def record_beginning(self, ids: notes.TopicIds, start: str | None) -> None:
        """Write what is known before the first batch, and the ``start`` of a new checkpoint, or None."""
        known = self.beginning
        if start is None and known.pipeline:
            return
        if start is not None:
            known = replace(known, start=start, landed=self.ledger)
        self.beginning = replace(known, pipeline=self.pipeline, ids=known.ids or ids)
        self.manifests.write(self.beginning)

    def check(self, query_id: str | None, committed: notes.BatchPlan | None) -> None:
        """Raise `WrongCheckpoint` if the folder and a checkpoint do not belong together.

        ``query_id`` is None for a new checkpoint; ``committed`` is its last committed batch. A table's ledger
        decides under any checkpoint.
        """
        self._is_noted = self._is_noted or query_id is None
        last = self.last.query if self.last is not None and self.in_notes else query_id
        if last not in {query_id, self.beginning.follows}:
            this = "this is a new one" if query_id is None else f"this is {query_id}"
            raise notes.WrongCheckpoint(
                f"{self.store.url('')} was filled under another checkpoint (query {last}, {this}): records "
                "would land twice or never. Use the folder's own checkpoint, or a fresh folder"
            )
        if committed is not None:
            self._check_follows(notes.BatchPlan(committed.batch + 1, committed.ranges))

    def begin(
        self,
        plan: notes.BatchPlan,
        query_id: str,
        topic_ids: notes.TopicIds,
        *,
        in_java: bool = True,
        lenient: bool = False,
    ) -> notes.BegunBatch | None:
        """Return the batch of the planned records that have not landed yet, or None if all have.

        A first batch lands even without records: its manifest has the offsets at which the folder begins.
        Raises `WrongCheckpoint` if the plan does not continue what has landed, and `WrongTable` if another
        pipeline has landed some of it.
        """
        self.check(query_id, None)
        self._check_follows(plan)
        ids = {**self.topic_ids, **topic_ids}
        left = self.ledger.left(ids, plan.ranges, None if self.in_notes else self.pipeline)
        if self.last is not None and not left:
            return None
        return self._begin(
            batch=plan.batch,
            query=query_id,
            ids=ids,
            offsets=left,
            planned=plan.ranges,
            in_java=in_java,
            lenient=lenient,
        )

    def begin_gap(
        self, offsets: notes.OffsetRanges, topic_ids: notes.TopicIds, *, in_java: bool, lenient: bool
    ) -> notes.BegunBatch:
        """Return a batch of offsets that no pipeline has landed, next to those that Spark plans."""
        assert self.last is not None
        return self._begin(
            batch=self.last.batch,
            query=self.last.query,
            ids={**self.topic_ids, **topic_ids},
            offsets=offsets,
            planned=offsets,
            in_java=in_java,
            lenient=lenient,
        )

    def begin_again(self, batch: notes.BegunBatch, *, in_java: bool, lenient: bool) -> notes.BegunBatch:
        """Return a batch for the offsets of one that was begun and is not decided, see `is_decided`."""
        return self._begin(
            batch=batch.batch,
            query=batch.query,
            ids=batch.ids,
            offsets=batch.offsets,
            planned=batch.planned,
            in_java=in_java,
            lenient=lenient,
        )

    def _begin(self, **fields: Any) -> notes.BegunBatch:
        number = 0 if self.last is None else self.last.number + 1
        fields |= {"pipeline": self.pipeline, "routes": self._routes, "to": self.kind}
        fields |= {"schemas": self.schemas, "rescue": self.rescue, "writers": self.find_writers()}
        fields |= {"upsert": self.upsert}
        batch = notes.BegunBatch(number=number, **fields)
        if self.notes_begun:
            self.manifests.write(batch)
        return batch

    def ledgers(self) -> list[notes.Ledger]:
        """Return the ledgers of all tables that have one, that of events first."""
        return [self.ledger]

    def complete(self, batch: notes.BegunBatch, counts: notes.BatchCounts, **own: Any) -> notes.BatchManifest:
        """Create the manifest of a batch that is written, and return it; raise `CountMismatch`."""
        ledger = self.ledger.add(self.pipeline, batch.ids, batch.planned)
        total = self.total.merge(counts.check())
        manifest = notes.BatchManifest(**asdict(batch), counts=counts, total=total, ledger=ledger, **own)
        self.manifests.add(manifest)
        self.last = manifest
        self.ledger = ledger if self.in_notes else self.ledger.merge(ledger.begins())
        return manifest

    def _check_follows(self, plan: notes.BatchPlan) -> None:
        """Raise `WrongCheckpoint` if a batch begins after the end of the landed offsets, or before them."""
        # A checkpoint whose folder has no notes may begin anywhere: only the ledger knows what is before it.
        has_landed = self.ledger.generation > 0 or self.last is not None or not self._is_noted
        if plan.batch and not has_landed:
            raise notes.WrongCheckpoint(
                f"the checkpoint continues with batch {plan.batch}, but {self.store.url('')} has no batch: "
                "earlier records landed in another folder. Use that folder, or a fresh checkpoint"
            )
        landed = self.landed
        for topic, partition, offsets in notes.iter_partitions(plan.ranges) if has_landed else ():
            # A first batch may begin anywhere, a partition that is added later begins at its offset 0.
            begin = offsets.start if self._is_noted and not plan.batch else 0
            before = landed.get(topic, {}).get(partition, notes.OffsetRange(begin, begin))
            if before.start <= offsets.start <= before.end:
                continue
            first, end = sorted((offsets.start, before.end if offsets.start > before.end else before.start))
            absent = notes.format_ranges({topic: {partition: notes.OffsetRange(first, end)}})
            raise notes.WrongCheckpoint(
                f"the checkpoint continues with batch {plan.batch} at {topic}[{partition}]@{offsets.start}, "
                f"but {absent} are missing in {self.store.url('')}. "
                "Restore the removed files, or use a fresh folder and checkpoint"
            )
