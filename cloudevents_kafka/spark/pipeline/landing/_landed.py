"""`Landed` knows which offsets have landed in the folder of a pipeline, and so which records are new.

A ledger lists the landed offsets of each partition. The ledger is stored with the table of events, or in the
manifest (the file about a batch) of the last batch. A record has landed if this ledger contains the record's
offset for the id of the record's topic (see `topics`). The number of a batch does not matter: if an older
checkpoint is restored, Spark plans a batch with the same number as an earlier batch, but with other offsets.
If some records of a batch have landed already, only the other records of the batch land. If a partition has
landed records, a batch must begin inside the partition's last landed range of offsets, or directly after this
range. If the batch begins at another offset, the run ends with an error.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.options.removed import TOPICS
from cloudevents_kafka.spark.pipeline.stores import Store


class Landed:
    """The offsets of landed records in a folder; call the method `recover` before other methods.

    ``kind`` is the kind of target in which batches land. All batches of a folder land in one kind of target,
    because the files in ``_batches`` depend on this kind. ``continued`` lists other kinds; the pipeline may
    also continue a folder whose batches landed in one of these kinds. With ``in_notes``, the ledger in the
    last manifest decides which offsets have landed. Without ``in_notes``, the ledger of the table of events
    decides which offsets have landed, and `use_ledger` sets this ledger. With ``notes_begun``, the offsets of
    a batch are written into a file before the batch itself is written, so that another run can finish the
    batch.
    """

    def __init__(
        self,
        store: Store,
        kind: str,
        *,
        continued: tuple[str, ...] = (),
        in_notes: bool = True,
        notes_begun: bool = True,
    ) -> None:
        self.store, self.kind, self.in_notes = store, kind, in_notes
        self.manifests = notes.Manifests(store)
        self.last: notes.BatchManifest | None = None
        self.ledger = notes.Ledger()
        self.pipeline = uuid.uuid4().hex[:12]
        self.beginning = notes.Beginning()
        self._continued, self._notes_begun = continued, notes_begun
        self._ids: notes.TopicIds = {}
        self._is_noted = True  # whether the first offsets of the checkpoint are known

    def begun(self) -> notes.BegunBatch | None:
        """Return the unfinished batch of an earlier run, which this run must finish, or None."""
        batch = self.manifests.find(notes.BegunBatch) if self._notes_begun else None
        if batch is None or (self.last and batch.number <= self.last.number):
            return None
        return batch if batch.to not in self._continued else replace(batch, routes={})

    def recover(self) -> None:
        """Read the files in the folder ``_batches``.

        Raises `WrongCheckpoint` if a file in the folder cannot be read, or if the batches landed in another
        kind of target.
        """
        self.last = self.manifests.last()
        self.beginning = self.manifests.find(notes.Beginning) or notes.Beginning()
        newest = self.last or self.manifests.find(notes.BegunBatch)
        if newest is not None and newest.to not in {self.kind, *self._continued}:
            how = f"Continue with {newest.to}, or use a fresh folder and checkpoint"
            raise notes.WrongCheckpoint(
                f"the batches of {self.store.url('')} landed in {newest.to}, not in {self.kind}. "
                f"{TOPICS if newest.to == 'kafka' else how}"
            )
        self.pipeline = self.beginning.pipeline or (newest.pipeline if newest else "") or self.pipeline
        self._is_noted = self.in_notes or bool(self.beginning.start)
        self.use_ledger(self._of_batches)

    def use_ledger(self, ledger: notes.Ledger) -> None:
        """Use a ledger as the list of landed offsets, and add the offsets at which the pipeline began."""
        self.ledger = ledger.merge(self.noted.begins())

    @property
    def noted(self) -> notes.Ledger:
        """The ledger (the list of landed offsets) in the last manifest.

        The ledger of the last manifest contains the offsets of all batches of the folder, and the offsets
        that had landed before these batches.
        """
        return self._of_batches.merge(self.beginning.landed.entries())

    @property
    def _of_batches(self) -> notes.Ledger:
        return notes.Ledger() if self.last is None else self.last.ledger

    @property
    def total(self) -> notes.BatchCounts:
        """The counts of all batches in the folder."""
        return notes.BatchCounts() if self.last is None else self.last.total

    @property
    def landed(self) -> notes.OffsetRanges:
        """The last landed range of offsets of each partition of the known topics.

        If no record of a partition has landed, the range of the partition is empty, and begins at the offset
        at which the pipeline began.
        """
        return self.ledger.landed(self._ids or self.topic_ids)

    def use_topic_ids(self, ids: notes.TopicIds) -> None:
        """Use these topic ids to compute the property `landed`; the known ids of other topics stay in use."""
        self._ids = {**self.topic_ids, **ids}

    @property
    def topic_ids(self) -> notes.TopicIds:
        """The known ids of the topics whose records are in the folder."""
        return self.beginning.ids if self.last is None else self.last.ids

    def record_beginning(self, ids: notes.TopicIds, start: str | None) -> None:
        """Write the file ``beginning.json``: the id of the pipeline, the start offsets and the topic ids.

        ``start`` is the value of the pipeline's option ``start`` for a new checkpoint, or None for an
        existing checkpoint.
        """
        known = self.beginning
        if start is None and known.pipeline:
            return
        if start is not None:
            known = replace(known, start=start, landed=self.ledger)
        self.beginning = replace(known, pipeline=self.pipeline, ids=known.ids or ids)
        self.manifests.write(self.beginning)

    def check(self, query_id: str | None, committed: notes.BatchPlan | None) -> None:
        """Raise `WrongCheckpoint` if the folder and a checkpoint do not belong together.

        ``query_id`` is None for a new checkpoint, and ``committed`` is the last committed batch of the
        checkpoint. With Delta and Iceberg, the checkpoint may belong to another query than the landed
        batches, because the ledger in the table of events decides which records have landed.
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

    def plan(
        self, plan: notes.BatchPlan, query_id: str, topic_ids: notes.TopicIds
    ) -> notes.PlannedBatch | None:
        """Return a batch with the planned records that have not landed yet, or None if there are none.

        The first batch of a folder lands even if it has no records, because its manifest contains the offsets
        at which the pipeline began. Raises `WrongCheckpoint` if the planned offsets do not continue the
        landed offsets, and `WrongTable` if another pipeline has landed some of the planned offsets.
        """
        self.check(query_id, None)
        self._check_follows(plan)
        ids = {**self.topic_ids, **topic_ids}
        left = self.ledger.left(ids, plan.ranges, None if self.in_notes else self.pipeline)
        if self.last is not None and not left:
            return None
        return notes.PlannedBatch(plan.batch, query_id, ids, left, plan.ranges)

    def plan_gap(self, offsets: notes.OffsetRanges, topic_ids: notes.TopicIds) -> notes.PlannedBatch:
        """Return a batch with these offsets, which Spark has not planned and no pipeline has landed."""
        assert self.last is not None
        ids = {**self.topic_ids, **topic_ids}
        return notes.PlannedBatch(self.last.batch, self.last.query, ids, offsets, offsets)

    def begin(
        self, planned: notes.PlannedBatch, read: notes.ReadSettings, *, in_java: bool
    ) -> notes.BegunBatch:
        """Return a batch that will be written; with ``notes_begun``, write the file ``begun.json`` first."""
        number = 0 if self.last is None else self.last.number + 1
        own: Any = {"number": number, "pipeline": self.pipeline, "to": self.kind, "in_java": in_java}
        batch = notes.BegunBatch(**asdict(read), **planned._asdict(), **own)
        if self._notes_begun:
            self.manifests.write(batch)
        return batch

    def complete(
        self, batch: notes.BegunBatch, counts: notes.BatchCounts, own: Mapping[str, Any]
    ) -> notes.BatchManifest:
        """Create the manifest of a batch that has landed, and return the manifest.

        ``own`` contains the fields of the manifest that depend on the kind of the target.
        """
        ledger = self.ledger.add(self.pipeline, batch.ids, batch.planned)
        total = self.total.merge(counts)
        fields: Any = {**asdict(batch), "counted": None, **own}
        manifest = notes.BatchManifest(**fields, counts=counts, total=total, ledger=ledger)
        self.manifests.add(manifest)
        self.last = manifest
        self.ledger = ledger if self.in_notes else self.ledger.merge(ledger.begins())
        return manifest

    def _check_follows(self, plan: notes.BatchPlan) -> None:
        """Raise `WrongCheckpoint` unless a batch begins in, or directly after, the last landed offsets.

        Each partition of the batch is compared with the last landed range of the same partition.
        """
        # If the folder has no notes, the checkpoint may begin at any offset. Then only the ledger shows which
        # earlier offsets have landed.
        has_landed = self.ledger.generation > 0 or self.last is not None or not self._is_noted
        if plan.batch and not has_landed:
            raise notes.WrongCheckpoint(
                f"the checkpoint continues with batch {plan.batch}, but {self.store.url('')} has no batch: "
                "earlier records landed in another folder. Use that folder, or a fresh checkpoint"
            )
        landed = self.landed
        for topic, partition, offsets in notes.iter_partitions(plan.ranges) if has_landed else ():
            # The first batch may begin at any offset. A partition that is added later begins at its offset 0.
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
