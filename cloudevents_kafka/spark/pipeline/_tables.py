"""The Parquet tables of a pipeline: their columns and folders, and how a batch is written and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Final, Literal

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.storagelevel import StorageLevel

from cloudevents_kafka.spark.pipeline._counts import BatchCounts, CountMismatch, PartitionCounts
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges, iter_partitions

DateOf = Literal["time", "timestamp"]

RECORD_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key")
KAFKA_COLUMNS: Final = (*RECORD_COLUMNS, "value", "headers")
EVENT_COLUMNS: Final = (
    *("id", "source", "type", "specversion", "subject", "time", "time_text"),
    *("datacontenttype", "dataschema", "extensions", "extension_types", "data", "data_kind", "mode"),
)

_SECONDS_PER_DAY: Final = 86_400
# Most file systems limit names to 255 bytes; "event_type=" takes 11.
_MAX_BYTES: Final = 230
_MAX_BYTES_UNESCAPED: Final = 76  # fits even if each byte becomes %XX
# Spark writes these as %XX in folder names.
_ESCAPED: Final = r"[\u0000-\u001f\u007f\"#%'*/:=?\\{\[\]^]"
# Folder names that readers may convert to another type: null, numbers, times …
_CONVERTIBLE: Final = (
    r"(?i)^(__HIVE_DEFAULT_PARTITION__|null|"
    r"\s*[+-]?(nan|inf(inity)?|(\p{Nd}+\.?\p{Nd}*|\.\p{Nd}+)(e[+-]?\p{Nd}+)?[dfl]?|0x[0-9a-f.p+-]+)\s*|"
    r"\s*\p{Nd}+-\p{Nd}+(-\p{Nd}+([ t].*)?)?\s*|true|false)?$"
)
# … except those whose value, converted back to text, is the same.
_CANONICAL: Final = r"^(0|-?[1-9][0-9]{0,17}|[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))$"
# The rule of a reason such as "broken CloudEvent: time: must be …, got '…' (T-12, core: …)".
# With the value, each bad record could have a reason of its own.
_RULE: Final = (
    r"(?s)^(?:broken CloudEvent: |not a CloudEvent: )?(.+?)(?:, got |, but | \\([A-Z]-[0-9]|$|(?<=.{120}))"
)
# Spark's default, INT96, has no time zone, and other readers decode it as nanoseconds, which range
# from 1677 to 2262; its dates before 1582 may be in the Julian calendar.
_PARQUET_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
# For each table: the columns to read back, the outer and the inner label of its counts.
_LABELS: Final = {
    "events": ("type string, mode string", "type", "mode"),
    "quarantine": (
        "error struct<verdict:string, reason:string, clause:string>",
        "error.verdict",
        rf"concat_ws(' ', regexp_extract(error.reason, '{_RULE}', 1), concat('[', error.clause, ']'))",
    ),
}


def utc_date(time: Column) -> Column:
    """Return the UTC date of a timestamp, independent of the session's time zone."""
    days = F.floor(F.unix_seconds(time) / F.lit(_SECONDS_PER_DAY))
    return F.date_from_unix_date(days.cast("int"))


def partition_value(text: Column) -> Column:
    """Return a text as the value of a partition: unchanged, or as its start and a digest.

    Spark escapes characters that file systems forbid. Two kinds of values are replaced: those that
    are too long for a file system, and those that readers would change: the name that means null,
    and texts that readers convert to numbers and times and that differ when converted back
    (``007``, ``1e3``, ``NaN``; ``17`` and ``2026-01-01`` are unchanged). The column in the table
    always has the exact text.
    """
    escaped = F.octet_length(F.regexp_replace(text, _ESCAPED, "%00"))
    digest = F.concat(F.substring(text, 1, 40), F.lit("~"), F.substring(F.sha2(text, 256), 1, 16))
    fits = (F.octet_length(text) <= _MAX_BYTES_UNESCAPED) | (escaped <= _MAX_BYTES)
    return F.when(fits & (text.rlike(_CANONICAL) | ~text.rlike(_CONVERTIBLE)), text).otherwise(digest)


def filter_offsets(records: DataFrame, offsets: OffsetRanges) -> DataFrame:
    """Return the records with these offsets."""
    conditions = [
        (F.col("topic") == topic)
        & (F.col("partition") == int(partition))
        & F.col("offset").between(range_.start, range_.end - 1)
        for topic, partition, range_ in iter_partitions(offsets)
    ]
    return records.where(reduce(Column.__or__, conditions))


def select_stored(decoded: DataFrame) -> DataFrame:
    """Return the records with the columns that their tables store, so that the cache has no copies.

    ``decoded`` has all Kafka columns. An event keeps its foreign headers only, and no value.
    """
    is_event = F.col("error").isNull()
    foreign = F.filter("headers", lambda header: ~_is_event_header(header["key"]))
    return decoded.withColumns(
        {
            "value": F.when(~is_event, F.col("value")),
            "headers": F.when(is_event, F.when(F.size(foreign) > 0, foreign)).otherwise(F.col("headers")),
        }
    )


