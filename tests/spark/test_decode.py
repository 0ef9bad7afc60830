"""`decode_events` returns the same events and errors as `decode`, for all records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.record import Record

from .records import BASE, binary, changed, document, edges, structured, vectors
from .rows import expected, read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGED = 6000
WAYS = pytest.mark.parametrize("way", ["java", "python"])
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


def _read_in_java(df: DataFrame) -> dict[int, dict[str, Any]]:
    """Return the events that the Java function reads, without the records that it leaves to `decode`."""
    from cloudevents_kafka.spark import decode
    from cloudevents_kafka.spark._columns import PREFIX
    from cloudevents_kafka.spark.fast.java_reader import reader_sql

    sql = reader_sql(df)
    assert sql is not None
    read = decode._read_in_java(df, sql, ["offset"]).select(f"{PREFIX}read.*", f"{PREFIX}packed", "offset")
    rows = read_back(read.withColumnsRenamed({name: name.removeprefix(PREFIX) for name in read.columns}))
    return {offset: fields for offset, fields in rows.items() if "packed" not in fields}


@WAYS
def test_same_verdict_on_every_record(
    spark: SparkSession, kafka: Path, records: list[Record], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors, edges and thousands of changed records have the events and errors of `decode`."""
    if way == "python":
        monkeypatch.setattr("cloudevents_kafka.spark.decode.reader_sql", lambda df: None)
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
    read = _read_in_java(spark.read.parquet(str(kafka)))
    assert all(fields == expected(records[offset]) for offset, fields in read.items())
    assert len(read) > len(records) / 4


def test_common_records_need_no_python(spark: SparkSession) -> None:
    """Java reads the records of common producers."""
    read = _read_in_java(rows_of(spark, COMMON.values()))
    assert [name for offset, name in enumerate(COMMON) if offset not in read] == []
