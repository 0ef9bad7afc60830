"""All problems of the columns are reported in one error, before any job runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.record import Record

from .records import BASE, binary
from .rows import KAFKA_SCHEMA, expected, read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEADERS = "array<struct<key:string,value:binary>>"
RECORD = binary(BASE)
EVENT = "id string, source string, type string"


@pytest.fixture
def no_job(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Fail a test in which Spark runs a job."""
    group = request.node.nodeid
    spark.sparkContext.setJobGroup(group, "no job")
    yield
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # removes it
    assert not jobs


def decode_error(df: DataFrame, **options: Any) -> str:
    """Return the error of `decode_events`."""
    from cloudevents_kafka.spark import decode_events

    with pytest.raises(ValueError, match=r"^decode_events: ") as caught:
        decode_events(df, **options)
    return str(caught.value)


@pytest.mark.usefixtures("no_job")
@pytest.mark.parametrize(
    ("schema", "parts"),
    [
        (
            f"value string, headers {HEADERS}",
            ["column value must be binary, got string", "binaryAsString"],
        ),
        (f"value int, headers {HEADERS}", ["column value must be"]),
        (
            "value binary, headers map<string,binary>",
            [f"column headers must be {HEADERS}, got map<string,binary>"],
        ),
        (
            "value binary, headers array<struct<name:string,value:binary>>",
            ["struct<name:string,value:binary>"],
        ),
        ("value binary, headers array<struct<value:binary,key:string>>", ["column headers must be"]),
        ("value binary, headers array<struct<key:string,value:string>>", ["key:string,value:string"]),
        ("value binary, headers array<struct<key:string,value:binary,n:int>>", ["column headers must be"]),
        ("value binary, headers string", ["column headers must be"]),
        ("value string, headers string", ["column value must be", "column headers must be"]),
        (
            "value string, x int",
            ["no column headers, only value, x", "includeHeaders", "column value must be"],
        ),
    ],
)
def test_a_column_of_another_type_is_named(spark: SparkSession, schema: str, parts: list[str]) -> None:
    """The error has the type of each column, and the required one."""
    message = decode_error(spark.createDataFrame([], schema))
    assert [part for part in parts if part not in message] == []


@pytest.mark.usefixtures("no_job")
@pytest.mark.parametrize(
    ("keep", "part"),
    [
        ("offset", "keep must be a list of names, got a text: use keep=['offset']"),
        (["offset", "offset"], "keep contains offset twice"),
        (["offset", "Offset"], "keep contains Offset twice"),
        (["time"], "keep contains time, which is a column of the event"),
        (["ID"], "keep contains ID, which is a column of the event"),
        (["nothing", "neither"], "no column nothing, neither, only key"),
        ([1], "got values that are not texts"),
    ],
)
def test_invalid_keep(spark: SparkSession, keep: Any, part: str) -> None:
    """The error names the column that is ambiguous, or missing, or the value that is not a name."""
    df = rows_of(spark, []).selectExpr("*", "timestamp AS time", "1 AS ID")
    assert part in decode_error(df, keep=keep)


@pytest.mark.usefixtures("no_job")
def test_all_problems_are_in_one_error(spark: SparkSession) -> None:
    """Problems of types, of ``keep`` and missing columns come together."""
    df = spark.createDataFrame([], f"value string, headers {HEADERS}, time int")
    message = decode_error(df, keep=["time", "time", "offset"])
    for part in ("no column offset", "column value must be", "time twice", "a column of the event"):
        assert part in message


def test_columns_of_the_same_name(spark: SparkSession) -> None:
    """Two columns of one name are refused, as after a join; case does not count."""
    df = rows_of(spark, [])
    assert "2 columns are named value" in decode_error(df.selectExpr("*", "'' AS value"))
    assert "2 columns are named key" in decode_error(df.selectExpr("*", "'' AS KEY"))
    assert "2 columns are named offset" in decode_error(df.selectExpr("*", "'' AS OFFSET"), keep=["offset"])


