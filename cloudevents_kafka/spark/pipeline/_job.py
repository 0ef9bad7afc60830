"""The streaming job of a pipeline: it lands Spark's batches, and watches the topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark._java import recent_reports
from cloudevents_kafka.spark.pipeline._errors import (
    PipelineFailed,
    ends_after_repeated_batch,
    failure_of,
    failures_in_words,
)
from cloudevents_kafka.spark.pipeline._fresh_start import forget_topics, use_newest_start
from cloudevents_kafka.spark.pipeline._options import PipelineOptions
from cloudevents_kafka.spark.pipeline._reports import (
    BatchProgress,
    Summary,
    batch_progress,
    find_lags,
    lag_text,
    recent_progress,
    stopped_text,
)
from cloudevents_kafka.spark.pipeline.landing import BatchLander, Landing
from cloudevents_kafka.spark.pipeline.notes import BatchCounts, BatchManifest, Checkpoint, WrongCheckpoint
from cloudevents_kafka.spark.pipeline.stores import open_store
from cloudevents_kafka.spark.pipeline.topics import (
    GroupOffsets,
    KafkaAdmin,
    TopicChanged,
    TopicMonitor,
)
from cloudevents_kafka.spark.pipeline.watching import Metrics, ThresholdCrossed, Thresholds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Report = Callable[[BatchProgress], None]
Warn = Callable[[str], None]

_POLL_SECONDS = 0.2
_TOPIC_CHECK_SECONDS = 10.0
# The time limit of a topic check between batches, or after a failure of Spark.
_TOPIC_CHECK_TIMEOUT = 10.0


class _StopRequested(Exception):
    """Raised in Spark's thread to prevent another batch."""


