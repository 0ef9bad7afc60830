"""Spark writes events as the converters do: the same keys, headers and values, the same refusals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka import (
    Decoded,
    EncodeError,
    Event,
    InvalidEvent,
    Record,
    decode,
    from_record,
    to_record,
)
from cloudevents_kafka.attributes import CORE

from .records import TEXTS, TIMES, changed, edges, vectors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

WAYS: list[dict[str, Any]] = [
    {"mode": "binary"},
    {"mode": "structured"},
    {"mode": "structured", "format": "avro"},
    {"mode": "structured", "format": "protobuf"},
]
Fields = dict[str, Any]


def fields(event: Event) -> Fields:
    """What Spark's columns hold of an event; all attributes are texts there."""
    texts: Fields = {name: event.text(name) for name in event}
    core = {name: texts.pop(name) for name in CORE if name in texts}
    core["time_text"] = core.pop("time", None)
    return core | {"extensions": texts, "data": event.payload}


def good() -> list[Fields]:
    """Events of all vectors, edges and a thousand changed records."""
    read = [decode(record) for record in [*vectors(), *edges(), *changed(1000)]]
    return [fields(item.event) for item in read if isinstance(item, Decoded)]


def odd() -> list[Fields]:
    """Rows with something strange in each place, many of them no events."""
    base: Fields = {"id": "1", "source": "/s", "type": "t", "specversion": "1.0", "extensions": {"x": "y"}}
    places = ("id", "source", "type", "specversion", "subject", "datacontenttype", "dataschema")
    rows = [{**base, place: text} for place in places for text in (*TEXTS, None)]
    rows += [{**base, "time_text": text} for text in TIMES]
    rows += [{**base, "extensions": extensions} for extensions in ODD_EXTENSIONS]
    types = ("application/json", "application/json; charset=utf-16", "a/b+json", "text/plain", None)
    rows += [{**base, "datacontenttype": media, "data": data} for media in types for data in ODD_DATA]
    return rows


ODD_EXTENSIONS: list[dict[str, str | None] | None] = [
    None,
    {},
    {"x": None},
    {"x": ""},
    {"x": None, "y": "z"},
    {"MyExt": "v"},
    {"data": "v"},
    {"id": "v"},
    {"time": "v"},
    {"": "v"},
    {"a=b": "c"},
    {"a\x01b": "c"},
    {"a": "b\x01c=d"},
    {"a": "b=c"},
    {"sampledrate": "5"},
    {"sampledrate": "0"},
    {"deprecated": "true"},
    {"partitionkey": "é €"},
    {"partitionkey": ""},
    {"expirytime": "noon"},
    {"b": '"', "a": "\\"},
]
ODD_DATA = [b"", b"{}", b' {"a": 1.0} ', b"{bad", b'"\\ud800"', b'"x"', b"\xff", b"1e999", b"x" * 100, None]


def as_event(row: Fields) -> Event:
    """The event that a row stands for; raises what its encoding must refuse."""
    given = sorted((row.get("extensions") or {}).items())
    extensions = {name: value for name, value in given if value is not None}
    if {*extensions} & {*CORE, "data"}:
        raise EncodeError("no extension may be called so")
    core = {name: row.get(name) for name in CORE if name != "time" and row.get(name) is not None}
    return Event(
        **{"id": "", "source": "", "type": ""} | core | extensions,
        time=row.get("time_text"),
        data=row.get("data"),
    )


def frame(spark: SparkSession, rows: list[Fields]) -> DataFrame:
    from cloudevents_kafka.spark import event_schema

    names = [f for f in event_schema().fields if f.name not in ("mode", "error", "time")]
    data = [(number, *(row.get(f.name) for f in names)) for number, row in enumerate(rows)]
    from pyspark.sql.types import LongType, StructField, StructType

    return spark.createDataFrame(data, StructType([StructField("partition", LongType()), *names]))


def told(row: Row) -> tuple[Any, Any]:
    headers = None if row.headers is None else [(h.key, bytes(h.value)) for h in row.headers]
    return headers, None if row.value is None else bytes(row.value)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("format", way["mode"]))
def test_written_as_the_converters_write(spark: SparkSession, way: dict[str, Any]) -> None:
    """Vectors, edges, changed records and odd rows: the same bytes, or a refusal in both."""
    from cloudevents_kafka.spark import encode_events

    rows = [*good(), *odd()]
    df = frame(spark, rows)
    written = {row.partition: row for row in encode_events(df, errors="column", **way).collect()}
    assert len(written) == len(rows)
    different = []
    for number, row in enumerate(rows):
        try:
            record = to_record(as_event(row), **way)
        except (InvalidEvent, EncodeError):
            agreed = written[number].error is not None and told(written[number]) == (None, None)
        else:
            agreed = written[number].error is None and told(written[number]) == (record.headers, record.value)
        if not agreed:
            different.append((row, written[number]))
    assert not different, different[:3]


