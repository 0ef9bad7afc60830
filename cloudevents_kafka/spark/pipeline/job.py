"""The job: Kafka topics of CloudEvents into Parquet tables, each record once.

::

    summary = run(PipelineOptions(bootstrap_servers="…", topics=("orders",), out="lake/orders", once=True))

`run` brings its own Spark and ends it; `start` works in a session of yours. How
each record lands once is told in `landing`; the tables are those of `tables`.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.pipeline.admin import AdminBrokers
from cloudevents_kafka.spark.pipeline.checkpoint import Checkpoint, WrongCheckpoint
from cloudevents_kafka.spark.pipeline.counts import Tally
from cloudevents_kafka.spark.pipeline.errors import PipelineFailed, explained
from cloudevents_kafka.spark.pipeline.landing import Landing
from cloudevents_kafka.spark.pipeline.offsets import Plan, Spans, beyond
from cloudevents_kafka.spark.pipeline.options import PipelineOptions
from cloudevents_kafka.spark.pipeline.progress import Batch, batch_of
from cloudevents_kafka.spark.pipeline.session import local_session
from cloudevents_kafka.spark.pipeline.store import locked, open_store
from cloudevents_kafka.spark.pipeline.summary import Summary
from cloudevents_kafka.spark.pipeline.topics import TopicChanged, Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Pipeline", "PipelineFailed", "TopicChanged", "WrongCheckpoint", "run", "start"]

Report = Callable[[Batch], None]
Warn = Callable[[str], None]

_LOOK_SECONDS = 0.2
_LOOK_AGAIN_SECONDS = 10.0
# For a look at the topics in between, or after Spark has failed, which should not take long.
_LAST_LOOK_SECONDS = 10.0


class _AskedToStop(Exception):
    """Raised in Spark's thread to keep it from another batch."""


