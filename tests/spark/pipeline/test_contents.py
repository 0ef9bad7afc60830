"""`read_contents` has the numbers of tables of each kind, and few of their rows."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.counting import MAX_LABELS, NOT_EVENTS, RecordCounts
from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.maintenance import contents_of
from tests.spark.pipeline.conftest import QUICK
from tests.spark.pipeline.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
BROKEN = [("ce_specversion", b"1.0"), ("ce_id", b""), ("ce_source", b"/s"), ("ce_type", b"t")]
HOUR = 3_600_000
START = (int(time.time() * 1000) // HOUR - 24) * HOUR  # brokers delete old records


def records() -> list[Record]:
    """Return events of two types, one of them with a time far away, and records that are not events."""
    events = [
        Event(id=str(number), source=f"/s/{number % 2}", type=f"type-{number % 3 % 2}", data=bytes(number))
        for number in range(12)
    ]
    modes = ("binary", "structured")
    found = [
        to_record(event, mode=modes[n % 2], key=[None, "k", b"\xff"][n % 3]) for n, event in enumerate(events)
    ]
    found += [Record(value=bytes(8), headers=BROKEN, key=b"k")] * 5 + [Record(value=b"x")] * 2
    return found


def fill(lake: Lake) -> None:
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for number, record in enumerate(records()):
        moment = 1000 if number == 0 else START + number * HOUR
        producer.produce(
            lake.topic, record.value, record.key, headers=list(record.headers), timestamp=moment, partition=0
        )
    assert producer.flush(30) == 0


def numbers(counts: RecordCounts) -> dict[str, object]:
    names = ("types", "sources", "modes", "keys", "errors")
    labels = {name: dict(getattr(counts, name).most_common(99)[0]) for name in names}
    return {
        **labels,
        **{name: getattr(counts, name) for name in ("events", "others", "sizes", "size", "without_key")},
    }


@pytest.mark.parametrize(
    "to", ["parquet", *(pytest.param(to, marks=pytest.mark.release) for to in ("delta", "iceberg"))]
)
def test_a_pipelines_folder(lake: Lake, to: str) -> None:
    """Tables of each format have the numbers that the records have, and the offsets that were read."""
    fill(lake)
    lake.run(to=to)
    found = contents_of(lake.spark, str(lake.out), ())
    assert [Path(name).name for name in found.tables] == ["events", "quarantine"]
    assert found.positions == {(lake.topic, 0): 19}
    assert numbers(found.counts) == {
        "types": {"type-0": 8, "type-1": 4},
        "sources": {"/s/0": 6, "/s/1": 6},
        "modes": {"binary": 6, "structured": 6},
        "keys": {"k": 9, "0xff": 4},
        "errors": {"broken-event R-02": 5, "not-an-event": 2},
        "events": 12,
        "others": 7,
        "sizes": {0: 1, 1: 3, 2: 2, 3: 4, 4: 9},
        "size": 66 + 42,
        "without_key": 6,
    }
    window = found.counts.times.window(48)
    assert (window.start, window.width, window.before, window.after) == (START + HOUR, HOUR, 1, 0)
    labels = [dict(labels.most_common(9)[0]) for labels in window.bins]
    assert labels[0] == {"type-1": 1}
    assert labels[-1] == {NOT_EVENTS: 1}
    assert sum(map(len, labels)) == 18
    broken = found.counts.samples["broken-event R-02"]
    assert len(broken) == 3
    assert (broken[0].record.headers, broken[0].size) == (BROKEN, 8)
    assert broken[0].record.where == f"{lake.topic}[0]@16"


def test_many_labels(session: SparkSession, tmp_path: Path) -> None:
    """Of many types the most frequent ones come from Spark; the others are one number."""
    types = session.range(3 * MAX_LABELS).selectExpr(
        "concat('t', id % 2500) AS type", "timestamp_seconds(id) AS timestamp"
    )
    types.write.parquet(f"{tmp_path}/events/record_date=2026-01-01")
    counts = contents_of(session, f"{tmp_path}/events", ()).counts
    found, others = counts.types.most_common(5000)
    assert (len(found), found[0][1], counts.types.total, others) == (MAX_LABELS, 2, 3000, 3000 - 1500)
    assert sum(labels.total for _, labels in counts.times.bins()) == 3000


def test_other_tables(session: SparkSession, tmp_path: Path) -> None:
    """Tables with other columns are left out; where no other one is there, the error says what is missing."""
    session.range(3).write.parquet(f"{tmp_path}/mine/record_date=2026-01-01")
    with pytest.raises(WrongTable, match="must have a table with the column type or error"):
        contents_of(session, str(tmp_path), ())
    rows = session.range(3).selectExpr("'t' AS type", "struct(id) AS data")  # data that is not bytes
    rows.write.parquet(f"{tmp_path}/events/record_date=2026-01-01")
    assert contents_of(session, str(tmp_path), ()).counts.events == 3


def test_a_table_of_a_catalog(session: SparkSession, tmp_path: Path) -> None:
    """A table can be named."""
    session.range(3).selectExpr("'t' AS type").createOrReplaceTempView("named_events")
    found = contents_of(session, None, ("named_events",))
    assert (found.tables, found.counts.events) == (("named_events",), 3)
    with pytest.raises(WrongTable, match="the table other is not in its catalog"):
        contents_of(session, None, ("other",))


@pytest.mark.release
@pytest.mark.parametrize("to", ["parquet", "delta"])
def test_the_command(lake: Lake, tmp_path: Path, to: str) -> None:
    """The command reads a folder with a Spark of its own, and shows the lag behind the topic."""
    fill(lake)
    lake.run(to=to)
    fill(lake)
    argv = [
        sys.executable,
        "-m",
        "cloudevents_kafka",
        "report",
        "--out",
        str(lake.out),
        *QUICK,
        "--html",
        "-",
    ]
    done = subprocess.run(
        [*argv, "-b", lake.broker.bootstrap_servers],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    assert "12 events and 7 other records" in done.stderr
    assert "19 offsets behind in 1 partition" in done.stdout
