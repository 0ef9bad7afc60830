"""Pipelines with a real broker are watched: scraped, shown in a group, and ended or stopped by thresholds."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from cloudevents_kafka.spark import MetricsListener, Threshold, decode_events
from cloudevents_kafka.spark.pipeline import PipelineFailed, ThresholdCrossed
from cloudevents_kafka.spark.pipeline.landing import BatchLander
from cloudevents_kafka.spark.pipeline.notes import Checkpoint
from tests.spark.pipeline.lake import Lake, create, produce, produce_broken, until
from tests.support.prometheus import samples

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def scrape(url: str | None) -> dict[Any, float]:
    """Return the samples of a port by short names and labels."""
    assert url is not None
    with urllib.request.urlopen(url) as answer:
        return samples(answer.read().decode())


def committed(lake: Lake, group: str) -> dict[tuple[str, int], int]:
    """Return the offsets of a group, as Kafka's own tools read them."""
    admin = AdminClient({"bootstrap.servers": lake.broker.bootstrap_servers})
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(place.topic, place.partition): place.offset for place in future.result(20).topic_partitions}


def produce_without_id(lake: Lake) -> None:
    """Send an event whose id is empty."""
    names = {"specversion": b"1.0", "id": b"", "source": b"/s", "type": b"t"}
    headers = [(f"ce_{name}", value) for name, value in names.items()]
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    producer.produce(lake.topic, b"1", headers=headers, partition=0)
    assert producer.flush(30) == 0


def parse(*texts: str) -> tuple[Threshold, ...]:
    return tuple(map(Threshold.parse, texts))


def die(*_: Any) -> None:
    raise RuntimeError("killed")


def records(lake: Lake, topic: str, to: str = "parquet") -> list[int]:
    """Return the offsets of a topic in both tables, each as often as it is there."""
    found: list[int] = []
    for table in ("events", "quarantine"):
        if (lake.out / table).exists():
            rows = lake.spark.read.format(to).load(f"{lake.out}/{table}").where(f"topic = '{topic}'")
            found += [row["offset"] for row in rows.select("offset").collect()]
    return sorted(found)


@pytest.mark.parametrize(
    "to", ["parquet", *(pytest.param(to, marks=pytest.mark.release) for to in ("delta", "iceberg"))]
)
def test_watched(lake: Lake, to: str) -> None:
    """A pipeline is scraped, writes lines, shows its lag in a group, and warns of a threshold once."""
    lake.topic = create(lake.broker, f"{lake.topic}-two", 2)
    lines = lake.out / "metrics.jsonl"
    produce(lake.broker, lake.topic, 5, partition=1)
    options: dict[str, Any] = {
        "metrics_file": str(lines),
        "metrics_port": 0,
        "group": f"lag-of-{lake.topic}",
        "thresholds": parse("quarantine>20%/1h", "lag>1000000"),
    }
    with closing(lake.start(to=to, once=False, interval=0.1, **options)) as pipeline:
        until(pipeline, lambda: pipeline.summary().total.read == 5)
        produce_broken(lake.broker, lake.topic, 4)
        produce_without_id(lake)
        until(pipeline, lambda: pipeline.summary().total.read == 10)
        until(pipeline, lambda: scrape(pipeline.metrics_url)["records_total",] == 10)
        found = scrape(pipeline.metrics_url)
        pipeline.wait(0.5)
        assert committed(lake, options["group"]) == {(lake.topic, 0): 5, (lake.topic, 1): 5}
    with pytest.raises(OSError, match="refused"):
        scrape(pipeline.metrics_url)
    assert found["events_total", "t"] == 5
    quarantined = {key[1:]: value for key, value in found.items() if key[0] == "quarantined_records_total"}
    assert quarantined == {("not-an-event", ""): 4, ("broken-event", "R-02"): 1}
    for table, rows in (("events", 5), ("quarantine", 5)):
        assert found["counted_rows_total", table] == found["committed_rows_total", table] == rows
    assert found["lag_records", lake.topic, "1"] == found["lag_seconds", lake.topic, "1"] == 0
    assert all(
        found["step_seconds_total", step] > 0 for step in ("plan", "check", "write", "commit", "checkpoint")
    )
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert sum(line["records"] for line in written if line["batch"] is not None) == 10
    (warning,) = lake.warnings
    assert "% of the last 3,600 s in the quarantine, above 20%" in warning


