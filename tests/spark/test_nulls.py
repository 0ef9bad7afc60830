"""Nulls never fail a job: they are ignored, or the row has an error."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.record import Record

from .records import BASE, DATA, JSON_TYPE, binary, structured
from .rows import KAFKA_SCHEMA, expected, read_back, row_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS = pytest.mark.parametrize("way", ["java", "python", "one struct", "SQL"])
GOOD = binary(BASE).headers
DOCUMENT = structured(BASE).value
JSON = ("content-type", JSON_TYPE)
HEADERS: list[list[Any] | None] = [
    None,
    [],
    [None],
    [None, None, *GOOD],
    [*GOOD, None],
    [(None, b"x"), *GOOD],
    [*GOOD, (None, None)],
    [(None, b"x")],
    [(None, b"x"), None, (None, None)],
    [(None, JSON_TYPE), *GOOD],
    [None, JSON],
    [(None, None), JSON, None],
    [JSON, (None, b"application/json")],
    [("content-type", None)],
    [("content-type", None), *GOOD],
    [("content-type", None), JSON],
    [(name, None) for name, _ in GOOD],
    [*GOOD, ("foreign", None), ("", None), ("", b"")],
    [None, *((f"ce_x{n}", b"v") for n in range(9)), (None, b"n"), *GOOD],
    [*([None] * 70), *GOOD],
    [*([(None, b"")] * 70), JSON],
]
VALUES = (None, b"", DATA, DOCUMENT)


def rows() -> list[tuple[list[Any] | None, bytes | None]]:
    return list(product(HEADERS, VALUES))


def as_record(headers: list[Any] | None, value: bytes | None) -> Record:
    """Return the record of a row, without headers that are null or have no name."""
    named = [header for header in headers or () if header is not None and header[0] is not None]
    return Record(value=value, headers=named)


def kafka(spark: SparkSession) -> DataFrame:
    made = [(None, value, None, None, n, None, None, headers) for n, (headers, value) in enumerate(rows())]
    return spark.createDataFrame(made, KAFKA_SCHEMA)


def decoded(spark: SparkSession, way: str, monkeypatch: pytest.MonkeyPatch) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import cloudevent, decode_events, register

    df = kafka(spark)
    if way == "one struct":
        return df.select(cloudevent(F.col("value"), F.col("headers")).alias("event"), "offset").select(
            "event.*", "offset"
        )
    if way == "SQL":
        register(spark)
        return df.selectExpr("ce_decode(value, headers) AS event", "offset").select("event.*", "offset")
    if way == "python":
        monkeypatch.setattr("cloudevents_kafka.spark.decode.reader_sql", lambda df, **options: None)
    return decode_events(df, keep=["offset"])


@WAYS
def test_null_headers_are_ignored(spark: SparkSession, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An element that is null, or has no name, is ignored: Kafka has no such headers."""
    read = read_back(decoded(spark, way, monkeypatch))
    different = {
        n: (row, read[n], wanted)
        for n, row in enumerate(rows())
        if read[n] != (wanted := expected(as_record(*row)))
    }
    assert not different, f"{len(different)} differ, the first: {next(iter(different.values()))}"
    assert len(read) == len(rows())


def test_decode_ignores_null_names() -> None:
    """`decode` treats a header without a name as a foreign one."""
    for headers, value in rows():
        if headers is not None and None not in headers:
            assert expected(Record(value=value, headers=headers)) == expected(as_record(headers, value))


EVENT = {"id": "1", "source": "/s", "type": "t"}
ODD_ROWS: list[tuple[dict[str, Any], str | None]] = [
    ({}, "id: must not be empty"),
    ({**EVENT, "id": None}, "id: must not be empty"),
    ({**EVENT, "source": None}, "source: must not be empty"),
    ({**EVENT, "type": None}, "type: must not be empty"),
    ({**EVENT, "extensions": {}}, None),
    ({**EVENT, "extensions": {"x": None}}, None),
    ({**EVENT, "extensions": {"x": "5"}, "extension_types": {"x": None}}, None),
    ({**EVENT, "extensions": {"x": None}, "extension_types": {"x": "Integer"}}, None),
    ({**EVENT, "extensions": None, "extension_types": {"x": "Integer"}}, None),
    ({**EVENT, "data_kind": "json"}, None),
    ({**EVENT, "data_kind": "proto", "datacontenttype": None}, None),
    ({**EVENT, "data": b"1", "data_kind": None}, None),
]
EVENT_SCHEMA = (
    "id string, source string, type string, subject string, datacontenttype string, "
    "extensions map<string,string>, extension_types map<string,string>, data binary, data_kind string, "
    "key binary, partition int"
)


def events(spark: SparkSession) -> DataFrame:
    names = [field.strip().split(" ")[0] for field in EVENT_SCHEMA.split(", ")]
    made = [
        tuple(number if name == "partition" else row.get(name) for name in names)
        for number, (row, _) in enumerate(ODD_ROWS)
    ]
    return spark.createDataFrame(made, EVENT_SCHEMA)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "structured"},
        pytest.param({"mode": "structured", "format": "avro"}, marks=pytest.mark.release),
        pytest.param({"mode": "structured", "format": "protobuf"}, marks=pytest.mark.release),
        pytest.param({"key": "x"}, marks=pytest.mark.release),
    ],
    ids=str,
)
def test_nulls_of_events_are_absent_or_refused(spark: SparkSession, options: dict[str, Any]) -> None:
    """A null attribute is absent; a null where a value is required is refused."""
    from cloudevents_kafka.spark import encode_events

    written = {
        row.partition: row for row in encode_events(events(spark), errors="column", **options).collect()
    }
    for number, (row, part) in enumerate(ODD_ROWS):
        error = written[number].error
        assert (error is None) == (part is None), (row, error)
        assert part is None or part in error.reason


@pytest.mark.parametrize(
    "mode",
    [
        "binary",
        pytest.param("structured", marks=pytest.mark.release),
        "avro",
        pytest.param("protobuf", marks=pytest.mark.release),
    ],
)
def test_sql_writes_them_the_same(spark: SparkSession, mode: str) -> None:
    """ce_encode refuses the same rows, and returns null for a null event or mode."""
    from cloudevents_kafka.spark import register

    register(spark)
    event = "struct(id, source, type, subject, datacontenttype, extensions, extension_types, data, data_kind)"
    made = events(spark).selectExpr(f"ce_encode({event}, '{mode}') AS made", "partition").collect()
    assert {row.partition: row.made.error is None for row in made} == {
        number: part is None for number, (_, part) in enumerate(ODD_ROWS)
    }
    null = f"IF(partition < 0, {event}, NULL)"
    nulls = events(spark).selectExpr(
        f"ce_encode({null}, '{mode}') AS a", f"ce_encode({event}, IF(partition < 0, '{mode}', NULL)) AS b"
    )
    assert {(row.a, row.b) for row in nulls.collect()} == {(None, None)}


def test_rows_of_nulls(spark: SparkSession) -> None:
    """A record of nulls is not an event, and its decoded row is refused by `encode_events`."""
    from cloudevents_kafka.spark import decode_events, encode_events

    rows = spark.createDataFrame([(None,) * 8], KAFKA_SCHEMA)
    (row,) = decode_events(rows).collect()
    assert row_fields(row)["error"]["verdict"] == "not-an-event"
    (back,) = encode_events(decode_events(rows), errors="column").collect()
    assert (back.value, back.headers, back.error.attribute) == (None, None, "id")