def test_a_row_that_is_no_event_fails_the_job_by_default(spark: SparkSession) -> None:
    """Written as it is, it would be read as a tombstone or as something else; the error says why."""
    from pyspark.errors import PySparkException

    from cloudevents_kafka.spark import encode_events

    df = encode_events(frame(spark, [{"id": "", "source": "/s", "type": "t"}]))
    assert df.columns == ["key", "value", "headers", "partition"]
    with pytest.raises(PySparkException, match="id: must not be empty"):
        df.collect()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_times_are_written_in_utc_whatever_the_session_says(spark: SparkSession, zone: str) -> None:
    """Also in the hour that a zone leaps over, and before 1970."""
    from cloudevents_kafka.spark import encode_events

    moments = [
        datetime(2020, 3, 8, 2, 30, 0, 123456, tzinfo=UTC),
        datetime(2020, 3, 8, 7, 0, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1900, 2, 28, 23, 59, 59, tzinfo=UTC),
    ]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = [(number, "1", "/s", "t", moment) for number, moment in enumerate(moments)]
        df = spark.createDataFrame(
            rows, "partition long, id string, source string, type string, time timestamp"
        )
        records = encode_events(df).orderBy("partition").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    texts = [dict(told(row)[0])["ce_time"].decode() for row in records]
    assert texts == [m.isoformat().replace("+00:00", "Z") for m in moments]


def test_the_key_is_the_users(spark: SparkSession) -> None:
    """Of the DataFrame, of a column, or of an extension; null where there is none."""
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import encode_events

    df = frame(spark, [{"id": "1", "source": "/s", "type": "t", "extensions": {"partitionkey": "p"}}])

    def key(df: DataFrame, **options: Any) -> bytes | None:
        made = encode_events(df, **options).collect()[0].key
        return None if made is None else bytes(made)

    assert key(df) is None
    assert key(df.withColumn("key", F.lit(b"\xff"))) == b"\xff"
    assert key(df, key="id") == b"1"
    assert key(df, key="partitionkey") == b"p"
    assert key(df, key="nothing") is None
    assert key(df, key=F.lit("own")) == b"own"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "batch"}, "mode is"),
        ({"format": "json"}, "mode is"),
        ({"mode": "structured", "format": "x"}, "avro"),
    ],
)
def test_what_cannot_be_asked_for(spark: SparkSession, options: dict[str, Any], said: str) -> None:
    """A mode or format that is none is told before anything runs."""
    from cloudevents_kafka.spark import encode_events

    with pytest.raises(ValueError, match=said):
        encode_events(frame(spark, [{}]), **options)


def test_missing_columns_are_named(spark: SparkSession) -> None:
    """With those that are there."""
    from cloudevents_kafka.spark import encode_events

    with pytest.raises(ValueError, match="no column source, type, only id"):
        encode_events(spark.createDataFrame([("1",)], "id string"))


def test_sql_functions_read_and_write(spark: SparkSession) -> None:
    """ce_decode and ce_encode are inverse, and tell of errors as everywhere."""
    from cloudevents_kafka.spark import register

    register(spark)
    event = Event(
        id="1",
        source="/s",
        type="t",
        time="2018-04-05T17:31:00.123456789Z",
        data="é",
        a="b",
        datacontenttype="text/plain",
    )
    record = to_record(event, mode="structured")
    rows = [(record.value, record.headers), (b"", []), (b"x", [("ce_id", None)])]
    spark.createDataFrame(
        rows, "value binary, headers array<struct<key string, value binary>>"
    ).createOrReplaceTempView("records")
    read = spark.sql("select ce_decode(value, headers) as event from records")
    events = [row.event for row in read.collect()]
    assert (events[0].id, events[0].time_text, events[0].extensions) == ("1", event.text("time"), {"a": "b"})
    assert [e.error and e.error.verdict for e in events] == [None, "not-an-event", "not-an-event"]
    read.createOrReplaceTempView("events")
    for mode in ("binary", "structured", "avro", "protobuf"):
        made = spark.sql(f"select ce_encode(event, '{mode}') as made from events where event.error is null")
        headers, value = told(made.collect()[0].made)
        assert from_record(Record(value=value, headers=headers)) == event
    bad = spark.sql("select ce_encode(named_struct('id', '', 'source', '/s', 'type', 't'), 'binary') as made")
    assert bad.collect()[0].made.error.clause == "R-02"
