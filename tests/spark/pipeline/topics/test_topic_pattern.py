"""Topics by a pattern: all whose names match, also those that are created later."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import TopicChanged
from tests.spark.pipeline.lake import Lake, create, produce, until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_topics_that_come_later(lake: Lake, to: Any) -> None:
    """A topic that is created during a run, or between two, is read from its beginning."""
    pattern: dict[str, Any] = {"topics": (), "topic_pattern": f"{lake.topic}-[a-z]", "to": to}
    with pytest.raises(TopicChanged, match="no topic has a name that matches"):
        lake.run(**pattern)
    topics = [create(lake.broker, f"{lake.topic}-{letter}") for letter in "ab"]
    produce(lake.broker, lake.topic, 1)  # its name does not match as a whole
    for topic in topics:
        produce(lake.broker, topic, 3)
    summary = lake.run(**pattern)
    assert (summary.counts.read, summary.topics) == (6, (f"{lake.topic}-[a-z]",))
    topics.append(create(lake.broker, f"{lake.topic}-c"))
    produce(lake.broker, topics[2], 3)
    kafka_options = {"kafka.metadata.max.age.ms": "500"}
    with closing(lake.start(**pattern, once=False, interval=0.1, kafka_options=kafka_options)) as pipeline:
        until(pipeline, lambda: pipeline.summary().total.read == 9)
        topics.append(create(lake.broker, f"{lake.topic}-d"))
        produce(lake.broker, topics[3], 3)
        until(pipeline, lambda: pipeline.summary().total.read == 12)
        produce(lake.broker, topics[3], 2)
        until(pipeline, lambda: pipeline.summary().total.read == 14)
    found = lake.spark.read.format(to).load(f"{lake.out}/events").groupBy("topic").count().collect()
    assert sorted(map(tuple, found)) == list(zip(topics, [3, 3, 3, 5], strict=True))
