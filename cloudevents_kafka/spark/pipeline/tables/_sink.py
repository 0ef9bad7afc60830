"""`Table`: a table that takes batches, of which `_delta` and `_iceberg` are the kinds.

A batch is staged, then made part of the table by one atomic commit of the format, which changes the table's
ledger too: see `notes.Ledger`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline._errors import WrongTable, spark_errors
from cloudevents_kafka.spark.pipeline.notes import Ledger
from cloudevents_kafka.spark.pipeline.stores import open_store
from cloudevents_kafka.spark.table_formats import TableFormat

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


class Table(ABC):
    """A table of events or of other records, by its quoted name in a catalog or the URL of its folder."""

    kind: str
    provider: TableFormat
    conflicts: str
    """A regular expression of what errors contain if another commit was faster."""

    def __init__(self, spark: SparkSession, sql_name: str, url: str) -> None:
        self._spark, self._sql_name, self._url = spark, sql_name, url

    @property
    def name(self) -> str:
        """The name in a catalog, or the URL of the folder, for messages and summaries."""
        return self._url or self._sql_name.replace("`", "")

    def exists(self) -> bool:
        """Return whether the table exists."""
        return bool(self._spark.catalog.tableExists(self._sql_name))

    @abstractmethod
    def id(self) -> str:
        """Return the id of the table in its format, which stays when the table is renamed."""

    @abstractmethod
    def ledger(self, *, adopt: bool = False) -> Ledger:
        """Return what all pipelines have landed.

        A table that does not exist has landed nothing, and so has one to which only others have written
        rows; but that raises `WrongTable` unless ``adopt`` is set.
        """

    @abstractmethod
    def stage(self, rows: DataFrame) -> Staged:
        """Return rows whose files are written; no reader sees them before `commit`.

        Create the table if it is missing, partitioned by `PARTITION_COLUMN`. Columns of the table that the
        rows do not have become null; `ADDED_COLUMNS` that the table does not have are added to it.
        """

    def _prepare(self, rows: DataFrame) -> DataFrame:
        """Return rows with the columns of the table; see `stage`."""
        with write_settings(rows.sparkSession):
            if not self.exists():
                try:
                    self._create(rows.schema)
                except spark_errors():
                    if not self.exists():  # another pipeline was faster
                        raise
            self.check_schema(rows.schema)
            existing = self._frame().schema
            added = [field for field in rows.schema.fields if field.name not in existing.names]
            if added:
                columns = ", ".join(f"{quote(field.name)} {_type_text(field.dataType)}" for field in added)
                self._spark.sql(f"ALTER TABLE {self._sql_name} ADD COLUMNS ({columns})")
                existing = self._frame().schema
            return fill_columns(rows, existing)

    @abstractmethod
    def _create(self, schema: StructType) -> None:
        """Create the table without rows."""

    @abstractmethod
    def commit(self, staged: Sequence[Staged], before: Ledger, after: Ledger) -> None:
        """Make staged rows and a new ledger part of the table, in one atomic step.

        Raises `LedgerChanged` if the table's ledger is not the one that was read ``before``; nothing has
        changed then.
        """

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Yield; raise `LedgerChanged` instead of an error that says that another commit was faster."""
        try:
            yield
        except spark_errors() as error:
            if re.search(self.conflicts, str(error)):
                raise self._changed() from error
            raise

    def _changed(self) -> LedgerChanged:
        return LedgerChanged(f"the ledger of {self.name} must be read again")

    def check_schema(self, schema: StructType) -> None:
        """Raise `WrongTable` if the table exists and cannot take rows of a schema."""
        if not self.exists():
            return
        provider = self.provider if self._url else self._described("Provider")
        if provider != self.provider:
            raise WrongTable(
                f"the table {self.name} must be {self.kind}, got {provider or 'another kind'}; "
                "name another table, or the format of this one"
            )
        check_columns(self.name, self._frame().schema, schema)

    def _described(self, name: str) -> str:
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._sql_name}").collect()
        return next((str(row["data_type"]) for row in rows if row["col_name"] == name), "")

    def _frame(self) -> DataFrame:
        return self._spark.table(self._sql_name)

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._frame().columns

    def optimize(self, sort_by: tuple[str, ...] = ()) -> Maintenance:
        """Return what joining small files into larger ones did, by the format's own procedure.

        With ``sort_by`` the rows are clustered by these columns, which the table must have.
        """
        before = self._count_files()
        with write_settings(self._spark):
            self._optimize(sort_by)
        return Maintenance(self.name, before, self._count_files())

    def vacuum(self, keep_hours: float = KEEP_HOURS) -> Maintenance:
        """Return what deleting older versions and files of no version did, by the format's own procedures.

        Versions that were current in the last ``keep_hours`` hours stay readable.
        """
        before = self._count_stored()
        self._vacuum(keep_hours)
        return Maintenance(self.name, before, self._count_stored())

    def _count_stored(self) -> int:
        """Return the number of data files in storage, of all versions."""
        files = open_store(self._location(), self._spark).list_files("", ".parquet")
        return sum(not file.startswith("_delta_log/") for file in files)

    def _location(self) -> str:
        return self._described("Location")

    @abstractmethod
    def _count_files(self) -> int:
        """Return the number of data files of the newest version."""

    @abstractmethod
    def _optimize(self, sort_by: tuple[str, ...]) -> None:
        """Join small files."""

    @abstractmethod
    def _vacuum(self, keep_hours: float) -> None:
        """Delete older versions and files of no version."""


