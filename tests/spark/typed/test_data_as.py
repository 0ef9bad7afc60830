"""Payloads in DataFrames: Spark reads what Python finds right, whole, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

pytest.importorskip("pyspark", minversion="4.0")

import fastavro
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.spark import data_as, data_by_type
from cloudevents_kafka.spark._patterns import literal
from cloudevents_kafka.spark.java.reader import fits_sql
from cloudevents_kafka.spark.typed.schemas import DataSchema, data_schema
from cloudevents_kafka.spark.typed.shape import TYPES, Member, Shape
from tests.spark.settings import SETTINGS
from tests.spark.typed.payloads import (
    AVRO,
    EVERY_TYPE,
    avro_of,
    avro_payloads,
    expected,
    json_payloads,
    read_avro,
)
from tests.spark.typed.test_checks import MISFITS, SMALL
from tests.support.cases import each
from tests.support.strategies import scaled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY = 300
NTZ: Final = "timestampType=TIMESTAMP_NTZ"
POLICY: Final = "spark.sql.legacy.timeParserPolicy"
LEGACY: Final = [name for name, values in SETTINGS.items() if "LEGACY" in values.get(POLICY, "")]
JSON = data_schema(EVERY_TYPE)


def frame(spark: SparkSession, payloads: Sequence[bytes | None]) -> DataFrame:
    return spark.createDataFrame(
        [(n, "t", payload) for n, payload in enumerate(payloads)], "n INT, type STRING, data BINARY"
    )


def suspects(spark: SparkSession, payloads: Sequence[bytes | None], schema: DataSchema) -> list[bool]:
    rows = frame(spark, payloads)
    fits = fits_sql(rows, "data", literal(schema.words()))
    return [not row.fits for row in rows.selectExpr("n", f"{fits} AS fits").orderBy("n").collect()]


def values(
    spark: SparkSession, payloads: Sequence[bytes | None], schema: Any
) -> list[tuple[Any, str | None]]:
    rows = data_as(frame(spark, payloads), schema).orderBy("n").collect()
    return [(row.value and row.value.asDict(recursive=True), row.data_error) for row in rows]


def _plain(value: Any) -> Any:
    """Return a value with plain types: times as instants, decimals as floats."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if hasattr(value, "astimezone"):
        return value.astimezone()
    if hasattr(value, "as_tuple"):
        return float(value)
    return bytes(value) if isinstance(value, bytearray) else value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)  # NaN is not equal to itself


def drawn(strategy: SearchStrategy[bytes]) -> list[bytes]:
    """Return many values of a strategy, for one job of Spark."""
    found: list[bytes] = []

    @settings(max_examples=scaled(MANY))
    @given(strategy)
    def collect(value: bytes) -> None:
        found.append(value)

    collect()
    return found


def test_json_is_read_as_python_reads_it(spark: SparkSession) -> None:
    """Row by row: what Python finds wrong has its reason and no value; all other data has all its values."""
    check_json(spark)


def check_json(spark: SparkSession) -> None:
    assert JSON.shape is not None
    payloads = drawn(json_payloads(EVERY_TYPE))
    found = values(spark, payloads, EVERY_TYPE)
    suspected = suspects(spark, payloads, JSON)
    for payload, (value, error), suspect in zip(payloads, found, suspected, strict=True):
        checked = JSON.check(payload)
        assert error == checked.reason, payload
        assert suspect or error is None, payload  # no false negatives
        if error is None:
            assert _plain(value) == _plain(expected(JSON.shape, json.loads(payload))), payload
        else:
            assert value is None


def session_with(spark: SparkSession, name: str) -> SparkSession:
    session = spark.newSession()
    for setting, value in SETTINGS[name].items():
        session.conf.set(setting, value)
    return session


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.release] * (name != NTZ))
        for name in SETTINGS
        if name not in LEGACY
    ],
)
def test_json_is_read_by_any_settings(spark: SparkSession, name: str) -> None:
    """No setting of a session changes values, reasons or types."""
    session = session_with(spark, name)
    check_json(session)
    assert JSON.type_in(session) == JSON.type_in(spark)


@each("name", LEGACY)
def test_times_are_not_read_by_spark_2(spark: SparkSession, name: str) -> None:
    """A session that would read the digits of a second wrongly is refused if the schema has a time."""
    rows = frame(session_with(spark, name), [b'{"a":1}'])
    for type_ in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
        for schema in (f"a {type_}", f"a ARRAY<STRUCT<b: MAP<STRING, {type_}>>>"):
            with pytest.raises(ValueError, match="must be CORRECTED for a schema with times, got LEG"):
                data_as(rows, schema)
    assert values(rows.sparkSession, [b'{"a":1}'], "a INT") == [({"a": 1}, None)]