def _is_event_header(name: Column) -> Column:
    return name.startswith("ce_") | (name == "content-type")


def select_events(records: DataFrame, date_of: DateOf = "time") -> DataFrame:
    """Return the events; the last columns are those of their folders."""
    stamp = F.coalesce("time", "timestamp") if date_of == "time" else F.col("timestamp")
    return records.where(F.col("error").isNull()).select(
        *EVENT_COLUMNS,
        *RECORD_COLUMNS,
        "headers",
        partition_value(F.col("type")).alias("event_type"),
        utc_date(stamp).alias("event_date"),
    )


def select_quarantine(records: DataFrame) -> DataFrame:
    """Return the records that are not events, unchanged and with their errors."""
    return records.where(F.col("error").isNotNull()).select(
        "error",
        *RECORD_COLUMNS,
        "value",
        "headers",
        F.col("error.verdict").alias("verdict"),
        utc_date(F.col("timestamp")).alias("record_date"),
    )


@contextmanager
def _parquet_settings(spark: SparkSession) -> Iterator[None]:
    """Set the session to write Parquet that all readers interpret the same, within this block."""
    before = {name: str(spark.conf.get(name)) for name in _PARQUET_SETTINGS}
    try:
        for name, value in _PARQUET_SETTINGS.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def write_tables(decoded: DataFrame, folder: str, *, date_of: DateOf, tasks: int) -> BatchCounts:
    """Write the tables of a batch below ``folder`` and return the counts of the written files.

    Decodes the records once. Raises `CountMismatch` if the files have not as many records of a
    partition as were read.
    """
    records = select_stored(decoded).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        partitions = _read_partitions(records, tasks)
        # All events of a folder go to one task, so that a batch writes one file to each folder.
        events = select_events(records, date_of).repartition(tasks, "event_type", "event_date")
        tables = ["events"]
        with _parquet_settings(decoded.sparkSession):
            _save(events, f"{folder}/events", "event_type", "event_date")
            if any(row["errors"] for row in partitions):
                quarantine = select_quarantine(records).coalesce(1)
                _save(quarantine, f"{folder}/quarantine", "verdict", "record_date")
                tables.append("quarantine")
    finally:
        records.unpersist()
    return _batch_counts(partitions, _count_files(decoded.sparkSession, folder, tables, tasks))


def _save(table: DataFrame, folder: str, *partition_columns: str) -> None:
    table.write.partitionBy(*partition_columns).parquet(folder)


def _read_partitions(records: DataFrame, tasks: int) -> list[Row]:
    """Return the first and last offset of each partition, and its numbers of records and errors."""
    offset = F.col("offset")
    partitions = records.groupBy("topic", "partition").agg(
        F.min(offset).alias("first"),
        F.max(offset).alias("last"),
        F.count(offset).alias("records"),
        F.count("error").alias("errors"),
    )
    rows: list[Row] = partitions.coalesce(tasks).collect()
    return rows


def _count_files(spark: SparkSession, folder: str, tables: Iterable[str], tasks: int) -> list[Row]:
    """Return the number of records in the files, by table, partition and labels."""
    rows = reduce(DataFrame.unionAll, (_labels(spark, f"{folder}/{table}", table) for table in tables))
    counted: list[Row] = rows.groupBy(*rows.columns).count().coalesce(tasks).collect()
    return counted


def _labels(spark: SparkSession, folder: str, table: str) -> DataFrame:
    schema, outer, inner = _LABELS[table]
    # Without partition discovery, which would guess types from the names of folders.
    reader = spark.read.schema(f"topic string, partition int, {schema}").option("recursiveFileLookup", True)
    columns = (F.lit(table).alias("table"), "topic", "partition", F.expr(outer).alias("outer"))
    return reader.parquet(folder).select(*columns, F.expr(inner).alias("inner"))


def _batch_counts(partitions: Iterable[Row], files: list[Row]) -> BatchCounts:
    offsets: dict[str, dict[str, PartitionCounts]] = {}
    for row in partitions:
        counts = PartitionCounts(row["first"], row["last"], row["records"])
        offsets.setdefault(row["topic"], {})[str(row["partition"])] = counts
    _check_files(offsets, files)
    events = [row for row in files if row["table"] == "events"]
    quarantined = [row for row in files if row["table"] == "quarantine"]
    return BatchCounts(
        read=sum(counts.records for by_partition in offsets.values() for counts in by_partition.values()),
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


def _check_files(read: dict[str, dict[str, PartitionCounts]], files: Iterable[Row]) -> None:
    """Raise `CountMismatch` if the files have not as many records of a partition as were read."""
    written: dict[tuple[str, str], int] = {}
    for row in files:
        partition = (row["topic"], str(row["partition"]))
        written[partition] = written.get(partition, 0) + row["count"]
    for topic, partitions in read.items():
        for number, counts in partitions.items():
            if written.get((topic, number), 0) != counts.records:
                raise CountMismatch(
                    f"{topic}[{number}]@{counts.first} to {counts.last}: {counts.records:,} records were "
                    f"read, but the files have {written.get((topic, number), 0):,}"
                )