class Job:
    """A running pipeline; call `wait` until it has ended, then `close`. `EventPipeline` has its lifetime."""

    def __init__(
        self,
        spark: SparkSession,
        options: PipelineOptions,
        landing: Landing,
        report: Report | None,
        warn: Warn,
        *,
        metrics: Metrics,
    ) -> None:
        self._options, self._landing, self._warn = options, landing, warn
        self._report = report or (lambda _: None)
        self._spark = spark
        self._restarted = False
        self._repeats = False  # the query ends after a batch that was planned before
        self._recovered: int | None = None
        self._total_before = BatchCounts()
        self._error: BaseException | None = None
        self._stopping = False
        self._is_leaving = False  # a topic out: no batch of this query lands any more
        self._stopped: dict[str, str] = {}
        self._batch_lock = threading.Lock()
        self._warnings: list[str] = []
        self._unreported: dict[int, BatchManifest] = {}
        self._batches = 0
        self._counts = BatchCounts()
        self._start_time = self._last_topic_check = time.monotonic()
        self._end_time: float | None = None
        self._silent_since: float | None = None  # when the brokers stopped to answer
        self._checkpoint = Checkpoint(open_store(options.checkpoint_url, spark))
        self._admin = KafkaAdmin(spark, options.source_options())
        self._metrics, self._thresholds = metrics, Thresholds(options.thresholds)
        self._group = GroupOffsets(options.group, options.source_options(), warn)
        try:
            self._lander = self._batch_lander(spark)
            with failures_in_words(options.redact):
                self._prepare(spark)
                metrics.lags.see(self._total_before)
                with self._batch_lock:  # the first batch waits until `query` is set
                    self.query = self._start_query(spark)
        except BaseException:
            self._admin.close()
            raise

    def _batch_lander(self, spark: SparkSession) -> BatchLander:
        from cloudevents_kafka.spark.pipeline.batches import BatchWriter

        options, landing = self._options, self._landing
        folder, pattern = landing.store.url(""), options.topic_pattern
        topics = TopicMonitor(
            options.topic_names, self._admin, folder, self._warnings.append, pattern=pattern
        )
        tasks: int = spark.sparkContext.defaultParallelism  # that run at the same time
        writer = BatchWriter(tasks=max(1, tasks))
        return BatchLander(options, landing, self._checkpoint, topics, writer)

    def _prepare(self, spark: SparkSession) -> None:
        """Check the start, and finish what an earlier run has begun."""
        self._recovered = self._landing.recover()
        use_newest_start(self._landing, self._checkpoint, self._options.start, self._warnings.append)
        options = self._options
        forget_topics(self._landing, self._checkpoint, options.forget_topics, options.reads)
        self._total_before = self._landing.total
        self._lander.check_start(self._checkpoint.query_id(), self._checkpoint.last_committed())
        begun = self._lander.finish_begun(spark)
        self._recovered = self._recovered if begun is None else begun

    def _start_query(self, spark: SparkSession) -> StreamingQuery:
        options = self._options
        records = spark.readStream.format("kafka").options(**self._lander.source_options()).load()
        writer = records.writeStream.foreachBatch(self._process_batch)
        writer = writer.option("checkpointLocation", self._checkpoint.url)
        # With `availableNow` Spark refuses to repeat a batch after partitions were added (SPARK-53560).
        self._repeats = options.once and self._checkpoint.repeats()
        if self._repeats:
            return writer.trigger(once=True).start()
        if options.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(options.interval * 1000)} milliseconds").start()

    # --- in Spark's thread ---

    def _process_batch(self, records: DataFrame, batch: int) -> None:
        with self._batch_lock:
            if self._stopping or self._is_leaving:
                raise _StopRequested
            try:
                manifest = self._lander.land(records, batch, str(self.query.id))
            except BaseException as error:
                # Spark would report it as a text inside a Java exception.
                self._error = self._error or error
                raise
            if manifest is not None:
                self._unreported[batch] = manifest
                self._batches += 1
                self._counts = self._counts.merge(manifest.counts)

    # --- in the user's thread ---

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the pipeline has ended or the time is up; return whether it has ended.

        Report batches meanwhile. Raises the error that ended the pipeline, unless `stop` was called.
        """
        deadline = float("inf") if seconds is None else time.monotonic() + seconds
        while True:
            ended = self._has_ended()
            self._report_landed(last=ended)
            self._look(ended=ended)
            left = deadline - time.monotonic()
            if ended or left <= 0:
                return ended
            time.sleep(min(_POLL_SECONDS, left))

    def _has_ended(self) -> bool:
        if self.query.isActive:
            self._check_topics_regularly()
            return False
        if self._end_time is None:
            error = self.query.exception()
            if error is not None and not self._stopping:
                if not self._restarted and self._error is None and ends_after_repeated_batch(str(error)):
                    self._restarted = True
                    self._go_on()
                    return False
                self._end_time = time.monotonic()
                self._raise(error)
            if self._repeats and not self._stopping:
                self._go_on()
                return False
            self._end_time = time.monotonic()
        return True

    def _go_on(self) -> None:
        """Start another query, which continues after the batches of the one that has ended."""
        self._report_landed(last=True)
        with failures_in_words(self._options.redact), self._batch_lock:
            self.query = self._start_query(self._spark)

    def _look(self, *, ended: bool) -> None:
        """Do what is due, and what the thresholds ask for that have been crossed."""
        self._metrics.look()
        self._group.commit()
        found = self._thresholds.look(self._metrics.lags, time.time())
        crossings = [crossing for crossing in found if crossing.topic not in self._stopped]
        for crossing in crossings:
            if crossing.threshold.action == "warn":
                self._warn(str(crossing))
        stopped = {found.topic: str(found) for found in crossings if found.threshold.action == "stop"}
        left = self._options.without(stopped) if stopped else None
        for crossing in crossings:
            if crossing.threshold.action == "end" or (crossing.topic in stopped and left is None):
                self.stop()
                raise ThresholdCrossed(f"{crossing}; what was read has landed, and a start goes on behind it")
        for topic, reason in stopped.items():
            self._stopped[topic] = reason
            self._warn(stopped_text(topic, reason))
        self._metrics.stopped.update(stopped)
        if left is not None and not (ended or self._stopping):
            self._leave_out(left, stopped)

    def _leave_out(self, options: PipelineOptions, topics: Collection[str]) -> None:
        """End the query after its batch, and start another one without some topics."""
        self._is_leaving = True
        with self._batch_lock:
            pass  # the current batch has landed; the next one raises _StopRequested
        self.query.stop()
        self._report_landed(last=True)
        if self._error is not None:  # the next call of `wait` raises it
            return
        self._is_leaving = False
        self._options = options
        with failures_in_words(options.redact):
            forget_topics(self._landing, self._checkpoint, topics)
            self._lander = self._batch_lander(self._spark)
            self._lander.check_start(self._checkpoint.query_id(), self._checkpoint.last_committed())
            with self._batch_lock:
                self.query = self._start_query(self._spark)

    def _check_topics_regularly(self) -> None:
        """Check the topics every few seconds: a topic created again without records causes no batch."""
        if time.monotonic() < self._last_topic_check + _TOPIC_CHECK_SECONDS:
            return
        try:
            self._lander.check_topics(timeout=_TOPIC_CHECK_TIMEOUT)
            self._silent_since = None
        except PipelineFailed:  # Spark itself waits for a broker that is down for a while
            self._silent_since = self._silent_since or time.monotonic()
        except TopicChanged:
            # Not by `stop`, which waits for the batch: Spark may ask for a deleted topic for minutes.
            self._stopping = True
            self.query.stop()
            raise
        self._last_topic_check = time.monotonic()

    def _raise(self, error: Exception) -> None:
        if not isinstance(self._error, TopicChanged):
            # Spark reports a topic that was created again as expired records.
            with suppress(PipelineFailed, WrongCheckpoint):
                self._lander.check_topics(self._checkpoint.last_planned(), timeout=_TOPIC_CHECK_TIMEOUT)
        if isinstance(self._error, CloudEventsKafkaError):
            raise self._error
        text = self._options.redact(str(self._error or error))
        raise failure_of(text) from (self._error or error)

    def _report_landed(self, *, last: bool) -> None:
        """Report warnings, and batches that have landed as soon as Spark has reported them."""
        while self._warnings:
            self._warn(self._warnings.pop(0))
        numbers = sorted(self._unreported)
        reports = recent_progress(self.query, numbers[0]) if numbers else {}
        for number in numbers:
            if last or number in reports:
                landed = self._unreported.pop(number)
                batch = BatchProgress(number=number, counts=landed.counts)
                if number in reports:
                    batch = batch_progress(reports[number], landed.counts, time.time())
                batch = replace(batch, steps={**batch.steps, **landed.seconds}, rows=landed.rows)
                self._metrics.add(batch)
                self._thresholds.add(batch.counts, time.time())
                self._group.add(landed.planned)
                self._report(batch)

    def status(self) -> str:
        """Return what the pipeline does: that no broker answers, or the lag."""
        if self._silent_since is not None:
            seconds = time.monotonic() - self._silent_since
            return f"no broker has answered for {seconds:,.0f} s: the pipeline waits"
        report = next(recent_reports(self.query), None)
        state = "a batch is under way" if self._batch_lock.locked() else "waiting for records"
        newest = self._counts.newest
        parts = [state, *([lag_text(find_lags(report))] if report is not None else [])]
        if newest is not None:
            parts.append(f"newest {max(0.0, time.time() - newest / 1000):,.0f} s old")
        return ", ".join(parts)

    def stop(self) -> None:
        """Stop after the current batch."""
        self._stopping = self._stopping or self._end_time is None
        self._lander.stop_waiting()
        with self._batch_lock:
            pass  # the current batch has landed; the next one raises _StopRequested
        self.query.stop()

    def close(self) -> None:
        """Stop if necessary."""
        self.stop()
        self._admin.close()

    def summary(self) -> Summary:
        """Return the summary up to now; raise `CountMismatch` if its counts contradict each other."""
        return Summary(
            topics=self._options.topics or (str(self._options.topic_pattern),),
            events_table=self._landing.table_name("events"),
            quarantine_table=self._landing.table_name("quarantine"),
            tables=self._landing.tables,
            isolation_level=self._options.isolation_level,
            checkpoint=self._checkpoint.url,
            batches=self._batches,
            recovered=self._recovered,
            complete=self._options.once and not self._stopping and not self._stopped,
            stopped=self._stopped,
            seconds=round((self._end_time or time.monotonic()) - self._start_time, 3),
            counts=self._counts.check(),
            total=self._landing.total.check(),
            skipped=self._landing.total.skipped_since(self._total_before),
        )
