"""`optimize_tables` and `vacuum_tables` run the maintenance procedures of Delta and Iceberg on tables.

Each of the two functions starts Spark at its beginning, and stops Spark at its end. If ``keep_hours`` is less
than a day, `vacuum_tables` locks a local folder while it runs, so that no pipeline writes to this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark._sql import name_parts, quote
from cloudevents_kafka.spark.pipeline._errors import WrongTable, failure_of, failures_in_words
from cloudevents_kafka.spark.pipeline.session import local_session
from cloudevents_kafka.spark.pipeline.stores import (
    BACKFILL_FOLDER,
    REPLAYS_FOLDER,
    LocalStore,
    folder_lock,
    local_path,
    open_store,
)
from cloudevents_kafka.spark.pipeline.tables import Table, find_tables, table_by_name, table_in_folder
from cloudevents_kafka.spark.table_formats import TABLE_FORMATS, TableFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Maintenance", "optimize_tables", "vacuum_tables"]

KEEP_HOURS: Final = 168.0
"""The default number of hours for which older versions of a table stay readable."""

_LONGEST_BATCH_HOURS: Final = 24.0


class Maintenance(msgspec.Struct, frozen=True):
    """The numbers of files of a table before and after a call of `optimize_tables` or `vacuum_tables`.

    `optimize_tables` counts the data files of the current version, and `vacuum_tables` counts all files in
    storage. ``left_out`` contains the names in ``sort_by`` for which the table has no column.

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
        """Return the numbers of files before and after the call as one line of text."""
        files = f"{pluralize(self.files_before, 'file')} before, {self.files_after:,} after"
        names = f"; not sorted by {', '.join(self.left_out)}, which the table does not have"
        return f"{self.table}: {files}{names if self.left_out else ''}"


