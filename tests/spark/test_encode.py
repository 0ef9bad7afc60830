"""`encode_events` writes the same records as `to_record`, and refuses the same events."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
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
from cloudevents_kafka.attributes.types import CORE, AttributeType, parse
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.event import raw_parts
from tests.support.cases import each
from tests.support.strategies import scaled

from .events import in_columns, written
from .records import TEXTS, TIMES, changed, edges, vectors
from .rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

WAYS: list[dict[str, Any]] = [
    {"mode": "binary"},
    {"mode": "structured"},
    {"mode": "structured", "format": "avro"},
    {"mode": "structured", "format": "protobuf"},
]
# The other formats take the way of JSON, and have tests of their own; `test_without_java` has binary mode.
IN_EACH_RUN = WAYS[1:2]
ALL_WAYS = pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[] if way in IN_EACH_RUN else pytest.mark.release) for way in WAYS],
    ids=lambda way: way.get("format", way["mode"]),
)
Fields = dict[str, Any]


def fields(event: Event) -> Fields:
    """Return the columns of an event; attributes are texts."""
    texts: Fields = {name: event.text(name) for name in event}
    core = {name: texts.pop(name) for name in CORE if name in texts}
    core["time_text"] = core.pop("time", None)
    return core | {"extensions": texts, "data": event.payload}


def valid_rows() -> list[Fields]:
    """Return the events of all vectors, edges and a thousand changed records."""
    read = [decode(record) for record in [*vectors(), *edges(), *changed(scaled(1000))]]
    return [fields(item.event) for item in read if isinstance(item, Decoded)]


def odd_rows() -> list[Fields]:
    """Return rows with unusual values in each column, many of them invalid."""
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
    """Return the event of a row; raise the error that its encoding must report."""
    entries = sorted((row.get("extensions") or {}).items())
    extensions = {name: value for name, value in entries if value is not None}
    if {*extensions} & {*CORE, "data"}:
        raise EncodeError("reserved name")
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


def record_of(row: Row) -> tuple[Any, Any]:
    headers = None if row.headers is None else [(h.key, bytes(h.value)) for h in row.headers]
    return headers, None if row.value is None else bytes(row.value)


@pytest.mark.usefixtures("compiled")
@ALL_WAYS
def test_same_records_as_to_record(spark: SparkSession, way: dict[str, Any]) -> None:
    """Vectors, edges, changed records and odd rows: the same bytes, or an error in both."""
    from cloudevents_kafka.spark import encode_events

    rows = [*valid_rows(), *odd_rows()]
    df = frame(spark, rows)
    made = {row.partition: row for row in encode_events(df, errors="column", **way).collect()}
    assert len(made) == len(rows)
    different = []
    for number, row in enumerate(rows):
        try:
            record = to_record(as_event(row), **way)
        except (InvalidEvent, EncodeError):
            agreed = made[number].error is not None and record_of(made[number]) == (None, None)
        else:
            agreed = made[number].error is None and record_of(made[number]) == (record.headers, record.value)
        if not agreed:
            different.append((row, made[number]))
    assert not different, different[:3]


@ALL_WAYS
def test_java_writes_valid_rows(spark: SparkSession, way: dict[str, Any]) -> None:
    """Java leaves only rows to Python whose content type is that of JSON and whose data may not be."""
    from cloudevents_kafka.spark import _event_columns, encode

    rows = valid_rows()
    df, _ = _event_columns.select(frame(spark, rows), None)
    format_name = "json" if way["mode"] == "structured" else None
    left = df.withColumn("written", encode._written(df, format_name)).where("written is null").collect()
    assert len(left) < len(rows) / 8
    json = {row["partition"] for row in left if implies_json(row["__ce_datacontenttype"])}
    assert [row["partition"] for row in left if row["partition"] not in json] == []


@pytest.mark.parametrize("way", [WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.release)], ids=str)
def test_without_java(spark: SparkSession, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Python writes the same rows, and refuses the same ones, in a session without the Java function."""
    from cloudevents_kafka.spark import encode_events

    df = frame(spark, [*valid_rows()[:100], *odd_rows()])
    by_java = sorted(encode_events(df, errors="column", **way).collect(), key=lambda row: row.partition)
    monkeypatch.setattr("cloudevents_kafka.spark.encode.writer_sql", lambda df, columns, **options: None)
    by_python = sorted(encode_events(df, errors="column", **way).collect(), key=lambda row: row.partition)
    assert by_java == by_python


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Return records of all kinds, valid and invalid, also in formats that only Python reads."""
    read = [*vectors(), *edges(), *changed(scaled(1000))]
    again = [to_record(e, **way) for e in _events(read[:900]) for way in WAYS if _is_written(e, way)]
    return read + again


def _events(records: list[Record]) -> list[Event]:
    return [in_columns(item.event) for item in map(decode, records) if isinstance(item, Decoded)]


def _is_written(event: Event, way: dict[str, Any]) -> bool:
    try:
        to_record(event, **way)
    except EncodeError:
        return False
    return True


@pytest.fixture(scope="module")
def read_records(
    spark: SparkSession, records: list[Record], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Write the decoded records to Parquet; ``partition`` is their number."""
    from cloudevents_kafka.spark import decode_events

    folder = tmp_path_factory.mktemp("read") / "events"
    rows = rows_of(spark, records)
    rows = rows.withColumn("partition", rows["offset"])
    decode_events(rows, keep=["key", "partition"]).write.parquet(str(folder))
    return folder


