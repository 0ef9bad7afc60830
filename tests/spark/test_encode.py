"""Spark writes events as the converters do: the same keys, headers and values, the same refusals."""

from __future__ import annotations

from datetime import UTC, datetime
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
from cloudevents_kafka.event import raw_parts

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
ALL_WAYS = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("format", way["mode"]))
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


@ALL_WAYS
def test_written_as_the_converters_write(spark: SparkSession, way: dict[str, Any]) -> None:
    """Vectors, edges, changed records and odd rows: the same bytes, or a refusal in both."""
    from cloudevents_kafka.spark import encode_events

    rows = [*good(), *odd()]
    df = frame(spark, rows)
    made = {row.partition: row for row in encode_events(df, errors="column", **way).collect()}
    assert len(made) == len(rows)
    different = []
    for number, row in enumerate(rows):
        try:
            record = to_record(as_event(row), **way)
        except (InvalidEvent, EncodeError):
            agreed = made[number].error is not None and told(made[number]) == (None, None)
        else:
            agreed = made[number].error is None and told(made[number]) == (record.headers, record.value)
        if not agreed:
            different.append((row, made[number]))
    assert not different, different[:3]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Records of all kinds, good and bad, also in formats that Spark leaves to the converters."""
    read = [*vectors(), *edges(), *changed(1000)]
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
    """What Spark reads of the records; ``partition`` is their number."""
    from cloudevents_kafka.spark import decode_events

    folder = tmp_path_factory.mktemp("read") / "events"
    rows = rows_of(spark, records)
    rows = rows.withColumn("partition", rows["offset"])
    decode_events(rows, keep=["key", "partition"]).write.parquet(str(folder))
    return folder


@ALL_WAYS
def test_a_round_trip_is_that_of_the_converters(
    spark: SparkSession, read_records: Path, records: list[Record], way: dict[str, Any]
) -> None:
    """What was read by Spark is written as `to_record` writes what `from_record` read.

    In columns attributes have an order of their own, and the bytes of a structured event are
    gone: so the event that is read again must be the same, with the types of its attributes
    and the kind of its data, and the bytes those that such an event has without them.
    """
    from cloudevents_kafka.spark import encode_events

    made = encode_events(spark.read.parquet(str(read_records)), errors="column", **way).collect()
    rows = {row.partition: row for row in made}
    different = []
    for number, record in enumerate(records):
        row, wanted = rows[number], written(record, **way)
        if (None if row.error is not None else told(row)) != wanted:
            different.append((record, row, wanted))
        elif wanted is not None:
            headers, value = wanted
            event = from_record(record)
            straight = to_record(event, **way)
            assert sorted(headers) == sorted(straight.headers)
            again, wire = from_record(Record(value=value, headers=headers)), raw_parts(event)[1]
            assert _all_of(again) == _all_of(from_record(straight))
            if wire is None or straight.value is not wire[1]:  # else it is the value that came, as it came
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
    ({"n": "05"}, {"n": "Integer"}, "n: an Integer is a 32-bit number in plain digits"),
    ({"b": "yes"}, {"b": "Boolean"}, "b: a Boolean is true or false"),
    ({"n": "5"}, {"n": "int"}, "extension_types must be Boolean, Integer"),
    ({"id": "5"}, None, "extensions has an entry 'id', which no extension may be called"),
    ({"subject": "5"}, None, "extensions has an entry 'subject'"),
    ({"data": "5"}, None, "extensions has an entry 'data'"),
]


@ALL_WAYS
def test_extensions_have_the_types_that_are_named(spark: SparkSession, way: dict[str, Any]) -> None:
    """In a format that has types, and as texts in headers; a text that is not of its type is refused."""
    from cloudevents_kafka.spark import encode_events

    rows = [
        ("1", "/s", "t", None, extensions, types, None, None, number)
        for number, (extensions, types, _) in enumerate(NAMED_TYPES)
    ]
    for row in encode_events(spark.createDataFrame(rows, TYPED), errors="column", **way).collect():
        extensions, types, said = NAMED_TYPES[row.partition]
        if said is not None:
            assert said in row.error.reason
            continue
        headers, value = told(row)
        read = from_record(Record(value=value, headers=headers))
        kinds = {name: AttributeType(kind) for name, kind in (types or {}).items()}
        binary = way["mode"] == "binary"
        assert dict(read.extensions) == {
            n: text if binary else parse(kinds[n], text) for n, text in extensions.items()
        }


NAMED_KINDS: list[tuple[str | None, bytes, str, str | None]] = [
    (None, b'{"a":1}', "json", None),
    (None, b'{"a":1}', "bytes", None),
    (None, b"{", "json", "data_kind is json, but data is not JSON"),
    (None, b'{"a":1}', "text", "data_kind is text, which data with no datacontenttype cannot be"),
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
    (None, b"\xff", "proto", "data_kind is proto, but data is no google.protobuf.Any"),
]


@ALL_WAYS
def test_data_is_what_it_is_named(spark: SparkSession, way: dict[str, Any]) -> None:
    """JSON and text stay that from format to format; what cannot be it is refused, in all of them."""
    from cloudevents_kafka.spark import encode_events

    rows = [
        ("1", "/s", "t", media, None, None, data, kind, number)
        for number, (media, data, kind, _) in enumerate(NAMED_KINDS)
    ]
    for row in encode_events(spark.createDataFrame(rows, TYPED), errors="column", **way).collect():
        media, data, kind, said = NAMED_KINDS[row.partition]
        if said is not None:
            assert said in row.error.reason
            continue
        assert row.error is None
        headers, value = told(row)
        read = from_record(Record(value=value, headers=headers))
        assert read.payload == data
        if way["mode"] == "binary":
            implied = "application/json" if kind == "json" and media is None else media
            assert read.datacontenttype == implied
        elif kind != "proto" or way.get("format") == "protobuf":
            assert read.kind.value == kind or way.get("format") == "avro"


@pytest.mark.parametrize("way", WAYS[:2], ids=lambda way: way["mode"])
def test_values_of_extensions_may_have_other_types(spark: SparkSession, way: dict[str, Any]) -> None:
    """A map of Integers, Booleans, bytes or instants is one of such attributes, as for `Event`."""
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
        assert told(row) == (wanted.headers, wanted.value), kind
        assert bytes(row.key).decode() == event.text("ext")


@ALL_WAYS
def test_a_text_that_is_none_is_refused(spark: SparkSession, way: dict[str, Any]) -> None:
    """Bytes that a cast has called a text are not written as others."""
    from cloudevents_kafka.spark import encode_events

    good = {"id": "'1'", "source": "'/s'", "type": "'t'", "subject": "'u'", "time": "NULL"}
    odd = "CAST(X'61FF' AS STRING)"
    columns = [f"IF(n = {n}, {odd}, {good[name]}) AS {name}" for n, name in enumerate(good)]
    extensions = f"map('x', IF(n = {len(good)}, {odd}, 'y')) AS extensions"
    rows = spark.range(len(good) + 1).withColumnRenamed("id", "n")
    made = encode_events(rows.selectExpr(*columns, extensions), errors="column", **way).collect()
    assert ["not valid UTF-8" in row.error.reason for row in made] == [True] * (len(good) + 1)


def test_an_integer_that_is_none_is_refused(spark: SparkSession) -> None:
    """Spark's have 64 bits, and an attribute's 32."""
    from cloudevents_kafka.spark import encode_events

    schema = "id string, source string, type string, extensions map<string,long>"
    df = spark.createDataFrame([("1", "/s", "t", {"ext": 2**31})], schema)
    (row,) = encode_events(df, errors="column").collect()
    assert row.error.attribute == "ext"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_an_instant_among_extensions_is_written_as_rfc_3339(spark: SparkSession, zone: str) -> None:
    """In UTC, whatever the session's zone is."""
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
    assert dict(told(row)[0])["ce_ts"] == b"2024-01-01T00:00:00Z"


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


def test_sql_functions_keep_types_and_kinds(spark: SparkSession) -> None:
    """What ce_decode makes, ce_encode writes as `to_record` writes the event that was read."""
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
        assert [told(row.made) for row in made.collect()] == [written(record, **way) for record in records]


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
