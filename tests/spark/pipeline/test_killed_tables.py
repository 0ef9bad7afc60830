"""A program that appends to two tables is killed at random: each row is in each table once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.spark.pipeline._table_names import table_in_folder

from . import table_driver
from .batches import offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]
KILLS = 6
BATCHES = 40


@pytest.mark.release
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_kills(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """Python and Java are killed while they write, and the last start finishes what they left."""
    chance = random.Random(7)
    for _ in range(KILLS):
        with _start(table_format, tmp_path) as process:
            _read_lines(process, chance.randint(1, 3))
            time.sleep(chance.random() * 2)
            # The whole group, so that Java does not finish its work.
            os.killpg(process.pid, signal.SIGKILL)
    with _start(table_format, tmp_path) as process:
        output = process.communicate()[0]
    assert output.splitlines()[-1] == "done", output
    expected = list(range(BATCHES * table_driver.ROWS))
    for name in ("a", "b"):
        table = table_in_folder(session, table_format, f"file://{tmp_path}/{name}")
        assert offsets(session.table(table._sql_name)) == expected


def _start(table_format: str, folder: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, str(table_driver.__file__), table_format, str(folder), str(BATCHES)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True)


def _read_lines(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline(), "the program ended"
