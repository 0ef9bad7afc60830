"""The tables of a pipeline: their columns, their folders, and how a batch is written and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Final, Literal

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know
from pyspark.storagelevel import StorageLevel

from cloudevents_kafka.spark.pipeline.counts import Miscounted, Offsets, Tally
from cloudevents_kafka.spark.pipeline.offsets import Spans, parts

DateOf = Literal["time", "timestamp"]

RECORD: Final = ("topic", "partition", "offset", "timestamp", "key")
KAFKA: Final = (*RECORD, "value", "headers")
EVENT: Final = (
    *("id", "source", "type", "specversion", "subject", "time", "time_text"),
    *("datacontenttype", "dataschema", "extensions", "extension_types", "data", "data_kind", "mode"),
)

_SECONDS_OF_A_DAY: Final = 86_400
# Folder names end at 255 bytes on nearly all file systems; "event_type=" takes 11.
_LONGEST: Final = 230
_SURELY_SHORT: Final = 76  # characters that would all become %XX
# Spark writes these as %XX in folder names.
_ESCAPED: Final = r"[\u0000-\u001f\u007f\"#%'*/:=?\\{\[\]^]"
# Of folders' names, what readers make something else of: null, numbers, times …
_MISREAD: Final = (
    r"(?i)^(__HIVE_DEFAULT_PARTITION__|null|"
    r"\s*[+-]?(nan|inf(inity)?|(\p{Nd}+\.?\p{Nd}*|\.\p{Nd}+)(e[+-]?\p{Nd}+)?[dfl]?|0x[0-9a-f.p+-]+)\s*|"
    r"\s*\p{Nd}+-\p{Nd}+(-\p{Nd}+([ t].*)?)?\s*|true|false)?$"
)
# … and of these, what is the same text again.
_READ_BACK: Final = r"^(0|-?[1-9][0-9]{0,17}|[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))$"
# From "broken CloudEvent: time: must be …, got '…' (T-12, core: …)" the rule alone: values
# would make as many reasons as there are bad records.
_RULE: Final = (
    r"(?s)^(?:broken CloudEvent: |not a CloudEvent: )?(.+?)(?:, got |, but | \\([A-Z]-[0-9]|$|(?<=.{120}))"
)
# Spark's default, INT96, has no zone, and other readers take it for nanoseconds, which reach from
# 1677 to 2262; and its days before 1582 may be those of the Julian calendar.
_PARQUET: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
# Of each table: the columns that counts are told apart by, the outer and the inner name.
_LABELS: Final = {
    "events": ("type string, mode string", "type", "mode"),
    "quarantine": (
        "error struct<verdict:string, reason:string, clause:string>",
        "error.verdict",
        rf"concat_ws(' ', regexp_extract(error.reason, '{_RULE}', 1), concat('[', error.clause, ']'))",
    ),
}


def day_of(time: Column) -> Column:
    """Return the UTC date of a timestamp, whatever the session's time zone is."""
    days = F.floor(F.unix_seconds(time) / F.lit(_SECONDS_OF_A_DAY))
    return F.date_from_unix_date(days.cast("int"))


def folder_of(text: Column) -> Column:
    """Return a text as a partition's value: itself, or its start and a digest where that cannot be.

    Spark escapes what file systems cannot have. Too long is what they do not take, and what
    readers would take for something else has to go: the name that stands for null, and what
    would come back as another text by readers that look for numbers and times in folders'
    names (``007``, ``1e3``, ``NaN``; ``17`` and ``2026-01-01`` stay as they are, also where they
    are taken for a number and a date). The table's own column keeps the text, exactly.
    """
    escaped = F.octet_length(F.regexp_replace(text, _ESCAPED, "%00"))
    short = F.concat(F.substring(text, 1, 40), F.lit("~"), F.substring(F.sha2(text, 256), 1, 16))
    fits = (F.octet_length(text) <= _SURELY_SHORT) | (escaped <= _LONGEST)
    return F.when(fits & (text.rlike(_READ_BACK) | ~text.rlike(_MISREAD)), text).otherwise(short)


