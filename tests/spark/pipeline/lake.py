"""Topics and folders, and pipelines from one to the other in a shared session."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
from confluent_kafka import KafkaException, Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import EventPipeline
from cloudevents_kafka.spark.pipeline.options._options import PipelineOptions
from cloudevents_kafka.spark.pipeline.watching._reports import Summary
from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local.clients import create_topic, delete_topic
from tests.support.old_brokers import LegacyKafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Broker = LocalBroker | LegacyKafka
# Workers of pytest-xdist may share the broker.
_numbers = itertools.count(1 + 100_000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")))


def produce(broker: Broker, topic: str, count: int, type_: str = "t", *, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        record = to_record(Event(id=str(number), source="/s", type=type_, data=b"1"), mode="binary")
        producer.produce(topic, value=record.value, headers=list(record.headers), partition=partition)
    assert producer.flush(30) == 0


def produce_broken(broker: Broker, topic: str, count: int) -> None:
    """Send records in binary mode that have no id."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(count):
        producer.produce(topic, value=b"1", headers=[("ce_specversion", b"1.0")], partition=0)
    assert producer.flush(30) == 0


def create(broker: Broker, topic: str, partitions: int = 1) -> str:
    create_topic(broker.bootstrap_servers, topic, partitions, {})
    return topic


def recreate(broker: Broker, topic: str, count: int, partitions: int = 1) -> None:
    """Delete a topic and create it again with events of the type "new"."""
    delete_topic(broker.bootstrap_servers, topic)
    deadline = time.monotonic() + 30
    while True:
        try:
            create(broker, topic, partitions)
            break
        except KafkaException:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    produce(broker, topic, count, "new")


class Lake:
    """A topic, a folder, and pipelines from one to the other."""

    def __init__(self, spark: SparkSession, broker: Broker, out: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.out = out
        self.topic = create(broker, f"lake-{next(_numbers)}")
        self.warnings: list[str] = []

    @staticmethod
    def copy_to(lake: Lake, out: Path) -> Lake:
        """Return a lake with the same topic and another folder."""
        other = copy(lake)
        other.out = out
        return other

    def start(self, **options: Any) -> EventPipeline:
        settings = {"topics": (self.topic,), "out": str(self.out), "once": True, **options}
        pipeline_options = PipelineOptions(bootstrap_servers=self.broker.bootstrap_servers, **settings)
        return EventPipeline(pipeline_options, spark=self.spark, warn=self.warnings.append).start()

    def run(self, **options: Any) -> Summary:
        with closing(self.start(**options)) as pipeline:
            assert pipeline.wait()
            return pipeline.summary()

    def rows(self) -> list[tuple[str, str, int, int]]:
        """Return type, topic, partition and offset of all events, and check that none is there twice."""
        if not (self.out / "events").exists():
            return []
        found = ds.dataset(self.out / "events").to_table(["type", "topic", "partition", "offset"]).to_pylist()
        rows = sorted(tuple(row.values()) for row in found)
        assert len(set(rows)) == len(rows)
        return rows

    def ids(self) -> dict[str, str]:
        manifest = max((self.out / "_batches").glob("[0-9]*.json"))
        ids: dict[str, str] = json.loads(manifest.read_text())["ids"]
        return ids


def until(pipeline: EventPipeline, condition: Callable[[], bool]) -> None:
    while not condition():
        assert not pipeline.wait(0.1)
