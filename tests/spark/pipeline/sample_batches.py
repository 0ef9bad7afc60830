"""Batches of rows as the pipeline lands them, small and with the values that readers get wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.spark.pipeline.notes import BegunBatch, OffsetRange, OffsetRanges
from cloudevents_kafka.spark.pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "id string, type string, time timestamp, extensions map<string,string>, data binary, "
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, "
    "headers array<struct<key:string,value:binary>>, record_date date"
)
PIPELINE = "p0"


def ranges(start: int, end: int, topic: str = "orders") -> OffsetRanges:
    """Return the offsets of a batch of one partition."""
    return {topic: {"0": OffsetRange(start, end)}}


def batch_of(
    offsets: OffsetRanges,
    *,
    in_java: bool = True,
    lenient: bool = False,
    routes: Mapping[str, str] | None = None,
) -> BegunBatch:
    """Return the first batch of a pipeline, with these offsets."""
    return BegunBatch(
        number=0,
        batch=0,
        query="q",
        ids={},
        offsets=offsets,
        planned=offsets,
        in_java=in_java,
        lenient=lenient,
        routes=routes or {},
    )


def rows(spark: SparkSession, start: int, end: int, topic: str = "orders") -> DataFrame:
    """Return the rows of a batch, of two days and two tasks."""
    return spark.createDataFrame([row(offset, topic) for offset in range(start, end)], SCHEMA).repartition(2)


def row(offset: int, topic: str = "orders") -> dict[str, Any]:
    return {
        "id": str(offset),
        "type": "t",
        "extensions": {"k": "v"},
        "data": b"{}",
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "key": b"\x00",
        "headers": [],
        "record_date": date(2026, 1, 1 + offset % 2),
    }


def offsets(table: DataFrame) -> list[int]:
    """Return the offsets in a table."""
    return sorted(found["offset"] for found in table.select("offset").collect())


def take(table: Table, batch: DataFrame, landed: OffsetRanges, pipeline: str = PIPELINE) -> bool:
    """Return whether a table took the rows of a batch: not if it has them already."""
    before = table.ledger()
    if not before.left({}, landed, pipeline):
        return False
    table.commit([table.stage(batch)], before, before.add(pipeline, {}, landed))
    return True


def has(table: Table, landed: OffsetRanges) -> bool:
    """Return whether a table has landed these offsets."""
    return not table.ledger().left({}, landed)
