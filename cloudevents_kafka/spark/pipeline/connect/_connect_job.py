"""`ConnectJob`: the job of a pipeline on Spark Connect, where batches land in a process of the server.

The client checks the start, watches the topics, and reports what the server has landed. What has landed
is decided by notes and tables alone: if the client is killed, the server goes on, or another start does.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.registry import registered
from cloudevents_kafka.spark.java.reader import reader_sql
from cloudevents_kafka.spark.pipeline._errors import NotOnConnect, PipelineFailed
from cloudevents_kafka.spark.pipeline._job import Job
from cloudevents_kafka.spark.pipeline._options import PipelineOptions
from cloudevents_kafka.spark.pipeline._reports import Summary
from cloudevents_kafka.spark.pipeline.connect._connect_function import (
    BatchFunction,
    Failure,
    Landed,
    Mailbox,
    run_tag,
)
from cloudevents_kafka.spark.pipeline.connect._connect_shipping import ship
from cloudevents_kafka.spark.pipeline.stores import local_path
from cloudevents_kafka.spark.pipeline.topics import LibrdkafkaAdmin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_POLL_SECONDS: Final = 0.05
# PySpark's default is to ask a server that does not answer for ten minutes.
_RETRIES: Final[Mapping[str, Any]] = {
    "max_retries": 6,
    "initial_backoff": 200,
    "max_backoff": 5000,
    "backoff_multiplier": 3.0,
}


def check_connect(options: PipelineOptions, *, has_function: bool = False) -> None:
    """Raise `NotOnConnect` for options that Spark Connect cannot have, or a function for each batch."""
    if has_function:
        raise NotOnConnect(
            "each_batch must be None on Spark Connect: batches land in a process of the server, where a "
            "function would not see the state of this process. Land in Delta (to='delta'), or use a Spark "
            "session of this process"
        )
    if options.to != "delta":
        raise NotOnConnect(
            f"to must be delta on Spark Connect, got {options.to}: other kinds need Java, or the files of "
            "the server, for a commit that has both rows and offsets. Land in Delta, or use a Spark session "
            "of this process"
        )
    if options.backfill is not None:
        raise NotOnConnect(
            "backfill must be None on Spark Connect, where Spark plans all batches; use a Spark "
            "session of this process"
        )
    if any(threshold.action == "stop" for threshold in options.thresholds):
        raise NotOnConnect(
            "thresholds must warn or end the run on Spark Connect, got one that stops a topic; use a Spark "
            "session of this process to stop a topic"
        )
    if options.schema_registry is not None:
        raise NotOnConnect(
            "schema_registry must be None on Spark Connect, whose server has no client of it; use a Spark "
            "session of this process"
        )
    if options.upsert:
        raise NotOnConnect(
            f"upsert must be empty on Spark Connect, got {', '.join(options.upsert)}: PySpark cannot join "
            "the rows of a batch there. Use a Spark session of this process"
        )
    for name, location in (("out", options.out), ("checkpoint", options.checkpoint_url)):
        if local_path(location) is not None and not location.startswith(("/", "file:")):
            raise NotOnConnect(
                f"{name} must be a URL or an absolute path on Spark Connect, got {location!r}: it is a "
                "folder of the server"
            )


class ConnectJob(Job):
    """A running pipeline on Spark Connect."""

    def _open_admin(self, spark: SparkSession) -> LibrdkafkaAdmin:  # noqa: ARG002
        return LibrdkafkaAdmin(self._options.source_options())

    def _count_tasks(self, spark: SparkSession) -> int:  # noqa: ARG002
        return 1  # this process writes no batch

    def _prepare(self, spark: SparkSession) -> None:
        self._open_mailbox()
        # Before the manifests: an earlier run whose client was killed may still be landing batches.
        query_id, committed = self._checkpoint.query_id(), self._checkpoint.last_committed()
        self._landing.recover()
        if self._options.forget_topics:
            raise NotOnConnect(
                f"forget_topics must be empty on Spark Connect, got {self._options.forget_topics}; use a "
                "Spark session of this process"
            )
        self._total_before = self._landing.total
        self._lander.check_start(query_id, committed)
        reader_sql(spark.range(0))  # sends the Java function to the server

    def _open_mailbox(self) -> None:
        self._run = uuid.uuid4().hex
        self._mailbox = Mailbox(self._spark, self._run)
        self._received = 0

    def _batch_function(self) -> Callable[[DataFrame, int], None]:
        function = BatchFunction(self._options, self._run, self._lander.topic_ids, registered())
        return ship(function)

    def _restart(self) -> None:
        self._open_mailbox()
        super()._restart()

    def _has_ended(self) -> bool:
        with self._answering():
            return super()._has_ended()

    def _raise(self, error: Exception) -> None:
        self._receive()
        if self._mailbox.get("busy") is not None:
            # Its process was killed, but the server may still execute what it has asked for.
            self._spark.interruptTag(run_tag(self._run))
            self._mailbox.remove("busy")
        failure = self._mailbox.get("error")
        if failure is not None:
            self._error = _as_error(msgspec.json.decode(failure, type=Failure))
        super()._raise(error)

    def _report_landed(self, *, last: bool) -> None:
        with self._answering():
            self._receive()
            super()._report_landed(last=last)

    def _receive(self) -> None:
        """Take over what the server has landed since the last call."""
        while (text := self._mailbox.get(f"message.{self._received}")) is not None:
            self._mailbox.remove(f"message.{self._received}")
            self._received += 1
            message = msgspec.json.decode(text, type=Landed)
            self._warnings.extend(message.warnings)
            if message.recovered is not None:
                self._recovered = message.recovered
            if message.manifest is not None:
                self._landing.last = message.manifest
                if message.batch is not None:
                    self._count(message.batch, message.manifest)

    def stop(self) -> None:
        """Stop after the current batch."""
        self._stopping = self._stopping or self._end_time is None
        with self._answering():
            self._mailbox.put("stop", "")
            while self._mailbox.get("busy") is not None and self.query.isActive:
                time.sleep(_POLL_SECONDS)
            self.query.stop()
            self._receive()

    def close(self) -> None:
        """Stop if necessary."""
        with suppress(PipelineFailed):  # the server does not answer
            super().close()

    def summary(self) -> Summary:
        """Return the summary up to now; raise `CountMismatch` if its counts contradict each other."""
        with self._answering():
            self._receive()
        return super().summary()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Raise `PipelineFailed` within seconds if the server does not answer."""
        from pyspark import errors
        from pyspark.errors.exceptions.connect import SparkConnectGrpcException
        from pyspark.sql.connect.client.retries import DefaultPolicy

        spark: Any = self._spark  # its types are those of a session in this process
        # PySpark 4.1 has no such error: it raises that of the last try.
        retries_exceeded = getattr(errors, "RetriesExceeded", SparkConnectGrpcException)
        client = spark.client
        policies = client.get_retry_policies()
        client.set_retry_policies([DefaultPolicy(**_RETRIES)])
        try:
            yield
        except (SparkConnectGrpcException, retries_exceeded) as error:
            reason = str(error).strip().splitlines()[0]
            raise PipelineFailed(
                f"the server of Spark Connect does not answer, or has lost the session: {reason}. All landed "
                "batches are complete; start again, with a new session, to continue after them"
            ) from error
        finally:
            client.set_retry_policies(policies)


def _as_error(failure: Failure) -> CloudEventsKafkaError | None:
    """Return an error of this package as the server raised it, or None for other errors."""
    kind: Any = sys.modules.get(failure.module)
    for name in failure.name.split("."):
        kind = getattr(kind, name, None)
    if isinstance(kind, type) and issubclass(kind, CloudEventsKafkaError):
        error = kind(failure.text)
        if failure.final:
            error = PipelineFailed(failure.text, final=True)
        return error
    return None
