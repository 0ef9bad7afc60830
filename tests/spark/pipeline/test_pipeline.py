"""The pipeline with a real Kafka and Spark: all records land once when a process is killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import Decoded, Event, Record, decode, to_record
from cloudevents_kafka.cli.demo.traffic import send_traffic, shop_traffic
from cloudevents_kafka.clients.consumer import EventConsumer
from cloudevents_kafka.testing import LocalBroker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

Pipeline = Callable[..., Any]
PartitionId = tuple[int, int]

# Types that are problematic names of folders.
WEIRD = (
    "a/b/../c",
    "x=1&y=2",
    "..",
    "*",
    "__HIVE_DEFAULT_PARTITION__",
    "2026-01-01",
    "17",
    "größe.日本語.🎂",
    "quote\"'%2F%",
    "ORDER",
    "order",
    "l" * 255 + ".1",
    "l" * 255 + ".2",
    "é" * 120,
    "%" * 90,
)


def test_weird_types_are_weird() -> None:
    """The types below are valid types of events."""
    assert all(isinstance(decode(weird(name)), Decoded) for name in WEIRD)


def weird(name: str) -> Record:
    return to_record(Event(id=name[-9:], source="/weird", type=name, data=b"\x00\xff"), mode="binary")


def produce(broker: LocalBroker, topic: str, seed: int, count: int) -> int:
    """Send the traffic of the demo; return the number of records."""
    return send_traffic(broker.bootstrap_servers, topic, shop_traffic(seed, count)).total


def records_of(broker: LocalBroker, topic: str) -> dict[PartitionId, Any]:
    """Return the records of a topic, read by the library's consumer."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "tests",
        "enable.partition.eof": True,
    }
    found: dict[PartitionId, Any] = {}
    with EventConsumer(Consumer(settings)) as events:
        partitions = events.consumer.list_topics(topic).topics[topic].partitions
        events.consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        for batch in events.batches(500, timeout=0.5, idle_timeout=1.0):
            for item in batch:
                found[item.record.partition, item.record.offset] = item
    return found


def rows_of(table: Path) -> dict[PartitionId, dict[str, Any]]:
    """Return the rows of a table, read file by file without Spark, and check that none is there twice."""
    rows: dict[PartitionId, dict[str, Any]] = {}
    for file in sorted(table.rglob("*")):
        if file.is_file():
            assert file.suffix == ".parquet", f"{file} is not Parquet"
            for row in pq.ParquetFile(file).read().to_pylist():
                position = (row["partition"], row["offset"])
                assert position not in rows, f"{position} is in the table twice"
                rows[position] = row
    return rows


def check_tables(broker: LocalBroker, topic: str, out: Path) -> None:
    """Compare both tables with the topic, as the library's consumer reads it."""
    records = records_of(broker, topic)
    events, quarantine = rows_of(out / "events"), rows_of(out / "quarantine")
    good = {position: item for position, item in records.items() if isinstance(item, Decoded)}
    assert events.keys() == good.keys()
    assert quarantine.keys() == records.keys() - good.keys()
    for position, item in good.items():
        check_event(events[position], item)
    for position, row in quarantine.items():
        check_quarantined(row, records[position].record)
        assert row["error"]["reason"] == records[position].error.reason


def check_event(row: dict[str, Any], item: Decoded) -> None:
    event, record = item.event, item.record
    for name in ("id", "source", "type", "specversion", "subject", "datacontenttype", "dataschema"):
        assert row[name] == event.text(name), (name, event)
    assert row["time_text"] == event.text("time")
    assert row["data"] == event.payload
    assert dict(row["extensions"]) == {name: event.text(name) for name in event.extensions}
    assert row["key"] == record.key
    foreign = [pair for pair in record.headers if not pair[0].startswith("ce_") and pair[0] != "content-type"]
    assert pairs(row["headers"]) == foreign


def check_quarantined(row: dict[str, Any], record: Record) -> None:
    assert row["key"] == record.key
    assert row["value"] == record.value
    assert pairs(row["headers"]) == list(record.headers)


def pairs(headers: Any) -> list[tuple[str, bytes | None]]:
    return [(header["key"], header["value"]) for header in headers or []]


def check_sums(counted: dict[str, Any]) -> int:
    """Check that the counts of a summary add up; return the number of records."""
    read = int(counted["read"])
    assert counted["events"] + counted["quarantined"] == read
    assert sum(sum(modes.values()) for modes in counted["by_type"].values()) == counted["events"]
    assert sum(sum(reasons.values()) for reasons in counted["by_reason"].values()) == counted["quarantined"]
    parts = [part for parts in counted["offsets"].values() for part in parts.values()]
    assert sum(part["records"] for part in parts) == read
    return read