def test_lag_of_each_partition(lake: Lake) -> None:
    """While a partition has more to read, its lag in seconds is the age of its newest landed record."""
    lake.topic = create(lake.broker, f"{lake.topic}-two", 2)
    produce(lake.broker, lake.topic, 3, partition=0)
    produce(lake.broker, lake.topic, 400, partition=1)
    with closing(lake.start(once=False, interval=60, max_records=100, metrics_port=0)) as pipeline:
        until(pipeline, lambda: scrape(pipeline.metrics_url)["batches_total",] == 1)
        found = scrape(pipeline.metrics_url)
        time.sleep(1.5)
        pipeline.wait(0.1)
        later = scrape(pipeline.metrics_url)
    assert found["lag_records", lake.topic, "1"] > 200
    assert 0 < found["lag_seconds", lake.topic, "1"] < 100
    assert later["lag_seconds", lake.topic, "1"] >= found["lag_seconds", lake.topic, "1"] + 1


def test_end(lake: Lake) -> None:
    """A threshold ends the run after a batch that has landed, and a start continues after it."""
    produce(lake.broker, lake.topic, 8)
    produce_broken(lake.broker, lake.topic, 12)
    ending = {"max_records": 10, "thresholds": parse("quarantine>50%/10:end")}
    with pytest.raises(
        ThresholdCrossed, match=r"has 100.0% of the last 10 records in the quarantine, above 50%"
    ):
        lake.run(**ending)
    landed = records(lake, lake.topic)
    assert landed == list(range(len(landed)))
    lake.run()
    assert records(lake, lake.topic) == list(range(20))


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_stop_of_one_topic(lake: Lake, to: str) -> None:
    """A topic is stopped, the other goes on; a start with it reads what it had left, and nothing twice."""
    other = create(lake.broker, f"{lake.topic}-other")
    both = {"topics": (lake.topic, other), "to": to}
    produce(lake.broker, other, 5)
    produce(lake.broker, lake.topic, 2)
    produce_broken(lake.broker, lake.topic, 8)
    with closing(
        lake.start(once=False, interval=0.1, thresholds=parse("quarantine>50%/10:stop"), **both)
    ) as pipeline:
        until(pipeline, lambda: bool(pipeline.summary().stopped))
        produce(lake.broker, lake.topic, 3)
        produce(lake.broker, other, 5)
        until(pipeline, lambda: pipeline.summary().total.read == 20)
        time.sleep(0.5)
        pipeline.wait(0.1)
        summary = pipeline.summary()
    reason = f"topic {lake.topic} has 80.0% of the last 10 records in the quarantine, above 50%"
    assert summary.stopped == {lake.topic: reason}
    assert not summary.complete
    assert f"topic {lake.topic} is stopped, the others go on: {reason}" in summary.to_text()
    (warning,) = lake.warnings
    assert warning in summary.to_text()
    assert records(lake, lake.topic, to) == list(range(10))
    assert records(lake, other, to) == list(range(10))
    produce(lake.broker, other, 1)
    produce(lake.broker, lake.topic, 1)
    done = lake.run(**both)  # the topic continues after what has landed of it
    assert done.counts.read == 5
    assert records(lake, lake.topic, to) == list(range(14))
    assert records(lake, other, to) == list(range(11))
    assert lake.run(**both).counts.read == 0


@pytest.mark.release
def test_stop_by_a_pattern(lake: Lake) -> None:
    """A topic of a pattern is stopped, and goes on with the next start."""
    other = create(lake.broker, f"{lake.topic}-other")
    options = {"topics": (), "topic_pattern": f"{lake.topic}.*"}
    produce(lake.broker, other, 5)
    produce_broken(lake.broker, lake.topic, 5)
    with closing(
        lake.start(once=False, interval=0.1, thresholds=parse("quarantine>50%/5:stop"), **options)
    ) as pipeline:
        until(pipeline, lambda: bool(pipeline.summary().stopped))
        produce(lake.broker, lake.topic, 3)
        produce(lake.broker, other, 5)
        until(pipeline, lambda: pipeline.summary().total.read == 15)
    assert lake.run(**options).counts.read == 3
    assert records(lake, lake.topic) == list(range(8))
    assert records(lake, other) == list(range(10))


