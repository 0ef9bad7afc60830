"""Reads the records of a batch and counts the rows: either Java reads first, or Python reads all records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cloudevents_kafka.spark._names import PREFIX
from cloudevents_kafka.spark._sql import settings
from cloudevents_kafka.spark.decode import decode_events
from cloudevents_kafka.spark.java.reader import few_sql, reader_sql
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.batches._observed import (
    MOST_RULES,
    Counting,
    Labels,
    label_counts,
    landed_by_now,
    partition_counts,
    rule_counts,
    tolerated_rules,
)
from cloudevents_kafka.spark.pipeline.notes import DELETED, EVENTS, BatchCounts, OffsetRanges, ReadSettings
from cloudevents_kafka.spark.pipeline.tables import (
    KAFKA_COLUMNS,
    TOLERATED,
    error_rule,
    event_columns,
    select_quarantine,
    table_of,
)
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, error_schema, event_schema
from cloudevents_kafka.spark.typed.frames import refuse_misfits, typed_columns
from cloudevents_kafka.spark.typed.values import is_read_sql, read_checked, read_values, value_names

_READ: Final = PREFIX + "read"
_LEFT: Final = PREFIX + "left"
_MOST_BYTES: Final = 8 << 20  # bytes of the rows of a batch that come to the driver
# This is not a text in DDL, because some of these names are reserved words of ANSI SQL.
PACKED: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("micros", LongType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", HEADERS),
    ]
)
"""The Spark type of a record that comes to the driver as JSON."""

_PACKED_ERROR: Final = StructType([*PACKED.fields, StructField("error", error_schema())])
# No row is null without an error, not even if Spark's parser refuses a result of Python.
_CHECKED_ERROR: Final = (
    "CASE WHEN id IS NULL AND error IS NULL THEN named_struct('verdict', 'broken-event', 'attribute', NULL, "
    "'reason', 'the event must be readable for Spark, but it is not', 'clause', NULL) ELSE error END"
)
_KAFKA: Final = [f"`{name}`" for name in KAFKA_COLUMNS]
_RECORD: Final = ", ".join(
    f"unix_micros({column}) AS micros" if column == "`timestamp`" else column for column in _KAFKA
)


class DecodedRows(Protocol):
    """Decoded rows of events and of other records, and the counts of these rows."""

    @property
    def counts(self) -> BatchCounts:
        """The counts of the decoded rows.

        The counts by partition may be missing if other counts of the same batch contain them.
        """

    @property
    def events(self) -> DataFrame:
        """The rows of events, with the columns of the table of events."""

    @property
    def quarantine(self) -> DataFrame:
        """The rows of records that are not events, with the columns of the quarantine."""


@dataclass(frozen=True)
class Rows:
    """Describes how the rows of a batch are read, arranged in columns, and counted."""

    offsets: OffsetRanges
    read: ReadSettings
    tasks: int = 1

    def few(self, text: str) -> str:
        """Return SQL for the texts that tasks send to the driver; all tasks have the same limit in bytes."""
        return few_sql(text, _MOST_BYTES // self.tasks)

    def decode(self, records: DataFrame) -> DataFrame:
        decoded = decode_events(records, keep=KAFKA_COLUMNS, lenient=self.read.lenient)
        decoded = decoded.withColumn("error", F.expr(_CHECKED_ERROR))
        unread = self.unread()
        return refuse_misfits(
            decoded, self.read.schemas, self.read.writers, rescue=self.read.rescue, unread=unread
        )

    def none(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        """Return two empty DataFrames, with the columns of the table of events and of the quarantine."""
        kafka = [field for field in PACKED.fields if field.name != "micros"]
        fields = [
            *event_schema(lenient=self.read.lenient).fields,
            *kafka,
            StructField("timestamp", TimestampType()),
        ]
        decoded = spark.createDataFrame([], StructType(fields))
        return self.events(self.with_values(decoded)), quarantine_of(decoded)

    def with_values(self, decoded: DataFrame) -> DataFrame:
        """Return events with the values of their data; the data has been checked and matches the schemas."""
        if not self.read.schemas:
            return decoded
        return read_checked(decoded, self.read.schemas, rescue=self.read.rescue, unread=self.unread())

    def unread(self, event: str = "") -> str | None:
        """Return SQL that is true if the data of an event is ignored because the event deletes a row."""
        return None if self.read.upsert is None else self.read.upsert.deletes_sql(event)

    def events(self, decoded: DataFrame) -> DataFrame:
        return decoded.where("error IS NULL").selectExpr(*self.columns())

    def columns(self, event: str = "", *, by_java: bool = False) -> list[str]:
        """Return SQL for the columns of the table of events; see `event_columns`."""
        typed, unread = typed_columns(self.read.schemas, event), self.unread(event)
        if unread is not None:
            typed[DELETED] = unread
        return event_columns(
            event, lenient=self.read.lenient, routes=self.read.routes, by_java=by_java, typed=typed
        )

    def counting(self, event: str = "", *, by_java: bool = False, others: bool = False) -> Counting:
        """Return a `Counting` for events; with ``others``, it also counts records that are not events."""
        is_event, type_ = f"{event}id IS NOT NULL", f"{event}`type`"
        labels = {"event": Labels(is_event, type_, f"{event}mode")}
        if self.read.lenient:
            tolerated = event + TOLERATED
            labels[TOLERATED] = Labels(f"{tolerated} IS NOT NULL", *tolerated_rules(tolerated))
        if self.read.routes:
            labels["table"] = Labels(is_event, "''", table_of(type_, self.read.routes))
        if others:
            labels["error"] = Labels("error IS NOT NULL", "error.verdict", error_rule())
            labels["topic"] = Labels("error IS NOT NULL", "''", "`topic`")
        return Counting(self.offsets, labels, by_java=by_java)


class Reading:
    """Reads a batch with Java; returns the rows, their counts, and the records that Python must read."""

    def __init__(self, records: DataFrame, rows: Rows) -> None:
        sql = reader_sql(records, lenient=rows.read.lenient)
        if sql is None:
            raise PipelineFailed(
                "the Java function must read an unfinished batch again, but this session does not have the "
                "Java function; start again in a session that has it, see the warning of decode_events"
            )
        self.spark = records.sparkSession
        self._rows = rows
        self._records = records
        read = records.selectExpr(f"{sql} AS {_READ}", *_KAFKA)
        if rows.read.schemas:  # Python also reads data that possibly does not fit
            event = f"{_READ}."
            options: Any = {"rescue": rows.read.rescue, "unread": rows.unread(event)}
            read = read_values(read, rows.read.schemas, event, rows.read.writers, **options)
            kept = f"CASE WHEN {is_read_sql(rows.read.schemas)} THEN {_READ} END AS {_READ}"
            read = read.selectExpr(kept, *value_names(rows.read.schemas).values(), *_KAFKA)
        self._read = read
        self._observation = Observation()
        left = rows.few(f"CASE WHEN {_READ} IS NULL THEN to_json(struct({_RECORD})) END")
        counting = rows.counting(f"{_READ}.", by_java=True)
        # The columns of the table are selected before rows are counted, so that value and headers are not
        # copied.
        table = rows.columns(f"{_READ}.", by_java=True)
        counted = self._read.selectExpr(*table, f"{left} AS {_LEFT}", *counting.columns)
        observed = counted.observe(
            self._observation, counting.counts("count(id) AS events", f"collect_list({_LEFT}) AS `left`")
        )
        self.events = observed.where("id IS NOT NULL").drop(_LEFT, *counting.names)

    @cached_property
    def _found(self) -> dict[str, Any]:
        return found_by(self._observation)

    def counts(self) -> BatchCounts:
        """Return the counts of the events that Java has read; Spark must have computed these events first.

        Python counts all other records of the batch.
        """
        found = self._found
        return BatchCounts(
            read=found["records"],
            newest=landed_by_now(found.get("newest")),
            events=found["events"],
            by_type=label_counts(found, "event"),
            **_other_counts(found),
            offsets=partition_counts(found, self._rows.offsets),
        )

    def packed(self) -> list[str]:
        """Return the records that Java has not read, in JSON of the type `PACKED`.

        If the records are too large together, return only some of the records.
        """
        packed: list[str] = self._found["left"]
        return packed

    def rest(self, packed: list[str] | None) -> DataFrame:
        """Decode, in Python, the records that Java could not read, and return the rows.

        If ``packed`` is None, Spark reads the source again for the records that Java could not read.
        """
        if packed is not None:
            return self._rows.decode(_unpack(self._records, packed))
        return self._rows.decode(self._read.where(f"{_READ} IS NULL").selectExpr(*_KAFKA))


class Decoding:
    """The rows of a batch that Python decodes: events, and records that are not events, with the counts."""

    def __init__(self, decoded: DataFrame, rows: Rows) -> None:
        self._rows = rows
        self._decoded = decoded
        self._observation = Observation()
        text = f"CASE WHEN error IS NOT NULL THEN to_json(struct({_RECORD}, error)) END"
        counting = rows.counting(by_java=True, others=True)
        counted = decoded.selectExpr(
            *rows.columns(by_java=True), f"{rows.few(text)} AS {_LEFT}", *counting.columns
        )
        observed = counted.observe(self._observation, counting.counts(f"collect_list({_LEFT}) AS `left`"))
        self.events = observed.where("id IS NOT NULL").drop(_LEFT, *counting.names)

    @cached_property
    def _found(self) -> dict[str, Any]:
        return found_by(self._observation)

    def counts(self) -> BatchCounts:
        """Return the counts, which are known after Spark has computed the events."""
        return all_counts(self._found, self._rows)

    def quarantine(self, number: int) -> DataFrame:
        """Return the rows of the quarantine; ``number`` is the number of these rows."""
        packed = self._found["left"]
        if len(packed) < number:
            return quarantine_of(self._decoded)
        texts = frame_of(self._decoded.sparkSession, text=packed)
        row = texts.select(F.from_json("text", _PACKED_ERROR, FROM_JSON).alias("row"))
        rows = row.select("row.*").withColumn("timestamp", F.timestamp_micros("micros"))
        return select_quarantine(rows)


def frame_of(spark: SparkSession, **columns: list[str]) -> DataFrame:
    """Return a DataFrame with columns of text, in one partition.

    Arrow copies the columns to Java in one step. If Spark made the DataFrame from a list of rows, each row
    would pass through a Python worker.
    """
    table = pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})
    # For Spark, the value 0 of this setting means that there is no limit. With 0, PySpark would fail here.
    with settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"}):
        return spark.createDataFrame(table).coalesce(1)


def found_by(observation: Observation) -> dict[str, Any]:
    """Return the counts of an observation, which are known after Spark has computed the rows."""
    found: dict[str, Any] = msgspec.json.decode(observation.get["counts"])
    return found


def all_counts(found: Mapping[str, Any], rows: Rows) -> BatchCounts:
    by_reason = label_counts(found, "error")
    return BatchCounts(
        read=found["records"],
        newest=landed_by_now(found.get("newest")),
        quarantined=_total(by_reason),
        by_reason=by_reason,
        **event_counts(found),
        offsets=partition_counts(found, rows.offsets),
    )


def event_counts(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of events as a dict; the keys are fields of `BatchCounts`."""
    by_type = label_counts(found, "event")
    return {"events": _total(by_type), "by_type": by_type, **_other_counts(found)}


