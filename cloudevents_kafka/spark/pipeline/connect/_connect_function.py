"""What runs on the server of Spark Connect: `BatchFunction`, which lands the batches of one query.

It is pickled with texts and options only, runs in a Python process of the server, and finds the state
of the pipeline in the notes and tables. `Mailbox` passes short texts between it and the client.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cloudevents_kafka.registry import Registered, register_all
from cloudevents_kafka.spark.pipeline._options import PipelineOptions
from cloudevents_kafka.spark.pipeline.landing import BatchLander, open_landing
from cloudevents_kafka.spark.pipeline.notes import BatchManifest, Checkpoint
from cloudevents_kafka.spark.pipeline.stores import open_store
from cloudevents_kafka.spark.pipeline.topics import LibrdkafkaAdmin, TopicMonitor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WATCH_SECONDS: Final = 0.5
_PLAN_CACHE: Final = "spark.connect.session.planCache.enabled"


def run_tag(run: str) -> str:
    """Return the tag of a run's operations on the server, by which the client can interrupt them."""
    return f"cloudevents-kafka-{run}"


class StopRequested(Exception):
    """Raised on the server to prevent another batch."""


class Landed(msgspec.Struct, frozen=True):
    """A message of the server: what it has done since the last one."""

    batch: int | None = None
    manifest: BatchManifest | None = None
    recovered: int | None = None
    warnings: tuple[str, ...] = ()


class Failure(msgspec.Struct, frozen=True):
    """An error on the server: the module and name of its class, and its text."""

    module: str
    name: str
    text: str
    final: bool = False


class Mailbox:
    """Texts that the client and the server share, as settings of the session."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        self._spark = spark
        self._prefix = f"cloudevents_kafka.pipeline.{run}."

    def put(self, name: str, text: str) -> None:
        """Write a text."""
        self._spark.conf.set(self._prefix + name, text)

    def get(self, name: str) -> str | None:
        """Return a text, or None."""
        text: str | None = self._spark.conf.get(self._prefix + name, None)
        return text

    def remove(self, name: str) -> None:
        """Remove a text."""
        self._spark.conf.unset(self._prefix + name)


class BatchFunction:
    """Lands each batch that Spark passes to it."""

    def __init__(
        self, options: PipelineOptions, run: str, topic_ids: Mapping[str, str], registered: Registered
    ) -> None:
        self._options = options
        self._run = run
        self._topic_ids = dict(topic_ids)
        self._registered = registered
        self._lander: BatchLander | None = None
        self._query = ""
        self._messages = 0
        self._warnings: list[str] = []

    def __call__(self, records: DataFrame, batch: int) -> None:
        """Land a batch, unless the client has asked to stop, or another run of the query has begun."""
        mailbox = Mailbox(records.sparkSession, self._run)
        mailbox.put("busy", str(batch))
        try:
            _check_stop(mailbox)
            with one_at_a_time(self._options.checkpoint_url, self._run, is_first=self._lander is None):
                if self._lander is None:
                    self._open(records.sparkSession, mailbox)
                self._land(records, batch, mailbox)
        except BaseException as error:
            kind = type(error)
            failure = Failure(kind.__module__, kind.__qualname__, str(error), getattr(error, "final", False))
            mailbox.put("error", msgspec.json.encode(failure).decode())
            raise
        finally:
            mailbox.remove("busy")

    def _open(self, spark: SparkSession, mailbox: Mailbox) -> None:
        """Open the tables, and finish first the batch that an earlier run has begun."""
        from cloudevents_kafka.spark.pipeline.batches import BatchWriter

        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        register_all(self._registered)
        spark.addTag(run_tag(self._run))
        # It would return tables and folders as they were in an earlier run.
        spark.conf.set(_PLAN_CACHE, "false")
        options = self._options
        landing = open_landing(options, spark)
        landing.recover()
        checkpoint = Checkpoint(open_store(options.checkpoint_url, spark))
        self._query = checkpoint.query_id() or ""
        admin = LibrdkafkaAdmin(options.source_options())
        folder, pattern = landing.store.url(""), options.topic_pattern
        topics = TopicMonitor(options.topic_names, admin, folder, self._warnings.append, pattern=pattern)
        writer = BatchWriter(date_of=options.date_of, tasks=_count_tasks(spark))
        lander = BatchLander(options, landing, checkpoint, topics, writer, topic_ids=self._topic_ids)
        lander.use_topic_ids()
        recovered = lander.finish_begun(spark)
        if recovered is not None:
            self._send(mailbox, Landed(manifest=landing.last, recovered=recovered))
        self._lander = lander

    def _land(self, records: DataFrame, batch: int, mailbox: Mailbox) -> None:
        assert self._lander is not None  # for type checkers
        manifest = self._lander.land(records, batch, self._query)
        warnings = tuple(self._warnings)
        self._warnings.clear()
        if manifest is not None or warnings:
            self._send(mailbox, Landed(batch, manifest, warnings=warnings))

    def _send(self, mailbox: Mailbox, message: Landed) -> None:
        mailbox.put(f"message.{self._messages}", msgspec.json.encode(message).decode())
        self._messages += 1


def _check_stop(mailbox: Mailbox) -> None:
    if mailbox.get("stop") is not None:
        raise StopRequested


def _count_tasks(spark: SparkSession) -> int:
    """Return the number of tasks that the server runs at the same time."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    parts = spark.range(1 << 16).select(F.spark_partition_id().alias("part"))
    (row,) = parts.agg(F.max("part").alias("last")).collect()
    return int(row["last"]) + 1


def _end_with(server: int) -> None:
    """End this process when that of the server has ended.

    PySpark would ask a killed server for ten minutes, and the next run waits for this one.
    """
    while os.getppid() == server:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


@contextmanager
def one_at_a_time(checkpoint: str, run: str, *, is_first: bool) -> Iterator[None]:
    """Yield while no other run lands batches of a checkpoint; raise `StopRequested` if one has begun later.

    A run whose client was killed may still be landing a batch when the next run starts. All runs of a
    server have their processes on one machine.
    """
    import fcntl

    name = hashlib.sha256(checkpoint.encode()).hexdigest()[:32]
    path = Path(tempfile.gettempdir(), f"cloudevents-kafka-{os.getuid()}-{name}.lock")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        owner = os.pread(handle, 100, 0).decode()
        if is_first:
            os.ftruncate(handle, 0)
            os.pwrite(handle, run.encode(), 0)
        elif owner != run:
            raise StopRequested
        yield
    finally:
        os.close(handle)
