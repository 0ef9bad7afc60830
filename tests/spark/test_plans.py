"""Filters on kept columns run before rows are decoded; those on events decode each row once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", minversion="4.0")

from cloudevents_kafka.record import Record

from .records import BASE, binary, structured
from .rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = [
    binary(BASE),
    structured({**BASE, "type": "other"}),
    binary({**BASE, "id": ""}),
    Record(value=structured({**BASE, "tx_Id": "5"}).value),
] * 15
PARTITIONS = 3
ROWS = len(RECORDS)


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write records of three partitions to Parquet."""
    from pyspark.sql import functions as F  # noqa: N812

    path = str(tmp_path_factory.mktemp("plans") / "records")
    rows = rows_of(spark, RECORDS).withColumn("partition", F.expr(f"cast(offset % {PARTITIONS} AS int)"))
    rows.coalesce(1).write.parquet(path)
    return path


@pytest.fixture(params=[False, True], ids=["strict", "lenient"])
def events(request: pytest.FixtureRequest, spark: SparkSession, folder: str, reader: None) -> DataFrame:
    """Decode the records."""
    from cloudevents_kafka.spark import decode_events

    return decode_events(spark.read.parquet(folder), lenient=request.param)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for n in range(children.size()):
        yield from _nodes(children.apply(n))


def _run(df: DataFrame) -> tuple[int, list[int], str]:
    """Return the number of rows, the rows that each Python step got, and the plan."""
    execution: Any = df._jdf.queryExecution()
    count = len(df.collect())
    plan = execution.executedPlan()
    steps = [node for node in _nodes(plan) if node.nodeName() == "ArrowEvalPython"]
    return count, [step.metrics().apply("pythonNumRowsReceived").value() for step in steps], plan.toString()


def test_a_filter_on_a_kept_column_comes_first(events: DataFrame) -> None:
    """The source gets the filter, and only its rows are decoded."""
    count, to_python, plan = _run(events.where("partition = 1"))
    assert (count, to_python) == (ROWS // PARTITIONS, [ROWS // PARTITIONS])
    assert "EqualTo(partition,1)" in plan


def test_a_filter_on_events_decodes_once(events: DataFrame) -> None:
    """A filter on columns of events does not decode again, also next to one on a kept column."""
    count, to_python, _ = _run(events.where("type = 'other'"))
    assert (count, to_python) == (ROWS // 4, [ROWS])
    count, to_python, plan = _run(
        events.where("partition = 1 and type = 'other' and offset < 30").select("id")
    )
    assert (count, to_python) == (3, [10])
    assert "LessThan(offset,30)" in plan
    assert plan.count("Functions$Read") <= 1


def test_a_filter_on_both_decodes_once(events: DataFrame) -> None:
    """A condition that needs an event and a kept column at once stays above."""
    count, to_python, _ = _run(events.where("partition = 1 or type = 'other'"))
    assert (count, to_python) == (30, [ROWS])


def test_columns_of_kafka_need_no_decoding(events: DataFrame) -> None:
    """A count, and a query of kept columns, decode nothing."""
    for query in (events.groupBy().count(), events.select("offset", "key"), events.select("key").distinct()):
        _, to_python, plan = _run(query)
        assert to_python == []
        assert "Functions$Read" not in plan
    assert events.count() == ROWS


def test_filters_that_are_not_deterministic_stay_above(events: DataFrame) -> None:
    """A filter by chance is not moved; it still sees each row once."""
    count, to_python, _ = _run(events.where("rand(5) >= 0 and type is not null"))
    assert to_python == [ROWS]
    assert count >= ROWS // 2


def test_renamed_kept_columns(spark: SparkSession, folder: str) -> None:
    """Filters on kept columns that have another name inside come first, too."""
    from cloudevents_kafka.spark import decode_events

    df = decode_events(spark.read.parquet(folder), keep=["value", "partition"])
    count, to_python, _ = _run(df.where("value is null and partition = 1"))
    assert (count, to_python) == (0, [0])


# --- times that Python does not have ---

EARLY = "0001-01-01T00:00:00+14:00"


def test_times_that_python_does_not_have(spark: SparkSession) -> None:
    """Spark has instants that Python has not; ``time_text`` is the way to them in Python."""
    from cloudevents_kafka.spark import decode_events

    records = [binary({**BASE, "time": EARLY}), structured({**BASE, "time": "9999-12-31T23:00:00-05:00"})]
    events = decode_events(rows_of(spark, records))
    with pytest.raises((ValueError, OverflowError)):
        events.select("time").collect()
    texts = events.select("time_text", "error").collect()
    assert [row.time_text for row in texts] == [EARLY, "9999-12-31T23:00:00-05:00"]
    assert [row.error for row in texts] == [None, None]
    assert events.where("time < timestamp'0001-01-01 00:00:00'").count() == 1
    (early, late) = (row.at for row in events.selectExpr("cast(time AS string) AS at").collect())
    assert (early[:5], late) == ("0000-", "+10000-01-01 04:00:00")
    in_python = events.where("year(time) between 1 and 9999").select("time")
    assert [row.time for row in in_python.collect()] == []
