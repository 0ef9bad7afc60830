"""`Watch`: what is known of a run, and who hears of it: counts, reports, metrics, thresholds, a group."""

from __future__ import annotations

import time
from collections.abc import Callable

from cloudevents_kafka.spark.pipeline.notes import BatchCounts, OffsetRanges
from cloudevents_kafka.spark.pipeline.options import PipelineOptions
from cloudevents_kafka.spark.pipeline.topics import GroupOffsets
from cloudevents_kafka.spark.pipeline.watching import BatchProgress, Crossing, Metrics, Thresholds

Report = Callable[[BatchProgress], None]
Warn = Callable[[str], None]


class Watch:
    """Watches the batches of a run; all but `warn_later` and `count` is for the user's thread."""

    def __init__(self, options: PipelineOptions, metrics: Metrics, report: Report | None, warn: Warn) -> None:
        self.start_time = time.monotonic()
        self.batches, self.counts = 0, BatchCounts()
        self.stopped: dict[str, str] = {}  # topics that a threshold has stopped, and why
        self.warn = warn
        self._report = report or (lambda _: None)
        self._warnings: list[str] = []
        self._metrics, self._thresholds = metrics, Thresholds(options.thresholds)
        self._group = GroupOffsets(options.group, options.source_options(), warn)

    def see(self, total: BatchCounts) -> None:
        """Take what earlier runs have landed."""
        self._metrics.lags.see(total)

    def warn_later(self, text: str) -> None:
        """Keep a warning for the user's thread."""
        self._warnings.append(text)

    def count(self, counts: BatchCounts) -> None:
        """Count a batch that has landed."""
        self.batches += 1
        self.counts = self.counts.merge(counts)

    def show_warnings(self) -> None:
        """Show the warnings that were held back."""
        while self._warnings:
            self.warn(self._warnings.pop(0))

    def report(self, batch: BatchProgress, planned: OffsetRanges | None = None) -> None:
        """Report a batch; ``planned`` are its offsets, after which the run continues; a backfill has none."""
        self._metrics.add(batch)
        if planned is not None:
            self._thresholds.add(batch.counts, time.time())
            self._group.add(planned)
        self._report(batch)

    def look(self) -> list[Crossing]:
        """Do what is due; return the thresholds that have been crossed, of topics that are not stopped."""
        self._metrics.look()
        self._group.commit()
        found = self._thresholds.look(self._metrics.lags, time.time())
        return [crossing for crossing in found if crossing.topic not in self.stopped]

    def stop(self, topic: str, reason: str) -> None:
        """Take a topic that a threshold has stopped."""
        self.stopped[topic] = reason
        self._metrics.stopped.add(topic)