def test_avro_is_read_as_python_reads_it(spark: SparkSession) -> None:
    """The same for Avro, compared with fastavro."""
    schema, payloads = data_schema(AVRO), drawn(avro_payloads())
    found = values(spark, payloads, AVRO)
    suspected = suspects(spark, payloads, schema)
    for payload, (value, error), suspect in zip(payloads, found, suspected, strict=True):
        assert error == schema.check(payload).reason, payload
        assert suspect or error is None, payload
        if error is None:
            assert _text(_plain(value)) == _text(read_avro(payload)), payload


def test_misfits_have_reasons(spark: SparkSession) -> None:
    """Each misfit of the table is found in Spark, with the reason of Python; good ones never go to Python."""
    schema = DataSchema("json", SMALL)
    payloads = [payload for payload, _ in MISFITS]
    assert [error for _, error in values(spark, payloads, schema)] == [reason for _, reason in MISFITS]
    assert all(suspects(spark, payloads, schema))
    good = [
        b'{"a":1}',
        b'{"a" : -9223372036854775808, "more": [{"a":"\\u00e4"}], "d":999.99, "l":[1e9,-0.5]}',
    ]
    good += [
        b'{"t":"2024-01-01T00:00:00.123456+01:00","y":"2024-02-29","x":"QQ==","a":0,"m":{"\xc3\xa4":""}}'
    ]
    good += [b'{"a":1,"s":"\\ud83d\\ude00 \\ud7ff"}']
    assert suspects(spark, good, schema) == [False] * len(good)
    bad = [b'{"a":1,"more":"\\ud83d","s":""}', b'{"a":1,"s":"\\ude00\\ud83d"}']
    assert suspects(spark, bad, schema) == [True] * len(bad)


