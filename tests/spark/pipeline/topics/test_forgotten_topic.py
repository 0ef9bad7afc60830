"""A deleted topic of several is named at once, and `forget_topics` goes on without it."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import PipelineFailed, TopicChanged
from cloudevents_kafka.spark.pipeline.batches import BatchWriter
from cloudevents_kafka.spark.pipeline.landing import BatchLander
from cloudevents_kafka.spark.pipeline.runs import _stream
from cloudevents_kafka.testing.local.clients import delete_topic
from tests.spark.pipeline.lake import Lake, create, produce

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def die(*_: Any) -> None:
    raise RuntimeError("killed")


def offsets(lake: Lake, to: str, topic: str) -> list[int]:
    """Return the offsets of a topic in the table of events."""
    found = lake.spark.read.format(to).load(f"{lake.out}/events").where(f"topic = '{topic}'")
    return sorted(row["offset"] for row in found.select("offset").collect())


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_forgotten_topic(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that is deleted while a batch with it is planned is left out; the others go on."""
    other = create(lake.broker, f"{lake.topic}-other")
    both = {"topics": (lake.topic, other), "to": to}
    produce(lake.broker, lake.topic, 10)
    produce(lake.broker, other, 10)
    lake.run(**both)
    produce(lake.broker, lake.topic, 5)
    produce(lake.broker, other, 5)
    with monkeypatch.context() as patch:
        patch.setattr(BatchLander, "land", die)
        with pytest.raises(PipelineFailed):
            lake.run(**both)
    delete_topic(lake.broker.bootstrap_servers, other)
    with pytest.raises(TopicChanged, match=rf"topic {other} does not exist .* \(--forget-topic {other}\)"):
        lake.run(**both)
    alone = {"topics": (lake.topic,), "to": to}
    with pytest.raises(PipelineFailed, match=rf"the topics must contain {other}, .* --forget-topic {other} "):
        lake.run(**alone)
    forgetting = {**alone, "forget_topics": (other,)}
    with monkeypatch.context() as patch:  # a start that is killed changes nothing for the next
        patch.setattr(BatchLander, "land", die)
        with pytest.raises(PipelineFailed):
            lake.run(**forgetting)
    assert lake.run(**forgetting).counts.read == 5
    produce(lake.broker, lake.topic, 1)
    assert lake.run(**forgetting).counts.read == 1
    assert lake.run(**alone).total.read == 26
    assert offsets(lake, to, lake.topic) == list(range(16))
    assert offsets(lake, to, other) == list(range(10))


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_forgotten_after_a_failed_run(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint of a run that an earlier version let plan without the topic is of use again."""
    other = create(lake.broker, f"{lake.topic}-other")
    produce(lake.broker, lake.topic, 3)
    produce(lake.broker, other, 3)
    lake.run(topics=(lake.topic, other), to=to)
    produce(lake.broker, lake.topic, 2)
    with monkeypatch.context() as patch:
        patch.setattr(_stream, "check_removed", lambda *_: None)
        with pytest.raises(PipelineFailed, match="records expired before they were read"):
            lake.run(to=to)
    with pytest.raises(PipelineFailed, match=f"the topics must contain {other}, "):
        lake.run(to=to)
    assert lake.run(to=to, forget_topics=(other,)).total.read == 8
    produce(lake.broker, lake.topic, 1)
    assert lake.run(to=to).counts.read == 1
    assert offsets(lake, to, lake.topic) == list(range(6))
    assert offsets(lake, to, other) == list(range(3))


def test_deleted_while_it_is_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends before Spark stops to ask for the topic."""
    other = create(lake.broker, f"{lake.topic}-other")
    produce(lake.broker, lake.topic, 10)
    produce(lake.broker, other, 10)
    write = BatchWriter.write

    def delete_and_write(*arguments: Any) -> Any:
        with suppress(Exception):
            delete_topic(lake.broker.bootstrap_servers, other)
        return write(*arguments)

    monkeypatch.setattr(BatchWriter, "write", delete_and_write)
    monkeypatch.setattr(_stream, "_TOPIC_CHECK_SECONDS", 1.0)
    began = time.monotonic()
    with closing(lake.start(topics=(lake.topic, other), once=False)) as pipeline:
        with pytest.raises((TopicChanged, PipelineFailed), match=other):
            pipeline.wait(200)
        assert time.monotonic() < began + 60