def optimize_tables(
    *,
    folder: str | None = None,
    names: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Iterator[Maintenance]:
    """Return an iterator that joins small files of each table into larger files, and yields the results.

    `optimize_tables` works on the tables in ``folder``, which may be a table itself, and on the tables in
    catalogs that ``names`` lists. With ``sort_by``, all files are rewritten, and the rows of each table are
    clustered by the columns in ``sort_by``. If a table does not have one of the columns in ``sort_by``, the
    rows are clustered by the other columns in ``sort_by``. For example, the quarantine does not have some
    columns of the table of events. ``conf`` contains settings of Spark, such as the settings of a catalog. A
    pipeline may write to the tables while `optimize_tables` runs. If a table is in a local folder, a
    pipeline's commit to the table waits until the table is optimized. If the commit has waited 5 minutes, it
    fails.

    Raises `WrongTable` if ``folder`` contains no Delta or Iceberg table, or if a table in ``names`` does not
    exist or has another format. Also raises `WrongTable`, before any table is changed, if a column in
    ``sort_by`` is missing in all tables. Raises `ValueError` for an invalid table name, `PipelineFailed` if
    Spark fails, and the errors of `local_session`.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline.maintenance import optimize_tables
        >>> for done in optimize_tables(folder="lake/"):  # with one table, which has two files
        ...     print(done.files_before, done.files_after)
        2 1
    """
    columns = tuple(dict.fromkeys(sort_by))
    return _maintain(lambda tables: _optimize(tables, columns), folder, names, master, conf, alone=False)


def vacuum_tables(
    *,
    folder: str | None = None,
    names: Sequence[str] = (),
    keep_hours: float = KEEP_HOURS,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Iterator[Maintenance]:
    """Return an iterator that deletes files that no recent version of a table needs, and yields the results.

    Versions of a table that were current in the last ``keep_hours`` hours stay readable. If there are more
    than 1,000 such versions of a table, only the newest 1,000 versions and the versions of the last hour stay
    readable.

    If ``keep_hours`` is less than a day, no pipeline, backfill or replay may write to the tables while they
    are vacuumed. The files of a batch do not belong to any version until the batch is committed, so
    `vacuum_tables` could delete these files. So if ``keep_hours`` is less than a day, `vacuum_tables` raises
    `InUse` if a pipeline, backfill or replay uses the folder. If a table is in a local folder, a pipeline's
    commit to the table waits until the table is vacuumed. If the commit has waited 5 minutes, it fails. All
    other arguments and errors of `vacuum_tables` are the same as for `optimize_tables`.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline.maintenance import vacuum_tables
        >>> for done in vacuum_tables(folder="lake/"):  # all its files are new
        ...     print(done.files_before, done.files_after)
        2 2
    """
    if not keep_hours >= 0:
        raise ValueError(f"keep_hours must be a number of hours, 0 or more, got {keep_hours}")

    def vacuum(tables: Sequence[Table]) -> Iterator[Maintenance]:
        for table in tables:
            before = table.count_stored()
            with table.lock():
                table.vacuum(keep_hours)
            yield Maintenance(table.name, before, table.count_stored())

    return _maintain(vacuum, folder, names, master, conf, alone=keep_hours < _LONGEST_BATCH_HOURS)


def _optimize(tables: Sequence[Table], sort_by: tuple[str, ...]) -> Iterator[Maintenance]:
    found = [_columns(table, sort_by) for table in tables]
    missing = [name for name in sort_by if not any(name in columns for columns in found)]
    if missing:
        known = ", ".join(dict.fromkeys(name for table in tables for name in table.columns()))
        raise WrongTable(f"a column to sort by must be one of {known}, got {', '.join(missing)}")
    for table, columns in zip(tables, found, strict=True):
        left_out = tuple(name for name in sort_by if name not in columns)
        before = table.count_files()
        with table.lock():
            table.optimize(tuple(columns.values()))
        yield Maintenance(table.name, before, table.count_files(), left_out)


def _columns(table: Table, sort_by: tuple[str, ...]) -> dict[str, str]:
    """Return the columns of ``sort_by`` that a table has, with the columns' names in the table.

    A name in ``sort_by`` and the name in the table may differ in case, because Spark ignores case by default.
    """
    names = table.columns()
    own = {name.lower(): name for name in names} | {name: name for name in names}
    found = {name: own.get(name) or own.get(name.lower()) for name in sort_by}
    return {name: column for name, column in found.items() if column is not None}


def _maintain(
    act: Callable[[Sequence[Table]], Iterator[Maintenance]],
    folder: str | None,
    names: Sequence[str],
    master: str | None,
    conf: Mapping[str, str] | None,
    *,
    alone: bool,
) -> Iterator[Maintenance]:
    """Open the tables, call the function ``act`` with all tables, and yield the results of this function.

    If ``alone`` is true, the folder is locked while ``act`` runs, so that no pipeline, backfill or replay
    writes to the folder.
    """
    for name in names:
        name_parts(name)
    formats = needed_formats(folder, names)
    with ExitStack() as stack:
        if folder is not None and alone:
            for writers in ("", f"/{BACKFILL_FOLDER}", f"/{REPLAYS_FOLDER}"):
                stack.enter_context(folder_lock(_pipeline_folder(folder) + writers))
        spark = stack.enter_context(local_session(master=master, conf=conf, formats=formats, kafka=False))
        stack.enter_context(failures_in_words(str))
        yield from act(list(_tables(spark, folder, names)))


def needed_formats(folder: str | None, names: Sequence[str]) -> tuple[TableFormat, ...]:
    """Return the formats that the tables in ``folder`` and the tables named in ``names`` may have.

    If the folder is local and ``names`` is empty, return the formats of the tables in the folder, or raise
    `WrongTable` if the folder has no table. If the folder is not local or ``names`` is not empty, return both
    table formats.
    """
    local = None if folder is None else local_path(folder)
    if folder is None or local is None or names:
        return TABLE_FORMATS
    found = set(find_tables(LocalStore(local)).values()) if local.is_dir() else set()
    if not found:
        raise _no_table(folder)
    return tuple(format_ for format_ in TABLE_FORMATS if format_ in found)


def _pipeline_folder(folder: str) -> str:
    """Return the folder that a pipeline locks: ``folder``, or its parent if ``folder`` is a table itself."""
    local = local_path(folder)
    if local is None:
        return folder
    is_table = local.is_dir() and "" in find_tables(LocalStore(local))
    return str(local.parent if is_table else local)


def _tables(spark: SparkSession, folder: str | None, names: Iterable[str]) -> Iterator[Table]:
    if folder is not None:
        store = open_store(folder, spark)
        found = find_tables(store)
        if not found:
            raise _no_table(folder)
        for name, format_ in found.items():
            yield table_in_folder(spark, format_, store.url(name).rstrip("/"))
    for name in names:
        yield _named(spark, name)


def _named(spark: SparkSession, name: str) -> Table:
    """Return a table in a catalog; raise `WrongTable` if the table is not in Delta or Iceberg."""
    from pyspark.errors import AnalysisException

    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quote(*name_parts(name))}").collect()
    except AnalysisException as error:
        raise WrongTable(
            f"the table {name} is not in its catalog: check its name, and the settings of the catalog "
            f"(spark.sql.catalog.…; for Spark's own catalog: spark.sql.catalogImplementation=hive and "
            f"spark.sql.warehouse.dir). {failure_of(str(error))}"
        ) from error
    provider = next((row["data_type"] for row in rows if row["col_name"] == "Provider"), "")
    for format_ in TABLE_FORMATS:
        if format_ == provider:
            return table_by_name(spark, format_, name)
    raise WrongTable(f"the table {name} must be a Delta or Iceberg table, got {provider or 'another kind'}")


def _no_table(folder: str) -> WrongTable:
    at = local_path(folder) or Path(folder)
    exists = "has no Delta or Iceberg table" if local_path(folder) is None or at.is_dir() else "is missing"
    return WrongTable(
        f"{folder} {exists}: it must be a Delta or Iceberg table, or the folder of a pipeline that writes "
        "such tables. Tables of plain Parquet cannot be optimized or vacuumed"
    )
