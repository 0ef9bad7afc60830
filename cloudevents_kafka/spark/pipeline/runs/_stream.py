"""`Stream` is Spark's streaming query over the topics of a pipeline; a `BatchLander` lands its batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark._java import clone_session, recent_reports
from cloudevents_kafka.spark.pipeline._errors import (
    PipelineFailed,
    ends_after_repeated_batch,
    failure_of,
    failures_in_words,
)
from cloudevents_kafka.spark.pipeline.landing import BatchLander, Landing, open_lander
from cloudevents_kafka.spark.pipeline.notes import (
    BatchCounts,
    BatchManifest,
    Checkpoint,
    GapCounts,
    WrongCheckpoint,
)
from cloudevents_kafka.spark.pipeline.options import PipelineOptions
from cloudevents_kafka.spark.pipeline.runs._fresh_start import (
    check_removed,
    clear_unused,
    forget_topics,
    use_newest_start,
)
from cloudevents_kafka.spark.pipeline.runs._watch import Watch
from cloudevents_kafka.spark.pipeline.stores import open_store
from cloudevents_kafka.spark.pipeline.topics import KafkaAdmin, TopicChanged
from cloudevents_kafka.spark.pipeline.watching import (
    BatchProgress,
    batch_progress,
    find_lags,
    lag_text,
    recent_progress,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_TOPIC_CHECK_SECONDS = 10.0
# The time limit of a topic check between batches, or after a failure of Spark.
_TOPIC_CHECK_TIMEOUT = 10.0


class _StopRequested(Exception):
    """Raised in Spark's thread so that no further batch lands."""


