"""`Run` is a running pipeline: a reader that reads and lands batches, and a `Watch` that reports them."""

from __future__ import annotations

import time

from cloudevents_kafka.spark.pipeline.landing import Landing
from cloudevents_kafka.spark.pipeline.notes import table_names
from cloudevents_kafka.spark.pipeline.options import PipelineOptions
from cloudevents_kafka.spark.pipeline.runs._backfill import Backfill
from cloudevents_kafka.spark.pipeline.runs._stream import Stream
from cloudevents_kafka.spark.pipeline.runs._watch import Watch
from cloudevents_kafka.spark.pipeline.watching import Summary, ThresholdCrossed, stopped_text


class Run:
    """A running pipeline: call `wait` until it returns True, and then call `close`.

    `EventPipeline` creates and closes a run. The ``reader`` of a run reads records, and lands the records in
    batches. `Run.wait` calls the method ``advance`` of the reader again and again. Each call of ``advance``
    reports batches that have landed, does the regular checks of the reader, and returns whether the reader
    has read all records.
    """

    def __init__(
        self, options: PipelineOptions, landing: Landing, reader: Stream | Backfill, watch: Watch
    ) -> None:
        self._options, self._landing = options, landing
        self.reader, self._watch = reader, watch
        self._end_time: float | None = None
        self._stopping = False

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the pipeline to end, at most ``seconds``; return whether the pipeline has ended.

        Batches that have landed are reported during the wait. Raises the error that ended the pipeline,
        unless the method `stop` was called.
        """
        deadline = float("inf") if seconds is None else time.monotonic() + seconds
        while True:
            try:
                ended = self.reader.advance()
            except BaseException:
                self._end_time = self._end_time or time.monotonic()
                raise
            if ended:
                self._end_time = self._end_time or time.monotonic()
            self._look(ended=ended)
            left = deadline - time.monotonic()
            if ended or left <= 0:
                return ended
            time.sleep(min(self.reader.pause, left))

    def _look(self, *, ended: bool) -> None:
        """Update the metrics, commit offsets to the consumer group, and act on exceeded thresholds."""
        crossings = self._watch.look()
        for crossing in crossings:
            if crossing.threshold.action == "warn":
                self._watch.warn(str(crossing))
        stopped = {found.topic: str(found) for found in crossings if found.threshold.action == "stop"}
        left = self._options.without(stopped) if stopped else None
        for crossing in crossings:
            if crossing.threshold.action == "end" or (crossing.topic in stopped and left is None):
                self.stop()
                raise ThresholdCrossed(
                    f"{crossing}; the records that were read have landed, and the next start continues after "
                    "these records"
                )
        for topic, reason in stopped.items():
            self._watch.stop(topic, reason)
            self._watch.warn(stopped_text(topic, reason))
        if left is not None and not (ended or self._stopping):
            self._options = left
            self.reader.leave_out(left, stopped)

    def status(self) -> str:
        """Return a short text about the pipeline's current work."""
        return self.reader.status()

    def stop(self) -> None:
        """Stop the run after the current batch."""
        self._stopping = True
        self.reader.stop()

    def close(self) -> None:
        """Stop the run after the current batch, unless the run has ended."""
        self.reader.close()

    def summary(self) -> Summary:
        """Return the summary up to now; raise `CountMismatch` if the counts contradict each other."""
        reader, watch, (_, target, read) = self.reader, self._watch, self._landing
        return Summary(
            topics=self._options.topics or (str(self._options.topic_pattern),),
            events_table=target.table_name("events"),
            quarantine_table=target.table_name("quarantine"),
            tables={table: target.table_name(table) for table in table_names(read.routes)},
            isolation_level=self._options.isolation_level,
            checkpoint=reader.checkpoint.url,
            batches=watch.batches,
            recovered=reader.recovered,
            complete=reader.is_complete and not watch.stopped,
            stopped=watch.stopped,
            seconds=round((self._end_time or time.monotonic()) - watch.start_time, 3),
            counts=watch.counts.check(),
            total=reader.total.check(),
            skipped=reader.skipped,
            backfill=reader.gaps,
        )
