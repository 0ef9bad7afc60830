"""A query that a defect of Spark ends is started again, once; an error at its start is one sentence."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.landing import BatchLander
from cloudevents_kafka.spark.pipeline.runs._stream import Stream
from tests.spark.pipeline.lake import Lake, produce
from tests.spark.pipeline.test_bad_days import _read_only as read_only

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def test_repeated_batch(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that Spark repeats does not end the run, in which PySpark 4.1 and 4.2 fail once."""
    land = BatchLander.land

    def die(self: BatchLander, *arguments: Any) -> None:
        land(self, *arguments)
        raise RuntimeError

    produce(lake.broker, lake.topic, 5)
    with monkeypatch.context() as patch:
        patch.setattr(BatchLander, "land", die)
        with pytest.raises(PipelineFailed):
            lake.run()
    produce(lake.broker, lake.topic, 5)
    summary = lake.run()
    assert summary.complete
    assert summary.total.events == 10
    assert [row[3] for row in lake.rows()] == list(range(10))


@pytest.mark.parametrize("step", ["before", "after"])
def test_partitions_that_are_added_after_a_kill(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A batch that was killed before or after it landed is repeated, although its topic has grown."""
    land = BatchLander.land

    def die(self: BatchLander, *arguments: Any) -> None:
        if step == "after":
            land(self, *arguments)
        raise RuntimeError

    produce(lake.broker, lake.topic, 5)
    with monkeypatch.context() as patch:
        patch.setattr(BatchLander, "land", die)
        with pytest.raises(PipelineFailed):
            lake.run(max_records=3)
    admin = AdminClient({"bootstrap.servers": lake.broker.bootstrap_servers})
    for future in admin.create_partitions([NewPartitions(lake.topic, 3)]).values():
        future.result(30)
    for partition in range(3):
        produce(lake.broker, lake.topic, 4, partition=partition)
    summary = lake.run(max_records=3)
    assert summary.complete
    assert (summary.total.events, len(lake.rows())) == (17, 17)
    assert lake.run(max_records=3).counts.read == 0


# What PySpark 4.1.1 says.
NO_METRICS = (
    'Cannot invoke "scala.collection.IterableOps.map(scala.Function1)" because the return value of '
    '"scala.Option.get()" is null\n=== Streaming Query ===\nIdentifier: [id = 1, runId = 2]'
)


class Ended:
    """A query that has ended by an error."""

    isActive = False  # noqa: N815  # PySpark's name
    _jsq = SimpleNamespace(recentProgress=lambda: ())

    def __init__(self, text: str) -> None:
        self._text = text

    def exception(self) -> Exception:
        return RuntimeError(self._text)

    def stop(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("errors", "error"),
    [
        ([NO_METRICS], None),
        ([NO_METRICS, NO_METRICS], "SPARK-55271"),
        ([NO_METRICS, "another"], "Spark stopped: another"),
        (["another"], "Spark stopped: another"),
    ],
)
def test_restarted_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, errors: list[str], error: str | None
) -> None:
    """Only this defect starts the query again, and only once."""
    start, texts = Stream._start_query, iter(errors)

    def fail_first(self: Stream) -> Any:
        text = next(texts, None)
        return start(self) if text is None else Ended(text)

    monkeypatch.setattr(Stream, "_start_query", fail_first)
    if error is not None:
        with pytest.raises(PipelineFailed, match=error):
            lake.run()
    else:
        produce(lake.broker, lake.topic, 5)
        assert lake.run().counts.events == 5
    assert next(texts, None) is None


def test_a_setting_that_the_source_refuses(lake: Lake) -> None:
    """What Spark refuses at the start is one sentence, with no value of a setting."""
    with pytest.raises(PipelineFailed, match=r"^Spark stopped: .*value\.deserializer") as raised:
        lake.run(kafka_options={"kafka.value.deserializer": "Qa7x"})
    assert "Qa7x" not in str(raised.value)
    assert "\tat " not in str(raised.value)


def test_a_checkpoint_that_cannot_be_created(lake: Lake) -> None:
    """If Spark cannot create its checkpoint, the error has the reason and what Spark needs."""
    checkpoint = lake.out / "_checkpoint"
    checkpoint.mkdir()
    with read_only(checkpoint), pytest.raises(PipelineFailed) as raised:
        lake.run()
    reason = "Permission denied|Operation not permitted|Mkdirs failed"
    assert re.search(rf"^Spark stopped: java\.io.*({reason})", str(raised.value))
    assert "must be allowed to create, rename and delete files" in str(raised.value)