@ALL_WAYS
def test_same_round_trip_as_to_record(
    spark: SparkSession, read_records: Path, records: list[Record], way: dict[str, Any]
) -> None:
    """An event that Spark reads and writes equals one that `from_record` reads and `to_record` writes.

    Columns lose the order of attributes and the bytes of a structured event: so the events are
    compared, with the types of their attributes and the kind of their data.
    """
    from cloudevents_kafka.spark import encode_events

    made = encode_events(spark.read.parquet(str(read_records)), errors="column", **way).collect()
    rows = {row.partition: row for row in made}
    different = []
    for number, record in enumerate(records):
        row, wanted = rows[number], written(record, **way)
        if (None if row.error is not None else record_of(row)) != wanted:
            different.append((record, row, wanted))
        elif wanted is not None:
            headers, value = wanted
            event = from_record(record)
            straight = to_record(event, **way)
            assert sorted(headers) == sorted(straight.headers)
            again, wire = from_record(Record(value=value, headers=headers)), raw_parts(event)[1]
            assert _all_of(again) == _all_of(from_record(straight))
            if wire is None or straight.value is not wire[1]:  # otherwise it is the received value, unchanged
                assert again.kind is from_record(straight).kind
    assert not different, f"{len(different)} differ, the first: {different[0]}"


def _all_of(event: Event) -> tuple[Any, ...]:
    attributes, _ = raw_parts(event)
    typed = sorted((name, type(value).__name__, value) for name, value in attributes.items())
    return typed, event.payload


TYPED = (
    "id string, source string, type string, datacontenttype string, extensions map<string,string>, "
    "extension_types map<string,string>, data binary, data_kind string, partition int"
)
NAMED_TYPES: list[tuple[Fields, Fields | None, str | None]] = [
    ({"n": "5", "b": "true"}, {"n": "Integer", "b": "Boolean"}, None),
    ({"n": "5", "u": "a:b"}, {"n": "String", "u": "URI"}, None),
    ({"n": "05"}, {"n": "Integer"}, "n: an Integer must be a 32-bit number in decimal digits"),
    ({"b": "yes"}, {"b": "Boolean"}, "b: a Boolean must be true or false"),
    ({"n": "5"}, {"n": "int"}, "extension_types must be Boolean, Integer"),
    ({"id": "5"}, None, "the name of an extension must not be 'id'"),
    ({"subject": "5"}, None, "the name of an extension must not be 'subject'"),
    ({"data": "5"}, None, "the name of an extension must not be 'data'"),
]


@ALL_WAYS
def test_extensions_have_their_types(spark: SparkSession, way: dict[str, Any]) -> None:
    """Formats keep the types in ``extension_types``; a text that is not of its type is refused."""
    from cloudevents_kafka.spark import encode_events

    rows = [
        ("1", "/s", "t", None, extensions, types, None, None, number)
        for number, (extensions, types, _) in enumerate(NAMED_TYPES)
    ]
    for row in encode_events(spark.createDataFrame(rows, TYPED), errors="column", **way).collect():
        extensions, types, reason = NAMED_TYPES[row.partition]
        if reason is not None:
            assert reason in row.error.reason
            continue
        headers, value = record_of(row)
        read = from_record(Record(value=value, headers=headers))
        kinds = {name: AttributeType(kind) for name, kind in (types or {}).items()}
        binary = way["mode"] == "binary"
        assert dict(read.extensions) == {
            n: text if binary else parse(kinds[n], text) for n, text in extensions.items()
        }


