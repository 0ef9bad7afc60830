"""Events of some types land in tables of their own, each record once, wherever the pipeline was killed."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import time
from collections import Counter
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import (
    PipelineFailed,
    PipelineOptions,
    Summary,
    WrongCheckpoint,
    WrongTable,
)
from cloudevents_kafka.spark.pipeline.landing import TablesTarget, check_catalog
from cloudevents_kafka.spark.pipeline.notes import Manifests, ReadSettings
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.conftest import Run
from tests.spark.pipeline.lake import Lake, produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

ROUTES = {"shop.order.test": "tests", "shop.order.*": "orders", "*.paid": "payments", "never": "never"}
TYPES = ("shop.order.placed", "shop.order.paid", "shop.order.test", "shop.invoice.paid", "shop.visit")
TABLES = {"orders": 2, "tests": 1, "payments": 1, "events": 1}  # by the types above


def send(lake: Lake, count: int) -> int:
    """Send events of each type, one in Avro, and a record without attributes; return the number of all."""
    for type_ in TYPES:
        produce(lake.broker, lake.topic, count, type_)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    avro = to_record(Event(id="a", source="/s", type="shop.order.avro"), mode="structured", format="avro")
    producer.produce(lake.topic, value=avro.value, headers=list(avro.headers))
    producer.produce(lake.topic, value=b"{", headers=[("ce_id", b"1")])
    assert producer.flush(30) == 0
    return len(TYPES) * count + 2


def landed(lake: Lake, to: Any) -> dict[str, list[tuple[int, str | None]]]:
    """Return offset and type of the rows of each table."""
    found = {}
    for folder in sorted(path for path in lake.out.iterdir() if not path.name.startswith("_")):
        if to == "parquet":
            table = ds.dataset(folder).to_table()
            rows = table.select(
                [name for name in ("offset", "type") if name in table.column_names]
            ).to_pylist()
        else:
            opened: Any = table_in_folder(lake.spark, to, f"file://{folder}")
            if to == "iceberg":
                lake.spark.catalog.refreshTable(opened._sql_name)
            frame: DataFrame = lake.spark.table(opened._sql_name)
            columns = [name for name in ("offset", "type") if name in frame.columns]
            rows = [row.asDict() for row in frame.select(*columns).collect()]
        found[folder.name] = sorted((row["offset"], row.get("type")) for row in rows)
    return found


def check(lake: Lake, to: str, summary: Summary, records: int) -> dict[str, int]:
    """Check that each record is in one table, once, and counted there; return the rows by table."""
    found = landed(lake, to)
    rows = Counter(offset for table in found.values() for offset, _ in table)
    assert rows == Counter(range(records))
    counts = {table: len(rows) for table, rows in found.items()}
    total = summary.total
    assert Counter(counts) == Counter({**total.by_table, "quarantine": total.quarantined})
    assert total.read == records
    return counts


@pytest.mark.usefixtures("spark_defaults")
@pytest.mark.parametrize(
    "to", ["parquet", *(pytest.param(to, marks=pytest.mark.release) for to in ("delta", "iceberg"))]
)
def test_tables_by_type(lake: Lake, to: str) -> None:
    """The first pattern decides, the rest is in the common table, and a table is made for its first event."""
    records = send(lake, 3)
    summary = lake.run(to=to, tables=ROUTES)
    counts = check(lake, to, summary, records)
    assert counts == {table: 3 * types for table, types in TABLES.items()} | {"orders": 7, "quarantine": 1}
    found = landed(lake, to)
    assert {type_ for _, type_ in found["orders"]} == {*TYPES[:2], "shop.order.avro"}
    assert {type_ for _, type_ in found["events"]} == {TYPES[4]}
    assert "never" not in counts
    url = f"file://{lake.out}"
    names = ("events", "tests", "orders", "payments", "never", "quarantine")
    assert summary.tables == {name: f"{url}/{name}" for name in names}
    assert re.search(r"orders +7\n", summary.to_text())
    # Another mapping is for new batches.
    produce(lake.broker, lake.topic, 2, "shop.visit")
    again = lake.run(to=to, tables={"shop.visit": "visits"})
    assert again.counts.by_table == {"events": 0, "visits": 2}
    counts = check(lake, to, again, records + 2)
    assert (counts["events"], counts["visits"], counts["orders"]) == (3, 2, 7)
    assert again.total.routed == {"orders": 7, "payments": 3, "tests": 3, "visits": 2}


class Killed(Exception):
    """Raised where the process is killed."""


@pytest.mark.parametrize(
    ("to", "step"),
    [(to, step) for to in ("delta", "iceberg") for step in range(1, 7)],
)
@pytest.mark.release  # `test_typed_landing` has a sample
def test_killed_between_tables(lake: Lake, to: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of several tables that was begun is finished by its note, also if the mapping was changed."""
    records = send(lake, 2)
    with monkeypatch.context() as patch:
        kill_after(step, patch)
        with pytest.raises(PipelineFailed):
            lake.run(to=to, tables=ROUTES)
    assert sum(bool(rows) for rows in landed(lake, to).values()) == min(step, 5)
    records += send(lake, 1)
    summary = lake.run(to=to, tables={"shop.visit": "visits"})
    assert summary.recovered == 0
    counts = check(lake, to, summary, records)
    assert counts["orders"] == 5
    assert counts["visits"] == 1


