"""The pipeline lands in tables of Delta and Iceberg, each record once, wherever it was killed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import PipelineFailed, Summary
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from cloudevents_kafka.spark.pipeline.notes import Manifests
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.lake import Lake, produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture(params=["delta", "iceberg"])
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def send(lake: Lake, count: int) -> int:
    """Send events in binary mode, one in Avro, and a record without attributes; return the number of all."""
    produce(lake.broker, lake.topic, count)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    avro = to_record(Event(id="a", source="/s", type="avro"), mode="structured", format="avro")
    producer.produce(lake.topic, value=avro.value, headers=list(avro.headers))
    producer.produce(lake.topic, value=b"{", headers=[("ce_id", b"1")])
    assert producer.flush(30) == 0
    return count + 2


def offsets(lake: Lake, table_format: Any, table: str) -> list[tuple[int, int]]:
    """Return the partition and offset of each row of a table."""
    found: Any = table_in_folder(lake.spark, table_format, f"file://{lake.out / table}")
    if not found.exists():
        return []
    if table_format == "iceberg":
        lake.spark.catalog.refreshTable(found._sql_name)
    frame: DataFrame = lake.spark.table(found._sql_name)
    return sorted((row["partition"], row["offset"]) for row in frame.collect())


def check(lake: Lake, table_format: str, summary: Summary, records: int) -> None:
    """Check that each record is in one of the tables, once, and that the summary has counted it."""
    events, quarantined = (offsets(lake, table_format, table) for table in ("events", "quarantine"))
    assert summary.total.read == records
    assert (summary.total.events, summary.total.quarantined) == (len(events), len(quarantined))
    assert sorted(events + quarantined) == [(0, offset) for offset in range(records)]


@pytest.mark.usefixtures("spark_defaults")
def test_each_record_lands_once(lake: Lake, table_format: str) -> None:
    """A second run lands the new records only; a table is made when its first row comes."""
    produce(lake.broker, lake.topic, 20)
    summary = lake.run(to=table_format)
    assert (summary.batches, summary.events_table) == (1, f"file://{lake.out / 'events'}")
    assert not (lake.out / "quarantine").exists()
    records = 20 + send(lake, 5)
    check(lake, table_format, lake.run(to=table_format), records)
    assert lake.run(to=table_format).batches == 0


class Killed(Exception):
    """Raised where the process is killed."""


@pytest.mark.parametrize(
    ("table_format", "step"),
    [
        pytest.param(to, step, marks=[] if (to, step) == ("iceberg", "quarantine") else pytest.mark.release)
        for to in ("delta", "iceberg")
        for step in ("staged", "quarantine", "events", "manifest")
    ],
    indirect=["table_format"],
)
def test_killed_between_commits(
    lake: Lake, table_format: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed run has begun is finished first, with its offsets, and nothing lands twice."""
    records = send(lake, 8)
    with monkeypatch.context() as patch:
        kill_after(step, patch)
        with pytest.raises(PipelineFailed):
            lake.run(to=table_format)
    landed = len(offsets(lake, table_format, "events"))
    assert landed == {"staged": 0, "quarantine": 0, "events": 9, "manifest": 9}[step]
    records += send(lake, 3)
    summary = lake.run(to=table_format)
    assert summary.recovered == 0
    check(lake, table_format, summary, records)


def kill_after(step: str, patch: pytest.MonkeyPatch) -> None:
    """Let the process die after a step: the rows are staged, the tables have them, or before the manifest."""
    commit, calls = TablesTarget._commit, []

    def count(self: TablesTarget, table: str) -> None:
        if step == "staged":
            raise Killed
        commit(self, table)
        calls.append(table)
        if table == step:
            raise Killed

    def die(*_: Any) -> None:
        raise Killed

    patch.setattr(TablesTarget, "_commit", count)
    if step == "manifest":
        patch.setattr(Manifests, "add", die)


@pytest.mark.release  # test_ledgers lands in tables of catalogs
def test_table_of_a_catalog(lake: Lake, tmp_path: Path) -> None:
    """Events land in a named table of Spark's own catalog, and the other records in the table next to it."""
    name = f"spark_catalog.default.{lake.topic.replace('-', '_')}"
    records = send(lake, 5)
    try:
        summary = lake.run(to="delta", table=name)
        assert (summary.events_table, summary.quarantine_table) == (name, f"{name}_quarantine")
        assert lake.spark.table(name).count() == records - 1
        assert lake.spark.table(f"{name}_quarantine").count() == 1
        assert sorted(path.name for path in lake.out.iterdir()) == ["_batches", "_checkpoint", "_lock"]
    finally:
        for table in (name, f"{name}_quarantine"):
            lake.spark.sql(f"DROP TABLE IF EXISTS {table}")
