"""A table that takes batches: the interface `Table`, and what its implementations share.

`_delta` and `_iceberg` implement it. Each batch is one atomic commit of the format, which has the key
of its writer, its number and its offsets in the commit's own metadata.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline._errors import PipelineError
from cloudevents_kafka.spark.pipeline.notes import OffsetRanges, iter_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

PARTITION_COLUMN: Final = "record_date"
ADDED_COLUMNS: Final = ("tolerated",)
"""Columns of events that are added to a table without them."""

KEEP_HOURS: Final = 168.0
"""How long `Table.vacuum` keeps what readers of older versions may still read, by default."""

# Longer offsets are replaced by their digest: Iceberg writes all retained commits again with each one.
_MAX_OFFSETS_TEXT: Final = 2000
# Spark's default, INT96, has no time zone, and other readers decode it as nanoseconds, which range
# from 1677 to 2262; its dates before 1582 may be in the Julian calendar.
_WRITE_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}


class WrongTable(PipelineError):
    """A table is missing, or cannot take the rows: it has other columns, another format, or other batches.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline.maintenance import WrongTable, optimize_tables
        >>> try:
        ...     list(optimize_tables(folder="/nowhere"))
        ... except WrongTable as error:
        ...     print(error)
        /nowhere is missing: it must be such a table, or the folder of a pipeline that writes them. ...
    """


class Maintenance(msgspec.Struct, frozen=True):
    """What `Table.optimize` or `Table.vacuum` did: the number of files before and after.

    `Table.optimize` counts the data files of the current version, `Table.vacuum` all files in storage.
    ``left_out`` are the columns to sort by that the table does not have.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline.maintenance import Maintenance
        >>> done = Maintenance(table="lake/orders/events", files_before=120, files_after=3)
        >>> print(f"{done.table}: {done.files_before} files, now {done.files_after}")
        lake/orders/events: 120 files, now 3
    """

    table: str
    files_before: int
    files_after: int
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line."""
        files = f"{pluralize(self.files_before, 'file')} before, {self.files_after:,} after"
        names = ", ".join(self.left_out)
        return f"{self.table}: {files}" + (
            f"; not sorted by {names}, which it does not have" if names else ""
        )


class Table(Protocol):
    """A table of events or of quarantined records."""

    @property
    def name(self) -> str:
        """The name in a catalog, or the URL of the folder, for messages and summaries."""

    def exists(self) -> bool:
        """Return whether the table exists."""

    def has_batch(self, key: str, number: int, offsets: OffsetRanges) -> bool:
        """Return whether the rows of a batch are in the table.

        ``key`` names the writer: the id of the pipeline's query and the table's part, such as
        ``<id>/events``; the numbers of its batches increase. Raises `WrongTable` if the table has a
        batch of this key and number with other offsets.
        """

    def append(self, rows: DataFrame, key: str, number: int, offsets: OffsetRanges) -> bool:
        """Return whether the rows of a batch were appended, in one atomic commit.

        If the table has the batch already, the rows are not even computed: an observation of them
        would never end. Create the table if it is missing, partitioned by `PARTITION_COLUMN`. Columns
        of the table that the rows do not have become null; `ADDED_COLUMNS` that the table does not have
        are added to it. Raises `WrongTable` as `has_batch` does.
        """

    def check_schema(self, schema: StructType) -> None:
        """Raise `WrongTable` if the table exists and cannot take rows of a schema."""

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""

    def optimize(self, sort_by: tuple[str, ...] = ()) -> Maintenance:
        """Return what joining small files into larger ones did, by the format's own procedure.

        With ``sort_by`` the rows are clustered by these columns, which the table must have.
        """

    def vacuum(self, keep_hours: float = KEEP_HOURS) -> Maintenance:
        """Return what deleting older versions and files of no version did, by the format's own procedures.

        Versions that were current in the last ``keep_hours`` hours stay readable.
        """


