"""`Table` is the base class of tables in which batches land; see `_delta` and `_iceberg`.

The rows of a batch are staged first. Then one atomic commit of the table format adds the rows to the table,
and changes the table's ledger: see `notes.Ledger`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudevents_kafka.spark._sql import quote, table_settings
from cloudevents_kafka.spark.pipeline._errors import WrongTable, spark_errors
from cloudevents_kafka.spark.pipeline.notes import DELETED, Ledger, Upsert
from cloudevents_kafka.spark.pipeline.stores import commit_lock, open_store
from cloudevents_kafka.spark.pipeline.tables._columns import ADDED_COLUMNS, RECORD_DATE
from cloudevents_kafka.spark.pipeline.tables._evolution import (
    Difference,
    aligned,
    differences,
    names_in,
    two_cases,
    type_sql,
)
from cloudevents_kafka.spark.table_formats import TableFormat
from cloudevents_kafka.spark.typed.shape import VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from cloudevents_kafka.spark.typed.schemas import DataSchema

# The property with the names of the keys, if a table has one row for each key.
KEYS: Final = "cloudevents-kafka.upsert"
# The name under which the metadata of a column contains the column's default, as SQL.
_DEFAULT: Final = "CURRENT_DEFAULT"
# The error conditions that Spark reports if a table does not exist.
_MISSING: Final = r"DELTA_MISSING_DELTA_TABLE|\w*(PATH|TABLE|VIEW|SCHEMA)_(NOT_FOUND|DOES_NOT_EXIST)"
# Limits of `Table.vacuum`: a commit reads metadata of all versions, so there must not be too many versions.
MOST_VERSIONS: Final = 1000
SHORTEST_HOURS: Final = 1.0


class LedgerChanged(Exception):
    """Another commit has changed the ledger of a table, so the pipeline must read the ledger again."""


class Staged(NamedTuple):
    """Staged rows, in the form that the table format needs; the rows are not part of a table yet.

    ``rows`` is the number of staged rows, or None if the number is unknown.
    """

    files: Any
    rows: int | None


class Table(ABC):
    """A table of events, of quarantined records, or of the outcomes of replays.

    The table is identified by its quoted name in a catalog, or by the URL of its folder.
    """

    kind: str
    provider: TableFormat
    conflicts: str
    """A regular expression for the error text of a commit that failed because another commit was faster."""

    partitions: tuple[str, ...] = (RECORD_DATE,)
    """The columns by which a newly created table is partitioned."""

    upsert: Upsert | None = None
    """The keys of the table's rows, or None.

    If there are keys, commits merge rows into the table; otherwise, commits append rows.
    """

    def __init__(self, spark: SparkSession, sql_name: str, url: str) -> None:
        self._spark, self._sql_name, self._url = spark, sql_name, url
        self._has_commits: bool | None = None  # whether a pipeline has committed; None if it is unknown
        self._checked: tuple[StructType | None, StructType] | None = None  # the last schemas that matched

    @property
    def name(self) -> str:
        """The table's name in a catalog, or the URL of its folder, for messages and summaries."""
        return self._url or self._sql_name.replace("`", "")

    @property
    def session(self) -> SparkSession:
        """The Spark session with which the table was opened."""
        return self._spark

    def exists(self) -> bool:
        """Return whether the table exists in its folder or catalog."""
        return self._schema() is not None

    def _schema(self) -> StructType | None:
        """Return the schema of the table's newest version, or None if the table does not exist."""
        from pyspark.errors import AnalysisException

        try:
            return self.read().schema
        except AnalysisException as error:
            if not re.fullmatch(_MISSING, error.getCondition() or ""):
                raise
            return None

    @abstractmethod
    def id(self) -> str:
        """Return the id that the table format has assigned to the table; a renamed table keeps its id."""

    def ledger(self, *, adopt: bool = False) -> Ledger:
        """Return the ledger with the offsets that all pipelines have landed in the table.

        The ledger is empty if the table does not exist, or if no pipeline has committed to the table. Raises
        `WrongTable` if the table has rows, but no commit of a pipeline, unless ``adopt`` is true.
        """
        found, rows = self._read_ledger() if self._has_right_keys() else (None, 0)
        if found is None and rows and not adopt:
            raise WrongTable(
                f"the table {self.name} has rows, but no commit of a pipeline: the offsets of these rows are "
                "unknown. Land into a fresh table; or adopt the table (--adopt): then the rows stay, and all "
                "records land in the table"
            )
        self._has_commits = found is not None
        return found or Ledger()

    def _has_right_keys(self) -> bool:
        """Return whether the table exists.

        Raises `WrongTable` if the table's rows have other keys than the keys in `upsert`.
        """
        if not self.exists():
            return False
        found = self._property(KEYS) or ""
        expected = str(self.upsert or "")
        if found != expected and not (expected and self._is_new()):
            raise WrongTable(
                f"the table {self.name} must have {_keys_text(expected)}, got {_keys_text(found)}. "
                "Land with the same keys (--upsert) as before, or into a fresh table"
            )
        return True

    @abstractmethod
    def _property(self, name: str) -> str | None:
        """Return a property of the table, or None, without SHOW TBLPROPERTIES, which hides some values."""

    def _is_new(self) -> bool:
        """Return whether the rows of the table have keys that this run may still choose.

        The run may choose the keys if the table has no rows, and no pipeline has committed to the table. If a
        run is killed before its first commit, the table may already have the keys of this run.
        """
        if DELETED not in self.columns() or not self.read().isEmpty():
            return False
        ledger = self._read_ledger()[0] if self._property(KEYS) else None
        return ledger is None or ledger.generation == 0

    @abstractmethod
    def _read_ledger(self) -> tuple[Ledger | None, int]:
        """Return the ledger of the newest version, and a number that is 0 if the table has no rows."""

    @abstractmethod
    def stage(self, rows: DataFrame) -> Staged:
        """Write rows to files that no reader sees before the call of `commit`, and return these files.

        If the table is missing, `stage` creates the table, partitioned by the columns in `partitions`. If the
        rows do not have a column of the table, the column receives its default, or null, in these rows. If
        the table does not have a column of the rows, `stage` adds the column to the table. However, if no
        pipeline has committed to the table, `stage` adds only columns in `ADDED_COLUMNS`. Types in the rows
        and in the table may differ in the ways that `_evolution` describes.
        """

    def _prepare(self, rows: DataFrame) -> DataFrame:
        """Return rows with the columns of the table; see the method `stage`."""
        with table_settings(rows.sparkSession):
            existing = self._schema()
            if existing is None:
                try:
                    self._create(rows.schema)
                except spark_errors():
                    if not self.exists():  # another pipeline was faster
                        raise
                existing, self._has_commits = self.read().schema, True
            if (existing, rows.schema) != self._checked:
                self.check_schema(rows.schema)
                for change in differences(existing, rows.schema):
                    self._spark.sql(change.sql(self._sql_name))
                    existing = self.read().schema
            self._checked = existing, rows.schema
            types = {field.name: field.dataType for field in rows.schema.fields}
            columns = {
                field.name: aligned(quote(field.name), types[field.name], field.dataType)
                if field.name in types
                else f"CAST({field.metadata.get(_DEFAULT, 'NULL')} AS {type_sql(field.dataType)})"
                for field in existing.fields
            }
            return rows.selectExpr(*(f"{value} AS {quote(name)}" for name, value in columns.items()))

    @abstractmethod
    def _create(self, schema: StructType) -> None:
        """Create the table, without any rows."""

    @abstractmethod
    def commit(self, staged: Sequence[Staged], before: Ledger, after: Ledger) -> None:
        """Add staged rows to the table, and replace the table's ledger, in one atomic step.

        ``before`` is the ledger that was read earlier, and ``after`` is the new ledger. Raises
        `LedgerChanged`, and changes nothing, if the table's ledger is not equal to ``before`` any more.
        """

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Lock the table for a commit, and yield; raise `LedgerChanged` if another commit came first."""
        try:
            with commit_lock(self._folder):
                yield
        except spark_errors() as error:
            if re.search(self.conflicts, str(error)):
                raise self._changed() from error
            raise

    def lock(self) -> AbstractContextManager[None]:
        """Return a context manager in which no other process commits to the table; see `commit_lock`."""
        return commit_lock(self._folder)

    def _changed(self) -> LedgerChanged:
        return LedgerChanged(f"the ledger of {self.name} must be read again")

    def check_schema(self, schema: StructType) -> None:
        """Raise `WrongTable` if the table exists and cannot store rows of a schema.

        The table may have further columns that allow null or have a default. The table may also differ from
        the schema in the ways that `stage` describes.
        """
        existing = self._schema()
        if names := two_cases(names_in(schema)):
            raise WrongTable(
                f"the columns of the table {self.name} must have names that differ in more than their case, "
                f"got {' and '.join(names)}: for Spark, both are the same name. Choose another name"
            )
        self._check_names(schema, exists=existing is not None)
        if existing is None:
            return
        provider = self.provider if self._url else self._described("Provider")
        if provider != self.provider:
            raise WrongTable(
                f"the table {self.name} must be {self.kind}, got {provider or 'another kind'}; "
                "name another table, or the format of this table"
            )
        # Nullability is not compared, because tables store it only in part.
        for change in differences(existing, schema):
            name, type_ = ".".join(change.path), change.type.simpleString()
            is_column = len(change.path) == 1 and name not in ADDED_COLUMNS
            if change.kind == "case":
                known = ".".join((*change.path[:-1], change.known))
                raise WrongTable(
                    f"the column {name} must be written as in the table {self.name}, which has {known}: for "
                    f"Spark, both are the same name. Write {change.known} in the schema, or choose another "
                    "name"
                )
            if change.kind == "new" and is_column and not self._is_of_pipelines():
                raise WrongTable(
                    f"the table {self.name} must have the column {name} of type {type_}. Add it: "
                    f"ALTER TABLE … ADD COLUMN {name} {type_}; or land into a fresh table"
                )
            if change.found is not None and self._is_misfit(change):
                raise WrongTable(
                    f"the column {name} of the table {self.name} must have the type {type_}, got "
                    f"{change.found.simpleString()}. Land into a fresh table, and copy the old rows into it"
                )
        for field in existing.fields:
            if field.name not in schema.names and not field.nullable and _DEFAULT not in field.metadata:
                raise WrongTable(
                    f"the column {field.name} of the table {self.name} must allow null, because events have "
                    f"no such column. Do: ALTER TABLE … ALTER COLUMN {field.name} DROP NOT NULL; or set "
                    "a default"
                )

    def _is_of_pipelines(self) -> bool:
        """Return whether a pipeline has committed to the table, which must exist."""
        if self._has_commits is None:
            self._has_commits = self._read_ledger()[0] is not None
        return self._has_commits

    def _check_names(self, schema: StructType, *, exists: bool) -> None:  # noqa: B027  # most allow all
        """Raise `WrongTable` if the table format does not allow a name in the schema."""

    def misfits(
        self, schema: DataSchema, *, rescue: bool
    ) -> tuple[DataType, dict[tuple[str, ...], DataType]]:
        """Return the type of the column `VALUE`, and the types in this column that do not match the schema.

        The second result maps the path of a field to the field's type in the table, if values of ``schema``
        cannot be stored with this type.
        """
        existing, value = self._schema(), schema.type_in(self._spark, rescue=rescue)
        column = value if existing is None or VALUE not in existing.names else existing[VALUE].dataType
        changes = [change for change in differences(column, value) if self._is_misfit(change)]
        return column, {change.path: change.found for change in changes if change.found is not None}

    def _is_misfit(self, change: Difference) -> bool:
        return change.kind == "misfit" or (change.kind == "wider" and not self._widens(change.path[0]))

    def _widens(self, column: str) -> bool:  # noqa: ARG002  # Delta needs it
        """Return whether the table format can widen the numbers in a column."""
        return True

    def _described(self, name: str) -> str:
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._sql_name}").collect()
        return next((str(row["data_type"]) for row in rows if row["col_name"] == name), "")

    def read(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows of the table's newest version; ``spark`` may be a copy of the table's session."""
        return (spark or self._spark).table(self._sql_name)

    def columns(self) -> Sequence[str]:
        """Return the names of the table's columns."""
        names: Sequence[str] = self.read().columns
        return names

    @abstractmethod
    def optimize(self, sort_by: tuple[str, ...] = ()) -> None:
        """Join small files into larger files, with the table format's own procedure.

        If ``sort_by`` is not empty, the rows are clustered by the columns in ``sort_by``, which the table
        must have.
        """

    @abstractmethod
    def vacuum(self, keep_hours: float) -> None:
        """Delete older versions of the table and files of no version, with the table format's own procedures.

        Versions of the table that were current in the last ``keep_hours`` hours stay readable. If there are
        more than `MOST_VERSIONS` such versions, only the newest `MOST_VERSIONS` versions and the versions of
        the last `SHORTEST_HOURS` hours stay.
        """

    @abstractmethod
    def count_files(self) -> int:
        """Return the number of data files in the newest version of the table."""

    def count_stored(self) -> int:
        """Return the number of data files in storage, of all versions of the table."""
        files = open_store(self._location(), self._spark).list_files("", ".parquet")
        return sum(not file.startswith("_delta_log/") for file in files)

    def _location(self) -> str:
        return self._described("Location")

    @cached_property
    def _folder(self) -> str:
        """The location of the table's folder, which does not change.

        Spark runs a job to find the location of the table, so the result is stored.
        """
        return self._url or self._location()


def _keys_text(keys: str) -> str:
    return f"one row for each {keys}" if keys else "one row for each record"
