"""Records as rows of Spark's Kafka source, and the expected rows of decoded events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.timestamps import to_datetime
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.attributes.validation import native_type
from cloudevents_kafka.binding import Decoded, decode, lenient_mode
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import LeftOut
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.primitives.epoch import EPOCH, MICROSECOND
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

KAFKA_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)


MAPS = ("extensions", "extension_types")


def in_order(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a row with the entries of maps as lists, so that their order counts."""
    return {name: [*value.items()] if name in MAPS else value for name, value in fields.items()}


def rows_of(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    """Return records as Spark's Kafka source does; offsets count from 0."""
    now = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    rows = [
        (r.key, r.value, "events", 0, offset, now, 0, r.headers or None) for offset, r in enumerate(records)
    ]
    return spark.createDataFrame(rows, KAFKA_SCHEMA)


def row_fields(row: Row) -> dict[str, Any]:
    """Return the fields of a decoded row that are not null, as plain values."""
    fields = {name: value for name, value in row.asDict(recursive=True).items() if value is not None}
    if "data" in fields:
        fields["data"] = bytes(fields["data"])
    for name in MAPS:
        if isinstance(fields.get(name), list):
            fields[name] = {entry["key"]: entry["value"] for entry in fields[name]}
    if "error" in fields:
        fields["error"] = {name: text for name, text in fields["error"].items() if text is not None}
    return fields


def read_back(decoded: DataFrame) -> dict[int, dict[str, Any]]:
    """Return the fields of decoded rows by offset; times are in microseconds since the epoch."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    decoded = decoded.withColumn("time", F.unix_micros("time"))
    for name in set(MAPS) & set(decoded.columns):  # PySpark reads the entries of a map in any order
        decoded = decoded.withColumn(name, F.map_entries(name))
    rows = decoded.collect()
    return {(fields := row_fields(row)).pop("offset"): fields for row in rows}


def read_by_java(df: DataFrame, *, lenient: bool = False) -> dict[int, dict[str, Any]]:
    """Return the events that the Java function reads, without the records that it leaves to `decode`."""
    from cloudevents_kafka.spark import decode as spark_decode
    from cloudevents_kafka.spark._columns import PREFIX
    from cloudevents_kafka.spark.java.reader import reader_sql

    sql = reader_sql(df, lenient=lenient)
    assert sql is not None
    read = spark_decode._read_in_java(df, sql, ["offset"])
    read = read.select(f"{PREFIX}read.*", f"{PREFIX}packed", "offset")
    rows = read_back(read.withColumnsRenamed({name: name.removeprefix(PREFIX) for name in read.columns}))
    return {offset: fields for offset, fields in rows.items() if "packed" not in fields}


def expected(record: Record, *, lenient: bool = False) -> dict[str, Any]:
    """Return the fields of a record's row, by `decode`; ``time`` is in microseconds since the epoch."""
    decoded = decode(record, lenient=lenient)
    if isinstance(decoded, Decoded) and lenient:
        fields = {**event_fields(decoded.event), "mode": lenient_mode(record.headers)}
        return fields | _tolerated(decoded)
    if isinstance(decoded, Decoded):
        structured = any(
            name == "content-type" and (value or b"").lower().startswith(b"application/cloudevents")
            for name, value in record.headers
        )
        return {**event_fields(decoded.event), "mode": "structured" if structured else "binary"}
    fields = {"verdict": decoded.error.verdict, "reason": decoded.error.reason}
    for problem in decoded.error.problems[:1]:
        fields["clause"] = problem.clause
        if problem.attribute is not None:
            fields["attribute"] = problem.attribute
    return {"error": fields}


def _tolerated(decoded: Decoded) -> dict[str, Any]:
    problems = []
    for problem in decoded.tolerated:
        value = problem.value if isinstance(problem, LeftOut) else None
        problems.append(
            {
                "attribute": problem.attribute,
                "rule": problem.rule,
                "clause": problem.clause,
                "value": value if isinstance(value, str) else None,
                "value_bytes": value if isinstance(value, bytes) else None,
            }
        )
    return {"tolerated": problems} if problems else {}


def event_fields(event: Event) -> dict[str, Any]:
    """Return the fields of an event that are not null."""
    texts = {name: event.text(name) for name in event}
    fields: dict[str, Any] = {name: texts[name] for name in CORE if name in texts and name != "time"}
    if (time := event.text("time")) is not None:
        fields |= {"time_text": time, "time": (to_datetime(time) - EPOCH) // MICROSECOND}
    fields["extensions"] = {name: text for name, text in texts.items() if name not in CORE}
    values = {name: raw_parts(event)[0][name] for name in fields["extensions"]}
    types = {name: native_type(value) for name, value in values.items() if not isinstance(value, str)}
    if listed := {name: kind.value for name, kind in types.items() if kind is not type_of(name)}:
        fields["extension_types"] = listed
    if event.kind is not DataKind.BYTES:
        fields["data_kind"] = event.kind.value
    return fields if event.payload is None else {**fields, "data": event.payload}