NAMED_KINDS: list[tuple[str | None, bytes, str, str | None]] = [
    (None, b'{"a":1}', "json", None),
    (None, b'{"a":1}', "bytes", None),
    (None, b"{", "json", "data must be JSON if data_kind is json"),
    (None, b'{"a":1}', "text", "data_kind must match the content type, got text with no datacontenttype"),
    (
        None,
        b"x",
        "jason",
        "data_kind must be one of bytes, json, text, proto, or null for bytes, got 'jason'",
    ),
    ("text/plain", "é".encode(), "text", None),
    ("text/plain; charset=iso-8859-1", b"\xe9", "text", None),
    ("application/json; charset=utf-16", '{"a":1}'.encode("utf-16"), "json", None),
    (None, b"", "proto", None),
    (None, b"\xff", "proto", "data must be a google.protobuf.Any if data_kind is proto"),
]


@ALL_WAYS
def test_data_has_its_kind(spark: SparkSession, way: dict[str, Any]) -> None:
    """Data keeps its ``data_kind`` from format to format; data of another kind is refused."""
    from cloudevents_kafka.spark import encode_events

    rows = [
        ("1", "/s", "t", media, None, None, data, kind, number)
        for number, (media, data, kind, _) in enumerate(NAMED_KINDS)
    ]
    for row in encode_events(spark.createDataFrame(rows, TYPED), errors="column", **way).collect():
        media, data, kind, reason = NAMED_KINDS[row.partition]
        if reason is not None:
            assert reason in row.error.reason
            continue
        assert row.error is None
        headers, value = record_of(row)
        read = from_record(Record(value=value, headers=headers))
        assert read.payload == data
        if way["mode"] == "binary":
            implied = "application/json" if kind == "json" and media is None else media
            assert read.datacontenttype == implied
        elif kind != "proto" or way.get("format") == "protobuf":
            assert read.kind.value == kind or way.get("format") == "avro"


@ALL_WAYS
def test_values_of_extensions_may_have_other_types(spark: SparkSession, way: dict[str, Any]) -> None:
    """Integers, Booleans, bytes and instants are written as `Event` has them."""
    from cloudevents_kafka.spark import encode_events

    cases: dict[str, Any] = {
        "long": -(2**31),
        "boolean": True,
        "binary": b"\x00\xff" * 60,
        "timestamp": datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=UTC),
    }
    for kind, value in cases.items():
        schema = f"id string, source string, type string, extensions map<string,{kind}>"
        df = spark.createDataFrame([("1", "/s", "t", {"ext": value, "none": None})], schema)
        (row,) = encode_events(df, errors="column", key="ext", **way).collect()
        event = Event(id="1", source="/s", type="t", ext=value)
        wanted = to_record(event, **way)
        assert record_of(row) == (wanted.headers, wanted.value), kind
        assert bytes(row.key).decode() == event.text("ext")


@ALL_WAYS
def test_invalid_utf8_is_refused(spark: SparkSession, way: dict[str, Any]) -> None:
    """A text that is not valid UTF-8, as a cast can return, is refused."""
    from cloudevents_kafka.spark import encode_events

    good = {"id": "'1'", "source": "'/s'", "type": "'t'", "subject": "'u'", "time": "NULL"}
    odd = "CAST(X'61FF' AS STRING)"
    columns = [f"IF(n = {n}, {odd}, {good[name]}) AS {name}" for n, name in enumerate(good)]
    extensions = f"map('x', IF(n = {len(good)}, {odd}, 'y')) AS extensions"
    rows = spark.range(len(good) + 1).withColumnRenamed("id", "n")
    made = encode_events(rows.selectExpr(*columns, extensions), errors="column", **way).collect()
    assert ["not valid UTF-8" in row.error.reason for row in made] == [True] * (len(good) + 1)


def test_an_integer_beyond_32_bits_is_refused(spark: SparkSession) -> None:
    """An Integer attribute has 32 bits."""
    from cloudevents_kafka.spark import encode_events

    schema = "id string, source string, type string, extensions map<string,long>"
    df = spark.createDataFrame([("1", "/s", "t", {"ext": 2**31})], schema)
    (row,) = encode_events(df, errors="column").collect()
    assert row.error.attribute == "ext"


