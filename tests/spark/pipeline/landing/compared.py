"""Histories of batches that are compared with the rows of their table: records, kills and later runs."""

from __future__ import annotations

import datetime as dt
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cloudevents_kafka.spark.pipeline.batches import BatchWriter
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from cloudevents_kafka.spark.pipeline.notes import (
    EVENTS,
    QUARANTINE,
    BatchCounts,
    BatchPlan,
    BegunBatch,
    Manifests,
    OffsetRange,
)
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables import Table, filter_offsets
from tests.spark.pipeline.landing.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "orders"
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)
START = dt.datetime(2026, 5, 1, 23, 0, tzinfo=dt.UTC)
STEPS = ("staged", "quarantine", "events", "manifest")
Place = tuple[int, int]


class Killed(Exception):
    """Raised where the process is killed."""


class Sent(NamedTuple):
    """A record of the topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: dt.datetime | None = START


@contextmanager
def killed_after(step: str | None) -> Iterator[None]:
    """Let the process die after a step: the rows are staged, a table has them, or before the manifest."""
    if step is None:
        yield
        return
    commit = TablesTarget._commit

    def count(self: TablesTarget, table: str) -> None:
        if step == "staged":
            raise Killed
        commit(self, table)
        if table == step:
            raise Killed

    def die(*_: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TablesTarget, "_commit", count)
        if step == "manifest":
            patch.setattr(Manifests, "add", die)
        with suppress(Killed):  # a batch without a record for the quarantine has no such step
            yield


@dataclass
class History:
    """A topic of two partitions, and runs of pipelines that land it in one table."""

    spark: SparkSession
    folder: Path
    open_table: Callable[[str], Table]
    open_landing: Callable[[LocalStore], Parts]
    log: list[list[Sent]] = field(default_factory=lambda: [[], []])
    landed: list[int] = field(default_factory=lambda: [0, 0])
    batches: int = 0
    total: BatchCounts = field(default_factory=BatchCounts)

    def __post_init__(self) -> None:
        self.begin_run()

    def begin_run(self, *, fresh: bool = False) -> None:
        """Start a run, with the folder of the last one or, if it is ``fresh``, without notes."""
        if fresh:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.batches = 0
        self.landing = self.open_landing(LocalStore(self.folder))
        self.landing.recover()
        self.landing.use_topic_ids({TOPIC: ""})
        self.landing.record_beginning({}, "earliest" if not self.batches else None)
        self.writer = BatchWriter(tasks=2)

    def records(self) -> DataFrame:
        """Return all records of the topic, as Spark's source does."""
        rows = [
            (sent.key, sent.value, TOPIC, partition, offset, sent.timestamp, 0, sent.headers)
            for partition, log in enumerate(self.log)
            for offset, sent in enumerate(log)
        ]
        return self.spark.createDataFrame(rows, SCHEMA)

    def land(self, ends: list[int], kill: str | None = None) -> None:
        """Land the records up to the ends of both partitions in a batch, also if it is killed at a step."""
        ranges = {
            TOPIC: {
                str(number): OffsetRange(start, end)
                for number, (start, end) in enumerate(zip(self.landed, ends, strict=True))
            }
        }
        batch = self.landing.begin(BatchPlan(self.batches, ranges), "q", {})
        assert batch is not None
        self.batches += 1
        with killed_after(kill):
            self._finish(batch)
        if kill is not None:
            self.begin_run()
            if begun := self.landing.begun():
                self._finish(begun)
        self.landed = list(ends)

    def _finish(self, batch: BegunBatch) -> None:
        records = filter_offsets(self.records(), batch.offsets) if batch.offsets else self.records().limit(0)
        counts = self.landing.write(self.writer, records, batch)
        self.total = self.total.merge(self.landing.complete(batch, counts).counts)

    def rows(self, table: str = EVENTS) -> list[Any]:
        """Return the rows of a table in the order of their places."""
        opened = self.open_table(table)
        if not opened.exists():
            return []
        found = opened.read(self.spark).collect()
        return sorted(found, key=lambda row: (row["partition"], row["offset"]))

    def quarantined(self) -> list[Place]:
        """Return the places of the records in the quarantine."""
        return [(row["partition"], row["offset"]) for row in self.rows(QUARANTINE)]


def cut(history: History, chance: random.Random) -> list[int]:
    """Return ends of a next batch, which has at least one record."""
    while True:
        ends = [
            chance.randint(start, len(log)) for start, log in zip(history.landed, history.log, strict=True)
        ]
        if ends != history.landed:
            return ends
