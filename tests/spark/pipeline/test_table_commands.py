"""``table optimize`` and ``table vacuum`` maintain the tables of a folder and of a catalog."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.spark.pipeline._table_names import table_by_name, table_in_folder

from .batches import KEY, offsets, ranges, rows
from .conftest import QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
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
            table.append(rows(session, start, start + 2), KEY, number, ranges(start, start + 2))
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
        assert table.has_batch(KEY, 0, ranges(0, 2))
        assert offsets(session.table(table._sql_name)) == list(range(4))
    assert not list(tmp_path.rglob("artifacts"))