def count_now(rows: DataFrame, counting: Counting) -> dict[str, Any]:
    """Return the counts of stored rows; a separate Spark job counts the rows."""
    (row,) = rows.selectExpr("`timestamp`", *counting.columns).agg(counting.counts()).collect()
    found: dict[str, Any] = msgspec.json.decode(row["counts"])
    return found


def quarantine_of(decoded: DataFrame) -> DataFrame:
    return select_quarantine(decoded.where("error IS NOT NULL"))


def _other_counts(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of accepted deviations, of events by table, and of quarantined records by topic.

    The result contains only those counts that Spark has computed for the batch.
    """
    counts: dict[str, Any] = {}
    if f"{TOLERATED}_names" in found:
        by_label = label_counts(found, TOLERATED)
        rules = rule_counts(by_label, MOST_RULES)
        counts |= {"tolerated": _total(by_label), "by_tolerated": rules}
    if "topic_names" in found:
        counts["quarantined_by_topic"] = next(iter(label_counts(found, "topic").values()), {})
    if "table_names" in found:
        tables = next(iter(label_counts(found, "table").values()), {})
        counts["routed"] = {name: tables[name] for name in sorted(tables) if name != EVENTS}
    return counts


def _unpack(records: DataFrame, packed: list[str]) -> DataFrame:
    """Return rows from the JSON texts that `Reading.packed` has returned."""
    texts = frame_of(records.sparkSession, text=packed)
    row = texts.select(F.from_json("text", PACKED, FROM_JSON).alias("row")).select("row.*")
    return row.withColumn("timestamp", F.timestamp_micros("micros")).selectExpr(*_KAFKA)


def _total(counts: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(sum(inner.values()) for inner in counts.values())
