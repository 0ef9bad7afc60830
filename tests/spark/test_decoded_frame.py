"""The columns of decoded events, streams, time zones, structs, and the imports of workers."""

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
def test_the_session_time_zone_changes_no_time(spark: SparkSession, zone: str) -> None:
    """A time is the same instant in any time zone of the session."""
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
    """The columns of `event_schema` come first, then those of Kafka or of ``keep``."""
    from cloudevents_kafka.spark import decode_events, event_schema

    kafka = rows_of(spark, MIXED)
    usual = decode_events(kafka).schema
    event = event_schema()
    assert [(f.name, f.dataType) for f in usual[: len(event)]] == [(f.name, f.dataType) for f in event]
    assert usual.names[len(event) :] == ["key", "topic", "partition", "offset", "timestamp"]
    assert decode_events(kafka, keep=("headers", "value")).columns[len(event) :] == ["headers", "value"]
    assert decode_events(kafka.select("value", "headers")).columns == event.names


def test_missing_columns(spark: SparkSession) -> None:
    """A missing column is an error; for headers it names the option of the source."""
    from cloudevents_kafka.spark import decode_events

    kafka = rows_of(spark, MIXED)
    with pytest.raises(ValueError, match=r"no column headers.*includeHeaders"):
        decode_events(kafka.drop("headers"))
    with pytest.raises(ValueError, match="no column nothing, only key"):
        decode_events(kafka, keep=["nothing"])


def test_a_stream_is_decoded_like_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A stream has the same events and errors as a batch."""
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


def test_one_struct_has_the_same_fields(spark: SparkSession) -> None:
    """`cloudevent` returns in one column what `decode_events` returns in many."""
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import cloudevent, event_schema

    made = rows_of(spark, MIXED).select("offset", cloudevent(F.col("value"), F.col("headers")).alias("event"))
    assert made.schema["event"].dataType.simpleString() == event_schema().simpleString()
    read = read_back(made.select("event.*", "offset"))
    assert [read[offset] for offset in range(len(MIXED))] == [expected(record) for record in MIXED]


def test_workers_need_no_client_and_no_spark() -> None:
    """The module of workers imports neither a Kafka client nor PySpark."""
    code = (
        "import sys; sys.modules['confluent_kafka'] = sys.modules['pyspark'] = None; "
        "import cloudevents_kafka.spark.udf"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_plan_calls_python_once(spark: SparkSession) -> None:
    """The plan has one Python step, for the records that Java does not read."""
    from cloudevents_kafka.spark import decode_events

    execution: Any = decode_events(rows_of(spark, MIXED))._jdf.queryExecution()
    assert execution.executedPlan().toString().count("ArrowEvalPython") == 1


def test_the_plan_is_compiled(spark: SparkSession) -> None:
    """No compiled method exceeds 8,000 bytes, which the JVM would not optimize."""
    from cloudevents_kafka.spark import decode_events

    execution: Any = decode_events(rows_of(spark, MIXED))._jdf.queryExecution()
    stages = execution.debug().codegenToSeq()
    sizes = [stages.apply(n)._3().maxMethodCodeSize() for n in range(stages.size())]
    assert sizes
    assert max(sizes) < 8000


def test_filters_on_the_result_stay_above_it(spark: SparkSession) -> None:
    """A filter on the result does not copy the decoding into its condition."""
    from cloudevents_kafka.spark import decode_events

    events = decode_events(rows_of(spark, MIXED))
    filtered = events.where("error is null and type like '%.created'").select("type")
    plan = filtered._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[operator]  # py4j has no types
    whole = events._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[operator]  # the same
    assert len(plan) < 2 * len(whole)
