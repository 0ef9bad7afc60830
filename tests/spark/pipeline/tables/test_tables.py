"""The files of the pipeline in other readers: times with their zone, and names of folders."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.primitives.epoch import EPOCH, MICROSECOND
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    # PySpark leaves the sockets that it fetches results through to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

TIMES = (
    "0001-01-01T00:00:00Z",
    "1582-10-04T23:59:59.999999Z",
    "1582-10-10T12:00:00Z",
    "1677-01-01T00:00:00.000001Z",
    "1900-01-01T00:00:00Z",
    "2026-03-29T02:30:00+01:00",
    "2262-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999Z",
)
# Settings that a session may have for other tables.
SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.session.timeZone": "America/Los_Angeles",
}


def send(lake: Lake, *events: Event) -> None:
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    stamp = int(dt.datetime(2026, 5, 1, tzinfo=dt.UTC).timestamp() * 1000)
    for event in events:
        record = to_record(event, mode="binary")
        producer.produce(lake.topic, value=record.value, headers=list(record.headers), timestamp=stamp)
    producer.produce(lake.topic, value=b"{", headers=[("ce_id", b"1")], timestamp=stamp)
    assert producer.flush(30) == 0


@pytest.fixture
def changed_session(session: SparkSession) -> Any:
    """Set a session to write Parquet in another way; the settings must be the same afterwards."""
    before = {name: session.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    yield session
    assert {name: session.conf.get(name) for name in SETTINGS} == SETTINGS
    for name, old in before.items():
        session.conf.set(name, old)


def test_times_in_files(lake: Lake, changed_session: SparkSession) -> None:
    """Times of all years are those of the events, with a zone, under any settings of the session."""
    send(
        lake, *(Event(id=str(i), source="/s", type="t", time=time, data=b"1") for i, time in enumerate(TIMES))
    )
    lake.run()
    files = sorted(lake.out.glob("*/*/*.parquet"))
    assert {file.relative_to(lake.out).parts[0] for file in files} == {"events", "quarantine"}
    for file in files:
        check_columns(file)
    whole = [pq.ParquetFile(file).read() for file in files if "events" in file.parts]
    assert sorted(row["time"] for table in whole for row in table.to_pylist()) == sorted(map(moment, TIMES))
    frames = [pd.read_parquet(file, partitioning=None) for file in files if "events" in file.parts]
    for row in pd.concat(frames).to_dict("records"):
        assert row["time"] == pd.Timestamp(row["time_text"]).tz_convert("UTC").as_unit("us")
    back = changed_session.read.parquet(str(lake.out / "events")).selectExpr(
        "unix_micros(time) as at", "time_text"
    )
    assert {(row.at, row.time_text) for row in back.collect()} == {(micros(time), time) for time in TIMES}


@pytest.mark.parametrize("upsert", [(), ("id",)], ids=["rows", "upsert"])
def test_old_times_in_delta(lake: Lake, changed_session: SparkSession, upsert: tuple[str, ...]) -> None:
    """A filter of delta-rs finds a time next to a time in year 1, in any time zone of the session."""
    deltalake = pytest.importorskip("deltalake")
    old, new = "0001-01-01T00:00:00Z", "2026-11-29T09:00:00Z"
    send(lake, *(Event(id=time, source="/s", type="t", time=time) for time in (old, new)))
    table = table_in_folder(changed_session, "delta", f"file://{lake.out}/events")
    lake.run(to="delta", upsert=upsert)
    for _ in range(2):
        found = deltalake.DeltaTable(lake.out / "events").to_pyarrow_dataset()
        counts = {time: found.count_rows(filter=pc.field("time") == moment(time)) for time in (old, new)}
        assert counts == {old: 1, new: 1}
        table.optimize(("id",))


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def micros(text: str) -> int:
    return (moment(text) - EPOCH) // MICROSECOND


def check_columns(file: Path) -> None:
    """Check that columns of times are INT64, in microseconds and UTC, as all readers expect."""
    found = pq.ParquetFile(file)
    columns = [found.schema.column(number) for number in range(len(found.schema))]
    times = [column for column in columns if column.name in {"time", "timestamp"}]
    assert times
    for column in times:
        assert column.physical_type == "INT64"
        assert "isAdjustedToUTC=true" in str(column.logical_type)
        assert "timeUnit=microseconds" in str(column.logical_type)
    assert "INT96" not in {column.physical_type for column in columns}
    assert not {key for key in found.metadata.metadata if b"legacy" in key.lower()}