def kill_after(step: int, patch: pytest.MonkeyPatch) -> None:
    """Let the process die after so many tables have taken their rows, or, after all, before the manifest."""
    commit, calls = TablesTarget._commit, itertools.count(1)

    def count(self: TablesTarget, table: str) -> None:
        commit(self, table)
        if next(calls) == step:
            raise Killed

    def die(*_: Any) -> None:
        raise Killed

    patch.setattr(TablesTarget, "_commit", count)
    patch.setattr(Manifests, "add", die)


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_python_reads_all(lake: Lake, monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    """The tables are the same if Python reads a whole batch."""
    monkeypatch.setattr(
        "cloudevents_kafka.spark.pipeline.batches._batch.BatchWriter.starts_in_java", lambda *_: False
    )
    records = send(lake, 2)
    check(lake, to, lake.run(to=to, tables=ROUTES), records)


@pytest.mark.release
def test_tables_of_a_catalog(lake: Lake) -> None:
    """The tables of types are next to the common one in its catalog."""
    name = f"spark_catalog.default.{lake.topic.replace('-', '_')}"
    records = send(lake, 1)
    names = {"events": name, "orders": "spark_catalog.default.orders", "quarantine": f"{name}_quarantine"}
    try:
        summary = lake.run(to="delta", table=name, tables={"*.order.*": "orders"})
        assert summary.tables == names
        counts = {table: lake.spark.table(name).count() for table, name in names.items()}
        assert counts == {"events": 2, "orders": records - 3, "quarantine": 1}
    finally:
        for table in names.values():
            lake.spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.mark.parametrize(
    ("to", "table", "refused"),
    [
        ("delta", "default.orders", True),
        ("delta", "spark_catalog.default.orders", True),
        ("iceberg", "stays.lake.orders", False),
        ("delta", None, False),
    ],
)
def test_catalog_in_memory(session: SparkSession, to: Any, table: str | None, *, refused: bool) -> None:
    """A table of a catalog that vanishes with the pipeline's own session is refused."""
    session.conf.set("spark.sql.catalog.stays", "org.apache.iceberg.spark.SparkCatalog")
    options = PipelineOptions(bootstrap_servers="b:1", topics=("t",), out="o", to=to, table=table)
    with pytest.raises(WrongTable, match="would vanish") if refused else nullcontext():
        check_catalog(options, session)


def test_tables_without_commits_are_checked(session: SparkSession) -> None:
    """With routes, a table that has no commit yet does not need the column with the names of tables."""
    checked: dict[str, list[str]] = {}

    def opened(table: str) -> Any:
        def check(schema: StructType) -> None:
            checked[table] = schema.names

        return SimpleNamespace(session=session, check_schema=check)

    TablesTarget(Mock(), opened, ReadSettings(routes=ROUTES)).fit()
    assert checked.keys() == {*ROUTES.values(), "events", "quarantine"}
    assert not any("__ce_table" in names for names in checked.values())


def test_another_kind(lake: Lake) -> None:
    """A folder whose batches landed in another kind of tables is refused, also with the name of a table."""
    produce(lake.broker, lake.topic, 1)
    lake.run()
    with pytest.raises(WrongTable, match="events must be a table of delta, got folders of Parquet files"):
        lake.run(to="delta")
    with pytest.raises(WrongCheckpoint, match=r"landed in parquet, not in delta\. Continue with parquet"):
        lake.run(to="delta", table="default.another_kind")


@pytest.mark.release
def test_older_layout(lake: Lake) -> None:
    """A table that has not the columns of today is refused with what to do."""
    lake.spark.sql(f"CREATE TABLE delta.`file://{lake.out}/orders` (id string, type string) USING delta")
    produce(lake.broker, lake.topic, 1)
    produce(lake.broker, lake.topic, 1, "shop.order.paid")
    with pytest.raises(
        WrongTable, match=r"orders must have the column source of type string\. Add it: ALTER"
    ):
        lake.run(to="delta", tables=ROUTES)


@pytest.mark.release
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("to", ["parquet", "delta", "iceberg"])
def test_killed_program(lake: Lake, pipeline: Run, to: str) -> None:
    """The command is killed at random moments of its batches: each event is in its table once."""
    chance = random.Random(5)
    records = send(lake, 60)
    options = ["--once", "--max-records", "40", "--to", to, *route_options()]
    for batch in range(3):
        running = pipeline(lake.topic, lake.out, *options)
        running.until(partial(Path.exists, lake.out / "_batches" / f"{2 * batch:08d}.json"))
        time.sleep(chance.random())
        running.kill()
    total = pipeline(lake.topic, lake.out, *options).summary()["total"]
    found = landed(lake, to)
    assert Counter(offset for table in found.values() for offset, _ in table) == Counter(range(records))
    assert {name: len(found[name]) for name in total["routed"]} == total["routed"]
    assert total["routed"] == {"orders": 121, "payments": 60, "tests": 60}


def route_options() -> list[str]:
    return [text for pattern, table in ROUTES.items() for text in ("--route", f"{pattern}={table}")]


def commits(lake: Lake, to: str) -> dict[str, int]:
    """Return the number of commits of each table that exists."""
    pattern = {"delta": "*/_delta_log/*.json", "iceberg": "*/metadata/v*.metadata.json"}[to]
    return Counter(path.parts[-3] for path in lake.out.glob(pattern))


@pytest.mark.release
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_java_is_killed_between_commits(lake: Lake, pipeline: Run, to: str) -> None:
    """Java is killed as soon as one of the tables of a batch has changed: the next start lands the others."""
    records = 0
    partly: list[set[str]] = []
    options = ["--once", "--to", to, *route_options()]
    for _ in range(6):
        records += send(lake, 20)
        before = commits(lake, to)
        running = pipeline(lake.topic, lake.out, *options)
        running.until(lambda before=before: commits(lake, to) != before)
        os.kill(running.java(), signal.SIGKILL)
        running.end()
        partly.append({table for table, number in commits(lake, to).items() if number != before[table]})
    assert any(0 < len(tables) < len(TABLES) + 1 for tables in partly), partly
    total = pipeline(lake.topic, lake.out, *options).summary()["total"]
    found = landed(lake, to)
    assert Counter(offset for table in found.values() for offset, _ in table) == Counter(range(records))
    assert {name: len(found[name]) for name in total["routed"]} == total["routed"]
