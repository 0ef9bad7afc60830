"""A topic that is deleted and created again: none of its records land in the old folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from cloudevents_kafka.spark.pipeline.batches import BatchWriter
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from cloudevents_kafka.spark.pipeline.topics import KafkaAdmin, TopicChanged
from cloudevents_kafka.spark.pipeline.topics._topics import TopicState
from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local.clients import delete_topic
from tests.spark.pipeline.lake import Lake, create, produce, recreate, until
from tests.support.old_brokers import LegacyKafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    # PySpark leaves the sockets that it fetches results through to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def check_sentence(text: str, topic: str, before: str) -> None:
    """Check that an error has the topic, both ids and advice, and does not mention data loss."""
    found = re.findall(r"\bid (?:is )?([A-Za-z0-9_-]{22})", text)
    assert before in found
    assert len(set(found)) == 2
    assert topic in text
    assert "fresh folder, with a fresh checkpoint" in text
    assert "data-loss" not in text


@pytest.mark.parametrize(
    ("count", "allow_data_loss"),
    [
        pytest.param(50, False, marks=pytest.mark.release),
        pytest.param(20, True, marks=pytest.mark.release),
        (5, False),
        pytest.param(5, True, marks=pytest.mark.release),
        pytest.param(0, True, marks=pytest.mark.release),
    ],
)
def test_recreated_before_the_start(lake: Lake, count: int, *, allow_data_loss: bool) -> None:
    """With more, as many, fewer or no records: the next start fails, and lands none of them."""
    produce(lake.broker, lake.topic, 20)
    lake.run()
    rows, ids = lake.rows(), lake.ids()
    recreate(lake.broker, lake.topic, count)
    with pytest.raises(TopicChanged) as caught:
        lake.run(allow_data_loss=allow_data_loss)
    check_sentence(str(caught.value), lake.topic, ids[lake.topic])
    assert lake.rows() == rows
    assert len(rows) == 20
    shutil.rmtree(lake.out)
    lake.run()
    assert [row[0] for row in lake.rows()] == ["new"] * count
    assert lake.warnings == []


@pytest.mark.release
@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_recreated_after_a_batch_was_begun(lake: Lake, to: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch with a topic is not finished with records of another topic of this name."""
    other = create(lake.broker, f"{lake.topic}-other")
    produce(lake.broker, lake.topic, 2)
    lake.run(to=to)
    produce(lake.broker, other, 3)
    both = {"to": to, "topics": (lake.topic, other)}
    with monkeypatch.context() as patch:
        patch.setattr(TablesTarget, "commit", Mock(side_effect=KeyError("killed")))
        with pytest.raises(Exception, match="killed"):
            lake.run(**both)
    recreate(lake.broker, other, 5)
    for topics in (both["topics"], (lake.topic,)):
        with pytest.raises(TopicChanged, match=rf"topic {other} was deleted and created again"):
            lake.run(to=to, topics=topics)
    assert lake.run(to=to, forget_topics=(other,)).total.read == 2


@pytest.mark.parametrize(
    ("count", "allow_data_loss"),
    [
        pytest.param(50, True, marks=pytest.mark.release),
        pytest.param(20, False, marks=pytest.mark.release),
        (5, False),
        pytest.param(5, True, marks=pytest.mark.release),
    ],
)
def test_recreated_under_way(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, count: int, *, allow_data_loss: bool
) -> None:
    """A running pipeline fails with the same sentence for any error that Spark reports."""
    monkeypatch.setattr("cloudevents_kafka.spark.pipeline.runs._stream._TOPIC_CHECK_SECONDS", 1.0)
    produce(lake.broker, lake.topic, 20)
    options = {"once": False, "interval": 0.1, "allow_data_loss": allow_data_loss}
    with closing(lake.start(**options)) as pipeline:
        until(pipeline, lambda: len(lake.rows()) == 20)
        before = lake.ids()[lake.topic]
        recreate(lake.broker, lake.topic, count)
        with pytest.raises(TopicChanged) as caught:
            pipeline.wait()
    check_sentence(str(caught.value), lake.topic, before)
    assert len(lake.rows()) == 20


@pytest.mark.release
def test_recreated_under_way_of_the_program(
    kafka_broker: LocalBroker, pipeline: Callable[..., Any], tmp_path: Path
) -> None:
    """The command ends with code 2 and the sentence, and so does each new start."""
    topic = create(kafka_broker, "recreated")
    produce(kafka_broker, topic, 200)
    running = pipeline(topic, tmp_path, "--interval", "0.2")
    running.until(lambda: any("batch 0: " in line for line in running.stderr_lines))
    recreate(kafka_broker, topic, 500)
    check_end(running, topic)
    check_end(pipeline(topic, tmp_path, "--once", "--allow-data-loss"), topic)


def check_end(program: Any, topic: str) -> None:
    code, stderr = program.end()
    assert code == 2, stderr
    assert f"topic {topic} was deleted and created again" in stderr
    assert "fresh folder, with a fresh checkpoint" in stderr
    assert "data-loss" not in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("moment", ["planned", "written"])
