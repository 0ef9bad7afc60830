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

from cloudevents_kafka.spark.pipeline._errors import WrongTable, spark_errors
from cloudevents_kafka.spark.pipeline.notes import Ledger
from cloudevents_kafka.spark.pipeline.stores import open_store
from cloudevents_kafka.spark.pipeline.tables._tables import TOLERATED
from cloudevents_kafka.spark.table_formats import TableFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ADDED_COLUMNS: Final = (TOLERATED,)
"""Columns of events that are added to a table without them."""

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

    def ledger(self, *, adopt: bool = False) -> Ledger:
        """Return what all pipelines have landed.

        A table that does not exist has landed nothing, and so has one to which only others have written
        rows; but that raises `WrongTable` unless ``adopt`` is set.
        """
        found, rows = self._read_ledger() if self.exists() else (None, 0)
        if found is None and rows and not adopt:
            raise WrongTable(
                f"the table {self.name} has rows, but no commit of a pipeline: it is unknown of which "
                "offsets they are. Land into a fresh table; or adopt the table (--adopt): all records land "
                "in it, next to its rows"
            )
        return found or Ledger()

    @abstractmethod
    def _read_ledger(self) -> tuple[Ledger | None, int]:
        """Return the ledger of the newest version, and a number that is 0 if it has no rows."""

    @abstractmethod
    def stage(self, rows: DataFrame) -> Staged:
        """Return rows whose files are written; no reader sees them before `commit`.

        Create the table if it is missing, partitioned by `RECORD_DATE`. Columns of the table that the
        rows do not have become null; `ADDED_COLUMNS` that the table does not have are added to it.
        """

    def _prepare(self, rows: DataFrame) -> DataFrame:
        """Return rows with the columns of the table; see `stage`."""
        from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

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
                columns = ", ".join(f"{quote(field.name)} {field.dataType.simpleString()}" for field in added)
                self._spark.sql(f"ALTER TABLE {self._sql_name} ADD COLUMNS ({columns})")
                existing = self._frame().schema
        missing = [field for field in existing.fields if field.name not in rows.columns]
        filled = [F.lit(None).cast(field.dataType).alias(field.name) for field in missing]
        return rows.select("*", *filled).select(*(quote(name) for name in existing.names))

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
        """Raise `WrongTable` if the table exists and cannot take rows of a schema.

        It may be without `ADDED_COLUMNS`, and have other columns that may be null.
        """
        if not self.exists():
            return
        provider = self.provider if self._url else self._described("Provider")
        if provider != self.provider:
            raise WrongTable(
                f"the table {self.name} must be {self.kind}, got {provider or 'another kind'}; "
                "name another table, or the format of this one"
            )
        existing = self._frame().schema
        # Without nullability, which tables do not keep in full.
        columns = {field.name: field.dataType.simpleString() for field in existing.fields}
        for field in schema.fields:
            found, type_ = columns.get(field.name), field.dataType.simpleString()
            if found is None and field.name not in ADDED_COLUMNS:
                raise WrongTable(
                    f"the table {self.name} must have the column {field.name} of type {type_}. Add it: "
                    f"ALTER TABLE … ADD COLUMN {field.name} {type_}; or land into a fresh table"
                )
            if found not in {None, type_}:
                raise WrongTable(
                    f"the column {field.name} of the table {self.name} must have the type {type_}, got "
                    f"{found}. Land into a fresh table, and copy the rows of this one"
                )
        for field in existing.fields:
            if field.name not in schema.names and not field.nullable:
                raise WrongTable(
                    f"the column {field.name} of the table {self.name} must allow null, because events have "
                    f"no such column. Do: ALTER TABLE … ALTER COLUMN {field.name} DROP NOT NULL"
                )

    def _described(self, name: str) -> str:
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._sql_name}").collect()
        return next((str(row["data_type"]) for row in rows if row["col_name"] == name), "")

    def _frame(self) -> DataFrame:
        return self._spark.table(self._sql_name)

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._frame().columns

    @abstractmethod
    def optimize(self, sort_by: tuple[str, ...] = ()) -> None:
        """Join small files into larger ones, by the format's own procedure.

        With ``sort_by`` the rows are clustered by these columns, which the table must have.
        """

    @abstractmethod
    def vacuum(self, keep_hours: float) -> None:
        """Delete older versions and files of no version, by the format's own procedures.

        Versions that were current in the last ``keep_hours`` hours stay readable.
        """

    @abstractmethod
    def count_files(self) -> int:
        """Return the number of data files of the newest version."""

    def count_stored(self) -> int:
        """Return the number of data files in storage, of all versions."""
        files = open_store(self._location(), self._spark).list_files("", ".parquet")
        return sum(not file.startswith("_delta_log/") for file in files)

    def _location(self) -> str:
        return self._described("Location")


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
