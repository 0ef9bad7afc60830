"""A thousand topics of a pattern land with the default heap, by work that does not grow with their number."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline.notes import OffsetRange, OffsetRanges, iter_partitions
from cloudevents_kafka.spark.pipeline.tables import filter_offsets
from cloudevents_kafka.spark.pipeline.tables._places import partition_sql
from cloudevents_kafka.spark.pipeline.topics import KafkaAdmin
from cloudevents_kafka.testing import LocalBroker
from tests.spark.pipeline.conftest import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def create_all(brokers: str, names: list[str]) -> None:
    client = AdminClient({"bootstrap.servers": brokers})
    for first in range(0, len(names), 200):
        topics = [NewTopic(name, 1, 1) for name in names[first : first + 200]]
        for future in client.create_topics(topics, operation_timeout=60).values():
            future.result(60)


def produce_to(brokers: str, names: list[str]) -> None:
    """Send an event to each of the topics, of which one may be named several times."""
    producer = Producer({"bootstrap.servers": brokers})
    record = to_record(Event(id="1", source="/s", type="t", data=b"1"), mode="binary")
    for name in names:
        producer.produce(name, value=record.value, headers=list(record.headers))
        producer.poll(0)
    assert producer.flush(60) == 0


def random_offsets(chance: random.Random, topics: int) -> OffsetRanges:
    """Return ranges of some partitions of topics, with gaps between their numbers."""
    offsets: dict[str, dict[str, OffsetRange]] = {}
    for number in chance.sample(range(topics * 2), topics):
        for partition in chance.sample(range(5), chance.randint(1, 3)):
            start = chance.randrange(20)
            range_ = OffsetRange(start, start + chance.randrange(9))
            offsets.setdefault(f"topic-{number}", {})[str(partition)] = range_
    return offsets


@pytest.fixture
def corrupt_value(session: SparkSession) -> Iterator[None]:
    """Use the name for corrupt records that Spark's parser uses for an array without a name."""
    name = "spark.sql.columnNameOfCorruptRecord"
    session.conf.set(name, "value")
    yield
    session.conf.unset(name)


@pytest.mark.usefixtures("corrupt_value")
def test_the_ranges_of_any_number_of_topics(session: SparkSession) -> None:
    """Of random rows exactly those in the ranges are kept, whether of one topic or of five hundred."""
    chance = random.Random(1)
    for topics in (0, 1, 2, 60, 500):
        offsets = random_offsets(chance, topics)
        places = [(topic, int(part), range_) for topic, part, range_ in iter_partitions(offsets)]
        rows = {
            (f"topic-{chance.randrange(2 * topics + 1)}", chance.randrange(6), chance.randrange(32))
            for _ in range(500)
        }
        rows |= {(topic, part, range_.start + step) for topic, part, range_ in places for step in (-1, 0, 8)}
        frame = session.createDataFrame(sorted(rows), "topic STRING, partition INT, offset LONG")
        found = {tuple(row) for row in filter_offsets(frame, offsets).collect()}
        within = {
            (topic, part, offset)
            for topic, part, range_ in places
            for offset in range(range_.start, range_.end)
        }
        assert found == rows & within


def test_the_plan_is_the_same_for_any_number_of_topics() -> None:
    """No part of the SQL but one constant grows with the topics, and that is linear."""
    lengths = []
    for count in (1, 10, 1000):
        sql = partition_sql({f"t{number:04}": {"0": (0, 1, number)} for number in range(count)})
        constant = re.search(r"from_json\('([^']*)'", sql)
        assert constant is not None
        lengths.append(len(constant[1]))
        rest = re.sub(r"% \d+", "%", sql.replace(constant[1], ""))
        assert rest == re.sub(r"% \d+", "%", partition_sql({}).replace("[{}]", ""))
    assert lengths[2] < 200 * lengths[1]


def test_many_topics_by_one_request(session: SparkSession, kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """What is known of many topics at once is what is known of each; few requests are made for it."""
    brokers = kafka_broker.bootstrap_servers
    names = [f"listed.{tmp_path.name}-{number}" for number in range(40)]
    create_all(brokers, names)
    produce_to(brokers, names[::2] * 2)
    admin = KafkaAdmin(session, {"kafka.bootstrap.servers": brokers})
    landed = {name: {"0": OffsetRange(0, 1)} for name in names[:30]}
    one_by_one = {name: admin.describe([name], landed, 30.0)[name] for name in names}
    calls = count_calls(session)
    assert admin.describe([*names, "absent"], landed, 30.0) == {**one_by_one, "absent": None}
    assert admin.describe(names, landed, 30.0) == one_by_one
    first = calls()
    assert admin.describe(names, landed, 30.0) == one_by_one
    assert calls() < 20, first
    grown = {**landed, names[0]: {"7": OffsetRange(0, 1)}}  # of a topic that has no such partition
    assert admin.describe(names, grown, 30.0)[names[0]].ends == {}  # type: ignore[union-attr]
    admin.close()


def count_calls(session: SparkSession) -> Any:
    """Return a function that returns the number of calls of Java since it was called last."""
    gateway: Any = session._jvm._gateway_client  # type: ignore[union-attr]
    send, counted = gateway.send_command, [0]

    def counting(command: str, *args: Any, **options: Any) -> Any:
        counted[0] += not command.startswith("m\n")  # which only frees an object of an earlier test
        return send(command, *args, **options)

    gateway.send_command = counting

    def calls() -> int:
        counted[0], found = 0, counted[0]
        return found

    return calls


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_thousand_topics(pipeline: Run, kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """They land by the command with the default heap, from each topic once, and again with another batch."""
    brokers, prefix = kafka_broker.bootstrap_servers, f"many.{tmp_path.name}"
    names = [f"{prefix}-{number:04}" for number in range(1000)]
    create_all(brokers, names)
    for run in (1, 2):
        produce_to(brokers, names)
        program = pipeline("", tmp_path, "--once", "--topic-pattern", rf"{re.escape(prefix)}-\d+")
        program.process.wait(1500)  # on a busy machine
        summary = program.summary()
        assert (summary["complete"], summary["total"]["read"]) == (True, 1000 * run)
