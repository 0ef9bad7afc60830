"""Records land whose timestamps are in other units than Kafka's milliseconds, and all readers read them."""

from __future__ import annotations

import time
from typing import Any

import duckdb
import msgspec
import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.batches import _out_of_range
from cloudevents_kafka.testing.local.clients import create_topic
from tests.spark.pipeline.lake import Lake
from tests.support.header_names import BAD_NAME, event_record, write_batches

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
MILLIS = 1_790_000_000_000
ANY_TIME = {f"message.timestamp.{side}.max.ms": str(2**63 - 1) for side in ("before", "after")}


def send(lake: Lake, *timestamps: int, broken: bool = False) -> None:
    """Send an event for each timestamp, from a topic that accepts all."""
    lake.topic = f"{lake.topic}-{time.time_ns()}"
    create_topic(lake.broker.bootstrap_servers, lake.topic, 1, ANY_TIME)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for timestamp in timestamps:
        record = to_record(Event(id=str(timestamp), source="/s", type="t"))
        headers = [("ce_specversion", b"1.0")] if broken else list(record.headers)
        producer.produce(lake.topic, value=record.value, headers=headers, timestamp=timestamp)
    assert producer.flush(30) == 0


def read(lake: Lake, to: str, table: str) -> list[tuple[Any, ...]]:
    """Return all columns of the rows of a table, read without Spark."""
    folder = str(lake.out / table)
    found: Any = ds.dataset(folder, partitioning="hive") if to == "parquet" else None
    if found is None:
        found = DeltaTable(folder).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("rows", found)
        query = "select offset, record_date::varchar, epoch_us(timestamp) from rows order by offset"
        return connection.sql(query.replace("offset", '"offset"')).fetchall()


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_microseconds(lake: Lake, to: str) -> None:
    """The date of the folders stays in 1970 to 9999, so that each reader reads the table."""
    send(lake, MILLIS, MILLIS * 1000)
    assert lake.run(to=to).counts.events == 2
    expected = [(0, "2026-09-21", MILLIS * 1000), (1, "9999-12-31", MILLIS * 1_000_000)]
    assert read(lake, to, "events") == expected


@pytest.mark.parametrize("most_between", [1 << 20, -1], ids=["one part", "many parts"])
def test_nanoseconds(lake: Lake, monkeypatch: pytest.MonkeyPatch, most_between: int) -> None:
    """Timestamps that Spark cannot convert become null, others stay; a warning has the first place."""
    monkeypatch.setattr(_out_of_range, "_MOST_BETWEEN", most_between)
    nanos = MILLIS * 1_000_000
    send(lake, MILLIS, nanos, MILLIS + 1, nanos + 1, MILLIS + 2, -1)
    summary = lake.run(max_records=5)
    assert (summary.counts.events, summary.batches) == (6, 2)
    times = [MILLIS * 1000, None, (MILLIS + 1) * 1000, None, (MILLIS + 2) * 1000]
    dates = ["2026-09-21", "1970-01-01"] * 2 + ["2026-09-21"]
    assert read(lake, "parquet", "events")[:5] == list(zip(range(5), dates, times, strict=True))
    (warning,) = lake.warnings
    assert warning.startswith(f"{lake.topic}[0]@1 must have a timestamp in milliseconds, got {nanos}; ")


def test_more_than_the_driver_has_room_for(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many of these records end the run; the same batch lands if the driver has more memory."""
    send(lake, MILLIS * 1_000_000)
    with monkeypatch.context() as patch:
        patch.setattr(_out_of_range, "_SHARE", -1)
        with pytest.raises(PipelineFailed, match=r"@0 must have .* -?\d+ MB in all.*spark\.driver\.memory"):
            lake.run()
    assert lake.run().total.events == 1


def test_unread_headers(lake: Lake) -> None:
    """A record whose headers librdkafka cannot return is set aside, with its place in a warning."""
    send(lake, MILLIS)
    bad = msgspec.structs.replace(event_record(1, BAD_NAME), timestamp=MILLIS * 1_000_000)
    write_batches(lake.broker.bootstrap_servers, lake.topic, [[bad, event_record(2)]])
    counts = lake.run().counts
    assert (counts.events, counts.quarantined) == (2, 1)
    assert lake.warnings[1].startswith(
        rf"{lake.topic}[0]@1: header names must be UTF-8, got b'ce_\xff'; the column headers is null"
    )


@pytest.mark.release
def test_many_dates(lake: Lake) -> None:
    """Records of hundreds of dates, in any order, land in Iceberg with Spark's default heap."""
    send(lake, *(MILLIS - day * 86_400_000 for _ in range(2) for day in range(800)))
    assert lake.run(to="iceberg").counts.events == 1600


@pytest.mark.release  # test_microseconds is its sample
def test_quarantined_microseconds(lake: Lake) -> None:
    """Records that are not events have the same dates."""
    send(lake, MILLIS * 1000, broken=True)
    assert lake.run(to="delta").counts.quarantined == 1
    assert read(lake, "delta", "quarantine") == [(0, "9999-12-31", MILLIS * 1_000_000)]
