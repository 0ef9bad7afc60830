"""`DeltaTable`: a table of Delta whose own transactions are its ledger.

Each range of the ledger is a transaction identifier of Delta, whose version is the end of the range; one more
counts the commits. Delta keeps the newest of each in every version of the table: through clean-up of its
log, OPTIMIZE and VACUUM, and commits of other writers. Two commits that read one identifier and write it
conflict, so that the second one reads the ledger again. `Table.stage` and `Table.commit` use Delta's Java
classes, because Spark's writers commit one identifier only, and do not report one that they skip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cloudevents_kafka.spark._java import java_frame, java_of, java_session, scala_option, scala_seq
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.notes import Entry, Ledger, OffsetRange
from cloudevents_kafka.spark.pipeline.stores import open_store
from cloudevents_kafka.spark.pipeline.tables._sink import (
    KEEP_HOURS,
    PARTITION_COLUMN,
    LedgerChanged,
    Maintenance,
    Staged,
    Table,
    add_columns_sql,
    check_columns,
    fill_columns,
    foreign_rows,
    quote,
    setting,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
LEDGER: Final = "cloudevents-kafka"
"""The transaction identifier whose version counts the commits to the ledger."""

CONFLICTS: Final = ("Concurrent", "CONCURRENT", "MetadataChanged", "METADATA_CHANGED", "ProtocolChanged")
"""What errors of Delta contain if another commit was faster."""

CONNECT: Final = f"{LEDGER}.ledger."
"""The property of a table that Spark Connect fills, followed by the number of a ledger's commits."""

_RETENTION: Final = "delta.setTransactionRetentionDuration"


class DeltaTable(Table):
    """A Delta table, by the quoted name in a catalog, or by the URL of its folder."""

    def __init__(self, spark: SparkSession, *, name: str = "", url: str = "") -> None:
        self._spark = spark
        self._url = url
        self._sql_name = name or f"delta.{quote(url)}"
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

    def id(self) -> str:
        """Return the id of the table in Delta."""
        return str(self._snapshot().metadata().id())

    def ledger(self, *, adopt: bool = False) -> Ledger:
        """Return the ledger of the newest version; see `Table.ledger`."""
        if not self.exists():
            return Ledger()
        snapshot = self._snapshot()
        self._check_properties(dict(self._detail()["properties"]))
        found = dict(_transactions(snapshot))
        if LEDGER not in found and int(snapshot.numOfFiles()) > 0 and not adopt:
            raise foreign_rows(self.name)
        return Ledger.of_entries(found.get(LEDGER, 0), filter(None, map(_entry, found.items())))

    def _check_properties(self, properties: Mapping[str, str]) -> None:
        """Raise `WrongTable` if Delta would forget the ledger, or if Spark Connect has written one."""
        if _RETENTION in properties:
            raise WrongTable(
                f"the table {self.name} must not have the property {_RETENTION}, got "
                f"{properties[_RETENTION]}: Delta would forget which offsets have landed. "
                f"Do: ALTER TABLE … UNSET TBLPROPERTIES ('{_RETENTION}')"
            )
        if any(name.startswith(CONNECT) for name in properties):
            raise WrongTable(
                f"the table {self.name} must be landed in through Spark Connect, as before: its ledger is in "
                "the history of the table. Use such a session, or land into a fresh table"
            )

    def stage(self, rows: DataFrame) -> Staged:
        """Return rows whose files are written; see `Table.stage`."""
        rows = self._prepare(rows)
        with write_settings(rows.sparkSession):
            written = self._log().startTransaction().writeFiles(java_frame(rows))
        files = [written.apply(index) for index in range(written.size())]
        return Staged(files, _number_of_rows(files))

    def _prepare(self, rows: DataFrame) -> DataFrame:
        """Return rows with the columns of the table, which is created if it is missing."""
        self.check_schema(rows.schema)
        with write_settings(rows.sparkSession):
            if not self.exists():
                self._create(rows)
            return fill_columns(rows, self._with_columns(self._frame().schema, rows.schema))

    def commit(self, staged: Sequence[Staged], before: Ledger, after: Ledger) -> None:
        """Make staged rows and a new ledger part of the table; see `Table.commit`."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

        java = java_of(self._spark)
        transaction = self._log().startTransaction()
        # Reading an identifier makes Delta refuse the commit if another one writes it meanwhile.
        if max(0, int(transaction.txnVersion(LEDGER))) != before.generation:
            raise LedgerChanged(f"the ledger of {self.name} must be read again")
        none = scala_option(java)
        delta = java.org.apache.spark.sql.delta
        actions = [file for part in staged for file in part.files]
        for key, version in _changes(before, after).items():
            actions.append(delta.actions.SetTransaction(key, version, none))
        try:
            transaction.commit(scala_seq(java, actions), _write_operation(java))
        except Py4JJavaError as error:
            if any(text in str(error.java_exception.getClass().getName()) for text in CONFLICTS):
                raise LedgerChanged(f"the ledger of {self.name} must be read again") from error
            raise

    def _log(self) -> Any:
        return self._opened().productElement(0)

    def _snapshot(self) -> Any:
        """Return the newest version of the table, as Java has it."""
        return self._opened().productElement(1)

    def _opened(self) -> Any:
        log = java_of(self._spark).org.apache.spark.sql.delta.DeltaLog
        return log.forTableWithSnapshot(java_session(self._spark), self._location())

    def _with_columns(self, existing: StructType, wanted: StructType) -> StructType:
        """Return the schema of the table, to which columns that may be missing were added."""
        check_columns(self.name, existing, wanted)
        sql = add_columns_sql(self._sql_name, existing, wanted)
        if sql is None:
            return existing
        self._spark.sql(sql)
        return self._frame().schema

    def _create(self, rows: DataFrame) -> None:
        from pyspark.errors import PySparkException

        empty = self._spark.createDataFrame([], rows.schema)
        try:
            if self._url:
                empty.write.format("delta").partitionBy(PARTITION_COLUMN).save(self._url)
            else:
                empty.writeTo(self._sql_name).using("delta").partitionedBy(PARTITION_COLUMN).create()
        except PySparkException:
            if not self.exists():  # another pipeline was faster
                raise

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


def _transactions(snapshot: Any) -> Iterator[tuple[str, int]]:
    """Yield the identifiers and versions of all pipelines' transactions; one text is one call of Java."""
    for line in str(snapshot.transactions().mkString("\n")).splitlines():
        key, _, version = line.rpartition(" -> ")
        if key.startswith(LEDGER) and version.isdecimal():
            yield key, int(version)


