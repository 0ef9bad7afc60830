"""`DeltaTable`: a table of Delta that takes each batch once.

A commit has the transaction identifiers of Delta: the key of the writer, and the number of the batch.
Delta keeps the last number of each key in every version of the table, through OPTIMIZE and VACUUM,
and skips a commit whose number is not higher. The commit's metadata has the offsets too, which shows
in the table's history as long as Delta keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from cloudevents_kafka.spark._java import java_of, java_session
from cloudevents_kafka.spark.pipeline.notes import OffsetRanges, format_ranges
from cloudevents_kafka.spark.pipeline.stores import is_connect, open_store
from cloudevents_kafka.spark.pipeline.tables._sink import (
    KEEP_HOURS,
    PARTITION_COLUMN,
    Maintenance,
    Table,
    WrongTable,
    add_columns_sql,
    check_columns,
    check_offsets,
    fill_columns,
    has_rows,
    offsets_text,
    quote,
    setting,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
# How many of the last commits are searched for a batch.
_RECENT_COMMITS: Final = 100


class _CommitInfo(msgspec.Struct, frozen=True):
    """The metadata of a commit."""

    key: str
    batch: int
    offsets: str


class DeltaTable(Table):
    """A Delta table, by the quoted name in a catalog, or by the URL of its folder."""

    def __init__(self, spark: SparkSession, *, name: str = "", url: str = "") -> None:
        self._spark = spark
        self._url = url
        self._sql_name = name or f"delta.{quote(url)}"
        self._last: dict[str, int] = {}  # the last number of each key that this object has written
        if _EXTENSION not in str(spark.conf.get("spark.sql.extensions", "")):
            raise WrongTable(
                f"the Spark session cannot write the Delta table {self.name}: its setting "
                f"spark.sql.extensions must contain {_EXTENSION}. Build the session with "
                "cloudevents_kafka.spark.configure_session(builder, formats=['delta'])"
            )

    @property
    def name(self) -> str:
        """The name in a catalog, or the URL of the folder."""
        return self._url or self._sql_name.replace("`", "")

    def exists(self) -> bool:
        """Return whether the table exists."""
        if not self._url:
            return bool(self._spark.catalog.tableExists(self._sql_name))
        return self._schema() is not None

    def _frame(self) -> DataFrame:
        return self._spark.table(self._sql_name)

    def _schema(self) -> StructType | None:
        """Return the schema of the table, or None if it does not exist."""
        from pyspark.errors import AnalysisException

        try:
            return self._frame().schema
        except AnalysisException as error:
            if error.getCondition() in _MISSING:
                return None
            raise

    def check_schema(self, schema: StructType) -> None:
        """Raise `WrongTable` if the table exists and cannot take rows of a schema."""
        existing = self._schema()
        if existing is None:
            return
        self._check_provider()
        check_columns(self.name, existing, schema)

    def _check_provider(self) -> None:
        if self._url:
            return
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._sql_name}").collect()
        provider = next((row["data_type"] for row in rows if row["col_name"] == "Provider"), "")
        if provider != "delta":
            raise WrongTable(
                f"the table {self.name} must be a Delta table, got {provider or 'another kind'}; "
                "name another table, or the format of this one"
            )

    def has_batch(self, key: str, number: int, offsets: OffsetRanges) -> bool:
        """Return whether the rows of a batch are in the table; see `Table.has_batch`."""
        if not self.exists():
            return False
        last = self._last_number(key)
        if last is not None and last < number:
            return False
        commit = self._find_commit(key, number)
        if commit is not None:
            check_offsets(self.name, number, commit.offsets, offsets)
            return True
        if last == number or has_rows(self._frame(), offsets):
            return True
        if last is not None:
            raise WrongTable(
                f"the table {self.name} has batch {last} of this pipeline, but not the records of batch "
                f"{number}, {format_ranges(offsets)}: the notes of its batches or its checkpoint were set "
                "back or removed. Restore them, or land into a fresh table with a fresh checkpoint"
            )
        return False

    def _last_number(self, key: str) -> int | None:
        """Return the number of the last batch of a key; None before the first batch, and on Spark Connect."""
        if is_connect(self._spark):  # it has no access to Delta's snapshots: history and rows decide
            return None
        log = java_of(self._spark).org.apache.spark.sql.delta.DeltaLog
        found_log = log.forTableWithSnapshot(java_session(self._spark), self._location())
        snapshot = found_log.productElement(1)
        found = snapshot.transactions().get(key)
        return int(found.get()) if found.isDefined() else None

    def _find_commit(self, key: str, number: int) -> _CommitInfo | None:
        """Return the metadata of a batch's commit, if the recent history of the table has it."""
        history = self._spark.sql(f"DESCRIBE HISTORY {self._sql_name} LIMIT {_RECENT_COMMITS}")
        for row in history.select("userMetadata").collect():
            try:
                commit = msgspec.json.decode(row["userMetadata"] or "", type=_CommitInfo)
            except msgspec.MsgspecError:  # the commit of another writer has other metadata
                continue
            if (commit.key, commit.batch) == (key, number):
                return commit
        return None

    def append(self, rows: DataFrame, key: str, number: int, offsets: OffsetRanges) -> bool:
        """Return whether the rows of a batch were appended; see `Table.append`."""
        if key not in self._last:
            self.check_schema(rows.schema)
        existing = self._schema()
        # Once this object has written a batch of a key, a higher number is a new batch.
        if self._last.get(key, number) >= number and self.has_batch(key, number, offsets):
            return False
        info = _CommitInfo(key, number, offsets_text(offsets))
        options = {
            "txnAppId": key,
            "txnVersion": str(number),
            "userMetadata": msgspec.json.encode(info).decode(),
        }
        with write_settings(rows.sparkSession):
            if existing is not None:
                rows = fill_columns(rows, self._with_columns(existing, rows.schema))
            if not self._url:
                if existing is None:
                    self._create(rows)
                rows.writeTo(self._sql_name).options(**options).append()
            else:
                writer = rows.write.format("delta").mode("append").options(**options)
                if existing is None:
                    writer = writer.partitionBy(PARTITION_COLUMN)
                writer.save(self._url)
        if key not in self._last and not self._is_committed(rows, key, number):
            return False
        self._last[key] = number
        return True

    def _is_committed(self, rows: DataFrame, key: str, number: int) -> bool:
        """Return whether Delta has committed rows: it skips a number that is not higher than the last one.

        `has_batch` notices that before, except on Spark Connect, where it does not see the last number.
        """
        if not is_connect(self._spark) or self._find_commit(key, number) is not None:
            return True
        if not rows.isEmpty():
            raise WrongTable(
                f"the table {self.name} has a later batch of this pipeline than {number}, but not the "
                f"records of batch {number}: the notes of its batches or its checkpoint were set back or "
                "removed. Restore them, or land into a fresh table with a fresh checkpoint"
            )
        return False

    def _with_columns(self, existing: StructType, wanted: StructType) -> StructType:
        """Return the schema of the table, to which columns that may be missing were added."""
        check_columns(self.name, existing, wanted)
        sql = add_columns_sql(self._sql_name, existing, wanted)
        if sql is None:
            return existing
        self._spark.sql(sql)
        return self._frame().schema

    def _create(self, rows: DataFrame) -> None:
        empty = self._spark.createDataFrame([], rows.schema)
        empty.writeTo(self._sql_name).using("delta").partitionedBy(PARTITION_COLUMN).create()

    def _detail(self) -> Row:
        detail: Row = self._spark.sql(f"DESCRIBE DETAIL {self._sql_name}").collect()[0]
        return detail

    def _location(self) -> str:
        return self._url or str(self._detail()["location"])

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._frame().columns

    def optimize(self, sort_by: tuple[str, ...] = ()) -> Maintenance:
        """Return what OPTIMIZE did; see `Table.optimize`."""
        detail = self._detail()
        # Delta refuses the columns of partitions: each of their values has separate files anyway.
        names = [quote(name) for name in sort_by if name not in detail["partitionColumns"]]
        order = f" ZORDER BY ({', '.join(names)})" if names else ""
        with write_settings(self._spark):
            self._spark.sql(f"OPTIMIZE {self._sql_name}{order}").collect()
        return Maintenance(self.name, int(detail["numFiles"]), int(self._detail()["numFiles"]))

    def vacuum(self, keep_hours: float = KEEP_HOURS) -> Maintenance:
        """Return what VACUUM did; see `Table.vacuum`."""
        before = self._count_files()
        with (
            # Delta refuses less than a week unless this is off; the caller has chosen.
            setting(self._spark, "spark.databricks.delta.retentionDurationCheck.enabled", "false"),
            # The number of tasks in which Delta lists folders; the default, 10,000, takes most of a minute.
            setting(self._spark, "spark.sql.sources.parallelPartitionDiscovery.parallelism", "8"),
        ):
            self._spark.sql(f"VACUUM {self._sql_name} RETAIN {keep_hours:g} HOURS").collect()
        return Maintenance(self.name, before, self._count_files())

    def _count_files(self) -> int:
        """Return the number of data files in storage, of all versions."""
        files = open_store(self._location(), self._spark).list_files("", ".parquet")
        return sum(not file.startswith("_delta_log/") for file in files)


_MISSING: Final = (
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_NOT_FOUND",
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
)
