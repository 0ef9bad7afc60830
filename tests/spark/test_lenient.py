"""`decode_events` with ``lenient=True`` returns the events, errors and tolerated problems of `decode`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", minversion="4.0")

from conformance.notation import RecordNotation, as_record, convert

from cloudevents_kafka import AttributeType, Decoded, decode, register_extension, to_record
from cloudevents_kafka.binding import lenient_mode
from cloudevents_kafka.record import Record
from tests.support.strategies import scaled

from .deviating import deviating, producers
from .records import BASE, binary, changed, edges, structured, vectors
from .rows import expected, read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_VECTORS = Path(__file__).parents[2] / "spec-conformance" / "vectors"
DEBEZIUM = Record(value=structured({**BASE, "txId": "5", "gone": None}).value)
MIXED = [DEBEZIUM, binary(BASE), binary({**BASE, "id": ""}), Record(value=b"not ours"), Record()]


def _decoded(df: DataFrame) -> DataFrame:
    from cloudevents_kafka.spark import decode_events

    return decode_events(df, keep=["offset"], lenient=True)


def _compare(spark: SparkSession, records: list[Record]) -> Counter[str]:
    """Check each row; return the number of events with and without deviations, and of verdicts."""
    read = read_back(rows_of(spark, records).repartition(2).transform(_decoded))
    assert len(read) == len(records)
    kinds: Counter[str] = Counter()
    for offset, record in enumerate(records):
        wanted = expected(record, lenient=True)
        assert read[offset] == wanted, record
        kinds["tolerated" if "tolerated" in wanted else wanted.get("error", {}).get("verdict", "event")] += 1
    return kinds


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("reader", ["java", "python"], indirect=True)
def test_all_known_producers(spark: SparkSession) -> None:
    """Each record of `spec-conformance/lenient.md` has the row of `decode`."""
    records = [record for _, record in producers()]
    assert _compare(spark, records)["tolerated"] >= 20


@pytest.mark.usefixtures("reader")
def test_same_row_for_every_record(spark: SparkSession) -> None:
    """So do vectors, edges, changed records, and records with random deviations; some of each kind."""
    kinds = _compare(spark, [*vectors(), *edges(), *changed(scaled(1000)), *deviating(scaled(4000))])
    assert kinds.keys() == {
        *("tolerated", "event", "not-an-event", "broken-event", "unsupported-format", "batch"),
    }
    assert kinds["tolerated"] > scaled(1000)


def test_the_mode_is_that_of_the_vectors() -> None:
    """The content mode of an event that only lenient reading accepts is that of its vector."""
    count = 0
    for name in ("real-producers.json", "decode-matrix.json"):
        for case in json.loads((_VECTORS / name).read_text("utf-8"))["cases"]:
            if case["lenient"]["verdict"] == "event" and "mode" in case["lenient"]:
                record = as_record(convert(case["record"], RecordNotation))
                assert lenient_mode(record.headers) == case["lenient"]["mode"], case["about"]
                count += 1
    assert count > 40


def test_columns_are_those_of_the_schema(spark: SparkSession) -> None:
    """The column ``tolerated`` follows the others of the event, if reading is lenient."""
    from cloudevents_kafka.spark import decode_events, event_schema

    event = event_schema(lenient=True)
    read = decode_events(rows_of(spark, MIXED), lenient=True).schema
    assert event.names == [*event_schema().names, "tolerated"]
    assert [(f.name, f.dataType) for f in read[: len(event)]] == [(f.name, f.dataType) for f in event]
    assert "tolerated" not in decode_events(rows_of(spark, MIXED)).columns
    with pytest.raises(ValueError, match="keep contains tolerated, which is a column of the event"):
        decode_events(
            rows_of(spark, MIXED).withColumnRenamed("key", "tolerated"), keep=["tolerated"], lenient=True
        )


def test_sql_and_one_struct(spark: SparkSession) -> None:
    """The function of SQL and `cloudevent` return what `decode_events` does."""
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark import cloudevent, event_schema, register

    register(spark)
    rows = rows_of(spark, MIXED)
    event = cloudevent(F.col("value"), F.col("headers"), lenient=True)
    for made in (event, F.expr("ce_decode_lenient(value, headers)")):
        frame = rows.select("offset", made.alias("event"))
        assert frame.schema["event"].dataType.simpleString() == event_schema(lenient=True).simpleString()
        read = read_back(frame.select("event.*", "offset"))
        assert [read[offset] for offset in range(len(MIXED))] == [
            expected(record, lenient=True) for record in MIXED
        ]


def test_what_was_read_leniently_can_be_written(spark: SparkSession) -> None:
    """``tolerated`` is not an attribute of the event that SQL and `encode_events` write."""
    from cloudevents_kafka.spark import decode_events, encode_events, register

    register(spark)
    rows = rows_of(spark, [DEBEZIUM])
    made = "ce_encode(ce_decode_lenient(value, headers), 'structured') AS made"
    (by_sql,) = rows.selectExpr(made).select("made.*").collect()
    (written,) = encode_events(decode_events(rows, lenient=True), mode="structured").collect()
    assert by_sql.error is None
    for value in (by_sql.value, written.value):
        fields = json.loads(bytes(value))
        assert fields["txid"] == "5"
        assert "tolerated" not in fields


def test_a_value_that_breaks_a_rule_is_not_written(spark: SparkSession) -> None:
    """`encode_events` writes valid events only, also if lenient reading has kept a value for `to_record`."""
    from cloudevents_kafka.spark import decode_events, encode_events

    record = Record(value=structured({**BASE, "source": "my shop"}).value)
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded)
    assert ("ce_source", b"my shop") in to_record(item.event).headers
    (row,) = encode_events(decode_events(rows_of(spark, [record]), lenient=True), errors="column").collect()
    assert (row.value, row.error.attribute, row.error.clause) == (None, "source", "T-11")


@pytest.mark.usefixtures("reader", "registry")
def test_registered_extensions(spark: SparkSession) -> None:
    """Types and rules that a user registered decide what is tolerated."""
    register_extension(
        "comexamplelucky", AttributeType.INTEGER, rule="must be 7", accepts=lambda value: value == 7
    )
    register_extension("comexampleflag", AttributeType.BOOLEAN, needs=["subject"])
    register_extension("partitionkey", AttributeType.INTEGER)
    values: list[dict[str, Any]] = [
        {"comexamplelucky": "7"},
        {"comexampleLucky": "8"},
        {"comexamplelucky": ""},
        {"comexampleflag": "True", "partitionkey": "5"},
        {"comexampleFlag": "TRUE", "subject": "", "partitionkey": 5},
        {"partitionkey": ""},
        {"partitionkey": {}},
    ]
    records = [binary({**BASE, **{n: v for n, v in more.items() if isinstance(v, str)}}) for more in values]
    records += [Record(value=structured({**BASE, **more}).value) for more in values]
    assert _compare(spark, records)["tolerated"] >= 10


def test_the_reason_names_lenient_reading(spark: SparkSession) -> None:
    """As in Python, the reason of JSON that no header marks says that lenient=True reads it."""
    from cloudevents_kafka.spark import decode_events

    record = Record(value=b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}')
    (row,) = decode_events(rows_of(spark, [record]), keep=["offset"]).collect()
    assert row.error.verdict == "not-an-event"
    assert row.error.reason.endswith("; the value may be an event in JSON: lenient=True reads it")
    (row,) = decode_events(rows_of(spark, [record]), keep=["offset"], lenient=True).collect()
    assert (row.error, row.id) == (None, "1")
