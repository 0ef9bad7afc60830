"""`DeltaTable` is a Delta table that stores its ledger as transaction identifiers of Delta.

Each range in the ledger is stored as a transaction identifier. The version of the transaction identifier is
the end offset of the range. Another transaction identifier counts the commits that changed the ledger. Each
version of the Delta table contains the newest version of each transaction identifier. OPTIMIZE, VACUUM, a
clean-up of Delta's log, and commits of other writers do not remove the newest version of a transaction
identifier. Two commits to a Delta table conflict if both commits read and write the same transaction
identifier. If two commits conflict, the second commit fails, and the pipeline reads the ledger again.
`Table.stage` and `Table.commit` use Delta's Java classes. Spark's own writers for Delta cannot be used,
because they commit only one transaction identifier, and do not report when Delta skips a commit.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark._java import (
    active,
    file_system,
    java_frame,
    java_of,
    java_session,
    scala_option,
    scala_seq,
)
from cloudevents_kafka.spark._sql import quote, settings, table_settings
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.notes import Ledger, LedgerEntry, OffsetRange
from cloudevents_kafka.spark.pipeline.tables import _table
from cloudevents_kafka.spark.pipeline.tables._delta_history import LEDGER, PROPERTY, DeltaHistory
from cloudevents_kafka.spark.pipeline.tables._evolution import names_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_GENERATED: Final = "delta.generationExpression"  # in the metadata of columns that Delta computes
_IDENTITY: Final = "delta.identity.start"  # in the metadata of columns that Delta numbers
_CONSTRAINTS: Final = "delta.constraints."
_NOT_TAKEN: Final = re.compile(r"[ ,;{}()\n\t=]")  # invalid in names without column mapping
_MAPPING: Final = "delta.columnMapping.mode"
_NEW_MAPPING: Final = "spark.databricks.delta.properties.defaults.columnMapping.mode"
_RETENTION: Final = "delta.setTransactionRetentionDuration"
_VACUUM_SETTINGS: Final = {
    # Delta refuses to keep less than a week unless this check is off. Here, the caller has chosen the time.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # The number of tasks in which Delta lists folders; the default, 10,000, takes most of a minute.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}


class DeltaTable(_table.Table):
    """A Delta table, identified by its name in a catalog or by the URL of its folder."""

    kind = "a Delta table"
    provider = "delta"
    conflicts = r"Concurrent\w*Exception|CONCURRENT|MetadataChanged|METADATA_CHANGED|ProtocolChanged"

    def __init__(self, spark: SparkSession, *, name: tuple[str, ...] = (), url: str = "") -> None:
        super().__init__(spark, quote(*name) if name else f"delta.{quote(url)}", url)
        if _EXTENSION not in str(spark.conf.get("spark.sql.extensions", "")):
            raise WrongTable(
                f"the Spark session cannot write the Delta table {self.name}: its setting "
                f"spark.sql.extensions must contain {_EXTENSION}. Build the session with "
                "cloudevents_kafka.spark.configure_session(builder, formats=['delta'])"
            )
        self._history = DeltaHistory(spark, self._sql_name, self.name)
        self._has_history = False  # whether the ledger is in the history, see `_delta_history`

    def id(self) -> str:
        """Return the id that Delta has assigned to the table."""
        return str(self._known().metadata().id())

    def _read_ledger(self) -> tuple[Ledger | None, int]:
        snapshot = self._newest()
        properties = snapshot.metadata().configuration()
        if properties.contains(_RETENTION):
            raise WrongTable(
                f"the table {self.name} must not have the property {_RETENTION}, got "
                f"{properties.apply(_RETENTION)}: Delta would forget which offsets have landed. "
                f"Do: ALTER TABLE … UNSET TBLPROPERTIES ('{_RETENTION}')"
            )
        text = str(snapshot.transactions().mkString("\n"))  # a text needs only one call of Java
        commits = re.search(rf"(?m)^{LEDGER} -> (\d+)$", text)
        ranges = re.findall(rf"(?m)^{LEDGER}/([^/\n]*)/([^/\n]*)/([^/\n]*)/(\d+)/([^/\n]*) -> (\d+)$", text)
        entries = (
            LedgerEntry(topic, topic_id, pipeline, partition, OffsetRange(int(start), int(end)))
            for topic, topic_id, partition, start, pipeline, end in ranges
        )
        found = Ledger.of_entries(int(commits[1]), entries) if commits else None
        self._has_history = PROPERTY in str(properties.keys())
        if self._has_history and not ranges:
            found = self._history.ledger(self._detail()["properties"])
        return found, int(snapshot.numOfFiles())

    def _prepare(self, rows: DataFrame) -> DataFrame:
        prepared = super()._prepare(rows)
        generated = {name for name, known in self._metadata().items() if _GENERATED in known}
        return prepared.drop(*(generated - set(rows.columns)))  # Delta computes these columns

    def _metadata(self) -> dict[str, dict[str, Any]]:
        """Return Delta's metadata of each column; DataFrames of `read` have only a part of the metadata."""
        fields = json.loads(str(self._known().metadata().schemaString()))["fields"]
        return {field["name"]: field["metadata"] for field in fields}

    def stage(self, rows: DataFrame) -> _table.Staged:
        """Write rows to files of the Delta table, and return these files; see `Table.stage`."""
        rows = self._prepare(rows)
        with active(rows.sparkSession), table_settings(rows.sparkSession):
            written = self._transaction().writeFiles(java_frame(rows))
        files = [written.apply(index) for index in range(written.size())]
        return _table.Staged(files, _number_of_rows(files))

    def commit(self, staged: Sequence[_table.Staged], before: Ledger, after: Ledger) -> None:
        """Add staged rows to the table, and replace the table's ledger; see `Table.commit`."""
        java = java_of(self._spark)
        transaction = self._transaction()
        # Because the identifier is read here, Delta refuses the commit if another commit writes it meanwhile.
        if max(0, int(transaction.txnVersion(LEDGER))) != before.generation:
            raise self._changed()
        spark, none = java.org.apache.spark.sql, scala_option(java)
        actions = [file for part in staged for file in part.files]
        for key, version in _changes(Ledger() if self._has_history else before, after).items():
            actions.append(spark.delta.actions.SetTransaction(key, version, none))
        with self._committing():
            transaction.commit(scala_seq(java, actions), self._operation)
        if self._has_history:
            self._history.forget(self._detail()["properties"])
            self._has_history = False

    @cached_property
    def _operation(self) -> Any:
        """The description of a pipeline's commit in the history of the table."""
        java = java_of(self._spark)
        name, delta = "DeltaOperations$Write", java.org.apache.spark.sql.delta
        loader = getattr(delta, f"{name}$").__getattr__("MODULE$").getClass().getClassLoader()
        (constructor,) = loader.loadClass(f"org.apache.spark.sql.delta.{name}").getConstructors()
        append, text = java.org.apache.spark.sql.SaveMode.Append, f"{LEDGER}: a batch of a pipeline"
        known = [append, scala_option(java), scala_option(java), scala_option(java, text)]
        more = constructor.getParameterCount() - len(known)  # 3 options since Delta 4.1
        return getattr(delta, name)(*known, *[scala_option(java)] * more)

    def _known(self) -> Any:
        """Return the newest table version that this process has read or written, as a Java object."""
        log = java_of(self._spark).org.apache.spark.sql.delta.DeltaLog
        return log.forTable(java_session(self._spark), self._location()).unsafeVolatileSnapshot()

    def _newest(self) -> Any:
        """Return the newest version of the table; to find it, Delta lists all files of the table's log."""
        none = scala_option(java_of(self._spark))
        return self._known().deltaLog().update(False, none, none)

    def _transaction(self) -> Any:
        """Return a Delta transaction that starts from the version that `_known` returns.

        When the transaction is committed, Delta compares the transaction with all commits after that version.
        """
        known, java = self._known(), java_of(self._spark)
        return known.deltaLog().startTransaction(scala_option(java), scala_option(java, known))

    def _create(self, schema: StructType) -> None:
        empty = self._spark.createDataFrame([], schema)
        if self._url:
            empty.write.format("delta").partitionBy(*self.partitions).save(self._url)
        else:
            writer = empty.writeTo(self._sql_name).using("delta")
            (writer.partitionedBy(*self.partitions) if self.partitions else writer).create()

    def check_schema(self, schema: StructType) -> None:
        """Raise `WrongTable` if the table cannot store rows of a schema; see `Table.check_schema`."""
        super().check_schema(schema)
        if self.upsert is not None or not self.exists():
            return
        for name, known in self._metadata().items():
            if _IDENTITY in known:  # a commit of staged files does not contain the column's last number
                raise WrongTable(
                    f"the column {name} of the table {self.name} must not be an identity column, "
                    "because a pipeline without upsert does not continue its numbers. Land into another "
                    "table, and number the rows in a view or a copy"
                )

    def _check_names(self, schema: StructType, *, exists: bool) -> None:
        wrong = next((path for path in names_in(schema) if _NOT_TAKEN.search(path[-1])), None)
        if wrong is None:
            return
        mode = self._property(_MAPPING) if exists else self._spark.conf.get(_NEW_MAPPING, None)
        if mode in {None, "none"}:
            raise WrongTable(
                f"the name of the column {'.'.join(wrong)} of the table {self.name} must not contain blanks "
                f"or any of ,;{{}}()=, got {wrong[-1]!r}. Choose another name, land in Iceberg, or let Delta "
                f"map names: set {_MAPPING}=name in the table; for new tables, pass -X {_NEW_MAPPING}=name"
            )

    def _property(self, name: str) -> str | None:
        found: str | None = self._detail()["properties"].get(name)
        return found

    def _widens(self, column: str) -> bool:
        properties = self._detail()["properties"]
        rules = [rule for name, rule in properties.items() if name.startswith(_CONSTRAINTS)]
        rules += [known[_GENERATED] for known in self._metadata().values() if _GENERATED in known]
        is_used = any(re.search(rf"(?i)\b{re.escape(column)}\b", rule) for rule in rules)
        return properties.get("delta.enableTypeWidening") == "true" and not is_used

    def _detail(self) -> Row:
        detail: Row = self._spark.sql(f"DESCRIBE DETAIL {self._sql_name}").collect()[0]
        return detail

    def _location(self) -> str:
        return self._url or super()._location()

    def count_files(self) -> int:
        """Return the number of data files in the newest version of the table."""
        return int(self._detail()["numFiles"])

    def optimize(self, sort_by: tuple[str, ...] = ()) -> None:
        """Run OPTIMIZE; see `Table.optimize`."""
        # Delta refuses partition columns here: each value of such a column has separate files anyway.
        partitions = self._detail()["partitionColumns"] if sort_by else ()
        names = [quote(name) for name in sort_by if name not in partitions]
        order = f" ZORDER BY ({', '.join(names)})" if names else ""
        with table_settings(self._spark):
            self._spark.sql(f"OPTIMIZE {self._sql_name}{order}").collect()

    def vacuum(self, keep_hours: float) -> None:
        """Run VACUUM, and remove old versions from Delta's log; see `Table.vacuum`."""
        with settings(self._spark, _VACUUM_SETTINGS):
            self._spark.sql(f"VACUUM {self._sql_name} RETAIN {keep_hours:g} HOURS").collect()
        self._clean_log(keep_hours)

    def _clean_log(self, keep_hours: float) -> None:
        """Remove old versions from Delta's log, unless a property of the table forbids this clean-up."""
        newest, java = self._newest(), java_of(self._spark)
        log, metadata, none = newest.deltaLog(), newest.metadata(), scala_option(java)
        # If the ledger is in the log, nothing is removed, see `_delta_history`.
        if not log.enableExpiredLogCleanup(metadata) or PROPERTY in str(metadata.configuration().keys()):
            return
        oldest = max(0, int(newest.version()) - _table.MOST_VERSIONS)
        files, path = file_system(self._spark, f"{log.logPath()}/{oldest:020}.json")
        if files.exists(path):
            age = time.time() - files.getFileStatus(path).getModificationTime() / 1000
            keep_hours = min(keep_hours, max(age / 3600, _table.SHORTEST_HOURS))
        log.checkpoint(newest, none)
        # From a Python number, py4j would make an Integer; the option must contain a Long.
        kept = java.java.util.OptionalLong.of(round(keep_hours * 3_600_000))
        option = java.scala.jdk.javaapi.OptionConverters.toScala(kept)
        catalog = () if self._spark.version.startswith("4.0.") else (none,)  # a parameter since Delta 4.1
        minute = java.org.apache.spark.sql.delta.TruncationGranularity.MINUTE()
        log.cleanUpExpiredLogs(newest, *catalog, option, minute)


def _changes(before: Ledger, after: Ledger) -> dict[str, int]:
    """Return transaction identifiers and their versions for the ranges that a commit adds or extends."""
    known = set(before.entries())
    added = {
        f"{LEDGER}/{topic}/{topic_id}/{partition}/{offsets.start}/{pipeline}": offsets.end
        for topic, topic_id, pipeline, partition, offsets in set(after.entries()) - known
    }
    return {LEDGER: after.generation, **added}


def _number_of_rows(files: Iterable[Any]) -> int | None:
    """Return the number of rows in Delta's files, or None if Delta has no statistics of the files."""
    numbers = [json.loads(file.stats() or "{}").get("numRecords") for file in files]
    return None if None in numbers else sum(numbers)
