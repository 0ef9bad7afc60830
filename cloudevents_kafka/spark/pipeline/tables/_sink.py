"""A table that takes batches: the interface `Table`, and what its implementations share.

`_delta` and `_iceberg` implement it. A batch is staged, then made part of the table by one atomic commit of
the format, which changes the table's ledger too: see `notes.Ledger`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.notes import Ledger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

PARTITION_COLUMN: Final = "record_date"
ADDED_COLUMNS: Final = ("tolerated",)
"""Columns of events that are added to a table without them."""

KEEP_HOURS: Final = 168.0
"""How long `Table.vacuum` keeps what readers of older versions may still read, by default."""

# Spark's default, INT96, has no time zone, and other readers decode it as nanoseconds, which range
# from 1677 to 2262; its dates before 1582 may be in the Julian calendar.
_WRITE_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Tables of Iceberg whose property says so stage rows while this is set.
    "spark.wap.id": "cloudevents-kafka",
}


class LedgerChanged(Exception):
    """Another commit has changed the ledger of a table meanwhile: it must be read again."""


class Staged(NamedTuple):
    """Files of rows that are not part of a table yet, as the format needs them, and their number of rows."""

    files: Any
    rows: int | None


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

    def id(self) -> str:
        """Return the id of the table in its format, which stays when the table is renamed."""

    def ledger(self, *, adopt: bool = False) -> Ledger:
        """Return what all pipelines have landed.

        A table that does not exist has landed nothing, and so has one to which only others have written
        rows; but that raises `WrongTable` unless ``adopt`` is set.
        """

    def stage(self, rows: DataFrame) -> Staged:
        """Return rows whose files are written; no reader sees them before `commit`.

        Create the table if it is missing, partitioned by `PARTITION_COLUMN`. Columns of the table that the
        rows do not have become null; `ADDED_COLUMNS` that the table does not have are added to it.
        """

    def commit(self, staged: Sequence[Staged], before: Ledger, after: Ledger) -> None:
        """Make staged rows and a new ledger part of the table, in one atomic step.

        Raises `LedgerChanged` if the table's ledger is not the one that was read ``before``; nothing has
        changed then.
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


def foreign_rows(table: str) -> WrongTable:
    """Return the error of a table that has rows, but no ledger."""
    return WrongTable(
        f"the table {table} has rows, but no commit of a pipeline: it is unknown of which offsets they are. "
        "Land into a fresh table; or adopt the table (--adopt): all records land in it, next to its rows"
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
    """Yield with the session set to write Parquet that all readers interpret the same, and to stage rows."""
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