def record(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return {"type": "record", "name": "R", "fields": fields}


@pytest.mark.release  # test_avro_is_read_as_python_reads_it is its sample
def test_avro_beyond_the_budget_or_the_calendar_is_a_misfit(spark: SparkSession) -> None:
    """Java suspects it, and Python names the bound; nothing becomes null."""
    nulls = {"type": "array", "items": {"type": "array", "items": "null"}}
    full = zigzag.encode(65_536) + b"\0"
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    times = record(t=["null", millis], d={"type": "int", "logicalType": "date"})
    numbers = [(0, 0), (-(2**63), 0), (2**63 - 1, 0), (253_402_300_800_000, 0), (0, 2**31 - 1)]
    data = [b"\x02" + zigzag.encode(time) + zigzag.encode(day) for time, day in numbers]
    for schema, payloads in (
        (times, data),
        (record(a=nulls), [b"\x02" + full + b"\0", b"\x04" + full * 2 + b"\0"]),
    ):
        read = data_schema(schema)
        found = values(spark, payloads, read)
        assert [error for _, error in found] == [read.check(payload).reason for payload in payloads]
        assert [value is None for value, _ in found] == [False, *[True] * (len(payloads) - 1)]
        assert suspects(spark, payloads, read) == [False, *[True] * (len(payloads) - 1)]


def test_members_of_items_have_one_bound(spark: SparkSession) -> None:
    """Java and Python count the members of each object, with absent ones, up to one bound by its bytes."""
    wide = Shape("STRUCT", members=tuple(Member(f"m{n}", Shape("BIGINT")) for n in range(500)))
    schema = DataSchema("json", Shape("STRUCT", members=(Member("l", Shape("ARRAY", item=wide)),)))
    payloads = [
        b'{"l":[' + b"{}," * n + b"{}]}" + b" " * spaces for n, spaces in ((40, 0), (41, 11), (41, 12))
    ]
    assert 16_384 + 32 * len(payloads[1]) < 1 + 500 * 42
    reasons = [schema.check(payload).reason for payload in payloads]
    assert [reason is None for reason in reasons] == [True, False, True]
    assert suspects(spark, payloads, schema) == [False, True, False]
    rows = data_as(frame(spark, payloads), schema).orderBy("n").selectExpr("size(value.l) AS n", "data_error")
    assert [tuple(row) for row in rows.collect()] == [(41, None), (None, reasons[1]), (42, None)]


def test_an_invalid_default_of_an_avro_reader_does_not_matter(spark: SparkSession) -> None:
    """A default that is not of the type of its field changes no value, and the job does not fail."""
    nullable = ["null", {"type": "long", "logicalType": "timestamp-millis"}]
    schema = record(t=nullable, d="double", r={**record(a="int"), "name": "Inner"})
    for field, default in zip(schema["fields"], ("null", "0.0", {}), strict=True):
        field["default"] = default
    datum = b"\0" + b"\0" * 8 + b"\x02"
    assert values(spark, [datum], schema) == [({"t": None, "d": 0.0, "r": {"a": 1}}, None)]
    assert suspects(spark, [datum], data_schema(schema)) == [False]


def test_invalid_logical_types_of_an_avro_reader_are_ignored(spark: SparkSession) -> None:
    """Java, Python and Spark read the type below them; wrong data has a reason, and the job does not fail."""
    schema = record(
        b={"type": "bytes", "logicalType": "decimal"},
        s={"type": "string", "logicalType": "decimal", "precision": 4, "scale": 2},
        n={"type": "long", "logicalType": "date"},
    )
    payloads = [b"\x02\xff" + b"\x02a" + zigzag.encode(2**40), b"\x02\xff"]
    read = data_schema(schema)
    reasons = [read.check(payload).reason for payload in payloads]
    found = values(spark, payloads, schema)
    assert found == [({"b": b"\xff", "s": "a", "n": 2**40}, None), (None, reasons[1])]
    assert reasons[0] is None
    assert (reasons[1] or "").startswith("data: /s must be of the schema, ")
    assert suspects(spark, payloads, read) == [False, True]


@pytest.mark.release  # test_misfits_have_reasons is its sample
def test_what_the_parser_refuses_is_a_suspect(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Java were wrong about a payload that Spark does not read, Python would decide it."""
    payloads = [b'{"a":1}', b'{"a":"x"}', b'{"a":3', b'{"a":1,"d":1000}']
    schema = DataSchema("json", SMALL)
    expected = values(spark, payloads, schema)
    monkeypatch.setattr("cloudevents_kafka.spark.typed.values.fits_sql", lambda *_: "true")
    assert values(spark, payloads, schema) == expected


@pytest.mark.release  # the tests above compare with Python, too
def test_python_alone_reads_the_same(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the Java function Python checks all rows, with the same results."""
    payloads = [b'{"a":1,"s":"x"}', *(payload for payload, _ in MISFITS)]
    with_java = values(spark, payloads, DataSchema("json", SMALL))
    monkeypatch.setattr("cloudevents_kafka.spark.typed.values.fits_sql", lambda *_: "false")
    assert values(spark, payloads, DataSchema("json", SMALL)) == with_java


def test_rows_that_are_not_events_have_neither(spark: SparkSession) -> None:
    """A row without a type has no value and no error."""
    rows = spark.createDataFrame([(None, None), ("t", None)], "type STRING, data BINARY")
    found = [(row.value, row.data_error) for row in data_as(rows, "a INT").collect()]
    assert found == [(None, None), (None, "data: it must be one JSON text, got no data")]


NOT_UTF8: Final = "data: it must be one JSON text, got bytes that are not UTF-8"
CHARSETS: Final[list[tuple[str | None, bytes, str | None, str | None]]] = [
    ("application/json; charset=iso-8859-1", '{"s":"é"}'.encode("latin-1"), "é", None),
    ("application/json; charset=iso-8859-1", '{"s":"é"}'.encode(), "Ã©", None),
    ('application/vnd.a+json;v=1;CHARSET="UTF-16"', '{"s":"é"}'.encode("utf-16"), "é", None),
    ("application/json; charset=UTF-8", '{"s":"é"}'.encode(), "é", None),
    ("application/json; charset=no-such-charset", '{"s":"é"}'.encode(), "é", None),
    ("text/plain; charset=iso-8859-1", '{"s":"é"}'.encode(), "é", None),
    (None, '{"s":"é"}'.encode(), "é", None),
    ("a/json;charset=us-ascii", '{"s":"é"}'.encode("latin-1"), None, NOT_UTF8),
    ("a/json;charset=utf-16", b"\0", None, NOT_UTF8.replace("UTF-8", "of its charset")),
]


def test_json_is_in_the_charset_of_its_content_type(spark: SparkSession) -> None:
    """Data is the text that it is for an event, in Spark as in Python."""
    rows = spark.createDataFrame(
        [(n, "t", type_, payload) for n, (type_, payload, *_) in enumerate(CHARSETS)],
        "n INT, type STRING, datacontenttype STRING, data BINARY",
    )
    found = data_as(rows, "s STRING").orderBy("n").select("value.s", "data_error").collect()
    assert [tuple(row) for row in found] == [tuple(expected) for _, _, *expected in CHARSETS]


def test_data_by_type(spark: SparkSession) -> None:
    """Each type has a field; the first pattern that matches decides; other types are not read."""
    rows = spark.createDataFrame(
        [("order.placed", b'{"total":1}'), ("order.paid", avro_datum()), ("x", b"?"), ("order.x", b"?")],
        "type STRING, data BINARY",
    )
    long = {"type": "record", "name": "Paid", "fields": [{"name": "sum", "type": "long"}]}
    schemas = {"order.placed": "total BIGINT", "order.paid": long, "order.*": "a INT"}
    found = data_by_type(rows, schemas)
    assert found.columns == ["type", "data", "value", "data_error"]
    placed, paid, other, broken = (row.asDict(recursive=True) for row in found.collect())
    assert placed["value"] == {"order.placed": {"total": 1}, "order.paid": None, "order.*": None}
    assert paid["value"]["order.paid"] == {"sum": 17}
    assert (other["value"], other["data_error"]) == (None, None)
    assert broken["data_error"].startswith("data: it must be one JSON text")
    with pytest.raises(ValueError, match="one type or more"):
        data_by_type(rows, {})


def avro_datum() -> bytes:
    return bytes([34])


def test_rescue(spark: SparkSession) -> None:
    """With rescue the value has what fits, and a text with the rest; Avro data has no other members."""
    rows = frame(spark, [b'{"a":"x","more":1}', b'{"a":1}'])
    found = data_as(rows, "a INT", rescue=True).orderBy("n").select("value.*", "data_error").collect()
    assert [tuple(row) for row in found] == [(None, '{"/a":"x","/more":1}', None), (1, None, None)]
    found = data_as(frame(spark, [b"\x02", b"\x02\x02"]), record(a="int"), rescue=True).orderBy("n").collect()
    assert [row.value and row.value.asDict() for row in found] == [{"a": 1}, None]
    assert found[1].data_error is not None


@dataclass
class Order:
    total: int


def test_a_class_is_a_schema(spark: SparkSession) -> None:
    """The class of ``data_type=`` reads data in Spark."""
    rows = frame(spark, [b'{"total":17}', b"{}"])
    found = data_as(rows, Order).orderBy("n").selectExpr("value.total", "data_error").collect()
    assert [tuple(row) for row in found] == [(17, None), (None, MISFITS[6][1].replace("/a", "/total"))]


def test_wrong_frames_and_schemas_are_refused(spark: SparkSession) -> None:
    """The error comes with the call, before anything runs."""
    rows = frame(spark, [])
    with pytest.raises(ValueError, match="has no column data"):
        data_as(rows.drop("data"), "a INT")
    with pytest.raises(ValueError, match="must not have the column value"):
        data_as(rows.withColumn("value", F.lit(1)), "a INT")
    with pytest.raises(ValueError, match="types that JSON has, got INTERVAL DAY TO SECOND at /a"):
        data_as(rows, "a INTERVAL DAY TO SECOND")
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]}
    with pytest.raises(ValueError, match="must read the schema of Avro, got "):
        data_as(rows, tree)
    shop = {"type": "record", "name": "my-shop.Order", "fields": [{"name": "a", "type": "int"}]}
    with pytest.raises(ValueError, match=r"must read the schema of Avro, got .*my-shop"):
        data_as(rows, shop)
    with pytest.raises(ValueError, match="must be DDL, JSON Schema or Avro"):
        data_as(rows, "no schema at all, or is it")


@pytest.mark.release
def test_the_table_of_types_is_that_of_spark(spark: SparkSession) -> None:
    """What the table says of Avro is what ``from_avro`` makes of it."""
    logical = {"uuid": "string", "date": "int", "decimal": "bytes"}
    more = {
        "enum": {"type": "enum", "name": "E", "symbols": ["A"]},
        "fixed": {"type": "fixed", "name": "F", "size": 1},
        "array": {"type": "array", "items": "string"},
        "map": {"type": "map", "values": "string"},
        "record": {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]},
        "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
    }
    empty = frame(spark, [])
    for row in TYPES:
        for name in filter(None, row.avro.split(", ")):
            base = logical.get(name, "long" if "timestamp" in name else name)
            type_ = more.get(name, {"type": base, "logicalType": name} if base != name else name)
            schema = {"type": "record", "name": "Root", "fields": [{"name": "a", "type": type_}]}
            fastavro.parse_schema(schema)
            found = data_as(empty, schema).select("value.a").schema["a"].dataType.simpleString()
            assert found.upper().partition("<")[0] == row.spark, name
    assert avro_of