def only(records: DataFrame, offsets: Spans) -> DataFrame:
    """Return the records with these offsets."""
    ranges = [
        (F.col("topic") == topic)
        & (F.col("partition") == int(number))
        & F.col("offset").between(span.start, span.end - 1)
        for topic, number, span in parts(offsets)
    ]
    return records.where(reduce(Column.__or__, ranges))


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


@contextmanager
def _parquet(spark: SparkSession) -> Iterator[None]:
    """Have this session write Parquet that all readers take for what it is, within this block."""
    before = {name: str(spark.conf.get(name)) for name in _PARQUET}
    try:
        for name, value in _PARQUET.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def write(decoded: DataFrame, folder: str, *, date_of: DateOf, tasks: int) -> Tally:
    """Write a batch's tables below `folder`, and count what stands in the files.

    Decodes once. Raises `Miscounted` where a partition's records in the files are not as
    many as were read.
    """
    records = shaped(decoded).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        parts = _parts(records, tasks)
        # All records of a folder go to one task, so that a batch gives each folder one file.
        events = events_of(records, date_of).repartition(tasks, "event_type", "event_date")
        tables = ["events"]
        with _parquet(decoded.sparkSession):
            _save(events, f"{folder}/events", "event_type", "event_date")
            if any(part["errors"] for part in parts):
                _save(quarantine_of(records).coalesce(1), f"{folder}/quarantine", "verdict", "record_date")
                tables.append("quarantine")
    finally:
        records.unpersist()
    return _tally(parts, _counts(decoded.sparkSession, folder, tables, tasks))


def _save(table: DataFrame, folder: str, *partitions: str) -> None:
    table.write.partitionBy(*partitions).parquet(folder)


def _parts(records: DataFrame, tasks: int) -> list[Row]:
    """Tell what was read of each partition."""
    offset = F.col("offset")
    found = records.groupBy("topic", "partition").agg(
        F.min(offset).alias("first"),
        F.max(offset).alias("last"),
        F.count(offset).alias("records"),
        F.count("error").alias("errors"),
    )
    return found.coalesce(tasks).collect()


def _counts(spark: SparkSession, folder: str, tables: Iterable[str], tasks: int) -> list[Row]:
    """Count what the files hold, from a few small columns of theirs."""
    rows = reduce(DataFrame.unionAll, (_labelled(spark, f"{folder}/{table}", table) for table in tables))
    return rows.groupBy(*rows.columns).count().coalesce(tasks).collect()


def _labelled(spark: SparkSession, folder: str, table: str) -> DataFrame:
    schema, outer, inner = _LABELS[table]
    # Not by folders: those would be looked through for partitions, and types guessed from their names.
    reader = spark.read.schema(f"topic string, partition int, {schema}").option("recursiveFileLookup", True)
    columns = (F.lit(table).alias("table"), "topic", "partition", F.expr(outer).alias("outer"))
    return reader.parquet(folder).select(*columns, F.expr(inner).alias("inner"))


def _tally(parts: Iterable[Row], counts: list[Row]) -> Tally:
    offsets: dict[str, dict[str, Offsets]] = {}
    for row in parts:
        read = Offsets(row["first"], row["last"], row["records"])
        offsets.setdefault(row["topic"], {})[str(row["partition"])] = read
    _check(offsets, counts)
    events = [row for row in counts if row["table"] == "events"]
    quarantined = [row for row in counts if row["table"] == "quarantine"]
    return Tally(
        read=sum(part.records for by_number in offsets.values() for part in by_number.values()),
        events=sum(row["count"] for row in events),
        quarantined=sum(row["count"] for row in quarantined),
        by_type=_nested(events),
        by_reason=_nested(quarantined),
        offsets=offsets,
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
    for topic, by_number in read.items():
        for number, part in by_number.items():
            if found.get((topic, number), 0) != part.records:
                raise Miscounted(
                    f"{topic}[{number}]@{part.first} to {part.last}: {part.records:,} records were read, "
                    f"but the files hold {found.get((topic, number), 0):,}"
                )
