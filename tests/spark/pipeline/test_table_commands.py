"""``table optimize`` and ``table vacuum`` maintain the tables of a folder and of a catalog."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.spark.pipeline.maintenance import WrongTable
from cloudevents_kafka.spark.pipeline.maintenance._upkeep import _optimize
from cloudevents_kafka.spark.pipeline.tables import Table, table_by_name, table_in_folder
from cloudevents_kafka.spark.table_formats import TableFormat
from tests.spark.pipeline.conftest import QUICK
from tests.spark.pipeline.sample_batches import has, offsets, ranges, rows, take

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("events", "payments", "quarantine")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def run(command: str, folder: Path, *options: str) -> str:
    argv = [sys.executable, "-m", "cloudevents_kafka", "table", command, *QUICK, *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.release
@pytest.mark.parametrize("command", ["optimize", "vacuum"])
def test_commands(session: SparkSession, tmp_path: Path, command: str) -> None:
    """Each command prints the files of each table before and after; the rows and batches stay."""
    catalog = f"shop_{command}"
    settings = {
        f"spark.sql.catalog.{catalog}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{catalog}.type": "hadoop",
        f"spark.sql.catalog.{catalog}.warehouse": f"file://{tmp_path}/warehouse",
    }
    for name, value in settings.items():
        session.conf.set(name, value)
    out = tmp_path / "out"
    tables = [
        table_in_folder(session, "delta", f"file://{out}/events"),
        table_in_folder(session, "iceberg", f"file://{out}/quarantine"),
        table_by_name(session, "iceberg", f"{catalog}.lake.events"),
    ]
    for table in tables:
        for number in range(2):
            start = 2 * number
            take(table, rows(session, start, start + 2), ranges(start, start + 2))
    options = [
        f"--out={out}",
        f"--table={tables[2].name}",
        *(f"-X{one}={two}" for one, two in settings.items()),
    ]
    before, after = 4, 2
    if command == "vacuum":
        for table in tables:
            table.optimize()
        options.append("--keep-hours=0")
        before = 6
    assert run(command, tmp_path, *options).splitlines() == [
        f"{table.name}: {before} files before, {after} after" for table in tables
    ]
    for table in tables:
        assert has(table, ranges(0, 2))
        assert offsets(session.table(table._sql_name)) == list(range(4))
    assert not list(tmp_path.rglob("artifacts"))


def lake(session: SparkSession, table_format: TableFormat, folder: Path) -> list[Table]:
    """Return tables of events by type and their quarantine, which has fewer columns, each of four files."""
    tables = [table_in_folder(session, table_format, f"file://{folder}/{name}") for name in NAMES]
    for table in tables:
        for number in range(2):
            start = 2 * number
            frame = rows(session, start, start + 2)
            if "quarantine" in table.name:
                frame = frame.drop("id", "type", "time", "extensions", "data")
            take(table, frame, ranges(start, start + 2))
    return tables


@pytest.mark.release  # test_replays_after_maintenance is its sample
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_each_table_is_sorted_by_what_it_has(
    session: SparkSession, tmp_path: Path, table_format: TableFormat
) -> None:
    """Columns that a table does not have are left out and named; the rows stay."""
    tables = lake(session, table_format, tmp_path)
    events, payments, quarantine = _optimize(tables, ("Type", "time", "record_date", "offset"))
    assert (events.left_out, payments.left_out) == ((), ())
    assert str(quarantine).endswith(
        "/quarantine: 4 files before, 2 after; not sorted by Type, time, which the table does not have"
    )
    assert (events.files_after, payments.files_after) == (2, 2)
    for table in tables:
        assert offsets(session.table(table._sql_name)) == list(range(4))
    assert [done.left_out for done in _optimize(tables, ("type", "time"))] == [(), (), ("type", "time")]


@pytest.mark.release
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_column_of_no_table_is_refused(
    session: SparkSession, tmp_path: Path, table_format: TableFormat
) -> None:
    """It is refused before any table is changed."""
    tables = lake(session, table_format, tmp_path)
    with pytest.raises(WrongTable, match=r"must be one of id, type, .*, got none, such$"):
        list(_optimize(tables, ("type", "none", "such")))
    assert [done.files_before for done in _optimize(tables, ())] == [4, 4, 4]


@pytest.mark.release
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_sorting_a_lake(session: SparkSession, tmp_path: Path, table_format: TableFormat) -> None:
    """The command sorts a lake that has a quarantine, each day again; a wrong column is bad usage."""
    lake(session, table_format, tmp_path / "out")
    for before in (4, 2):
        events, payments, quarantine = run(
            "optimize", tmp_path, "--out=out", "--sort-by=type,time"
        ).splitlines()
        assert events.endswith(f"/events: {before} files before, 2 after")
        assert payments.endswith(f"/payments: {before} files before, 2 after")
        assert quarantine.endswith(" 2 after; not sorted by type, time, which the table does not have")
    argv = [sys.executable, "-m", "cloudevents_kafka", "table", "optimize", *QUICK]
    done = subprocess.run(
        [*argv, "--out=out", "--sort-by=such"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "a column to sort by must be one of" in done.stderr
