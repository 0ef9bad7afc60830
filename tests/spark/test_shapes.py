"""What goes in and comes out of decoding: columns, streams, time zones, structs, and what workers need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.record import Record

from .records import BASE, TIMES, binary, document, structured
from .rows import expected, read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIXED = [
    binary(BASE),
    structured(BASE),
    binary({**BASE, "time": "2016-12-31t23:59:60z"}),
    binary({**BASE, "id": ""}),
    Record(value=b"not ours"),
    Record(),
    document(b"[]", b"application/cloudevents-batch+json"),
    document(b"<e/>", b"application/cloudevents+xml"),
]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_time_is_an_instant_whatever_the_session_says(spark: SparkSession, zone: str) -> None:
    """Read by columns or by the converters, a time does not shift with the session's zone."""
    from cloudevents_kafka.spark import decode_events

    records = [binary({**BASE, "time": text}) for text in TIMES]
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        read = read_back(decode_events(rows_of(spark, records), keep=["offset"]))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [read[offset] for offset in range(len(records))] == [expected(record) for record in records]


def test_columns_are_those_of_the_schema(spark: SparkSession) -> None:
    """The event's columns come first, with their types; then Kafka's, as asked for."""
    from cloudevents_kafka.spark import decode_events, event_schema

    kafka = rows_of(spark, MIXED)
    usual = decode_events(kafka).schema
    event = event_schema()
    assert [(f.name, f.dataType) for f in usual[: len(event)]] == [(f.name, f.dataType) for f in event]
    assert usual.names[len(event) :] == ["key", "topic", "partition", "offset", "timestamp"]
    assert decode_events(kafka, keep=("headers", "value")).columns[len(event) :] == ["headers", "value"]
    assert decode_events(kafka.select("value", "headers")).columns == event.names


def test_missing_columns_are_told_at_once(spark: SparkSession) -> None:
    """The option for headers is what people forget; a column to keep must be there."""
    from cloudevents_kafka.spark import decode_events

    kafka = rows_of(spark, MIXED)
    with pytest.raises(ValueError, match=r"no column headers.*includeHeaders"):
        decode_events(kafka.drop("headers"))
    with pytest.raises(ValueError, match="no column nothing, only key"):
        decode_events(kafka, keep=["nothing"])


def test_a_stream_is_read_as_a_batch_is(spark: SparkSession, tmp_path: Path) -> None:
    """The same rows arrive when they are read as a stream, bad ones among them."""
    from cloudevents_kafka.spark import decode_events

    rows_of(spark, MIXED).write.parquet(str(tmp_path / "records"))
    source = spark.readStream.schema(rows_of(spark, []).schema).parquet(str(tmp_path / "records"))
    query = (
        decode_events(source, keep=["offset"])
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "events"))
    )
    assert query.awaitTermination(120)
    read = read_back(spark.read.parquet(str(tmp_path / "events")))
    assert [read[offset] for offset in range(len(MIXED))] == [expected(record) for record in MIXED]


def test_one_struct_says_the_same(spark: SparkSession) -> None:
    """`cloudevent` gives as one column what `decode_events` gives as many."""
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import cloudevent, event_schema

    made = rows_of(spark, MIXED).select("offset", cloudevent(F.col("value"), F.col("headers")).alias("event"))
    assert made.schema["event"].dataType.simpleString() == event_schema().simpleString()
    read = read_back(made.select("event.*", "offset"))
    assert [read[offset] for offset in range(len(MIXED))] == [expected(record) for record in MIXED]


@pytest.mark.parametrize("module", ["decode", "encode"])
def test_workers_need_no_client_and_no_spark(module: str) -> None:
    """What is run on workers imports neither a Kafka client nor PySpark's own side."""
    code = (
        "import sys; sys.modules['confluent_kafka'] = sys.modules['pyspark'] = None; "
        f"import cloudevents_kafka.spark.udf.{module}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_plan_calls_python_once(spark: SparkSession) -> None:
    """One Python step, for all records that columns leave undecided."""
    from cloudevents_kafka.spark import decode_events

    execution: Any = decode_events(rows_of(spark, MIXED))._jdf.queryExecution()
    assert execution.executedPlan().toString().count("ArrowEvalPython") == 1


def test_the_rest_is_compiled(spark: SparkSession) -> None:
    """No compiled method is over 8,000 bytes, which the JVM would not optimize."""
    from cloudevents_kafka.spark import decode_events

    execution: Any = decode_events(rows_of(spark, MIXED))._jdf.queryExecution()
    stages = execution.debug().codegenToSeq()
    sizes = [stages.apply(n)._3().maxMethodCodeSize() for n in range(stages.size())]
    assert sizes
    assert max(sizes) < 8000


def test_filters_on_the_result_do_not_reach_below_it(spark: SparkSession) -> None:
    """Pushed down through all steps, a filter became one expression that took the optimizer minutes."""
    from cloudevents_kafka.spark import decode_events

    events = decode_events(rows_of(spark, MIXED))
    filtered = events.where("error is null and type like '%.created'").select("type")
    plan = filtered._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[operator]  # py4j has no types
    whole = events._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[operator]  # the same
    assert len(plan) < 2 * len(whole)
