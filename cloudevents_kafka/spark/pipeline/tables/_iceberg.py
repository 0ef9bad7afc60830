"""`IcebergTable` is an Iceberg table that stores its ledger in a property of the table.

Spark stages the rows of a batch as snapshots that no reader sees (Iceberg's "write, audit, publish"). Then
one Iceberg transaction appends the files of these snapshots to the table, sets the property with the ledger,
and renames a branch. The name of this branch contains the number of commits that changed the ledger. Iceberg
applies a transaction to the newest version of the table. If another commit came first, the branch with the
old name does not exist any more, and Iceberg rejects the transaction. The branch refers to the snapshot
before the first batch, so Iceberg can still delete files that later commits have replaced.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cloudevents_kafka.spark._java import java_of, java_session
from cloudevents_kafka.spark._sql import quote, sql_text, write_settings
from cloudevents_kafka.spark.pipeline._errors import WrongTable, spark_errors
from cloudevents_kafka.spark.pipeline.notes import Ledger
from cloudevents_kafka.spark.pipeline.tables import _table
from cloudevents_kafka.spark.pipeline.tables._evolution import names_in, type_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_CATALOG_CLASS: Final = "org.apache.iceberg.spark.SparkCatalog"
_LEDGER: Final = "cloudevents-kafka.ledger"  # the property with the ledger
_BRANCH: Final = "cloudevents_kafka_"  # the name of the ledger's branch, without its number
_STAGED: Final = "cloudevents-kafka.staged"  # a property of staged snapshots
_STAGING: Final = "write.wap.enabled"
_BRANCH_OF_SESSION: Final = "spark.wap.branch"
_EXPIRING: Final = "gc.enabled"  # some catalogs, such as Nessie, turn this off
# Each commit writes a metadata file; the last 100 of these files stay.
_TABLE_PROPERTIES: Final = (
    "'write.metadata.delete-after-commit.enabled' = 'true', "
    f"'write.metadata.previous-versions-max' = '100', '{_STAGING}' = 'true'"
)
# With these options, Iceberg does not shuffle the rows before it writes them. Each task sorts its rows by
# partition, because a task would otherwise have an open file, with buffers of some MB, for each date.
_WRITE_OPTIONS: Final = {"distribution-mode": "none", "fanout-enabled": "false"}
# Texts in Spark's errors if the session does not have the catalog.
_NO_CATALOG: Final = ("CATALOG_NOT_FOUND", "annot find catalog plugin", "REQUIRES_SINGLE_PART_NAMESPACE")
_MOST_TRIES: Final = 3
# For files that belong to no snapshot, Iceberg refuses a shorter time: a commit in progress may need them.
_ORPHAN_HOURS: Final = 25.0


class IcebergTable(_table.Table):
    """An Iceberg table, identified by its name in a catalog or by the URL of its folder."""

    kind = "an Iceberg table"
    provider = "iceberg"
    conflicts = "Branch does not exist|Branch already exists|CommitFailedException"

    def __init__(self, spark: SparkSession, *, name: tuple[str, ...] = (), url: str = "") -> None:
        if (branch := spark.conf.get(_BRANCH_OF_SESSION, None)) is not None:  # Iceberg refuses '', too
            raise WrongTable(
                f"the Spark session must not have the setting {_BRANCH_OF_SESSION}, got {branch!r}: a "
                "pipeline writes to the main branch of an Iceberg table. Unset the setting"
            )
        self._catalog_conf: dict[str, str] = {}
        if url:
            # A catalog of Iceberg for the parent folder, in which each folder is a table.
            folder, _, table = url.rstrip("/").rpartition("/")
            catalog = f"cloudevents_{hashlib.sha256(folder.encode()).hexdigest()[:16]}"
            self._catalog_conf = {
                f"spark.sql.catalog.{catalog}": _CATALOG_CLASS,
                f"spark.sql.catalog.{catalog}.type": "hadoop",
                f"spark.sql.catalog.{catalog}.warehouse": folder,
                # Otherwise, a session may not see the newest version that another session has written.
                f"spark.sql.catalog.{catalog}.cache-enabled": "false",
            }
            name = (catalog, table)
        self._parts = name
        super().__init__(spark, quote(*name), url)
        self._configure(spark)

    def _configure(self, spark: SparkSession) -> None:
        """Set the session's settings for the catalog of a folder.

        A streaming query runs in a clone of the session, so this method must also be called with the cloned
        session.
        """
        for setting, value in self._catalog_conf.items():
            spark.conf.set(setting, value)

    def _schema(self) -> StructType | None:
        try:
            found = super()._schema()
            if found is None:
                self._spark.catalog.tableExists(self._sql_name)  # raises an error if the catalog is wrong
        except spark_errors() as error:
            catalog = f"spark.sql.catalog.{self._parts[0]}"
            if "jdbc.schema-version" in str(error):
                raise WrongTable(
                    f"the catalog of the Iceberg table {self.name} must support views; "
                    f"set {catalog}.jdbc.schema-version=V1"
                ) from error
            if any(text in str(error) for text in _NO_CATALOG):
                raise WrongTable(
                    f"the Spark session cannot write the Iceberg table {self.name}: it does not "
                    "have the catalog, or does not have Iceberg. Build the session with "
                    "cloudevents_kafka.spark.configure_session(builder, formats=['iceberg']), and configure "
                    f"the catalog: {catalog}={_CATALOG_CLASS}, and the type of the catalog"
                ) from error
            raise
        return found

    def _check_names(self, schema: StructType, *, exists: bool) -> None:
        paths = {*names_in(schema), *(names_in(self.read().schema) if exists else ())}
        names = Counter(".".join(path) for path in paths)
        if twice := next((name for name, count in names.items() if count > 1), None):
            raise WrongTable(
                f"the Iceberg table {self.name} must not have two fields with the name {twice}, because "
                "Iceberg joins the names of nested fields with dots. Choose another name, or land in Delta"
            )

    def id(self) -> str:
        """Return the id that Iceberg has assigned to the table."""
        return str(self._java_table().uuid().toString())

    def _read_ledger(self) -> tuple[Ledger | None, int]:
        table = self._java_table()
        location = str(table.location())
        if self._url and _path(location) != _path(self._url):
            raise WrongTable(
                f"the Iceberg table {self._url} must be in {location}, where it was made, because its "
                "metadata has the full paths of its files. Move the table back, or copy its rows into a new "
                "table"
            )
        text = table.properties().get(_LEDGER)
        found = None if text is None else msgspec.json.decode(str(text), type=Ledger)
        return found, _number(table.currentSnapshot(), "total-records")

    def stage(self, rows: DataFrame) -> _table.Staged:
        """Write rows as a snapshot that no reader sees, and return the snapshot; see `Table.stage`."""
        self._configure(rows.sparkSession)
        rows = self._prepare(rows)
        self._prepare_ledger()
        token = uuid.uuid4().hex
        options = {**_WRITE_OPTIONS, f"snapshot-property.{_STAGED}": token}
        with write_settings(rows.sparkSession):
            rows.writeTo(self._sql_name).options(**options).append()
        snapshot = self._staged(_STAGED, token)
        return _table.Staged(snapshot, _number(snapshot, "added-records"))

    def commit(self, staged: Sequence[_table.Staged], before: Ledger, after: Ledger) -> None:
        """Add staged rows to the table, and replace the table's ledger; see `Table.commit`."""
        if before.generation == 0:  # a table that exists already may receive no rows before its first commit
            self._prepare_ledger()
        table = self._java_table()
        snapshots = [part.files for part in staged]
        transaction = table.newTransaction()
        with self._committing():
            names = (f"{_BRANCH}{ledger.generation}" for ledger in (before, after))
            transaction.manageSnapshots().renameBranch(*names).commit()
            self._add(transaction, table, snapshots)
            transaction.updateProperties().set(_LEDGER, msgspec.json.encode(after).decode()).commit()
            if table.properties().get(_EXPIRING) != "false":  # or Iceberg refuses
                expire = transaction.expireSnapshots().cleanExpiredFiles(False)
                for snapshot in snapshots:
                    expire.expireSnapshotId(snapshot.snapshotId())
                expire.commit()
            transaction.commitTransaction()

    def _add(self, transaction: Any, table: Any, snapshots: Sequence[Any]) -> None:
        """Add the files of staged snapshots to an Iceberg transaction."""
        append = transaction.newAppend()
        for snapshot in snapshots:
            for file in snapshot.addedDataFiles(table.io()):
                append.appendFile(file)
        append.commit()

    def _property(self, name: str) -> str | None:
        found: str | None = self._java_table().properties().get(name)
        return found

    def _prepare_ledger(self) -> None:
        """Allow the table to stage snapshots, and create the branch that counts the ledger's commits."""
        table = self._java_table()
        if table.properties().get(_STAGING) != "true":
            table.updateProperties().set(_STAGING, "true").commit()
        if table.properties().get(_LEDGER) is None and not table.refs().containsKey(f"{_BRANCH}0"):
            table.manageSnapshots().createBranch(f"{_BRANCH}0").commit()

    def _staged(self, name: str, token: str) -> Any:
        """Return the staged snapshot whose property ``name`` has the value ``token``."""
        table = self._java_table()
        snapshots = table.operations().current().snapshots()
        for index in reversed(range(snapshots.size())):
            snapshot = snapshots.get(index)
            if snapshot.summary().get(name) == token:
                current = table.currentSnapshot()
                if current is not None and current.snapshotId() == snapshot.snapshotId():
                    raise WrongTable(
                        f"the table {self.name} must stage its snapshots, but has published a snapshot"
                    )
                return snapshot
        raise WrongTable(f"the table {self.name} must have the snapshot that was staged, but it is missing")

    def _java_table(self) -> Any:
        """Return the newest version of the table, as a Java object."""
        load = java_of(self._spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        table = load(java_session(self._spark), self._sql_name)
        table.refresh()
        return table

    def _create(self, schema: StructType) -> None:
        if not self._url and len(self._parts) > 2:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(*self._parts[:-1])}")
        columns = ", ".join(f"{quote(field.name)} {type_sql(field.dataType)}" for field in schema.fields)
        by = f"PARTITIONED BY ({', '.join(self.partitions)}) " if self.partitions else ""
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._sql_name} ({columns}) USING iceberg "
            f"{by}TBLPROPERTIES ({_TABLE_PROPERTIES})"
        )

    def read(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows of the table's newest version, even if the session knows only an older version."""
        session = spark or self._spark
        self._configure(session)
        session.catalog.refreshTable(self._sql_name)
        return super().read(session)

    def count_files(self) -> int:
        """Return the number of data files in the newest version of the table."""
        return int(self._spark.table(f"{self._sql_name}.files").count())

    def optimize(self, sort_by: tuple[str, ...] = ()) -> None:
        """Run Iceberg's procedures rewrite_data_files and rewrite_manifests; see `Table.optimize`."""
        arguments = "options => map('min-input-files', '2')"
        if sort_by:
            order = f"zorder({', '.join(sort_by)})" if len(sort_by) > 1 else sort_by[0]
            arguments = (
                f"strategy => 'sort', sort_order => {sql_text(order)}, options => map('rewrite-all', 'true')"
            )
        with write_settings(self._spark):
            self._call("rewrite_data_files", arguments)
        # Batches may replace manifests meanwhile. If this happens each time, Iceberg joins manifests itself.
        for _ in range(_MOST_TRIES):
            try:
                return self._call("rewrite_manifests")
            except spark_errors() as error:
                if "could not be found in the latest" not in str(error):
                    raise
        return None

    def vacuum(self, keep_hours: float) -> None:
        """Run Iceberg's procedures expire_snapshots and remove_orphan_files; see `Table.vacuum`."""
        if self._property(_EXPIRING) == "false":
            raise WrongTable(
                f"the table {self.name} must not have the property {_EXPIRING}=false, because Iceberg then "
                "refuses to delete files. Use the clean-up of the table's catalog, or set the property to "
                "true"
            )
        arguments = f"older_than => {_time(keep_hours)}, retain_last => 1"
        history = self._spark.table(f"{self._sql_name}.history").orderBy("made_current_at", ascending=False)
        old = history.offset(_table.MOST_VERSIONS).where(f"made_current_at < {_time(_table.SHORTEST_HOURS)}")
        # Versions to which a branch or a tag refers must stay.
        old = old.join(self._spark.table(f"{self._sql_name}.refs"), "snapshot_id", "left_anti")
        if ids := ", ".join(
            str(row["snapshot_id"]) for row in old.select("snapshot_id").distinct().collect()
        ):
            arguments += f", snapshot_ids => array({ids})"
        self._call("expire_snapshots", arguments)
        self._call("remove_orphan_files", f"older_than => {_time(max(keep_hours, _ORPHAN_HOURS))}")

    def _call(self, procedure: str, arguments: str = "") -> None:
        catalog, table = catalog_of(self._spark, self._parts)
        rest = f", {arguments}" if arguments else ""
        # The parameter `table` is in backticks, because TABLE is a reserved word of ANSI SQL.
        sql = f"CALL {quote(catalog)}.system.{procedure}(`table` => {sql_text(table)}{rest})"
        self._spark.sql(sql).collect()
        self._spark.catalog.refreshTable(self._sql_name)


def catalog_of(spark: SparkSession, name: tuple[str, ...]) -> tuple[str, str]:
    """Return the catalog of an Iceberg table, and the table's name in this catalog."""
    first, *rest = name
    if rest and spark.conf.get(f"spark.sql.catalog.{first}", None) is not None:
        return first, quote(*rest)
    return str(spark.catalog.currentCatalog()), quote(*name)


def _path(location: str) -> str:
    """Return the location of a table in a form that is the same for all URLs of one local folder."""
    return re.sub(r"^file:/+", "/", location).rstrip("/")


def _number(snapshot: Any, name: str) -> int:
    """Return a number from the summary of a snapshot, or 0 if the summary does not contain this number."""
    return 0 if snapshot is None else int(snapshot.summary().get(name) or 0)


def _time(hours_ago: float) -> str:
    time = datetime.now(UTC) - timedelta(hours=hours_ago)
    return f"timestamp '{time:%Y-%m-%d %H:%M:%S.%f}+00:00'"
