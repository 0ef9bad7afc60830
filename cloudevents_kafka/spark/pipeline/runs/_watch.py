"""`Watch` counts the landed batches of a run.

`Watch` also passes the counts to reports, metrics and thresholds, and commits offsets to a consumer group.
"""

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
    """Watches the landed batches of a run.

    Any thread may call `warn_later` and `count`; only the user's thread may call the other methods of a
    `Watch`.
    """

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
        """Store the times of the newest records in the counts of earlier runs, to compute lags later."""
        self._metrics.lags.see(total)

    def warn_later(self, text: str) -> None:
        """Store a warning, so that the user's thread can show it."""
        self._warnings.append(text)

    def count(self, counts: BatchCounts) -> None:
        """Count a batch that has landed."""
        self.batches += 1
        self.counts = self.counts.merge(counts)

    def show_warnings(self) -> None:
        """Show the warnings that `warn_later` has stored."""
        while self._warnings:
            self.warn(self._warnings.pop(0))

    def report(self, batch: BatchProgress, planned: OffsetRanges | None = None) -> None:
        """Report a batch that has landed.

        For a batch of the pipeline, ``planned`` contains the offsets that Spark has planned for the batch.
        The run continues after the offsets in ``planned``. For a batch of a backfill, ``planned`` is None.
        """
        self._metrics.add(batch)
        if planned is not None:
            self._thresholds.add(batch.counts, time.time())
            self._group.add(planned)
        self._report(batch)

    def look(self) -> list[Crossing]:
        """Update the metrics, commit offsets to the group, and return thresholds crossed since the last call.

        The result does not contain thresholds of topics that a threshold has stopped before.
        """
        self._metrics.look()
        self._group.commit()
        found = self._thresholds.look(self._metrics.lags, time.time())
        return [crossing for crossing in found if crossing.topic not in self.stopped]

    def stop(self, topic: str, reason: str) -> None:
        """Remember a topic that a threshold has stopped, and the reason."""
        self.stopped[topic] = reason
        self._metrics.stopped.add(topic)
