"""`EventPipeline` is a pipeline from topics to tables; it runs in your Spark session or starts Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.spark.kafka_settings import allow_token_endpoint
from cloudevents_kafka.spark.pipeline.landing import EachBatch, check_catalog, check_renames, open_landing
from cloudevents_kafka.spark.pipeline.options import PipelineOptions
from cloudevents_kafka.spark.pipeline.runs._backfill import Backfill
from cloudevents_kafka.spark.pipeline.runs._run import Run
from cloudevents_kafka.spark.pipeline.runs._stream import Stream
from cloudevents_kafka.spark.pipeline.runs._watch import Report, Warn, Watch
from cloudevents_kafka.spark.pipeline.session import check_in_process, check_reachable, local_session
from cloudevents_kafka.spark.pipeline.stores import BACKFILL_FOLDER, folder_lock
from cloudevents_kafka.spark.pipeline.topics import KafkaAdmin
from cloudevents_kafka.spark.pipeline.watching import Metrics, Summary
from cloudevents_kafka.spark.typed.schemas import has_avro

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from cloudevents_kafka.spark.table_formats import SessionFormat

_POLL_SECONDS = 0.2


class EventPipeline:
    """A pipeline that lands the events of topics in tables, each record exactly once.

    Instead of writing tables, the pipeline can also pass each batch to a function. The function receives each
    batch at least once.

    ::

        options = PipelineOptions(bootstrap_servers="…", topics=("orders",), out="lake/orders", once=True)
        print(EventPipeline(options).run().to_text())

    Without ``spark``, the pipeline starts a local Spark, and stops it at the end. ``spark`` is your own
    session, which must have the Kafka connector. If you pass ``spark``, the options ``master``, ``conf``,
    ``ui`` and ``log`` have no effect.

    If you pass the function ``each_batch``, the pipeline writes no tables, and calls the function with an
    `EventBatch` for each batch. The records of a batch are decoded once, and Spark stores the records until
    the function returns. If the run is killed before the manifest of the batch is written, the next run calls
    the function again with the same batch number and the same records. If the function raises an error, the
    run ends with `PipelineFailed`, whose ``__cause__`` is the error of the function. The folder ``out``
    contains the checkpoint, and the pipeline's files in the folder ``_batches``.

    ``spark`` must be a Spark session in this process: the method `start` raises `NotOnConnect` for a session
    of Spark Connect.

    The function ``report`` is called with each batch that has landed, and the function ``warn`` is called
    with each warning. The thread that calls `wait` or `run` calls the functions ``report`` and ``warn``. Most
    programs call only the method `run` of the pipeline. Other programs call the method `start`, then call
    `wait` until it returns True, and then call `close`. If the pipeline is used as a context manager, the
    calls of `start` and `close` are automatic.

    Examples:
        >>> from cloudevents_kafka.spark import EventPipeline, PipelineOptions
        >>> brokers = "localhost:9092"
        >>> options = PipelineOptions(bootstrap_servers=brokers, topics=("orders",), out="lake/", once=True)
        >>> summary = EventPipeline(options, spark=spark).run()
        >>> summary.counts.events, summary.counts.quarantined
        (2, 0)
    """

    def __init__(
        self,
        options: PipelineOptions,
        *,
        spark: SparkSession | None = None,
        each_batch: EachBatch | None = None,
        report: Report | None = None,
        warn: Warn = warnings.warn,
    ) -> None:
        set_ = (options.to, options.table, options.tables, options.backfill)
        if each_batch is not None and set_ != ("parquet", None, {}, None):
            raise ValueError(
                "to, table, tables and backfill must not be set with each_batch, which takes the place of "
                f"tables, got to={options.to!r}, table={options.table!r}, tables={dict(options.tables)!r}, "
                f"backfill={options.backfill!r}"
            )
        check_callbacks(each_batch=each_batch)
        self.options = options
        self._spark = spark
        self._each_batch = each_batch
        self._report = report
        self._warn = warn
        self._run: Run | None = None
        self._resources = ExitStack()
        self.metrics_url: str | None = None
        """The URL at which Prometheus reads the metrics, if ``metrics_port`` is set and the pipeline has
        started."""

    def run(self, *, stop: Callable[[], bool] | None = None) -> Summary:
        """Run the pipeline to its end, close the pipeline, and return the summary.

        If the option ``once`` is true, the run ends when it has read all records. If ``once`` is false, the
        run ends when the function ``stop`` returns true; the current batch is finished first. Raises the
        errors of `start` and `wait`, and `CountMismatch`.
        """
        with self:
            while not self.wait(_POLL_SECONDS):
                if stop is not None and stop():
                    self.stop()
            self.stop()
            return self.summary()

    def start(self) -> Self:
        """Start the pipeline, start Spark if necessary, and return the pipeline.

        If an earlier run left a batch unfinished, this batch is finished first. Raises `RuntimeError` if the
        pipeline is running already, and `PipelineFailed` if no broker answers. Also raises `InUse`,
        `WrongStore`, `WrongCheckpoint`, `TopicChanged`, `NotOnConnect`, and the errors of `local_session`.
        """
        if self._run is not None:
            raise RuntimeError("a pipeline must be closed before it is started again")
        if self._spark is not None:
            check_in_process(self._spark)
        check_renames(self.options, has_function=self._each_batch is not None)
        with ExitStack() as resources:
            options = self.options
            metrics = Metrics(options.metrics_file, options.metrics_port, self._warn)
            self.metrics_url = resources.enter_context(closing(metrics)).url
            # This check comes first, because Spark takes seconds to start. A backfill of tables may run next
            # to a pipeline, but not next to another backfill, nor to a `vacuum` that could delete its rows.
            alone = options.backfill is None or options.to == "parquet"
            resources.enter_context(folder_lock(options.out if alone else f"{options.out}/{BACKFILL_FOLDER}"))
            if self._spark is None:
                check_reachable(options.bootstrap_servers)
            spark = self._spark or resources.enter_context(self._own_session())
            if self._spark is None:
                check_catalog(options, spark)
            self._run = self._start_run(spark, metrics)
            if self._spark is not None:  # otherwise, the stop of the pipeline's own Spark ends the query
                resources.callback(self._run.close)
            self._resources = resources.pop_all()
        return self

    def _start_run(self, spark: SparkSession, metrics: Metrics) -> Run:
        options = self.options
        landing = open_landing(options, spark, self._each_batch, self._warn)
        watch = Watch(options, metrics, self._report, self._warn)
        reads = Stream if options.backfill is None else Backfill
        with ExitStack() as failed:
            admin = failed.enter_context(closing(KafkaAdmin(spark, options.source_options())))
            reader = reads(spark, options, landing, watch, admin)
            failed.pop_all()  # the run closes the client
        return Run(options, landing, reader, watch)

    def _own_session(self) -> AbstractContextManager[SparkSession]:
        options = self.options
        log = None if options.log is None else Path(options.log)
        formats: list[SessionFormat] = []
        if options.to != "parquet":
            formats.append(options.to)
        if has_avro(options.schemas):
            formats.append("avro")
        conf = allow_token_endpoint(options.conf, options.kafka_options)
        return local_session(master=options.master, ui=options.ui, conf=conf, log=log, formats=formats)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the pipeline to end, at most ``seconds``; return whether the pipeline has ended.

        Batches that have landed are reported during the wait. Raises the error that ended the pipeline,
        unless the method `stop` was called: `PipelineFailed`, `TopicChanged`, `WrongCheckpoint`,
        `CountMismatch`, or `ThresholdCrossed`.
        """
        return self._running.wait(seconds)

    def stop(self) -> None:
        """Stop the pipeline after the current batch."""
        self._running.stop()

    def status(self) -> str:
        """Return a short text: the current work and the lag of the pipeline, or that no broker answers."""
        return self._running.status()

    def summary(self) -> Summary:
        """Return the run's summary up to now; raise `CountMismatch` if the counts contradict each other."""
        return self._running.summary()

    @property
    def query(self) -> StreamingQuery:
        """Spark's streaming query; raises `RuntimeError` for a backfill, which has no query."""
        query = self._running.reader.query
        if query is None:
            raise RuntimeError("a backfill has no query, got the option backfill; use wait() and status()")
        return query

    @property
    def _running(self) -> Run:
        if self._run is None:
            raise RuntimeError(
                "the pipeline must be started first; call start(), or use it in a with statement"
            )
        return self._run

    def close(self) -> None:
        """Stop the pipeline if necessary, unlock its folder, and stop Spark if the pipeline started Spark."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        """Start the pipeline unless it is running, and return the pipeline."""
        return self if self._run is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the pipeline."""
        self._run = None
        self._resources.__exit__(kind, error, traceback)
