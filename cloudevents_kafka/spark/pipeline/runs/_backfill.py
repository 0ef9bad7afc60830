"""`Backfill` lands, in batches, the records of a range of offsets that no pipeline has landed.

With Delta and Iceberg tables, the pipeline of the folder may run while the backfill runs. Two backfills of
one folder may not run at the same time, because each backfill locks the folder ``_backfill``. In an object
store, which has no locks, two backfills can run at the same time.

A backfill reads the gaps (offsets that have not landed) in the ledger of the table of events, up to the next
offset that the pipeline of the folder would read. A batch of a backfill lands in the same way as a batch of
the pipeline: one conditional commit adds the rows to a table and changes the table's ledger. The ledger
stores the offsets of a backfill under the id of the folder's pipeline, so adjacent ranges of the pipeline and
of backfills are joined. If a backfill is killed before its commit to the table of events, other tables may
already have rows of the unfinished batch. The next backfill first finishes this unfinished batch, with the
offsets and settings in the file in ``_backfill``. If the file in ``_backfill`` is missing, the next backfill
begins a new batch at the same offset. So each record lands once, even if a backfill is killed at any step. If
two backfills with the same settings run at the same time, each record still lands only once. A backfill of
Parquet files locks the folder of the pipeline. The manifests of the backfill continue the numbers of the
pipeline's manifests.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cloudevents_kafka.spark._java import clone_session
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import failures_in_words
from cloudevents_kafka.spark.pipeline.landing import Landing, open_lander
from cloudevents_kafka.spark.pipeline.options import BackfillRange, PipelineOptions
from cloudevents_kafka.spark.pipeline.runs._fresh_start import without_topics
from cloudevents_kafka.spark.pipeline.runs._gaps import Asked, Gap, next_batch
from cloudevents_kafka.spark.pipeline.runs._watch import Watch
from cloudevents_kafka.spark.pipeline.stores import BACKFILL_FOLDER, Store, open_store
from cloudevents_kafka.spark.pipeline.topics import KafkaAdmin
from cloudevents_kafka.spark.pipeline.watching import BatchProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _BackfillNotes(notes.Manifests):
    """The files in which a backfill stores its batches; the pipeline may run while the backfill runs.

    A backfill writes only the file about its current batch, and writes this file with the object ``own``.
    """

    def __init__(self, store: Store, own: Store) -> None:
        super().__init__(store)
        self.own = notes.Manifests(own)

    def write(self, note: notes.BegunBatch | notes.Beginning) -> None:
        self.own.write(note)

    def add(self, manifest: notes.BatchManifest) -> None:
        """Do nothing: a backfill's batch needs no manifest, as the table's ledger contains its offsets."""


class Backfill:
    """Lands, in the user's thread, the records of a range that have not landed, one batch after another."""

    pause = 0.0
    query = None

    def __init__(
        self, spark: SparkSession, options: PipelineOptions, landing: Landing, watch: Watch, admin: KafkaAdmin
    ) -> None:
        """Finish the unfinished batch of an earlier run, if there is one, and find the gaps to read."""
        self._asked = BackfillRange.of(str(options.backfill))  # first, because -1h is an hour before now
        self._options, self._landing, self._watch = options, landing, watch
        self._spark = clone_session(spark)  # which batches change, as those of a stream
        self._admin = admin
        self._stopping = False
        self.checkpoint = notes.Checkpoint(open_store(options.checkpoint_url, spark))
        tasks: int = spark.sparkContext.defaultParallelism
        parts = (landing, self.checkpoint, admin, watch.warn_later)
        self._lander = open_lander(options, *parts, tasks=tasks)
        with failures_in_words(options.redact):
            self.recovered = self._recover()
            self._find_gaps()

    def _recover(self) -> int | None:
        """Finish the unfinished batch of an earlier run; return the number of this batch, or None."""
        (landed, target, _), lander, own = self._landing, self._lander, None
        if not landed.in_notes:
            own = open_store(f"{self._options.out.rstrip('/')}/{BACKFILL_FOLDER}", self._spark)
            landed.manifests = manifests = _BackfillNotes(landed.store, own)
        recovered = lander.recover()
        if landed.last is None:
            raise notes.WrongCheckpoint(
                f"{landed.store.url('')} has no batch: a backfill fills the gaps of a pipeline. Run the "
                "pipeline first; its option start (--from) sets where it begins"
            )
        lander.find_topics()
        begun = None if own is None else manifests.own.find(notes.BegunBatch)
        for part in [] if begun is None else self._unfinished(begun):
            if target.is_decided(part):  # if no table has rows, the gaps are found again
                recovered = lander.finish(self._spark, part).number
        return recovered

    def _unfinished(self, begun: notes.BegunBatch) -> Iterator[notes.BegunBatch]:
        """Yield those parts of a batch of the backfill that have not landed in the table of events.

        If two backfills run at the same time, a table may already contain some parts of the batch.
        """
        begun = without_topics(begun, self._options.forget_topics)
        landed, target, _ = self._landing
        ledgers = [landed.ledger, *target.ledgers(begun.routes)]
        gaps: list[Gap] = []
        for topic, partition, offsets in notes.iter_partitions(begun.offsets):
            gaps += Asked(topic, partition, offsets, offsets.start, offsets.end).find(begun.ids, ledgers)[0]
        while gaps:
            part, gaps = next_batch(gaps, None)
            whole = part == begun.offsets
            yield begun if whole else replace(begun, offsets=part, planned=part, counted=None)

    def _find_gaps(self) -> None:
        landed, target, read = self._landing
        self._gaps: list[Gap] = []
        self.gaps: dict[str, dict[str, notes.GapCounts]] = {}
        self.skipped: dict[str, Counter[str]] = {}
        ledgers = [landed.ledger, *target.ledgers(read.routes)]
        ids = {**landed.topic_ids, **self._lander.topic_ids}
        for asked in self._ranges(self._lander.partitions):
            gaps, counts = asked.find(ids, ledgers)
            self._gaps += gaps
            self.gaps.setdefault(asked.topic, {})[asked.partition] = counts

    def _ranges(self, partitions: dict[str, int]) -> Iterator[Asked]:
        asked, admin = self._asked, self._admin
        asked.check(partitions)
        landed = self._landing.landed
        for topic, count in partitions.items():
            numbers = [str(number) for number in range(count)]
            offsets_at = partial(admin.offsets_at, topic, numbers)
            first, last = offsets_at("earliest"), offsets_at("latest")
            for number, offsets in asked.find(topic, numbers, offsets_at).items():
                known, end = landed.landed.get(topic, {}).get(number), last[number]
                if known is not None:
                    end = known.end
                elif topic in landed.topic_ids:  # the pipeline reads a new partition itself
                    end = 0
                yield Asked(topic, number, offsets, first[number], end)

    def advance(self) -> bool:
        """Write the next batch to the tables; return True if no batch follows or `stop` was called."""
        if self._gaps and not self._stopping:
            with failures_in_words(self._options.redact):
                self._land_next()
        self._watch.show_warnings()
        return self._stopping or not self._gaps

    def _land_next(self) -> None:
        started = time.monotonic()
        offsets, left = next_batch(self._gaps, self._options.max_records)
        landed = self._lander.land_gap(self._spark, offsets)
        counts = landed.counts
        self._gaps = left
        for topic, partitions in counts.offsets.items():
            for number, part in partitions.items():
                self.skipped.setdefault(topic, Counter())[number] += part.missing
        lags: Counter[str] = Counter()
        for gap in left:
            lags[f"{gap.topic}[{gap.partition}]"] += gap.offsets.end - gap.offsets.start
        progress = BatchProgress(
            number=self._watch.batches,
            counts=counts,
            seconds=time.monotonic() - started,
            behind=lags.total(),
            lags=lags,
            steps=landed.seconds,
            rows=landed.rows,
        )
        self._watch.count(counts)
        self._watch.report(progress)

    def leave_out(self, options: PipelineOptions, topics: Collection[str]) -> None:
        """Do nothing: a backfill has no thresholds that could stop a topic."""

    @property
    def is_complete(self) -> bool:
        """Whether all gaps in the range of the backfill have landed."""
        return not self._stopping and not self._gaps

    @property
    def total(self) -> notes.BatchCounts:
        """The counts of all batches that this backfill has landed."""
        return self._watch.counts

    def status(self) -> str:
        """Return a short text with the number of offsets that the backfill must still read."""
        left = sum(gap.offsets.end - gap.offsets.start for gap in self._gaps)
        return f"a backfill is under way, {left:,} offsets are left"

    def stop(self) -> None:
        """Stop the backfill after the current batch."""
        self._stopping = self._stopping or bool(self._gaps)

    def close(self) -> None:
        """If some gaps have not landed, stop after the current batch; close the admin client."""
        self.stop()
        self._admin.close()
