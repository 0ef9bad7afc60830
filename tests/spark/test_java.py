"""What PySpark has no public call for is in one module, and works in the versions that it names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import cloudevents_kafka.spark
from cloudevents_kafka.spark import _java
from cloudevents_kafka.spark._java import (
    TRIED_WITH,
    file_system,
    free_checkpoint,
    has_java,
    java_of,
    java_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PACKAGE = Path(cloudevents_kafka.spark.__file__).parent
# What ruff calls access to a private member, or the same by its name in a text.
PRIVATE = re.compile(r'SLF001|(get|has)attr\(\w+, "_')


def test_versions() -> None:
    """The extra ``spark``, and the environments of ``make``, begin and end at versions that were tried."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    oldest, newest = TRIED_WITH
    assert f"pyspark>={oldest},<={newest}" in extras["spark"]
    commands = (ROOT / "Makefile").read_text()
    assert f"PYSPARK := pyspark=={oldest}\nPYSPARK_LATER := pyspark=={newest}\n" in commands


def test_one_module() -> None:
    """No other module uses a private part of PySpark."""
    others = [file for file in PACKAGE.rglob("*.py") if file != Path(_java.__file__)]
    lines = [f"{file.name}: {line}" for file in others for line in file.read_text().splitlines()]
    assert [line for line in lines if PRIVATE.search(line)] == []


def test_parts(spark: SparkSession, tmp_path: Path) -> None:
    """Java, its session, a file system of Hadoop, and the memory of a local checkpoint are in reach."""
    java = java_of(spark)
    assert has_java(spark)
    assert java.java.lang.Math.addExact(1, 2) == 3
    assert java_session(spark).version() == spark.version
    files, path = file_system(spark, f"file://{tmp_path}")
    assert files.exists(path)
    kept = java_session(spark).sparkContext().getPersistentRDDs()
    before = kept.size()
    rows = spark.range(3).localCheckpoint()
    assert java_session(spark).sparkContext().getPersistentRDDs().size() == before + 1
    free_checkpoint(rows)
    assert java_session(spark).sparkContext().getPersistentRDDs().size() == before