@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.release), "Asia/Kathmandu"])
def test_an_instant_among_extensions_is_written_as_rfc_3339(spark: SparkSession, zone: str) -> None:
    """Instants are written in UTC in any time zone of the session."""
    from cloudevents_kafka.spark import encode_events

    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = spark.sql(
            "SELECT '1' AS id, '/s' AS source, 't' AS type, "
            "map('ts', timestamp'2024-01-01 00:00:00Z') AS extensions"
        )
        (row,) = encode_events(df).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert dict(record_of(row)[0])["ce_ts"] == b"2024-01-01T00:00:00Z"


def test_an_invalid_row_fails_the_job_by_default(spark: SparkSession) -> None:
    """The error of the job names the problem."""
    from pyspark.errors import PySparkException

    from cloudevents_kafka.spark import encode_events

    df = encode_events(frame(spark, [{"id": "", "source": "/s", "type": "t"}]))
    assert df.columns == ["key", "value", "headers", "partition"]
    with pytest.raises(PySparkException, match="id: must not be empty"):
        df.collect()


@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.release), "Asia/Kathmandu"])
def test_times_are_written_in_utc(spark: SparkSession, zone: str) -> None:
    """The time zone of the session does not change times, even at a change to summer time or before 1970."""
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
    texts = [dict(record_of(row)[0])["ce_time"].decode() for row in records]
    assert texts == [m.isoformat().replace("+00:00", "Z") for m in moments]


def test_keys(spark: SparkSession) -> None:
    """The key is the column key, a named column, an extension or an expression, otherwise null."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import encode_events

    df = frame(spark, [{"id": "1", "source": "/s", "type": "t", "extensions": {"partitionkey": "p"}}])

    made = [
        encode_events(df.withColumn("key", F.lit(b"\xff"))),
        encode_events(df),
        *(encode_events(df, key=key) for key in ("id", "partitionkey", "nothing", F.lit("own"))),
    ]
    keys = reduce(DataFrame.unionAll, [one.select("key") for one in made]).collect()
    assert [row.key and bytes(row.key) for row in keys] == [b"\xff", None, b"1", b"p", None, b"own"]


@each(
    ("options", "reason"),
    [
        ({"mode": "batch"}, "mode must be"),
        ({"format": "json"}, "mode must be"),
        ({"mode": "structured", "format": "x"}, "avro"),
    ],
)
def test_unknown_modes_and_formats(spark: SparkSession, options: dict[str, Any], reason: str) -> None:
    """An unknown mode or format is refused before anything runs."""
    from cloudevents_kafka.spark import encode_events

    with pytest.raises(ValueError, match=reason):
        encode_events(frame(spark, [{}]), **options)


def test_missing_columns_are_named(spark: SparkSession) -> None:
    """The error names the missing columns and the existing ones."""
    from cloudevents_kafka.spark import encode_events

    with pytest.raises(ValueError, match="no column source, type, only id"):
        encode_events(spark.createDataFrame([("1",)], "id string"))


@pytest.mark.release  # `test_sql_functions_read_and_write` is its sample
def test_sql_functions_keep_types_and_kinds(spark: SparkSession) -> None:
    """ce_encode writes the results of ce_decode as `to_record` writes the decoded events."""
    from cloudevents_kafka.spark import register

    register(spark)
    events = [
        Event(id="1", source="/s", type="t", data={"a": 1}, n=5, b=True),
        Event(id="2", source="/s", type="t", data="text", datacontenttype="text/plain"),
        Event(id="3", source="/s", type="t", data=b"{}"),
    ]
    records = [to_record(event, mode="structured") for event in events]
    rows = [(record.value, record.headers) for record in records]
    schema = "value binary, headers array<struct<key string, value binary>>"
    spark.createDataFrame(rows, schema).createOrReplaceTempView("kinds")
    for way in WAYS:
        mode = way.get("format", way["mode"])
        made = spark.sql(f"select ce_encode(ce_decode(value, headers), '{mode}') as made from kinds")
        assert [record_of(row.made) for row in made.collect()] == [
            written(record, **way) for record in records
        ]


def test_sql_functions_read_and_write(spark: SparkSession) -> None:
    """ce_decode and ce_encode are inverse, and return the usual errors."""
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
    columns = [
        f"ce_encode(event, '{mode}') as {mode}" for mode in ("binary", "structured", "avro", "protobuf")
    ]
    (made,) = spark.sql(f"select {', '.join(columns)} from events where event.error is null").collect()
    for one in made:
        headers, value = record_of(one)
        assert from_record(Record(value=value, headers=headers)) == event
    bad = spark.sql("select ce_encode(named_struct('id', '', 'source', '/s', 'type', 't'), 'binary') as made")
    assert bad.collect()[0].made.error.clause == "R-02"