def offsets_text(offsets: OffsetRanges) -> str:
    """Return offsets as JSON without empty ranges, or the JSON's digest if it is long."""
    ranges: dict[str, dict[str, tuple[int, int]]] = {}
    for topic, partition, range_ in sorted(iter_partitions(offsets), key=lambda item: item[:2]):
        if range_.start < range_.end:
            ranges.setdefault(topic, {})[partition] = (range_.start, range_.end)
    text = msgspec.json.encode(ranges).decode()
    if len(text) <= _MAX_OFFSETS_TEXT:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def has_rows(table: DataFrame, offsets: OffsetRanges) -> bool:
    """Return whether a table has a row with one of these offsets; statistics of files limit the search."""
    from cloudevents_kafka.spark.pipeline.tables._tables import filter_offsets

    if offsets_text(offsets) == "{}":
        return False
    return not filter_offsets(table, offsets).select("offset").limit(1).isEmpty()


def check_offsets(table: str, number: int, found: str, offsets: OffsetRanges) -> None:
    """Raise `WrongTable` if a batch in a table has other offsets than expected."""
    expected = offsets_text(offsets)
    if found != expected:
        raise WrongTable(
            f"batch {number} of this pipeline in the table {table} must have the offsets {expected}, "
            f"got {found}: the notes of its batches or its checkpoint were set back or removed. "
            "Restore them, or land into a fresh table with a fresh checkpoint"
        )


def check_columns(table: str, existing: StructType, wanted: StructType) -> None:
    """Raise `WrongTable` if a table has not all columns of a schema, or has them with other types.

    Those that `add_columns_sql` adds may be missing.
    """
    columns = {field.name: field for field in existing.fields}
    for field in wanted.fields:
        type_ = _type_text(field.dataType)
        if field.name not in columns:
            if field.name in ADDED_COLUMNS:
                continue
            raise WrongTable(
                f"the table {table} must have the column {field.name} of type {type_}. Add it: "
                f"ALTER TABLE … ADD COLUMN {field.name} {type_}; or land into a fresh table"
            )
        found = _type_text(columns[field.name].dataType)
        if found != type_:
            raise WrongTable(
                f"the column {field.name} of the table {table} must have the type {type_}, got {found}. "
                "Land into a fresh table, and copy the rows of this one"
            )
    names = {field.name for field in wanted.fields}
    for field in existing.fields:
        if field.name not in names and not field.nullable:
            raise WrongTable(
                f"the column {field.name} of the table {table} must allow null, because events have no such "
                f"column. Do: ALTER TABLE … ALTER COLUMN {field.name} DROP NOT NULL"
            )


def add_columns_sql(table: str, existing: StructType, wanted: StructType) -> str | None:
    """Return SQL that adds the `ADDED_COLUMNS` which a table does not have, or None if it has all."""
    added = [
        f"{quote(field.name)} {_type_text(field.dataType)}"
        for field in wanted.fields
        if field.name in ADDED_COLUMNS and field.name not in existing.names
    ]
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(added)})" if added else None


def _type_text(type_: DataType) -> str:
    text: str = type_.simpleString()  # without nullability, which tables do not keep in full
    return text


def fill_columns(rows: DataFrame, existing: StructType) -> DataFrame:
    """Return rows with a table's columns, in its order; those that are missing are null."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    if rows.columns == existing.names:
        return rows
    present = set(rows.columns)
    return rows.select(
        *(
            F.col(f"`{field.name}`")
            if field.name in present
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in existing.fields
        )
    )


@contextmanager
def write_settings(spark: SparkSession) -> Iterator[None]:
    """Yield with the session set to write Parquet that all readers interpret the same."""
    before = {name: spark.conf.get(name, None) for name in _WRITE_SETTINGS}
    try:
        for name, value in _WRITE_SETTINGS.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Yield with a setting of the session."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def quote(*parts: str) -> str:
    """Return the parts of a name as an identifier of SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def sql_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
