"""Tables that have one row for each key: a commit runs MERGE and changes the ledger in one atomic step.

Settings of the session contain one transaction identifier and the metadata of the commit. MERGE in Delta
reads these settings, and commits the transaction identifier and the metadata together with the rows. So the
ledger of a Delta table with keys is in the history of the table, as `_delta_history` describes.

Iceberg stages the result of MERGE as a snapshot that no reader sees. Then the transaction that `_iceberg`
describes replaces files of the table with the files of this snapshot. The Iceberg transaction fails if rows
of the table have changed since MERGE read the table. A MERGE statement changes a row only if the offset of
the new record is higher than the offset in the row. So if the same MERGE statement runs twice, the second run
changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark._sql import quote, settings, sql_text, table_settings, write_settings
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.notes import Ledger, Upsert
from cloudevents_kafka.spark.pipeline.tables import _table
from cloudevents_kafka.spark.pipeline.tables._columns import OWN_COLUMNS
from cloudevents_kafka.spark.pipeline.tables._delta import DeltaTable
from cloudevents_kafka.spark.pipeline.tables._delta_history import Commit
from cloudevents_kafka.spark.pipeline.tables._iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_WAP_ID: Final = "wap.id"  # Iceberg copies spark.wap.id to this property of a snapshot
_DELTA: Final = "spark.databricks.delta"
_APPEND_ONLY: Final = "delta.appendOnly"


class _UpsertTable(_table.Table):
    """A table for rows with keys: a commit merges the staged rows into the table."""

    partitions = ()

    def stage(self, rows: DataFrame) -> _table.Staged:
        """Compute rows, store the rows in Spark until `commit`, and return the rows; see `Table.stage`."""
        prepared = self._prepare(rows)
        # The last record sets all of the pipeline's columns, even columns that the batch does not have.
        own = [name for name in prepared.columns if name in OWN_COLUMNS or name in rows.columns]
        kept = prepared.select(*(quote(name) for name in own)).persist()
        kept.write.format("noop").mode("overwrite").save()
        return _table.Staged(kept, None)

    def _prepare(self, rows: DataFrame) -> DataFrame:
        is_first = self._checked is None
        rows = super()._prepare(rows)
        keys = f"{sql_text(_table.KEYS)} = {sql_text(str(self.upsert))}"
        if is_first and self._is_new():
            self._spark.sql(f"ALTER TABLE {self._sql_name} SET TBLPROPERTIES ({keys})")
        return rows

    def _merge(self, rows: DataFrame) -> None:
        """Run a MERGE statement with the rows that change the table."""
        assert self.upsert is not None  # for type checkers
        with _view(rows) as view:
            rows.sparkSession.sql(_merge_sql(self._sql_name, view, rows.columns, self.upsert)).collect()


class UpsertDeltaTable(_UpsertTable, DeltaTable):
    """A Delta table that has one row for each key."""

    def check_schema(self, schema: StructType) -> None:
        """Raise `WrongTable` if the table cannot store rows of a schema; see `Table.check_schema`."""
        super().check_schema(schema)
        if self.exists() and self._property(_APPEND_ONLY) == "true":
            raise WrongTable(
                f"the table {self.name} must not have the property {_APPEND_ONLY}=true, because upsert "
                f"changes rows. Do: ALTER TABLE … UNSET TBLPROPERTIES ('{_APPEND_ONLY}'); or land without "
                "upsert"
            )

    def _read_ledger(self) -> tuple[Ledger | None, int]:
        detail = self._detail()
        return self._history.ledger(detail["properties"]), detail["numFiles"]

    def commit(self, staged: Sequence[_table.Staged], before: Ledger, after: Ledger) -> None:
        """Merge staged rows and a new ledger into the table; see `Table.commit`."""
        commit = Commit.of(after)
        with self._committing(), write_settings(self._spark):
            self._history.note(self._detail()["properties"], before)
            self._write([part.files for part in staged], commit.options())
        if not self._history.has(commit):
            raise self._changed()
        for part in staged:
            part.files.unpersist()

    def _write(self, frames: Sequence[DataFrame], options: Mapping[str, str]) -> None:
        """Write rows with options of Delta's writer; if there are no rows, change only the ledger."""
        if not frames:
            self.read().limit(0).writeTo(self._sql_name).options(**options).append()
        for rows in frames:
            conf = {
                f"{_DELTA}.write.txnAppId": options["txnAppId"],
                f"{_DELTA}.write.txnVersion": options["txnVersion"],
                f"{_DELTA}.commitInfo.userMetadata": options["userMetadata"],
            }
            with settings(rows.sparkSession, conf), table_settings(rows.sparkSession):
                self._merge(rows)


