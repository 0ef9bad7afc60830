"""`BackfillJob`: lands the gaps of a range one batch after another, in the user's thread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._backfill_range import BackfillRange
from cloudevents_kafka.spark.pipeline._errors import failures_in_words
from cloudevents_kafka.spark.pipeline._job import Job
from cloudevents_kafka.spark.pipeline._reports import BatchProgress, Summary
from cloudevents_kafka.spark.pipeline.backfill._gaps import Asked, Gap, next_batch
from cloudevents_kafka.spark.pipeline.stores import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FOLDER: Final = "_backfill"


class _BackfillNotes(notes.Manifests):
    """The notes of a folder whose pipeline may run: only the note of a begun batch is written, elsewhere."""

    def __init__(self, store: Store, own: Store) -> None:
        super().__init__(store)
        self.own = notes.Manifests(own)

    def write(self, note: notes.BegunBatch | notes.Beginning) -> None:
        self.own.write(note)

    def add(self, manifest: notes.BatchManifest) -> None:
        """Do nothing: the table has the batch, and the numbers are those of the pipeline."""


class BackfillJob(Job):
    """A backfill; `wait` lands its batches."""

    def _prepare(self, spark: SparkSession) -> None:
        """Find the gaps, and finish the batch that an earlier run has begun."""
        landing = self._landing
        if not landing.in_notes:
            own = open_store(f"{self._options.out.rstrip('/')}/{_FOLDER}", spark)
            landing.manifests = _BackfillNotes(landing.store, own)
        self._recovered = landing.recover()
        if landing.last is None:
            raise notes.WrongCheckpoint(
                f"{landing.store.url('')} has no batch: a backfill fills the gaps of a pipeline. Run this "
                "first; its option start (--from) says where it begins"
            )
        self._lander.find_topics()
        if isinstance(landing.manifests, _BackfillNotes):
            self._finish_begun(spark, landing.manifests.own.find(notes.BegunBatch))
        self._gaps: list[Gap] = []
        self._asked: dict[str, dict[str, notes.GapCounts]] = {}
        self._skipped: dict[str, Counter[str]] = {}
        ledgers, ids = landing.ledgers(), {**landing.topic_ids, **self._lander.topic_ids}
        for asked in self._ranges(self._lander.partitions):
            gaps, counts = asked.find(ids, ledgers)
            self._gaps += gaps
            self._asked.setdefault(asked.topic, {})[asked.partition] = counts

    def _finish_begun(self, spark: SparkSession, begun: notes.BegunBatch | None) -> None:
        """Land what is left of a batch that a killed run has begun, as it was to be read."""
        if begun is not None and (left := self._landing.ledger.left(begun.ids, begun.offsets)):
            self._recovered = self._lander.finish(spark, replace(begun, offsets=left)).number

    def _ranges(self, partitions: dict[str, int]) -> Iterator[Asked]:
        asked, admin = BackfillRange.of(str(self._options.backfill)), self._admin
        asked.check(partitions)
        landed = self._landing.landed
        for topic, count in partitions.items():
            numbers = [str(number) for number in range(count)]
            offsets_at = partial(admin.offsets_at, topic, numbers)
            first, last = offsets_at("earliest"), offsets_at("latest")
            for number, offsets in asked.find(topic, numbers, offsets_at).items():
                known, end = landed.get(topic, {}).get(number), last[number]
                if known is not None:
                    end = known.end
                elif topic in self._landing.topic_ids:  # the pipeline reads all of a new partition
                    end = 0
                yield Asked(topic, number, offsets, first[number], end)

    def _start_query(self, spark: SparkSession) -> StreamingQuery:  # noqa: ARG002
        return cast("StreamingQuery", None)

    def wait(self, seconds: float | None = None) -> bool:
        """Land batches until the time is up or `stop` is called; return whether all have landed or it was."""
        deadline = float("inf") if seconds is None else time.monotonic() + seconds
        while self._gaps and not self._stopping:
            with failures_in_words(self._options.redact):
                self._land_next()
            if time.monotonic() > deadline:
                break
        while self._warnings:
            self._warn(self._warnings.pop(0))
        if self._gaps and not self._stopping:
            return False
        self._end_time = self._end_time or time.monotonic()
        return True

    def _land_next(self) -> None:
        started = time.monotonic()
        offsets, left = next_batch(self._gaps, self._options.max_records)
        landed = self._lander.land_gap(self._spark, offsets)
        counts = landed.counts
        self._gaps = left
        for topic, partitions in counts.offsets.items():
            for number, part in partitions.items():
                self._skipped.setdefault(topic, Counter())[number] += part.missing
        self._counts = self._counts.merge(counts)
        lags: Counter[str] = Counter()
        for gap in left:
            lags[f"{gap.topic}[{gap.partition}]"] += gap.offsets.end - gap.offsets.start
        seconds = time.monotonic() - started
        progress = BatchProgress(
            number=self._batches, counts=counts, seconds=seconds, behind=lags.total(), lags=lags
        )
        progress = replace(progress, steps=landed.seconds, rows=landed.rows)
        self._metrics.add(progress)
        self._report(progress)
        self._batches += 1

    def status(self) -> str:
        """Return how many offsets are left to read."""
        left = sum(gap.offsets.end - gap.offsets.start for gap in self._gaps)
        return f"a backfill is under way, {left:,} offsets are left"

    def stop(self) -> None:
        """Stop after the current batch."""
        self._stopping = self._stopping or bool(self._gaps)

    def summary(self) -> Summary:
        """Return the summary up to now; raise `CountMismatch` if its counts contradict each other."""
        return replace(
            super().summary(),
            complete=not self._stopping and not self._gaps,
            total=self._counts,
            skipped=self._skipped,
            backfill=self._asked,
        )
