"""The few rows of a batch that are decoded and counted in this process, not by Spark jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH
from cloudevents_kafka.spark._patterns import matches
from cloudevents_kafka.spark.pipeline.batches._batch_rows import PACKED, Rows, frame_of
from cloudevents_kafka.spark.pipeline.batches._observed import MOST_RULES, rule_counts, texts_of_tolerated
from cloudevents_kafka.spark.pipeline.notes import EVENTS, BatchCounts, table_for
from cloudevents_kafka.spark.pipeline.tables import KAFKA_COLUMNS, rule_of_error, select_quarantine
from cloudevents_kafka.spark.schema import FROM_JSON, event_schema, wire_schema
from cloudevents_kafka.spark.typed.framed import HEADER, check_payload
from cloudevents_kafka.spark.udf import PackedRecord, result_fields

_Place = tuple[str, int, int]
_Fields = dict[str, Any]


class _PackedRow(PackedRecord):
    topic: str = ""
    partition: int = 0
    offset: int = 0

    @property
    def place(self) -> _Place:
        return self.topic, self.partition, self.offset


class _Row(msgspec.Struct):
    """The JSON of a record, its topic, partition and offset, and the fields of its event or error."""

    packed: str
    place: _Place
    fields: _Fields


class DriverRows:
    """Decodes rows from JSON of the type `PACKED`; implements `DecodedRows`."""

    def __init__(self, spark: SparkSession, packed: Iterable[str], rows: Rows) -> None:
        self._spark, self._rows = spark, rows
        decoded = [_decode(text, rows) for text in packed]
        self._events = [row for row in decoded if "error" not in row.fields]
        self._others = [row for row in decoded if "error" in row.fields]
        self.counts = _counts(self._events, self._others, rows)

    @cached_property
    def events(self) -> DataFrame:
        """The rows of events, with the columns of the table of events."""
        rows = self._rows
        return rows.with_values(self._frame(self._events)).selectExpr(*rows.columns())

    @cached_property
    def quarantine(self) -> DataFrame:
        """The rows of records that are not events, with the columns of the quarantine."""
        return select_quarantine(self._frame(self._others))

    def _frame(self, rows: Collection[_Row]) -> DataFrame:
        """Return the rows with the columns of `decode_events` and the columns of Kafka."""
        lenient = self._rows.read.lenient
        frame = frame_of(
            self._spark,
            record=[row.packed for row in rows],
            event=[msgspec.json.encode(row.fields).decode() for row in rows],
        )
        frame = frame.select(
            F.from_json("record", PACKED, FROM_JSON).alias("record"),
            F.from_json("event", wire_schema(lenient=lenient), FROM_JSON).alias("event"),
        )
        fields = {name: f"event.`{name}`" for name in event_schema(lenient=lenient).names}
        fields |= {name: f"record.`{name}`" for name in KAFKA_COLUMNS}
        fields |= {"time": "timestamp_micros(event.`time`)", "timestamp": "timestamp_micros(record.micros)"}
        return frame.selectExpr(*(f"{value} AS `{name}`" for name, value in fields.items()))


def _decode(text: str, rows: Rows) -> _Row:
    record = msgspec.json.decode(text, type=_PackedRow)
    fields = result_fields(record, lenient=rows.read.lenient)
    return _Row(text, record.place, _checked(fields, record, rows))


def _checked(fields: _Fields, record: _PackedRow, rows: Rows) -> _Fields:
    """Return the fields of the event if Spark can read all of its data, otherwise the fields of an error."""
    type_ = fields.get("type")
    if type_ and rows.read.upsert is not None and rows.read.upsert.deletes(fields):
        return fields
    schema = next((each for name, each in rows.read.schemas.items() if type_ and matches(type_, name)), None)
    if schema is None:
        return fields
    frames = (each.value for each in record.headers or () if each and each.key == HEADER)
    checked = check_payload(
        schema,
        fields.get("data"),
        next(frames, None),
        rows.read.writers,
        fields.get("datacontenttype"),
        rescue=rows.read.rescue,
    )
    if checked.reason is not None:
        return {
            "error": {"verdict": "broken-data", "attribute": "data", "reason": checked.reason, "clause": None}
        }
    return {**fields, "data": checked.payload}


def _counts(events: Collection[_Row], others: Collection[_Row], rows: Rows) -> BatchCounts:
    errors = [row.fields["error"] for row in others]
    tolerated = [row.fields["tolerated"] for row in events if "tolerated" in row.fields]
    tables = Counter(table_for(row.fields["type"], rows.read.routes) for row in events)
    return BatchCounts(
        read=len({row.place for row in (*events, *others)}),
        events=len(events),
        quarantined=len(others),
        by_type=_count((row.fields["type"], row.fields["mode"]) for row in events),
        by_reason=_count((error["verdict"], rule_of_error(error)) for error in errors),
        tolerated=len(tolerated),
        by_tolerated=rule_counts(_count(map(texts_of_tolerated, tolerated)), MOST_RULES),
        quarantined_by_topic=Counter(row.place[0] for row in others),
        routed={name: tables[name] for name in sorted(tables) if name != EVENTS},
    )


def _count(labels: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for (outer, inner), number in Counter(labels).items():
        by_inner = counts.setdefault(outer[:MAX_KEY_LENGTH], {})
        by_inner[inner] = by_inner.get(inner, 0) + number
    return counts
