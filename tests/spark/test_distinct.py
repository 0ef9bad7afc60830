"""`deduplicate` keeps one row of each event and all others, in batches and streams."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark import deduplicate
from tests.support.cases import each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "source string, id string, number int, timestamp timestamp"
NOW = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
FAR = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
Rows = list[tuple[str | None, str | None, int, dt.datetime | None]]


def events(chance: random.Random, first: int, count: int) -> Rows:
    """Return events of which some are repeated, some are of the year 9999, and some are broken."""
    rows: Rows = []
    for number in range(first, first + count):
        time = chance.choice([NOW, NOW, FAR, None])
        broken = chance.random() < 0.3
        rows.append((None, None, number, time) if broken else ("/s", str(chance.randrange(40)), number, time))
    return rows


def expected(rows: Rows) -> int:
    return len({row[:2] for row in rows if row[1]}) + sum(row[1] is None for row in rows)


def check(rows: Rows, found: DataFrame) -> None:
    """Check that one row of each event is there, and each broken one."""
    numbers = [row["number"] for row in found.collect()]
    assert len(set(numbers)) == len(numbers) == expected(rows)
    assert {row[2] for row in rows if row[1] is None} <= set(numbers)


def test_batch(spark: SparkSession) -> None:
    """Of a batch one row of each event stays, and all broken ones."""
    rows = events(random.Random(1), 0, 200)
    frame = spark.createDataFrame(rows, COLUMNS)
    found = deduplicate(frame)
    assert found.columns == frame.columns
    check(rows, found)


@pytest.mark.release  # a sample is in the tests of landing without duplicates
def test_stream(spark: SparkSession, tmp_path: Path) -> None:
    """In a stream no event is late, of any timestamp, also after a restart; Spark counts the others."""
    chance, rows, dropped = random.Random(2), list[Any](), 0
    for run in range(3):
        new = events(chance, len(rows), 60)
        rows += new
        spark.createDataFrame(new, COLUMNS).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        stream = (
            spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        )
        query = (
            deduplicate(stream, within="1 hour")
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        for progress in query.recentProgress:
            (state,) = progress["stateOperators"]
            assert state["numRowsDroppedByWatermark"] == 0
            dropped += state["customMetrics"]["numDroppedDuplicateRows"]
        check(rows, spark.read.parquet(str(tmp_path / "out")))
        assert dropped == len(rows) - expected(rows), run


@each(
    ("columns", "within", "words"),
    [
        (COLUMNS, "1 month", "within must be a whole number of seconds, .* got '1 month'"),
        ("id string", "1h", "got no source"),
        ("x string", "1h", "got no source and no id"),
    ],
)
def test_refused(spark: SparkSession, columns: str, within: str, words: str) -> None:
    """A span without a unit, and rows without events, are refused at once."""
    with pytest.raises(ValueError, match=words):
        deduplicate(spark.createDataFrame([], columns), within=within)
