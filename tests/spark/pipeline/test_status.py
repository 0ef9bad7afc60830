"""A running pipeline says what it does, and that no broker answers."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.runs import _stream
from tests.spark.pipeline.lake import Lake, produce, until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def test_status(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lag and the age of the newest record; while no broker answers, for how long."""
    produce(lake.broker, lake.topic, 5)
    monkeypatch.setattr(_stream, "_TOPIC_CHECK_SECONDS", 0.0)
    with closing(lake.start(once=False, interval=0.1)) as pipeline:
        until(pipeline, lambda: pipeline.summary().total.read == 5)
        newest = pipeline.summary().total.newest
        assert newest is not None
        assert time.time() - 100 < newest / 1000 < time.time() + 1
        until(pipeline, lambda: pipeline.status().startswith("waiting for records, 0 behind, newest "))

        def silent(**_: object) -> None:
            raise PipelineFailed("no broker answered")

        monkeypatch.setattr(pipeline._running.reader._lander, "check_topics", silent)
        until(pipeline, lambda: pipeline.status().startswith("no broker has answered for "))
        monkeypatch.undo()
        until(pipeline, lambda: not pipeline.status().startswith("no broker"))