@pytest.mark.release
@pytest.mark.parametrize("to", ["parquet", "delta"])
@pytest.mark.parametrize(
    "step", [(Checkpoint, "clear"), (BatchLander, "check_start"), (BatchLander, "source_options")]
)
def test_killed_while_a_topic_is_left_out(
    lake: Lake, to: str, step: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies at a step of it loses and repeats nothing, with and without the topic."""
    other = create(lake.broker, f"{lake.topic}-other")
    both = {"topics": (lake.topic, other), "to": to}
    produce(lake.broker, other, 5)
    produce_broken(lake.broker, lake.topic, 5)
    with (
        closing(
            lake.start(once=False, interval=0.1, thresholds=parse("quarantine>50%/5:stop"), **both)
        ) as pipeline,
        monkeypatch.context() as patch,
    ):
        patch.setattr(*step, die)
        with pytest.raises(RuntimeError, match="killed"):
            pipeline.wait()
    produce(lake.broker, lake.topic, 3)
    produce(lake.broker, other, 5)
    if to == "delta":
        alone = {"topics": (other,), "to": to, "forget_topics": (lake.topic,)}
        assert lake.run(**alone).counts.read == 5
    lake.run(**both)
    assert records(lake, lake.topic, to) == list(range(8))
    assert records(lake, other, to) == list(range(10))
    assert lake.run(**both).counts.read == 0


@pytest.mark.release
def test_last_topic(lake: Lake) -> None:
    """The only topic cannot be stopped: the run ends."""
    produce_broken(lake.broker, lake.topic, 5)
    with pytest.raises(ThresholdCrossed, match="above 5%"):
        lake.run(thresholds=parse("quarantine>5%/5:stop"))
    assert records(lake, lake.topic) == list(range(5))


@pytest.fixture
def member(lake: Lake) -> Iterator[str]:
    """Return the name of a group with a consumer."""
    group = f"used-{lake.topic}"
    settings = {"bootstrap.servers": lake.broker.bootstrap_servers, "group.id": group}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([lake.topic])
    produce(lake.broker, lake.topic, 1)
    deadline = time.monotonic() + 30
    while consumer.poll(1.0) is None:
        assert time.monotonic() < deadline
    yield group
    consumer.close()


def test_refused_commit(lake: Lake, member: str) -> None:
    """A group that a consumer uses is left alone: the run warns once, and lands all."""
    produce(lake.broker, lake.topic, 5)
    assert lake.run(group=member, max_records=2).counts.read == 6
    (warning,) = lake.warnings
    assert f"were not committed to the group {member}: " in warning
    assert "The group must have no consumers" in warning


def test_listener(lake: Lake, tmp_path: Path) -> None:
    """A query that a user has started is scraped with its lag, and has a line for each batch."""
    produce(lake.broker, lake.topic, 5)
    lines = tmp_path / "lines.jsonl"
    listener = MetricsListener(metrics_file=str(lines), metrics_port=0)
    spark = lake.spark
    source: Mapping[str, str] = {
        "kafka.bootstrap.servers": lake.broker.bootstrap_servers,
        "subscribe": lake.topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    spark.streams.addListener(listener)
    try:
        events = decode_events(spark.readStream.format("kafka").options(**source).load())
        writer = events.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(60)
        deadline = time.monotonic() + 20
        while scrape(listener.metrics_url)["batches_total",] < 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        found = scrape(listener.metrics_url)
    finally:
        spark.streams.removeListener(listener)
        listener.close()
    assert found["records_total",] == 5
    assert found["lag_records", lake.topic, "0"] == 0
    assert found["step_seconds_total", "write"] > 0
    assert json.loads(lines.read_text().splitlines()[0])["records"] == 5


def test_file_that_cannot_be_written(lake: Lake) -> None:
    """The start has an error with the file, and the next one is free to begin."""
    with pytest.raises(PipelineFailed, match="metrics_file must be a file that can be written") as failed:
        lake.start(metrics_file=str(lake.out / "missing" / "x.jsonl"))
    assert failed.value.final
    assert lake.run().complete
