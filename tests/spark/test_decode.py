"""`decode_events` returns the events and errors of `decode`, in the columns of `event_schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.record import Record
from tests.support.strategies import scaled

from .records import BASE, TIMES, binary, changed, document, edges, structured, vectors
from .rows import expected, read_back, read_by_java, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGED = scaled(6000)
COMMON = {
    "binary": binary(BASE),
    "binary, attributes required only": binary({n: BASE[n] for n in ("specversion", "id", "source", "type")}),
    "binary, no data": binary(BASE, None),
    "binary, foreign headers": Record(headers=[("traceparent", b"\xff"), *binary(BASE).headers, ("x", None)]),
    "binary, in other words": binary({**BASE, "id": "é 😀", "type": "größe", "datacontenttype": "a/b; c=d"}),
    "binary, other times": binary({**BASE, "time": "2018-04-05T17:31:00.1234567+02:00"}),
    "JSON": structured(BASE),
    "JSON with spaces": structured(BASE, style="spaced"),
    "JSON with lines": structured(BASE, style="indented"),
    "JSON, data first": structured(BASE, at=0),
    "JSON, data between": structured(BASE, at=3),
    "JSON, no data": structured(BASE, None),
    "JSON, a list": structured(BASE, b'[1, {"a": "]"}]'),
    "JSON, a text": structured(BASE, b'"a \\" b"'),
    "JSON, a number": structured(BASE, b"-1.5e3"),
    "JSON, no content type": structured({n: v for n, v in BASE.items() if n != "datacontenttype"}),
    "JSON, a charset": structured({**BASE, "datacontenttype": "application/json; charset=utf-8"}),
    "JSON, text/plain": structured({**BASE, "datacontenttype": "text/plain"}, b'"some text"'),
    "JSON, base64": structured({**BASE, "data_base64": "AQI="}, None),
    "JSON, Integer and Boolean": structured({**BASE, "n": -5, "yes": True, "zero": 0}),
    "JSON, charset in the header": document(
        structured(BASE).value, b"application/cloudevents+json; charset=UTF-8"
    ),
    "JSON, escapes in a text": structured({**BASE, "subject": "größer", "note": 'a "quoted" \\ text'}),
    "JSON in ASCII only": document(json.dumps({**BASE, "subject": "größer €", "data": 1}).encode()),
    "JSON, times as .NET writes them": document(
        json.dumps({**BASE, "data": 1}).replace('Z"', '\\u002B00:00"').encode()
    ),
    "JSON, escapes in data that is text": structured(
        {**BASE, "datacontenttype": "text/plain"}, b'"a\\n\\u00e9\\/\\"b"'
    ),
    "JSON, escapes in base64": document(
        json.dumps({**BASE, "data_base64": "+/+/"}).replace("/+", "\\/\\u002b").encode()
    ),
}
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


@pytest.fixture(scope="package")
def records() -> list[Record]:
    """Return valid and invalid records of all kinds."""
    return [*vectors(), *edges(), *COMMON.values(), *changed(CHANGED)]


@pytest.fixture(scope="package")
def kafka(spark: SparkSession, records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the records to Parquet, with the columns of the Kafka source."""
    folder = tmp_path_factory.mktemp("kafka") / "records"
    rows_of(spark, records).repartition(2).write.parquet(str(folder))
    return folder


def _decoded(df: DataFrame) -> DataFrame:
    from cloudevents_kafka.spark import decode_events

    return decode_events(df, keep=["offset"])


@pytest.mark.usefixtures("reader", "compiled")
@pytest.mark.parametrize("reader", ["java", "python"], indirect=True)
def test_same_verdict_on_every_record(spark: SparkSession, kafka: Path, records: list[Record]) -> None:
    """Vectors, edges and thousands of changed records have the events and errors of `decode`."""
    read = read_back(spark.read.parquet(str(kafka)).transform(_decoded))
    assert len(read) == len(records)
    different = {
        offset: (record, read[offset], wanted)
        for offset, record in enumerate(records)
        if read[offset] != (wanted := expected(record))
    }
    assert not different, f"{len(different)} differ, the first: {next(iter(different.values()))}"


def test_java_is_never_wrong(spark: SparkSession, kafka: Path, records: list[Record]) -> None:
    """Java reads more than a quarter of the records, and each as the same event as `decode`."""
    read = read_by_java(spark.read.parquet(str(kafka)))
    assert all(fields == expected(records[offset]) for offset, fields in read.items())
    assert len(read) > len(records) / 4


def test_common_records_need_no_python(spark: SparkSession) -> None:
    """Java reads the records of common producers."""
    read = read_by_java(rows_of(spark, COMMON.values()))
    assert [name for offset, name in enumerate(COMMON) if offset not in read] == []


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("reader", ["java", "python"], indirect=True)
def test_names_that_spark_does_not_read(spark: SparkSession) -> None:
    """An extension whose name is too long for Spark's JSON parser is an error, however the event is read."""
    events = [Event(id="1", source="/s", type="t", **{"x" * length: "1"}) for length in (50_000, 50_001)]
    modes: list[dict[str, Any]] = [{}, {"mode": "structured"}, {"mode": "structured", "format": "avro"}]
    records = [to_record(event, **mode) for event in events for mode in modes]
    read = read_back(rows_of(spark, records).transform(_decoded))
    assert [read[offset] for offset in range(3)] == [expected(record) for record in records[:3]]
    reason = "the name of an extension must have at most 50,000 characters in Spark, got 50,001"
    error = {"error": {"verdict": "broken-event", "reason": reason}}
    assert [read[offset] for offset in range(3, 6)] == [error] * 3


# --- columns, streams, time zones and plans ---


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


def test_the_plan_calls_python_once(spark: SparkSession) -> None:
    """The plan has one Python step, for the records that Java does not read."""
    from cloudevents_kafka.spark import decode_events

    execution: Any = decode_events(rows_of(spark, MIXED))._jdf.queryExecution()
    assert execution.executedPlan().toString().count("ArrowEvalPython") == 1


@pytest.mark.usefixtures("compiled")
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
