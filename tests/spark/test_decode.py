"""Spark reads every record as the converters do: the same events, the same verdicts, word for word."""

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
WAYS = pytest.mark.parametrize("way", ["java", "columns"])
PLAIN = {
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
}

ESCAPED = {  # which Java reads, and columns leave to the converters
    "in a text": structured({**BASE, "subject": "größer", "note": 'a "quoted" \\ text'}),
    "in ASCII only": document(json.dumps({**BASE, "subject": "größer €", "data": 1}).encode()),
    "as .NET writes times": document(json.dumps({**BASE, "data": 1}).replace('Z"', '\\u002B00:00"').encode()),
    "in data that is text": structured({**BASE, "datacontenttype": "text/plain"}, b'"a\\n\\u00e9\\/\\"b"'),
    "in base64": document(json.dumps({**BASE, "data_base64": "+/+/"}).replace("/+", "\\/\\u002b").encode()),
}


@pytest.fixture(scope="package")
def records() -> list[Record]:
    """All records there are to compare, good and bad."""
    return [*vectors(), *edges(), *PLAIN.values(), *ESCAPED.values(), *changed(CHANGED)]


@pytest.fixture(scope="package")
def kafka(spark: SparkSession, records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records in Parquet, in the Kafka source's shape."""
    folder = tmp_path_factory.mktemp("kafka") / "records"
    rows_of(spark, records).repartition(2).write.parquet(str(folder))
    return folder


def _decoded(df: DataFrame) -> DataFrame:
    from cloudevents_kafka.spark import decode_events

    return decode_events(df, keep=["offset"])


def _alone(df: DataFrame, way: str) -> dict[int, dict[str, Any]]:
    """Read by Java alone, or by columns alone; records that are left to the converters are left out."""
    from cloudevents_kafka.spark import decode
    from cloudevents_kafka.spark.document import PREFIX
    from cloudevents_kafka.spark.fast import java_reader

    if way == "java":
        sql = java_reader.reader(df)
        assert sql is not None
        read = decode._read_by_java(df, sql, ["offset"]).select(
            f"{PREFIX}read.*", f"{PREFIX}packed", "offset"
        )
    else:
        read = decode._read_by_columns(df, ["offset"])
    rows = read_back(read.withColumnsRenamed({name: name.removeprefix(PREFIX) for name in read.columns}))
    return {offset: fields for offset, fields in rows.items() if "packed" not in fields}


@WAYS
def test_same_verdict_on_every_record(
    spark: SparkSession, kafka: Path, records: list[Record], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors, edges and thousands of changed records give what the converters give, to the word."""
    if way == "columns":
        monkeypatch.setattr("cloudevents_kafka.spark.fast.java_reader.reader", lambda df: None)
    read = read_back(spark.read.parquet(str(kafka)).transform(_decoded))
    assert len(read) == len(records)
    different = {
        offset: (record, read[offset], wanted)
        for offset, record in enumerate(records)
        if read[offset] != (wanted := expected(record))
    }
    assert not different, f"{len(different)} differ, the first: {next(iter(different.values()))}"


@WAYS
def test_alone_it_is_never_wrong(spark: SparkSession, kafka: Path, records: list[Record], way: str) -> None:
    """What is not left to the converters is the very same event, and that is a good part."""
    read = _alone(spark.read.parquet(str(kafka)), way)
    assert all(fields == expected(records[offset]) for offset, fields in read.items())
    assert len(read) > len(records) / 4


@WAYS
def test_plain_records_need_no_python(spark: SparkSession, way: str) -> None:
    """What usual producers send is not left to the converters."""
    plain = PLAIN | (ESCAPED if way == "java" else {})
    read = _alone(rows_of(spark, plain.values()), way)
    assert [name for offset, name in enumerate(plain) if offset not in read] == []