def foreign_rows(table: str) -> WrongTable:
    """Return the error of a table that has rows, but no ledger."""
    return WrongTable(
        f"the table {table} has rows, but no commit of a pipeline: it is unknown of which offsets they are. "
        "Land into a fresh table; or adopt the table (--adopt): all records land in it, next to its rows"
    )


def check_columns(table: str, existing: StructType, wanted: StructType) -> None:
    """Raise `WrongTable` if a table has not all columns of a schema, or has them with other types.

    The `ADDED_COLUMNS` may be missing.
    """
    columns = {field.name: _type_text(field.dataType) for field in existing.fields}
    for field in wanted.fields:
        found, type_ = columns.get(field.name), _type_text(field.dataType)
        if found is None and field.name not in ADDED_COLUMNS:
            raise WrongTable(
                f"the table {table} must have the column {field.name} of type {type_}. Add it: "
                f"ALTER TABLE … ADD COLUMN {field.name} {type_}; or land into a fresh table"
            )
        if found not in {None, type_}:
            raise WrongTable(
                f"the column {field.name} of the table {table} must have the type {type_}, got {found}. "
                "Land into a fresh table, and copy the rows of this one"
            )
    for field in existing.fields:
        if field.name not in wanted.names and not field.nullable:
            raise WrongTable(
                f"the column {field.name} of the table {table} must allow null, because events have no such "
                f"column. Do: ALTER TABLE … ALTER COLUMN {field.name} DROP NOT NULL"
            )


def _type_text(type_: DataType) -> str:
    text: str = type_.simpleString()  # without nullability, which tables do not keep in full
    return text


def fill_columns(rows: DataFrame, existing: StructType) -> DataFrame:
    """Return rows with a table's columns, in its order; those that are missing are null."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    if rows.columns == existing.names:
        return rows
    missing = {field.name: field.dataType for field in existing.fields if field.name not in rows.columns}
    filled = [F.lit(None).cast(type_).alias(name) for name, type_ in missing.items()]
    return rows.select("*", *filled).select(*(quote(name) for name in existing.names))


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Yield with settings of the session."""
    before = {name: spark.conf.get(name, None) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def write_settings(spark: SparkSession) -> AbstractContextManager[None]:
    """Return settings to write Parquet that all readers interpret the same, and to stage rows."""
    return settings(spark, _WRITE_SETTINGS)


def quote(*parts: str) -> str:
    """Return the parts of a name as an identifier of SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def sql_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
