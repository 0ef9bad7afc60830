"""The tables of a pipeline: their columns, their folders, and how a batch is written and counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.storagelevel import StorageLevel

from cloudevents_kafka.spark.tally import Miscounted, Offsets, Tally

DateOf = Literal["time", "timestamp"]

RECORD: Final = ("topic", "partition", "offset", "timestamp", "key")
KAFKA: Final = (*RECORD, "value", "headers")
EVENT: Final = (
    *("id", "source", "type", "specversion", "subject", "time", "time_text"),
    *("datacontenttype", "dataschema", "extensions", "data", "mode"),
)

_SECONDS_OF_A_DAY: Final = 86_400
# Folder names end at 255 bytes on nearly all file systems; "event_type=" takes 11.
_LONGEST: Final = 230
_SURELY_SHORT: Final = 76  # characters that would all become %XX
# Spark writes these as %XX in folder names.
_ESCAPED: Final = r"[\u0000-\u001f\u007f\"#%'*/:=?\\{\[\]^]"
# From "broken CloudEvent: time: must be …, got '…' (T-12, core: …)" the rule alone: values
# would make as many reasons as there are bad records.
_RULE: Final = r"^(?s)(?:broken CloudEvent: |not a CloudEvent: )?(.{1,160}?)(?:, got | \([A-Z]-[0-9]+|$)"


def day_of(time: Column) -> Column:
    """Return the UTC date of a timestamp, whatever the session's time zone is."""
    days = F.floor(F.unix_seconds(time) / F.lit(_SECONDS_OF_A_DAY))
    return F.date_from_unix_date(days.cast("int"))


def folder_of(text: Column) -> Column:
    """Return a text as a partition's value: itself, or its start and a digest where it is too long.

    Spark escapes what file systems cannot have. The table's own column keeps the text.
    """
    escaped = F.octet_length(F.regexp_replace(text, _ESCAPED, "%00"))
    short = F.concat(F.substring(text, 1, 40), F.lit("~"), F.substring(F.sha2(text, 256), 1, 16))
    fits = (F.octet_length(text) <= _SURELY_SHORT) | (escaped <= _LONGEST)
    return F.when(fits, text).otherwise(short)


def shaped(decoded: DataFrame) -> DataFrame:
    """Keep of each record what its table needs, so that nothing is held in memory twice.

    `decoded` has all Kafka columns. An event's headers become those that are not its own.
    """
    good = F.col("error").isNull()
    foreign = F.filter("headers", lambda header: ~_is_events(header["key"]))
    return decoded.withColumns(
        {
            "value": F.when(~good, F.col("value")),
            "headers": F.when(good, F.when(F.size(foreign) > 0, foreign)).otherwise(F.col("headers")),
        }
    )


def _is_events(name: Column) -> Column:
    return name.startswith("ce_") | (name == "content-type")


def events_of(records: DataFrame, date_of: DateOf = "time") -> DataFrame:
    """Return the events, with the columns of their folders last."""
    stamp = F.coalesce("time", "timestamp") if date_of == "time" else F.col("timestamp")
    return records.where(F.col("error").isNull()).select(
        *EVENT,
        *RECORD,
        "headers",
        folder_of(F.col("type")).alias("event_type"),
        day_of(stamp).alias("event_date"),
    )


def quarantine_of(records: DataFrame) -> DataFrame:
    """Return the records that are no events, as they came and with the error."""
    return records.where(F.col("error").isNotNull()).select(
        "error",
        *RECORD,
        "value",
        "headers",
        F.col("error.verdict").alias("verdict"),
        day_of(F.col("timestamp")).alias("record_date"),
    )


def write(decoded: DataFrame, folder: str, *, date_of: DateOf, tasks: int) -> Tally:
    """Write a batch's tables below `folder`, and count what stands in the files.

    Decodes once. Raises `Miscounted` where a partition's records in the files are not as
    many as were read.
    """
    records = shaped(decoded).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        offsets = _offsets(records)
        # All records of a folder go to one task, so that a batch gives each folder one file.
        events = events_of(records, date_of)
        events = events.repartition(tasks, "event_type", "event_date")
        _save(events, f"{folder}/events", "event_type", "event_date")
        _save(quarantine_of(records).coalesce(1), f"{folder}/quarantine", "verdict", "record_date")
    finally:
        records.unpersist()
    return _tally(offsets, *_counts(decoded, folder, tasks))


def _save(table: DataFrame, folder: str, *partitions: str) -> None:
    table.write.partitionBy(*partitions).parquet(folder)


def _offsets(records: DataFrame) -> list[Row]:
    offset = F.col("offset")
    found = records.groupBy("topic", "partition").agg(F.min(offset), F.max(offset), F.count(offset))
    return found.collect()


def _counts(batch: DataFrame, folder: str, tasks: int) -> tuple[list[Row], list[Row]]:
    """Count what the files hold, from a few small columns of theirs."""
    spark = batch.sparkSession
    events = _load(spark, f"{folder}/events", "topic string, partition int, type string, mode string")
    label = F.concat_ws(" ", F.regexp_extract("error.reason", _RULE, 1), F.concat(F.lit("["), "error.clause", F.lit("]")))
    error = "error struct<verdict:string, reason:string, clause:string>"
    bad = _load(spark, f"{folder}/quarantine", f"topic string, partition int, {error}")
    return (
        _grouped(events, F.col("type"), F.col("mode"), tasks),
        _grouped(bad, F.col("error.verdict"), label, tasks),
    )


def _load(spark: Any, folder: str, schema: str) -> DataFrame:
    loaded: DataFrame = spark.read.schema(schema).option("recursiveFileLookup", True).parquet(folder)
    return loaded


def _grouped(table: DataFrame, outer: Column, inner: Column, tasks: int) -> list[Row]:
    groups = ("topic", "partition", "outer", "inner")
    named = table.select("topic", "partition", outer.alias("outer"), inner.alias("inner"))
    return named.groupBy(*groups).count().coalesce(tasks).collect()


def _tally(offsets: Iterable[Row], events: list[Row], quarantined: list[Row]) -> Tally:
    by_part: dict[str, dict[str, Offsets]] = {}
    for topic, partition, first, last, records in offsets:
        by_part.setdefault(topic, {})[str(partition)] = Offsets(first, last, records)
    _check(by_part, [*events, *quarantined])
    return Tally(
        read=sum(part.records for parts in by_part.values() for part in parts.values()),
        events=sum(row["count"] for row in events),
        quarantined=sum(row["count"] for row in quarantined),
        by_type=_nested(events),
        by_reason=_nested(quarantined),
        offsets=by_part,
    )


def _nested(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        inner = counts.setdefault(row["outer"], {})
        inner[row["inner"]] = inner.get(row["inner"], 0) + row["count"]
    return counts


def _check(read: dict[str, dict[str, Offsets]], written: Iterable[Row]) -> None:
    """Hold the records in the files against those read, partition by partition."""
    found: dict[tuple[str, str], int] = {}
    for row in written:
        where = (row["topic"], str(row["partition"]))
        found[where] = found.get(where, 0) + row["count"]
    for topic, parts in read.items():
        for number, part in parts.items():
            if found.get((topic, number), 0) != part.records:
                raise Miscounted(
                    f"{topic}[{number}]@{part.first}–{part.last}: {part.records:,} records were read, "
                    f"but the files hold {found.get((topic, number), 0):,}"
                )
