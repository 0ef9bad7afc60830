"""Where a first run begins: by the newest start until a record has landed, and at offsets that exist."""

from __future__ import annotations

import shutil
import uuid
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import Checkpoint, Manifests
from tests.spark.pipeline.lake import Lake, create, produce

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ('{"TOPIC": {"0": -7}}', r"must have an offset, -1 \(latest\) or -2 \(earliest\), got \S+\[0\]@-7"),
        ('{"TOPIC": {"7": 0}}', r"must have partitions 0 to 1 of \S+, got 7"),
        ('{"other": {"0": 0}}', r"must name topics that are read, \S+, got other"),
        ('{"TOPIC": 3}', r"must be offsets as "),
    ],
)
def test_wrong_starts(lake: Lake, start: str, words: str) -> None:
    """A start that the topic does not have is named before Spark reads."""
    lake.topic = create(lake.broker, f"{lake.topic}-two", 2)
    with pytest.raises(PipelineFailed, match=words) as failed:
        lake.run(start=start.replace("TOPIC", lake.topic))
    assert failed.value.final


def test_corrected_start(lake: Lake) -> None:
    """An offset after the end of the topic is named; then the corrected one counts."""
    lake.topic = create(lake.broker, f"{lake.topic}-two", 2)
    produce(lake.broker, lake.topic, 5)
    with pytest.raises(PipelineFailed, match=r"must have offsets up to 5, the end of \S+\[0\], got 6"):
        lake.run(start=f'{{"{lake.topic}": {{"0": 6}}}}')
    assert lake.run(start=f'{{"{lake.topic}": {{"0": 3}}}}').counts.read == 2
    assert lake.warnings == []


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_newest_start(lake: Lake, to: Any) -> None:
    """Until a record has landed the newest start counts; an equal one goes on where the first began."""
    produce(lake.broker, lake.topic, 5)
    assert lake.run(to=to, start="latest").counts.read == 0
    produce(lake.broker, lake.topic, 1)
    lake.run(to=to, start="latest")
    assert lake.warnings == []
    other = Lake(lake.spark, lake.broker, lake.out / "other")
    produce(lake.broker, other.topic, 5)
    assert other.run(to=to, start="latest").counts.read == 0
    assert other.run(to=to, start="earliest").counts.read == 5
    assert other.warnings == []


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_a_newest_start_that_was_killed(lake: Lake, to: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that was killed while it removed the earlier one has the same effect the next time."""
    produce(lake.broker, lake.topic, 5)
    lake.run(to=to, start="latest")
    for killed in ((Checkpoint, "clear"), (Manifests, "clear")):
        with monkeypatch.context() as patch:
            patch.setattr(*killed, Mock(side_effect=KeyError("killed")))
            with pytest.raises(KeyError):
                lake.run(to=to, start="earliest")
    assert lake.run(to=to, start="earliest").counts.read == 5


@pytest.mark.release
def test_a_checkpoint_without_offsets(lake: Lake) -> None:
    """A run that was killed before Spark had noted its first offsets is as if it had not been started."""
    produce(lake.broker, lake.topic, 5)
    lake.run(to="delta")
    for name in ("_batches", "_checkpoint"):
        shutil.rmtree(lake.out / name)
    (lake.out / "_checkpoint").mkdir()
    (lake.out / "_checkpoint" / "metadata").write_text(f'{{"id": "{uuid.uuid4()}"}}')
    produce(lake.broker, lake.topic, 2)
    assert lake.run(to="delta").total.read == 2


@pytest.mark.release
@pytest.mark.parametrize("first", ["metadata", "offsets"])
def test_forgetting_topics_that_was_killed(lake: Lake, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed while it removed the checkpoint does not leave one that Spark continues."""

    def die(self: Checkpoint) -> None:
        self._store.remove(first)
        raise KeyError("killed")

    other = create(lake.broker, f"{lake.topic}-other")
    for topic in (lake.topic, other):
        produce(lake.broker, topic, 2)
    lake.run(topics=(lake.topic, other))
    produce(lake.broker, lake.topic, 2)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "clear", die)
        with pytest.raises(KeyError):
            lake.run(forget_topics=(other,))
    assert lake.run().counts.read == 2
    assert lake.run().batches == 0


def test_start_without_effect(lake: Lake) -> None:
    """After a record has landed, another start is named in a warning."""
    produce(lake.broker, lake.topic, 5)
    lake.run()
    produce(lake.broker, lake.topic, 2)
    assert lake.run(start="latest").counts.read == 2
    (warning,) = lake.warnings
    assert "the start (--from) latest has no effect" in warning
    assert "which began at earliest" in warning


def test_expired_records(lake: Lake) -> None:
    """Records that expired before they were read are a final failure."""
    produce(lake.broker, lake.topic, 5)
    lake.run()
    produce(lake.broker, lake.topic, 5)
    admin = AdminClient({"bootstrap.servers": lake.broker.bootstrap_servers})
    for done in admin.delete_records([TopicPartition(lake.topic, 0, 8)]).values():
        done.result()
    with pytest.raises(PipelineFailed, match="records expired before they were read") as failed:
        lake.run()
    assert failed.value.final