def test_recreated_while_a_batch_is_read(lake: Lake, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """A batch that was planned for one topic and read from another does not land."""
    produce(lake.broker, lake.topic, 20)
    lake.run()
    produce(lake.broker, lake.topic, 20)
    write = BatchWriter.write

    def late(*args: Any, **options: Any) -> Any:
        if moment == "planned":
            recreate(lake.broker, lake.topic, 60)
        counts = write(*args, **options)
        if moment == "written":
            recreate(lake.broker, lake.topic, 60)
        return counts

    before = lake.ids()[lake.topic]
    monkeypatch.setattr(BatchWriter, "write", late)
    with pytest.raises(TopicChanged) as caught:
        lake.run()
    check_sentence(str(caught.value), lake.topic, before)
    assert len(lake.rows()) == 20


def test_recreated_before_the_first_batch(lake: Lake) -> None:
    """A new topic is noticed even before the first records have landed."""
    produce(lake.broker, lake.topic, 20)
    assert lake.run(start="latest").counts.read == 0
    recreate(lake.broker, lake.topic, 40)
    with pytest.raises(TopicChanged, match="was deleted and created again"):
        lake.run(start="latest")


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_one_topic_of_several(lake: Lake, to: str) -> None:
    """The error names the topic that was created again; nothing of the others lands, until it is left out."""
    other = create(lake.broker, f"{lake.topic}-other", 2)
    produce(lake.broker, lake.topic, 20)
    produce(lake.broker, other, 10, partition=1)
    both = {"topics": (lake.topic, other), "to": to}
    lake.run(**both)
    ids = lake.ids()
    assert ids.keys() == {lake.topic, other}
    produce(lake.broker, lake.topic, 5)
    recreate(lake.broker, other, 30, partitions=2)
    with pytest.raises(TopicChanged) as caught:
        lake.run(**both)
    check_sentence(str(caught.value), f"topic {other} ", ids[other])
    assert lake.spark.read.format(to).load(f"{lake.out}/events").count() == 30
    assert lake.run(topics=(f" {lake.topic} ,",), to=to, allow_data_loss=True).counts.read == 5


def test_topic_deleted(lake: Lake) -> None:
    """A missing topic has its own error, before and after it has landed."""
    with pytest.raises(
        TopicChanged, match=r"topic nowhere does not exist: check its name, or create it first"
    ):
        lake.run(topics=("nowhere",))
    produce(lake.broker, lake.topic, 20)
    lake.run()
    before = lake.ids()[lake.topic]
    delete_topic(lake.broker.bootstrap_servers, lake.topic)
    with pytest.raises(
        TopicChanged, match=f"{lake.topic} does not exist any more: the topic with id {before}"
    ):
        until_refused(lake)


def until_refused(lake: Lake) -> None:
    """Start again until the topic is deleted."""
    for _ in range(50):
        lake.run(allow_data_loss=True)


def test_topic_added_later(lake: Lake) -> None:
    """The id of a topic that is added later is compared from then on."""
    produce(lake.broker, lake.topic, 5)
    lake.run()
    other = create(lake.broker, f"{lake.topic}-other")
    produce(lake.broker, other, 5)
    both = {"topics": (lake.topic, other)}
    assert lake.run(**both).counts.read == 5
    recreate(lake.broker, other, 9)
    with pytest.raises(TopicChanged, match=f"topic {other} was deleted"):
        lake.run(**both)


@pytest.mark.parametrize("ends", [True, pytest.param(False, marks=pytest.mark.release)])
def test_brokers_without_ids(lake: Lake, monkeypatch: pytest.MonkeyPatch, *, ends: bool) -> None:
    """Without ids there is one warning; a partition that ends before the landed offsets ends the run."""
    ask = KafkaAdmin.describe

    def silent(self: KafkaAdmin, *args: Any) -> dict[str, TopicState | None]:
        found = ask(self, *args)
        return {
            name: topic and TopicState(None, topic.ends if ends else None) for name, topic in found.items()
        }

    monkeypatch.setattr(KafkaAdmin, "describe", silent)
    produce(lake.broker, lake.topic, 20)
    lake.run(max_records=5)
    assert len(lake.warnings) == 1
    assert f"the brokers report no id of topic {lake.topic} (older than Kafka 2.8)" in lake.warnings[0]
    recreate(lake.broker, lake.topic, 7)
    for allow_data_loss in (False, True):
        with pytest.raises(
            TopicChanged, match=rf"{lake.topic}\[0\] ends at offset 7, but all offsets before 20"
        ) as caught:
            lake.run(allow_data_loss=allow_data_loss)
        assert "data-loss" not in str(caught.value)
    assert len(lake.rows()) == 20


@pytest.mark.legacy
def test_old_brokers(session: SparkSession, tmp_path: Path) -> None:
    """Topics of Kafka 1.1, which has no ids, are read with one warning, and compared by their ends."""
    with LegacyKafka("1.1.1") as legacy:
        lake = Lake(session, legacy, tmp_path)
        produce(legacy, lake.topic, 20)
        assert lake.run(max_records=5).counts.events == 20
        recreate(legacy, lake.topic, 7)
        with pytest.raises(TopicChanged, match=r"ends at offset 7, but all offsets before 20"):
            lake.run()
    assert len(lake.warnings) == 1
    assert "older than Kafka 2.8" in lake.warnings[0]