@pytest.mark.usefixtures("reader")
def test_any_other_name_can_be_kept(spark: SparkSession) -> None:
    """Names may have the internal prefix, characters of SQL, or another case."""
    from cloudevents_kafka.spark import decode_events, event_schema

    more = [
        "__ce_value",
        "__ce_read",
        "__ce_decoded",
        "__CE_json",
        "__ce_kept_0",
        "a.b",
        "a`b",
        "select",
        "é x",
    ]
    columns = [f"'{n}' AS `{name.replace('`', '``')}`" for n, name in enumerate(more)]
    df = rows_of(spark, [RECORD]).selectExpr("*", *columns)
    keep = [*more, "value", "headers", "Offset"]
    read = decode_events(df, keep=keep)
    assert read.columns == event_schema().names + keep
    (row,) = read.collect()
    assert [row[name] for name in more] == [str(n) for n in range(len(more))]
    assert (row.id, row.Offset, bytes(row.value)) == (BASE["id"], 0, RECORD.value)
    assert row.error is None


@pytest.mark.usefixtures("reader")
def test_names_in_another_case_are_found(spark: SparkSession) -> None:
    """Names are found by the rules of Spark, with its setting for case."""
    from cloudevents_kafka.spark import decode_events

    df = rows_of(spark, [RECORD]).withColumnsRenamed({"value": "Value", "headers": "HEADERS"})
    assert read_back(decode_events(df, keep=["offset"]))[0] == expected(RECORD)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert "no column value, headers" in decode_error(df)
        df = rows_of(spark, [RECORD]).selectExpr("*", "1 AS Value", "2 AS ID")
        (row,) = decode_events(df, keep=["offset", "ID"]).collect()
        assert (row.id, row.ID) == (BASE["id"], 2)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.usefixtures("no_job")
@pytest.mark.parametrize(
    ("schema", "parts"),
    [
        ("id long, source string, type string", ["column id must be string, got bigint"]),
        ("id string, source binary", ["no column type, only id, source", "column source must be"]),
        (f"{EVENT}, time timestamp_ntz", ["column time must be timestamp or string, got timestamp_ntz"]),
        (f"{EVENT}, time date", ["column time must be"]),
        (f"{EVENT}, extensions struct<a:string>", ["column extensions must be"]),
        (f"{EVENT}, extensions map<string,double>", ["map<string,double>", "map<string,string>, or of int"]),
        (f"{EVENT}, extensions map<int,string>", ["map<int,string>"]),
        (f"{EVENT}, extensions map<string,timestamp_ntz>", ["map<string,timestamp_ntz>"]),
        (f"{EVENT}, data struct<a:int>", ["column data must be binary or string, got struct<a:int>"]),
        (f"{EVENT}, data int, data_kind int", ["column data must be", "column data_kind must be"]),
        (f"{EVENT}, extension_types map<string,int>", ["column extension_types must be"]),
        (f"{EVENT}, key int", ["column key must be binary or string, got int"]),
        (f"{EVENT}, topic int, partition string", ["column topic must be", "column partition must be"]),
        (f"{EVENT}, Id string", ["2 columns are named id"]),
        ("x int", ["no column id, source, type, only x"]),
    ],
)
def test_columns_of_events_are_checked(spark: SparkSession, schema: str, parts: list[str]) -> None:
    """The columns of events are checked like those of records."""
    from cloudevents_kafka.spark import encode_events

    with pytest.raises(ValueError, match=r"^encode_events: ") as caught:
        encode_events(spark.createDataFrame([], schema))
    assert [part for part in parts if part not in str(caught.value)] == []


def test_the_key_is_checked(spark: SparkSession) -> None:
    """A key must be text or bytes, whether it is named or a column."""
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import encode_events

    df = spark.createDataFrame([], f"{EVENT}, n int")
    with pytest.raises(ValueError, match="column n must be binary or string, got int"):
        encode_events(df, key="n")
    with pytest.raises(ValueError, match="key must be binary or string, got int"):
        encode_events(df, key=F.lit(5))
    with pytest.raises(ValueError, match="key must be a column or an extension, got 'x'"):
        encode_events(df, key="x")