class Stream:
    """A streaming query.

    If the query first repeats a batch that an earlier query had planned, the query may end after this
    repeated batch. If the query ends after the repeated batch, the stream starts another query, which reads
    the next records.
    """

    pause = 0.2
    gaps: Mapping[str, Mapping[str, GapCounts]] = {}

    def __init__(
        self, spark: SparkSession, options: PipelineOptions, landing: Landing, watch: Watch, admin: KafkaAdmin
    ) -> None:
        """Check the pipeline's folder, finish an unfinished batch of an earlier run, and start the query."""
        self._spark, self._options, self._landing, self._watch = spark, options, landing, watch
        self._admin = admin
        self.checkpoint = Checkpoint(open_store(options.checkpoint_url, spark))
        self._restarted = False
        self._repeats = False  # true if the query ends after it has repeated a batch
        self._has_ended = self._stopping = False
        self._is_leaving = False  # true while a topic is left out: then no further batch of this query lands
        self._error: BaseException | None = None
        self._batch_lock = threading.Lock()
        self._unreported: dict[int, BatchManifest] = {}
        self._last_topic_check = time.monotonic()
        self._silent_since: float | None = None  # the time from which on the brokers have not answered
        self._lander = self._open_lander()
        with failures_in_words(options.redact):
            self.recovered = self._recover()
            watch.see(self._total_before)
            with self._batch_lock:  # the first batch waits until `query` is set
                self.query = self._start_query()

    def _open_lander(self) -> BatchLander:
        tasks: int = self._spark.sparkContext.defaultParallelism
        parts = (self._landing, self.checkpoint, self._admin, self._watch.warn_later)
        return open_lander(self._options, *parts, tasks=tasks)

    def _recover(self) -> int | None:
        """Check the folder, the checkpoint and the topics, and finish an unfinished batch of an earlier run.

        Return the number of the finished batch, or None if no batch was unfinished.
        """
        options, landing, lander = self._options, self._landing, self._lander
        recovered = lander.recover()
        clear_unused(landing.landed, self.checkpoint)
        use_newest_start(landing, self.checkpoint, options.start, lander.recover, self._watch.warn_later)
        forget_topics(landing.landed, self.checkpoint, options.forget_topics, lander.recover, lander.finds)
        self._total_before = landing.landed.total
        lander.check_start(self.checkpoint.query_id(), self.checkpoint.last_committed())
        check_removed(self.checkpoint, options)
        if landing.landed.begun() is None:
            return recovered
        return lander.finish_begun(clone_session(self._spark))

    def _start_query(self) -> StreamingQuery:
        options = self._options
        records = self._spark.readStream.format("kafka").options(**self._lander.source_options()).load()
        writer = records.writeStream.foreachBatch(self._process_batch)
        writer = writer.option("checkpointLocation", self.checkpoint.url)
        # With `availableNow`, Spark does not repeat a batch if partitions were added after it (SPARK-53560).
        self._repeats = options.once and self.checkpoint.repeats()
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
                # The error is stored here, because Spark would report only its text, inside a Java exception.
                self._error = self._error or error
                raise
            if manifest is not None:
                self._unreported[batch] = manifest
                self._watch.count(manifest.counts)

    # --- in the user's thread ---

    def advance(self) -> bool:
        """Report batches that have landed, and return whether the query has ended; see also `Run`."""
        ended = self._ended()
        self._report_landed(last=ended)
        return ended

    def _ended(self) -> bool:
        if self.query.isActive:
            self._check_topics_regularly()
            return False
        if not self._has_ended and not self._stopping:
            error = self.query.exception()
            if error is not None:
                if not self._restarted and self._error is None and ends_after_repeated_batch(str(error)):
                    self._restarted = True
                    self._go_on()
                    return False
                self._has_ended = True
                self._raise(error)
            if self._repeats:
                self._go_on()
                return False
        self._has_ended = True
        return True

    def _go_on(self) -> None:
        """Start another query, which continues after the batches of the query that has ended."""
        self._report_landed(last=True)
        with failures_in_words(self._options.redact), self._batch_lock:
            self.query = self._start_query()

    def leave_out(self, options: PipelineOptions, topics: Collection[str]) -> None:
        """End the query after its current batch, and start another query without some topics."""
        self._is_leaving = True
        with self._batch_lock:
            pass  # the current batch has landed; the next one raises _StopRequested
        self.query.stop()
        self._report_landed(last=True)
        if self._error is not None:  # the next call of `advance` raises it
            return
        self._is_leaving = False
        self._options = options
        with failures_in_words(options.redact):
            forget_topics(self._landing.landed, self.checkpoint, topics, self._lander.recover)
            self._lander = self._open_lander()
            self._lander.check_start(self.checkpoint.query_id(), self.checkpoint.last_committed())
            with self._batch_lock:
                self.query = self._start_query()

    def _check_topics_regularly(self) -> None:
        """Check the topics every few seconds.

        The check of the topics before each batch is not enough: if a topic was created again and has no
        records yet, Spark does not plan a batch.
        """
        if time.monotonic() < self._last_topic_check + _TOPIC_CHECK_SECONDS:
            return
        try:
            self._lander.check_topics(timeout=_TOPIC_CHECK_TIMEOUT)
            self._silent_since = None
        except PipelineFailed:  # Spark itself waits if a broker is down for a while
            self._silent_since = self._silent_since or time.monotonic()
        except TopicChanged:
            # `stop` is not used here: it waits for the batch, and Spark may ask for a deleted topic for
            # minutes.
            self._stopping = True
            self.query.stop()
            raise
        self._last_topic_check = time.monotonic()

    def _raise(self, error: Exception) -> None:
        if not isinstance(self._error, TopicChanged):
            # If a topic was created again, Spark reports this as expired records.
            with suppress(PipelineFailed, WrongCheckpoint):
                self._lander.check_topics(self.checkpoint.last_planned(), timeout=_TOPIC_CHECK_TIMEOUT)
        if isinstance(self._error, CloudEventsKafkaError):
            raise self._error
        text = self._options.redact(str(self._error or error))
        raise failure_of(text) from (self._error or error)

    def _report_landed(self, *, last: bool) -> None:
        """Show warnings to the user, and report batches that have landed.

        The pipeline reports a batch after Spark has reported the same batch. If ``last`` is true, the query
        has ended, and all remaining batches are reported, even those that Spark has not reported.
        """
        self._watch.show_warnings()
        numbers = sorted(self._unreported)
        reports = recent_progress(self.query, numbers[0]) if numbers else {}
        for number in numbers:
            if last or number in reports:
                landed = self._unreported.pop(number)
                batch = BatchProgress(number=number, counts=landed.counts)
                if number in reports:
                    batch = batch_progress(reports[number], landed.counts, time.time())
                batch = replace(batch, steps={**batch.steps, **landed.seconds}, rows=landed.rows)
                self._watch.report(batch, landed.planned)

    @property
    def is_complete(self) -> bool:
        """Whether the run has the option ``once``, and has not been stopped."""
        return self._options.once and not self._stopping

    @property
    def total(self) -> BatchCounts:
        """The counts of all batches in the pipeline's folder."""
        return self._landing.landed.total

    @property
    def skipped(self) -> Mapping[str, Mapping[str, int]]:
        """The number of offsets without a record that this run has skipped, by topic and partition."""
        return self.total.skipped_since(self._total_before)

    def status(self) -> str:
        """Return a short text: the current work and the lag of the query, or that no broker answers."""
        if self._silent_since is not None:
            seconds = time.monotonic() - self._silent_since
            return f"no broker has answered for {seconds:,.0f} s: the pipeline waits"
        report = next(recent_reports(self.query), None)
        state = "a batch is under way" if self._batch_lock.locked() else "waiting for records"
        newest = self._watch.counts.newest
        parts = [state, *([lag_text(find_lags(report))] if report is not None else [])]
        if newest is not None:
            parts.append(f"newest {max(0.0, time.time() - newest / 1000):,.0f} s old")
        return ", ".join(parts)

    def stop(self) -> None:
        """Stop the query after the current batch."""
        self._stopping = self._stopping or not self._has_ended
        self._lander.stop_waiting()
        with self._batch_lock:
            pass  # the current batch has landed; the next one raises _StopRequested
        self.query.stop()

    def close(self) -> None:
        """Stop the query after the current batch, unless the query has ended, and close the admin client."""
        self.stop()
        self._admin.close()