@pytest.mark.release  # test_soak is its sample
def test_stopped_and_started_again(kafka_broker: LocalBroker, pipeline: Pipeline, tmp_path: Path) -> None:
    """Ctrl-C ends a run after the current batch; the next run lands the remaining and the new records."""
    topic = kafka_broker.create_topic("landing", partitions=3)
    count = produce_weird(kafka_broker, topic) + produce(kafka_broker, topic, 1, 400)
    stop_in_the_middle(pipeline, topic, tmp_path)
    before = {path: path.stat().st_ino for path in tmp_path.glob("events/**/*.parquet")}
    count += produce(kafka_broker, topic, 2, 50)
    summary = pipeline(topic, tmp_path, "--once").summary()
    assert summary["complete"]
    check_sums(summary["tally"])
    assert check_sums(summary["total"]) == count
    check_tables(kafka_broker, topic, tmp_path)
    after = {path: path.stat().st_ino for path in tmp_path.glob("events/**/*.parquet")}
    assert before.items() <= after.items(), "a visible file was replaced"
    types = Counter(row["type"] for row in rows_of(tmp_path / "events").values())
    assert {name: types[name] for name in WEIRD} == dict.fromkeys(WEIRD, 1)
    check_folders(tmp_path)


def produce_weird(broker: LocalBroker, topic: str) -> int:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for name in WEIRD:
        record = weird(name)
        headers = [*record.headers, ("traceparent", b"00-1"), ("n", None)]
        producer.produce(topic, value=record.value, headers=headers)
    producer.flush(30)
    return len(WEIRD)


def stop_in_the_middle(pipeline: Pipeline, topic: str, out: Path) -> None:
    """Send Ctrl-C after the first report; until then no other pipeline can fill the folder."""
    running = pipeline(topic, out, "--interval", "0.2", "--max-records", "150")
    running.until(lambda: any("batch 0: " in line for line in running.stderr_lines))
    java = running.java()
    code, stderr = pipeline(topic, out).end()
    assert code == 2
    assert f"being filled by another pipeline (process {running.process.pid})" in stderr
    running.process.send_signal(signal.SIGINT)
    summary = running.summary()
    assert not summary["complete"]
    landed = len(rows_of(out / "events")) + len(rows_of(out / "quarantine"))
    assert check_sums(summary["total"]) == landed
    assert "stopping after this batch" in "\n".join(running.stderr_lines)
    with pytest.raises(ProcessLookupError):
        os.kill(java, 0)


def check_folders(out: Path) -> None:
    """The folders of events have the dates of the records."""
    import pyarrow.dataset as ds

    table = ds.dataset(out / "events", partitioning=ds.partitioning(flavor="hive")).to_table(
        columns=["timestamp", "record_date"]
    )
    for row in table.to_pylist():
        assert str(row["record_date"]) == row["timestamp"].date().isoformat()


@pytest.mark.release  # test_soak is its sample
def test_killed_again_and_again(kafka_broker: LocalBroker, pipeline: Pipeline, tmp_path: Path) -> None:
    """Killed while it writes, while a batch lands, and in Java only: each record lands once."""
    topic = kafka_broker.create_topic("killing", partitions=3)
    count = produce(kafka_broker, topic, 3, 440)
    once = ("--once", "--max-records", "120")

    def landed() -> int:
        return len(list(tmp_path.glob("_batches/[0-9]*.json")))

    def staged() -> bool:
        with suppress(FileNotFoundError):  # Spark renames and deletes folders while they are listed
            return any(tmp_path.glob("_staging/*/events/*/part-*.parquet"))
        return False

    writing = pipeline(topic, tmp_path, *once)
    writing.until(lambda: landed() == 1 and staged())
    writing.kill()

    landing = pipeline(topic, tmp_path, *once)
    landing.until(lambda: landed() == 2)
    landing.kill()

    java = pipeline(topic, tmp_path, *once)
    java.until(lambda: landed() == 3 and staged())
    os.kill(java.java(), signal.SIGKILL)
    code, stderr = java.end()
    assert code == 3, stderr
    assert "Traceback" not in stderr

    last = pipeline(topic, tmp_path, *once).summary()
    assert check_sums(last["total"]) == count
    check_tables(kafka_broker, topic, tmp_path)
    assert list((tmp_path / "_staging").iterdir()) == []