def _entry(transaction: tuple[str, int]) -> Entry | None:
    """Return the range that a transaction identifier stands for, or None for that of the ledger."""
    key, end = transaction
    parts = key.split("/")
    if len(parts) != 6 or not parts[4].isdecimal():
        return None
    _, topic, topic_id, partition, start, pipeline = parts
    return Entry(topic, topic_id, pipeline, partition, OffsetRange(int(start), end))


def _changes(before: Ledger, after: Ledger) -> dict[str, int]:
    """Return the identifiers and versions of the ranges that a commit adds or extends."""
    known = set(before.entries())
    added = {
        f"{LEDGER}/{topic}/{topic_id}/{partition}/{offsets.start}/{pipeline}": offsets.end
        for topic, topic_id, pipeline, partition, offsets in set(after.entries()) - known
    }
    return {LEDGER: after.generation, **added}


def _number_of_rows(files: Iterable[Any]) -> int | None:
    """Return the number of rows in files, or None if Delta collects no statistics."""
    numbers = [msgspec.json.decode(file.stats() or "{}", type=_Statistics).records for file in files]
    return None if None in numbers else sum(filter(None, numbers))


class _Statistics(msgspec.Struct, frozen=True, rename={"records": "numRecords"}):
    records: int | None = None


def _write_operation(java: Any) -> Any:
    """Return the operation of a commit, as the table's history shows it."""
    write = getattr(java.org.apache.spark.sql.delta, "DeltaOperations$Write")
    none, text = scala_option(java), scala_option(java, f"{LEDGER}: a batch of a pipeline")
    return write(java.org.apache.spark.sql.SaveMode.Append, none, none, text)


_MISSING: Final = (
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_NOT_FOUND",
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
)
