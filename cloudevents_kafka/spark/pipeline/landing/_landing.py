"""How batches land exactly once: `Landing`, which knows what has landed, and decides what is new.

A batch goes three steps: `Landing.begin` decides which of its records have not landed yet,
`Landing.write` writes these, and `Landing.complete` creates the manifest of the batch. The subclasses
decide what is written, and at which moment it has landed: `_parquet_landing`, `_table_landing`,
`_topic_landing`, `_function_landing`. Each has a folder with::

    _batches/00000012.json    the manifest of a batch: offsets, the topics' ids, counts, files
    _batches/topics.json      the topics' ids before the first batch
    _checkpoint/              Spark's checkpoint

Offsets decide whether a record has landed, together with the id of its topic (see `_topics`). The
number of a batch does not: a checkpoint that was set back plans the same number with other
offsets. The manifests have one range of offsets for each partition, from the first planned offset
to the end of the last batch. If a batch overlaps this range, only its records after the range land;
a batch that begins after its end or before its start ends the run.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.stores import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter


class Landing(ABC):
    """The batches of a folder; call `recover` first."""

    kind: str
    """What the batches land in; a folder has one kind, because its notes are about that."""

    def __init__(
        self, store: Store, manifests: notes.Manifests, routes: Mapping[str, str] | None = None
    ) -> None:
        self.store = store
        self.manifests = manifests
        self._routes = dict(routes or {})
        self.last: notes.BatchManifest | None = None
        self._first_topic_ids: notes.TopicIds = {}
        self._noted: notes.OffsetRanges = {}
        self._follows: str | None = None  # the checkpoint that this one replaces
        self._is_noted = True  # whether the notes have where the checkpoint begins
        self.pipeline = uuid.uuid4().hex[:12]

    @abstractmethod
    def table_name(self, table: str) -> str:
        """Return the name or the URL of a table, for messages and summaries."""

    @abstractmethod
    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Write the records of a batch, in the way that its note names, and return the counts."""

    def begun(self) -> notes.BegunBatch | None:
        """Return the batch that an earlier run has begun and this one must finish, or None."""
        return None

    def recover(self) -> int | None:
        """Read the manifests; return the number of a landed batch that had to be finished, or None.

        Raises `WrongCheckpoint` if the manifests cannot be read, or are of another kind of tables.
        """
        first = self.manifests.first()
        self._first_topic_ids, self.pipeline = first.ids, first.pipeline or self.pipeline
        self.last = self.manifests.last()
        beginning = self.manifests.beginning()
        self._follows = beginning.follows
        self._noted = notes.add_landed(self.last.landed if self.last else {}, beginning.landed)
        begun = self.manifests.begun()
        found = None if begun is None else begun.to
        if self.last is not None:
            found = self.last.to or ("parquet" if self.last.staging else None)
        if found not in {None, self.kind}:
            raise notes.WrongCheckpoint(
                f"the batches of {self.store.url('')} landed in {found}, not in {self.kind}. "
                f"Continue with {found}, or use a fresh folder and checkpoint"
            )
        return None

    @property
    def total(self) -> notes.BatchCounts:
        """The counts of all batches in the folder."""
        return notes.BatchCounts() if self.last is None else self.last.total

    @property
    def landed(self) -> notes.OffsetRanges:
        """The offsets of all batches in the folder."""
        return {} if self.last is None else self.last.landed

    def use_topic_ids(self, ids: notes.TopicIds) -> None:
        """Learn the ids of the topics that are read: `landed` may depend on them."""
        del ids  # manifests have the ids of their topics

    @property
    def topic_ids(self) -> notes.TopicIds:
        """The known ids of the topics that fill the folder."""
        return self._first_topic_ids if self.last is None else self.last.ids

    @property
    def tables(self) -> dict[str, str]:
        """The names of all tables, by those in the counts; the last is the quarantine."""
        return {table: self.table_name(table) for table in (*self._event_tables, notes.QUARANTINE)}

    @property
    def _event_tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((notes.EVENTS, *self._routes.values())))

    def record_topic_ids(self, ids: notes.TopicIds) -> None:
        """Write the topics' ids before the first batch."""
        if self.last is None:
            self.manifests.write_first(notes.FirstTopicIds(ids=ids, pipeline=self.pipeline))
            first = self.manifests.first()
            self._first_topic_ids, self.pipeline = first.ids, first.pipeline

    def record_beginning(self, start: str) -> None:
        """Write where a new checkpoint begins."""
        beginning = notes.Beginning(start=start, landed=self.landed, follows=self._follows)
        self.manifests.write_beginning(beginning)

    def check(self, query_id: str | None, committed: notes.BatchPlan | None) -> None:
        """Raise `WrongCheckpoint` if the folder and a checkpoint do not belong together.

        ``query_id`` is None for a new checkpoint; ``committed`` is its last committed batch.
        """
        if self.last is not None:
            self._check_query(query_id)
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
        Raises `WrongCheckpoint` if the plan does not continue what has landed.
        """
        self.check(query_id, None)
        self._check_follows(plan)
        left = self._left(plan, topic_ids)
        if self.last is not None and not left:
            return None
        return notes.BegunBatch(
            number=0 if self.last is None else self.last.number + 1,
            batch=plan.batch,
            query=query_id,
            ids={**self.topic_ids, **topic_ids},
            offsets=left,
            planned=plan.ranges,
            in_java=in_java,
            lenient=lenient,
            routes=self._routes,
            to=self.kind,
        )

    def _left(self, plan: notes.BatchPlan, topic_ids: notes.TopicIds) -> notes.OffsetRanges:  # noqa: ARG002
        """Return the planned offsets that have not landed."""
        return notes.subtract_landed(plan.ranges, self.landed)

    def complete(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> notes.BatchManifest:
        """Create the manifest of a batch that is written, and return it; raise `CountMismatch`."""
        return self._add(batch, counts.check())

    def _add(
        self,
        batch: notes.BegunBatch,
        counts: notes.BatchCounts,
        staging: str = "",
        files: tuple[str, ...] = (),
        **identity: Any,
    ) -> notes.BatchManifest:
        manifest = notes.BatchManifest(
            number=batch.number,
            batch=batch.batch,
            query=batch.query,
            staging=staging,
            files=files,
            ids=batch.ids,
            offsets=batch.offsets,
            landed=notes.add_landed(self.landed, batch.planned),
            counts=counts,
            total=self.total.merge(counts),
            to=self.kind,
            **identity,
        )
        self.manifests.add(manifest)
        self.last = manifest
        return manifest

    @property
    def _has_landed(self) -> bool:
        """Whether a batch has landed before."""
        return self.last is not None

    def _check_query(self, query_id: str | None) -> None:
        if self.last is not None and self.last.query not in {query_id, self._follows}:
            this = "this is a new one" if query_id is None else f"this is {query_id}"
            raise notes.WrongCheckpoint(
                f"{self.store.url('')} was filled under another checkpoint (query {self.last.query}, "
                f"{this}): records would land twice or never. "
                "Use the folder's own checkpoint, or a fresh folder"
            )

    def _check_follows(self, plan: notes.BatchPlan) -> None:
        """Raise `WrongCheckpoint` if a batch begins after the end of the landed offsets, or before them."""
        if plan.batch and not self._has_landed:
            raise notes.WrongCheckpoint(
                f"the checkpoint continues with batch {plan.batch}, but {self.store.url('')} has no batch: "
                "earlier records landed in another folder. Use that folder, or a fresh checkpoint"
            )
        for topic, partition, offsets in notes.iter_partitions(plan.ranges) if self._has_landed else ():
            known = notes.find_range(self.landed, topic, partition)
            # A first batch may begin anywhere, a partition that is added later begins at its offset 0.
            begin = offsets.start if self._is_noted and not plan.batch else 0
            before = known or notes.OffsetRange(begin, begin)
            if before.start <= offsets.start <= before.end:
                continue
            first, end = sorted((offsets.start, before.end if offsets.start > before.end else before.start))
            absent = notes.format_ranges({topic: {partition: notes.OffsetRange(first, end)}})
            raise notes.WrongCheckpoint(
                f"the checkpoint continues with batch {plan.batch} at {topic}[{partition}]@{offsets.start}, "
                f"but {absent} are missing in {self.store.url('')}. "
                "Restore the removed files, or use a fresh folder and checkpoint"
            )