def test_void_columns_and_internal_names(spark: SparkSession) -> None:
    """A void column has nulls of any type; columns with the internal prefix do not disturb."""
    from cloudevents_kafka.spark import encode_events

    df = spark.sql(
        "SELECT '1' AS Id, '/s' AS source, 't' AS type, NULL AS subject, NULL AS time, NULL AS data, "
        "NULL AS extensions, NULL AS key, NULL AS data_kind, NULL AS extension_types, 'k' AS __ce_key, "
        "5 AS __ce_id, 'x' AS `a.b`"
    )
    (row,) = encode_events(df, key="__ce_key").collect()
    headers = [(h.key, bytes(h.value)) for h in row.headers]
    assert headers == [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t")]
    assert (bytes(row.key), row.value) == (b"k", None)


@pytest.mark.usefixtures("reader")
def test_a_collation_changes_no_name_and_no_text(spark: SparkSession) -> None:
    """Header names are case-sensitive, even in columns whose collation is not."""
    from cloudevents_kafka.spark import decode_events

    upper = [(name.upper(), value) for name, value in RECORD.headers]
    records = [RECORD, Record(value=b"v", headers=upper), Record(headers=[*RECORD.headers, ("CE_ID", b"2")])]
    rows = [(r.value, r.headers, n) for n, r in enumerate(records)]
    collated = "array<struct<key:string collate UTF8_LCASE,value:binary>>"
    df = spark.createDataFrame(rows, f"value binary, headers {collated}, offset long")
    read = read_back(decode_events(df, keep=["offset"]))
    assert [read[n] for n in range(len(records))] == [expected(record) for record in records]


@pytest.mark.release  # test_a_collation_changes_no_name_and_no_text is its sample
def test_a_collation_changes_no_text_that_is_written(spark: SparkSession) -> None:
    """Attributes, extensions and the key are written unchanged under any collation."""
    from cloudevents_kafka.spark import encode_events

    text = "string collate UTF8_LCASE"
    schema = (
        f"id {text}, source {text}, type {text}, datacontenttype {text}, data binary, data_kind {text}, "
        f"extensions map<{text},{text}>, extension_types map<{text},{text}>, key {text}"
    )
    row = ("A", "/S", "T", "Application/JSON", b"{}", None, {"b": "X", "a": "5"}, {"a": "Integer"}, "K")
    (made,) = encode_events(spark.createDataFrame([row], schema), mode="structured").collect()
    assert bytes(made.key) == b"K"
    assert json.loads(bytes(made.value)) == {
        "specversion": "1.0",
        "id": "A",
        "source": "/S",
        "type": "T",
        "datacontenttype": "Application/JSON",
        "a": 5,
        "b": "X",
        "data": {},
    }
    refused = spark.createDataFrame([(*row[:6], {"B": "X"}, None, "K")], schema)
    (made,) = encode_events(refused, errors="column", key="B").collect()
    assert made.error.attribute == "B"
    assert bytes(made.key) == b"X"


def test_one_struct_refuses_other_types(spark: SparkSession) -> None:
    """Spark refuses columns of other types for `cloudevent`."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import cloudevent

    for schema in (
        "value map<string,string>, headers int",
        "value binary, headers array<struct<name:string>>",
    ):
        with pytest.raises(AnalysisException):
            spark.createDataFrame([], schema).select(cloudevent(F.col("value"), F.col("headers")))


def test_sql_functions_check_their_arguments(spark: SparkSession) -> None:
    """Values of another type fail the query with an error that names the argument."""
    from pyspark.errors import PythonException

    from cloudevents_kafka.spark import register

    register(spark)
    spark.createDataFrame([("a", "b")], "a string, b string").createOrReplaceTempView("texts")
    calls = {
        "ce_decode(a, NULL)": "value must be binary, got str",
        "ce_decode(binary(a), map(a, b))": f"headers must be {HEADERS}",
        "ce_decode(binary(a), array(struct(a AS key, b AS value)))": "header's value must be binary, got str",
        "ce_encode(struct(a AS id, 5 AS data), 'binary')": "data must be binary or string, got int",
        "ce_encode(named_struct('id', a, 'extensions', array(b)), 'binary')": "extension_types must be maps",
    }
    for sql, part in calls.items():
        with pytest.raises(PythonException) as caught:
            spark.sql(f"SELECT {sql} FROM texts").collect()
        assert part in str(caught.value)


def test_the_schema_of_the_kafka_source(spark: SparkSession) -> None:
    """The columns of the Kafka source have no problem."""
    from cloudevents_kafka.spark import decode_events

    decode_events(spark.createDataFrame([], KAFKA_SCHEMA))