def run(
    options: PipelineOptions,
    *,
    report: Report | None = None,
    warn: Warn = warnings.warn,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Run a pipeline to its end: with ``once`` when all is read, else when `stop` says so.

    A batch under way is finished first. `report` gets each batch, `warn` what is to be known
    beside. Raises `PipelineFailed`, `InUse`, `WrongCheckpoint`, `TopicChanged`, `Miscounted`,
    or what `local_session` does.
    """
    log = None if options.log is None else Path(options.log)
    with (
        # Before Spark, which takes some seconds to start.
        locked(options.out),
        local_session(master=options.master, ui=options.ui, conf=options.conf, log=log) as spark,
    ):
        pipeline = Pipeline(spark, options, Landing(open_store(options.out, spark)), report, warn)
        while not pipeline.wait(_LOOK_SECONDS):
            if stop is not None and stop():
                pipeline.stop()
        pipeline.stop()
        return pipeline.summary()


def start(
    spark: SparkSession,
    options: PipelineOptions,
    *,
    report: Report | None = None,
    warn: Warn = warnings.warn,
) -> Pipeline:
    """Start a pipeline in a session that has the Kafka connector.

    First finishes what an earlier run has left unfinished. Of the options, ``master``,
    ``conf``, ``ui`` and ``log`` are the session's business. Raises `InUse`, `WrongCheckpoint`,
    `TopicChanged`, or `PipelineFailed` where no broker answers.
    """
    store = open_store(options.out, spark)
    store.lock()
    try:
        return Pipeline(spark, options, Landing(store), report, warn)
    except BaseException:
        store.close()
        raise


class Pipeline:
    """A pipeline at work, made by `start`; `wait` tells when it has ended, then `close` it."""

    def __init__(
        self,
        spark: SparkSession,
        options: PipelineOptions,
        landing: Landing,
        report: Report | None,
        warn: Warn,
    ) -> None:
        self._options = options
        self._landing = landing
        self._report = report
        self._warn = warn
        self._recovered = landing.recover()
        self._before = landing.total
        self._error: BaseException | None = None
        self._stopping = False
        self._busy = threading.Lock()
        self._known = threading.Event()
        self._warnings: list[str] = []
        self._untold: dict[int, Tally] = {}
        self._batches = 0
        self._tally = Tally()
        self._began = time.monotonic()
        self._looked = self._began
        self._ended: float | None = None
        self._tasks = max(1, spark.sparkContext.defaultParallelism)
        self._checkpoint = Checkpoint(open_store(options.checkpoint_url, spark))
        self._brokers = AdminBrokers(spark, options.source())
        try:
            self._topics = Topics(options.names, self._brokers, landing.store.url(""), self._warnings.append)
            self._ids = self._check()
            self.query = self._start(spark)
        except BaseException:
            self._brokers.close()
            raise
        self._known.set()

    def _check(self) -> dict[str, str]:
        """Return the topics' ids, if all that has landed goes with them and with the checkpoint."""
        self._landing.check(self._checkpoint.query(), self._checkpoint.committed())
        ids = self._topics.check(self._landing.ids, self._landing.landed)
        self._landing.begin(ids)
        return ids

    def _start(self, spark: SparkSession) -> StreamingQuery:
        options = self._options
        records = spark.readStream.format("kafka").options(**options.source()).load()
        writer = records.writeStream.foreachBatch(self._land)
        writer = writer.option("checkpointLocation", self._checkpoint.url)
        if options.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(options.interval * 1000)} milliseconds").start()

    # --- in Spark's thread ---

    def _land(self, records: DataFrame, batch: int) -> None:
        self._known.wait()
        with self._busy:
            if self._stopping:
                raise _AskedToStop
            try:
                self._land_now(records, batch)
            except BaseException as error:
                # Spark would tell of it as a text inside a Java exception.
                self._error = self._error or error
                raise

    def _land_now(self, records: DataFrame, batch: int) -> None:
        plan = self._checkpoint.plan(batch)
        ids = self._same_topics(plan)
        write = partial(self._write, records, plan)
        note = self._landing.land(plan, str(self.query.id), ids, write)
        if note is not None:
            self._untold[batch] = note.tally
            self._batches += 1
            self._tally = self._tally.plus(note.tally)

    def _same_topics(self, plan: Plan | None = None, **bound: float) -> dict[str, str]:
        """Return the topics' ids; raises `TopicChanged` where they are not those of this run's start."""
        known = {**self._landing.ids, **self._ids}
        return self._topics.check(known, self._landing.landed, plan.spans if plan else None, **bound)

    def _write(self, records: DataFrame, plan: Plan, folder: str, offsets: Spans) -> Tally:
        from cloudevents_kafka.spark import decode_events
        from cloudevents_kafka.spark.pipeline.tables import KAFKA, only, write

        if offsets != beyond(plan.spans, {}):
            records = only(records, offsets)
        decoded = decode_events(records, keep=KAFKA)
        tally = write(decoded, folder, date_of=self._options.date_of, tasks=self._tasks)
        self._same_topics()  # Spark has read by now, and nothing has landed yet
        return tally

    # --- in the user's thread ---

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the pipeline has ended, or so long; say whether it has ended.

        Reports on batches meanwhile. Raises what ended the pipeline, if it was not asked to end.
        """
        deadline = float("inf") if seconds is None else time.monotonic() + seconds
        while True:
            ended = self._has_ended()
            self._tell(last=ended)
            left = deadline - time.monotonic()
            if ended or left <= 0:
                return ended
            time.sleep(min(_LOOK_SECONDS, left))

    def _has_ended(self) -> bool:
        if self.query.isActive:
            self._look()
            return False
        if self._ended is None:
            self._ended = time.monotonic()
            error = self.query.exception()
            if error is not None and not self._stopping:
                self._raise(error)
        return True

    def _look(self) -> None:
        """Compare the topics now and then, for a new one that has no more records yet makes no batch."""
        if time.monotonic() < self._looked + _LOOK_AGAIN_SECONDS:
            return
        try:
            self._same_topics(seconds=_LAST_LOOK_SECONDS)
        except PipelineFailed:
            pass  # a broker that is away for a while is Spark's business
        except TopicChanged:
            self.stop()
            raise
        self._looked = time.monotonic()

    def _raise(self, error: Exception) -> None:
        if not isinstance(self._error, TopicChanged):
            # What Spark says of a topic that was created again is that records expired.
            with suppress(PipelineFailed, WrongCheckpoint):
                self._same_topics(self._checkpoint.planned(), seconds=_LAST_LOOK_SECONDS)
        if isinstance(self._error, CloudEventsKafkaError):
            raise self._error
        said = self._options.redact(str(self._error or error))
        raise PipelineFailed(explained(said)) from (self._error or error)

    def _tell(self, *, last: bool) -> None:
        """Report on the batches that have landed, as soon as Spark has told about them too."""
        while self._warnings:
            self._warn(self._warnings.pop(0))
        for progress in self.query.recentProgress if self._untold else ():
            tally = self._untold.pop(progress["batchId"], None)
            if tally is not None:
                self._say(batch_of(progress, tally))
        while last and self._untold:
            number = min(self._untold)
            self._say(Batch(number=number, tally=self._untold.pop(number)))

    def _say(self, batch: Batch) -> None:
        if self._report is not None:
            self._report(batch)

    def stop(self) -> None:
        """Stop after the batch under way."""
        self._stopping = self._stopping or self._ended is None
        with self._busy:
            pass  # the batch under way, if any, has landed; another one sees that it is not wanted
        self.query.stop()

    def close(self) -> None:
        """Stop if need be, and let other pipelines use the folder."""
        self.stop()
        self._brokers.close()
        self._landing.store.close()

    def summary(self) -> Summary:
        """Sum up what this pipeline has done until now; raises `Miscounted` if that does not add up."""
        url = self._landing.store.url
        return Summary(
            topics=self._options.topics,
            events_table=url("events"),
            quarantine_table=url("quarantine"),
            checkpoint=self._checkpoint.url,
            batches=self._batches,
            recovered=self._recovered,
            complete=self._options.once and not self._stopping,
            seconds=round((self._ended or time.monotonic()) - self._began, 3),
            tally=self._tally.checked(),
            total=self._landing.total.checked(),
            skipped=self._landing.total.skipped_since(self._before),
        )