class UpsertIcebergTable(_UpsertTable, IcebergTable):
    """An Iceberg table that has one row for each key."""

    conflicts = f"{IcebergTable.conflicts}|ValidationException"

    def stage(self, rows: DataFrame) -> _table.Staged:
        """Compute the rows, and return them; see `Table.stage`."""
        self._configure(rows.sparkSession)
        staged = super().stage(rows)
        self._prepare_ledger()
        return staged

    def commit(self, staged: Sequence[_table.Staged], before: Ledger, after: Ledger) -> None:
        """Merge staged rows and a new ledger into the table; see `Table.commit`."""
        with self._committing():
            merged = [self._stage_merge(part.files) for part in staged]
        super().commit([_table.Staged(snapshot, None) for snapshot in merged], before, after)
        for part in staged:
            part.files.unpersist()

    def _stage_merge(self, rows: DataFrame) -> Any:
        """Run a MERGE statement, and return its result as a snapshot that no reader sees."""
        token = uuid.uuid4().hex
        with write_settings(rows.sparkSession), settings(rows.sparkSession, {"spark.wap.id": token}):
            self._merge(rows)
        return self._staged(_WAP_ID, token)

    def _add(self, transaction: Any, table: Any, snapshots: Sequence[Any]) -> None:
        if not snapshots:
            super()._add(transaction, table, snapshots)
        for snapshot in snapshots:
            if list(snapshot.addedDeleteFiles(table.io())):
                raise WrongTable(
                    f"the table {self.name} must not have the property write.merge.mode=merge-on-read. Do: "
                    "ALTER TABLE … UNSET TBLPROPERTIES ('write.merge.mode')"
                )
            overwrite = transaction.newOverwrite()
            for file in snapshot.addedDataFiles(table.io()):
                overwrite.addFile(file)
            for file in snapshot.removedDataFiles(table.io()):
                overwrite.deleteFile(file)
            if (parent := snapshot.parentId()) is not None:
                overwrite.validateFromSnapshot(parent)
            overwrite.validateNoConflictingData().validateNoConflictingDeletes().commit()


@contextmanager
def _view(rows: DataFrame) -> Iterator[str]:
    """Yield the name of a temporary view that contains the rows."""
    name = f"cloudevents_kafka_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)


def _merge_sql(table: str, view: str, columns: Sequence[str], upsert: Upsert) -> str:
    """Return a MERGE statement for the rows of a view; each of these rows has a different key."""
    keys = zip(upsert.key_sql("target."), upsert.key_sql("source."), strict=True)
    names = [quote(name) for name in columns]
    return (
        f"MERGE INTO {table} AS target USING {view} AS source "  # noqa: S608  # all names are quoted
        f"ON {' AND '.join(f'{target} = {source}' for target, source in keys)} "
        "WHEN MATCHED AND target.`topic` = source.`topic` AND target.`partition` = source.`partition` "
        "AND target.`offset` < source.`offset` "
        f"THEN UPDATE SET {', '.join(f'{name} = source.{name}' for name in names)} "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f'source.{name}' for name in names)})"
    )
