"""`IcebergTable`: a table of Iceberg that takes each batch once.

A snapshot has the key of the writer, the number of the batch and its offsets as properties. They are
removed with the snapshot when old ones are expired; then the rows themselves decide: each has
its topic, partition and offset, and statistics of files limit the search.

A server of Spark Connect goes on with an append whose client was killed, while another run may append the
same batch. So rows are appended there to a branch that is named after the batch, and the table takes over
the snapshot of the branch: Iceberg refuses to take over the same one twice. A run that finds a snapshot in
the branch appends nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.pipeline.notes import OffsetRanges
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
    sql_text,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_CATALOG_CLASS: Final = "org.apache.iceberg.spark.SparkCatalog"
_KEY: Final = "cloudevents.key"
_BATCH: Final = "cloudevents.batch"
_OFFSETS: Final = "cloudevents.offsets"
_SOURCE: Final = "source-snapshot-id"  # a property of a snapshot that was taken over after another commit
_EXTENSION: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_TABLE_PROPERTIES: Final = {
    # Each commit writes a file of metadata; the last hundred stay.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
# By default rows are shuffled by partition before they are written, or sorted if they are not.
_WRITE_OPTIONS: Final = {"distribution-mode": "none", "fanout-enabled": "true"}
# What Spark's errors say for a catalog that the session does not have.
_NO_CATALOG: Final = ("CATALOG_NOT_FOUND", "annot find catalog plugin", "REQUIRES_SINGLE_PART_NAMESPACE")
# Iceberg refuses less for files of no snapshot: a commit in progress may need them.
_ORPHAN_HOURS: Final = 25.0


class IcebergTable(Table):
    """An Iceberg table, by the parts of its name in a catalog, or by the URL of its folder."""

    def __init__(self, spark: SparkSession, *, name: tuple[str, ...] = (), url: str = "") -> None:
        self._spark = spark
        self._url = url
        self._last: dict[str, int] = {}  # the last number of each key that this object has written
        self._catalog_conf: dict[str, str] = {}
        if url:
            # A catalog of Iceberg for the parent folder, in which each folder is a table.
            folder, _, table = url.rstrip("/").rpartition("/")
            catalog = f"cloudevents_{hashlib.sha256(folder.encode()).hexdigest()[:16]}"
            self._catalog_conf = {
                f"spark.sql.catalog.{catalog}": _CATALOG_CLASS,
                f"spark.sql.catalog.{catalog}.type": "hadoop",
                f"spark.sql.catalog.{catalog}.warehouse": folder,
                # Otherwise a session may see an older version than another session has written.
                f"spark.sql.catalog.{catalog}.cache-enabled": "false",
            }
            name = (catalog, table)
        self._parts = name
        self._sql_name = quote(*name)
        self._configure(spark)
        if is_connect(spark) and _EXTENSION not in str(spark.conf.get("spark.sql.extensions", "")):
            raise WrongTable(
                f"the server of Spark Connect cannot write the Iceberg table {self.name}: its setting "
                f"spark.sql.extensions must contain {_EXTENSION}, for branches. Start it with the settings "
                "and jars that cloudevents_kafka.spark.configure_session(builder, formats=['iceberg']) sets"
            )

    def _configure(self, spark: SparkSession) -> None:
        """Set the catalog of the folder, also in the session that a streaming query cloned earlier."""
        for setting, value in self._catalog_conf.items():
            spark.conf.set(setting, value)

    @property
    def name(self) -> str:
        """The name in a catalog, or the URL of the folder."""
        return self._url or ".".join(self._parts)

    @property
    def _catalog(self) -> tuple[str, str]:
        """The catalog, and the table's name in it."""
        first, *rest = self._parts
        if rest and self._spark.conf.get(f"spark.sql.catalog.{first}", None) is not None:
            return first, quote(*rest)
        return str(self._spark.catalog.currentCatalog()), self._sql_name

    def exists(self) -> bool:
        """Return whether the table exists."""
        from pyspark.errors import PySparkException

        try:
            return bool(self._spark.catalog.tableExists(self._sql_name))
        except PySparkException as error:
            catalog = f"spark.sql.catalog.{self._parts[0]}"
            if "jdbc.schema-version" in str(error):
                raise WrongTable(
                    f"the catalog of the Iceberg table {self.name} must know views; "
                    f"set {catalog}.jdbc.schema-version=V1"
                ) from error
            if any(text in str(error) for text in _NO_CATALOG):
                raise WrongTable(
                    f"the Spark session cannot write the Iceberg table {self.name}: it has no such "
                    "catalog, or no Iceberg. Build the session with "
                    "cloudevents_kafka.spark.configure_session(builder, formats=['iceberg']) "
                    f"and the catalog: {catalog}={_CATALOG_CLASS}, with its type"
                ) from error
            raise

    def _frame(self, part: str = "") -> DataFrame:
        return self._spark.table(self._sql_name + (f".{part}" if part else ""))

    def check_schema(self, schema: StructType) -> None:
        """Raise `WrongTable` if the table exists and cannot take rows of a schema."""
        if not self.exists():
            return
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._sql_name}").collect()
        provider = next((row["data_type"] for row in rows if row["col_name"] == "Provider"), "")
        if provider != "iceberg":
            raise WrongTable(
                f"the table {self.name} must be an Iceberg table, got {provider or 'another kind'}; "
                "name another table, or the format of this one"
            )
        check_columns(self.name, self._frame().schema, schema)

    def has_batch(self, key: str, number: int, offsets: OffsetRanges) -> bool:
        """Return whether the rows of a batch are in the table; see `Table.has_batch`."""
        if not self.exists():
            return False
        self._spark.catalog.refreshTable(self._sql_name)  # a catalog may have an older version in its cache
        found = {
            row["snapshot_id"]: row["summary"][_OFFSETS] for row in self._of_batch(key, number).collect()
        }
        landed = self._ancestors(found) if found else []
        for snapshot in landed:
            check_offsets(self.name, number, found[snapshot], offsets)
        return bool(landed) or has_rows(self._frame(), offsets)

    def _of_batch(self, key: str, number: int) -> DataFrame:
        """Return the snapshots to which a batch was appended."""
        snapshots = self._frame("snapshots").select("snapshot_id", "summary")
        summary = snapshots["summary"]
        return snapshots.where((summary[_KEY] == key) & (summary[_BATCH] == str(number)))

    def _ancestors(self, snapshots: Collection[int]) -> list[int]:
        """Return the snapshots that are in the current version, or were taken over into it."""
        current = self._frame("history").where("is_current_ancestor")
        found = self._frame("snapshots").join(current, "snapshot_id", "left_semi")
        sources = found.selectExpr(f"coalesce(CAST(summary['{_SOURCE}'] AS LONG), snapshot_id) AS source")
        return [row["source"] for row in sources.where(sources["source"].isin(*snapshots)).collect()]

    def append(self, rows: DataFrame, key: str, number: int, offsets: OffsetRanges) -> bool:
        """Return whether the rows of a batch were appended; see `Table.append`."""
        self._configure(rows.sparkSession)
        if key not in self._last:
            self.check_schema(rows.schema)
        if self.exists():
            # Once this object has written a batch of a key, a higher number is a new batch.
            if self._last.get(key, number) >= number and self.has_batch(key, number, offsets):
                self._drop_branch(_branch(key, number, offsets))
                return False
            existing = self._frame().schema
            check_columns(self.name, existing, rows.schema)
            sql = add_columns_sql(self._sql_name, existing, rows.schema)
            if sql is not None:
                self._spark.sql(sql)
                existing = self._frame().schema
            rows = fill_columns(rows, existing)
        else:
            self._create(rows)
        properties = {_KEY: key, _BATCH: str(number), _OFFSETS: offsets_text(offsets)}
        options = {f"snapshot-property.{name}": value for name, value in properties.items()}
        is_new = True
        with write_settings(rows.sparkSession):
            if is_connect(self._spark):
                is_new = self._append_in_branch(rows, options, key, number, offsets)
            else:
                rows.writeTo(self._sql_name).options(**_WRITE_OPTIONS, **options).append()
        self._last[key] = number
        return is_new

    def _append_in_branch(
        self, rows: DataFrame, options: Mapping[str, str], key: str, number: int, offsets: OffsetRanges
    ) -> bool:
        """Return whether rows were appended to the branch of a batch, whose snapshot the table takes over."""
        branch = _branch(key, number, offsets)
        self._spark.sql(f"ALTER TABLE {self._sql_name} CREATE BRANCH IF NOT EXISTS {branch}")
        snapshot = self._head(branch, key, number)
        is_new = snapshot is None
        if is_new:
            rows.writeTo(f"{self._sql_name}.branch_{branch}").options(**_WRITE_OPTIONS, **options).append()
            snapshot = self._head(branch, key, number)
        try:
            self._call("cherrypick_snapshot", f"snapshot_id => {snapshot}")
        except Exception:
            if not self.has_batch(key, number, offsets):  # the append of a killed run was faster
                raise
        self._drop_branch(branch)
        return is_new

    def _drop_branch(self, branch: str) -> None:
        """Remove a branch; its files belong to the table now, or to a killed run."""
        if is_connect(self._spark):
            self._spark.sql(f"ALTER TABLE {self._sql_name} DROP BRANCH IF EXISTS {branch}")

    def _head(self, branch: str, key: str, number: int) -> int | None:
        """Return the last snapshot of a branch if the batch was appended to it."""
        refs = self._frame("refs").where(f"name = '{branch}'")
        rows = self._of_batch(key, number).join(refs, "snapshot_id", "left_semi").collect()
        return rows[0]["snapshot_id"] if rows else None

    def _create(self, rows: DataFrame) -> None:
        if not self._url and len(self._parts) > 2:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(*self._parts[:-1])}")
        empty = self._spark.createDataFrame([], rows.schema)
        writer = empty.writeTo(self._sql_name).using("iceberg").partitionedBy(PARTITION_COLUMN)
        for name, value in _TABLE_PROPERTIES.items():
            writer = writer.tableProperty(name, value)
        writer.create()

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._frame().columns

    def optimize(self, sort_by: tuple[str, ...] = ()) -> Maintenance:
        """Return what rewrite_data_files and rewrite_manifests did; see `Table.optimize`."""
        before = self._frame("files").count()
        arguments = "options => map('min-input-files', '2')"
        if sort_by:
            order = f"zorder({', '.join(sort_by)})" if len(sort_by) > 1 else sort_by[0]
            arguments = (
                f"strategy => 'sort', sort_order => {sql_text(order)}, options => map('rewrite-all', 'true')"
            )
        with write_settings(self._spark):
            self._call("rewrite_data_files", arguments)
        self._call("rewrite_manifests")
        return Maintenance(self.name, before, self._frame("files").count())

    def vacuum(self, keep_hours: float = KEEP_HOURS) -> Maintenance:
        """Return what expire_snapshots and remove_orphan_files did; see `Table.vacuum`.

        Files of no snapshot stay for a day at least: a commit in progress may need them.
        """
        store = open_store(self._location(), self._spark)
        before = len(store.list_files("", ".parquet"))
        self._call("expire_snapshots", f"older_than => {_time(keep_hours)}, retain_last => 1")
        self._call("remove_orphan_files", f"older_than => {_time(max(keep_hours, _ORPHAN_HOURS))}")
        return Maintenance(self.name, before, len(store.list_files("", ".parquet")))

    def _location(self) -> str:
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._sql_name}").collect()
        return next(str(row["data_type"]) for row in rows if row["col_name"] == "Location")

    def _call(self, procedure: str, arguments: str = "") -> None:
        catalog, table = self._catalog
        rest = f", {arguments}" if arguments else ""
        # In backticks, because it is a reserved word of ANSI SQL.
        sql = f"CALL {quote(catalog)}.system.{procedure}(`table` => {sql_text(table)}{rest})"
        self._spark.sql(sql).collect()
        self._spark.catalog.refreshTable(self._sql_name)


def _branch(key: str, number: int, offsets: OffsetRanges) -> str:
    """Return the name of the branch for a batch."""
    name = f"{key}/{number}/{offsets_text(offsets)}"
    return f"cloudevents_{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _time(hours_ago: float) -> str:
    time = datetime.now(UTC) - timedelta(hours=hours_ago)
    return f"timestamp '{time:%Y-%m-%d %H:%M:%S.%f}+00:00'"
