"""`open_landing` opens the target that the options describe, and checks its file system.

Parquet files, and Iceberg tables in a folder without a catalog, require a file system that renames a file in
one step. To rename a file in an object store, Hadoop's client copies the file and then deletes the original.
So if a run is killed after Hadoop's client has copied a file, both the original and the copy exist. Two runs
may also write the same file, because each run checks that the file does not exist before the run copies it.
Delta tables do not need renames, because a commit creates one object. Iceberg tables in a catalog do not need
renames, because a commit changes one entry of the catalog.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from cloudevents_kafka.primitives.redaction import mask_urls
from cloudevents_kafka.primitives.spans import parse_span
from cloudevents_kafka.spark._java import file_system
from cloudevents_kafka.spark._sql import name_parts
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing._function_target import EachBatch, FunctionTarget
from cloudevents_kafka.spark.pipeline.landing._landed import Landed
from cloudevents_kafka.spark.pipeline.landing._lander import BatchLander
from cloudevents_kafka.spark.pipeline.landing._parquet_target import ParquetTarget
from cloudevents_kafka.spark.pipeline.landing._tables_target import Compare, TablesTarget
from cloudevents_kafka.spark.pipeline.landing._target import Target
from cloudevents_kafka.spark.pipeline.stores import FolderFailed, Store, open_store
from cloudevents_kafka.spark.pipeline.tables import (
    Table,
    catalog_of,
    folder_format,
    sibling_name,
    table_by_name,
    table_in_folder,
)
from cloudevents_kafka.spark.pipeline.topics import TopicAdmin, TopicMonitor
from cloudevents_kafka.spark.table_formats import FORMATS, TableFormat
from cloudevents_kafka.spark.typed.schemas import open_schemas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cloudevents_kafka.spark.pipeline.options import PipelineOptions


# S3, Google Cloud Storage, Azure Blob Storage, and the object stores of Alibaba, Tencent and OpenStack.
_OBJECT_STORES: Final = frozenset({"s3", "s3a", "s3n", "gs", "wasb", "wasbs", "oss", "cosn", "swift"})
# Azure's newer client renames in one step if the account has a hierarchical namespace.
_AZURE: Final = frozenset({"abfs", "abfss"})
_HAS_NAMESPACE: Final = "fs.capability.etags.preserved.in.rename"


class WrongStore(FolderFailed):
    """A pipeline's folder is in a file system that cannot rename a file in one step, as the tables require.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineOptions, WrongStore
        >>> options = PipelineOptions(bootstrap_servers="kafka:9092", topics=("orders",), out="s3a://shop/")
        >>> try:
        ...     EventPipeline(options).run()
        ... except WrongStore as error:
        ...     print(error)
        out must be in a file system that renames a file in one step for parquet, got s3a://shop/: ...
    """


def check_renames(
    options: PipelineOptions, spark: SparkSession | None = None, *, has_function: bool = False
) -> None:
    """Raise `WrongStore` if the tables need renames in one step, but the URL ``out`` is in an object store.

    If the URL ``out`` has Azure's scheme ``abfs`` or ``abfss``, the check needs the session ``spark``.
    Without the session ``spark``, a URL with one of these schemes is accepted.
    """
    renames = options.to == "parquet" or (FORMATS[options.to].renames and options.table is None)
    if has_function or not renames:
        return
    scheme = urlsplit(options.out).scheme.lower()
    refused = scheme in _OBJECT_STORES
    if scheme in _AZURE and spark is not None:
        files, path = file_system(spark, options.out)
        refused = not files.hasPathCapability(path, _HAS_NAMESPACE)
    if refused:
        need = "parquet" if options.to == "parquet" else f"{options.to} without a catalog"
        raise WrongStore(
            f"out must be in a file system that renames a file in one step for {need}, got "
            f"{mask_urls(options.out)}: an object store copies and deletes, so a killed run could leave a "
            "batch incomplete. Land in Delta (--to delta), or in a table of an Iceberg catalog "
            "(--to iceberg --table CATALOG.SCHEMA.NAME)"
        )


class Landing(NamedTuple):
    """The offsets of landed records, the target for batches, and the settings with which records are read."""

    landed: Landed
    target: Target
    read: notes.ReadSettings


def open_landing(
    options: PipelineOptions,
    spark: SparkSession,
    each_batch: EachBatch | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Landing:
    """Return the landed offsets, the target and the read settings for the options of a pipeline.

    If the function ``each_batch`` is passed, this function is the target. If the function ``each_batch`` is
    not passed, the tables that the options describe are the target.
    """
    store = open_store(options.out, spark)
    try:
        read = notes.ReadSettings(
            lenient=options.lenient,
            routes=dict(options.tables),
            schemas=open_schemas(spark, options.schemas, options.tables),
            rescue=options.rescue,
            upsert=notes.Upsert.parse(options.upsert, options.deleted),
        )
        if each_batch is not None:
            landed = Landed(store, "function", continued=("kafka",))
            return Landing(landed, FunctionTarget(each_batch), read)
        check_renames(options, spark)
        if options.to == "parquet":
            landed = Landed(store, "parquet", notes_begun=False)
            files = ParquetTarget(landed, read, adopt=options.adopt)
            files.check_names(spark)
            return Landing(landed, files, read)
        landed = Landed(store, options.to, in_notes=False)
        tables = _open_tables(options, options.to, spark, landed, read)
        return Landing(landed, tables, tables.fit(warn))
    except ValueError as error:  # the DDL is wrong, or one table has several schemas
        raise WrongTable(f"schemas: {error}") from error


def open_lander(
    options: PipelineOptions,
    landing: Landing,
    checkpoint: notes.Checkpoint,
    admin: TopicAdmin,
    warn: Callable[[str], None],
    *,
    tasks: int,
) -> BatchLander:
    """Return the object that writes the batches of a query, or of a backfill, to the target.

    The caller must call the method `BatchLander.recover` before all other methods of the returned object.
    ``tasks`` is the number of tasks that Spark can run at the same time.
    """
    from cloudevents_kafka.spark.pipeline.batches import BatchWriter

    folder, pattern = landing.landed.store.url(""), options.topic_pattern
    topics = TopicMonitor(options.topic_names, admin, folder, warn, pattern=pattern)
    return BatchLander(options, *landing, checkpoint, topics, BatchWriter(tasks=max(1, tasks)))


def _open_tables(
    options: PipelineOptions,
    kind: TableFormat,
    spark: SparkSession,
    landed: Landed,
    read: notes.ReadSettings,
) -> TablesTarget:
    """Return the tables that the options describe; raise `WrongTable` if a jar of their format is missing."""
    if options.table is None:
        _check_folders(landed.store, kind, options.tables)
    open_table = partial(open_sibling, spark, kind, landed.store, options.table, upsert=read.upsert)
    for table in notes.TABLES:
        open_table(table)
    compare = _comparison(read.upsert, options.deduplicate)
    return TablesTarget(landed, open_table, read, adopt=options.adopt, compare=compare)


def _comparison(upsert: notes.Upsert | None, deduplicate: str | None) -> Compare | None:
    """Return the function that compares a batch with a table for ``upsert`` or ``deduplicate``, or None."""
    from cloudevents_kafka.spark.pipeline.batches import row_changes, without_duplicates

    if upsert is not None:
        return partial(row_changes, upsert=upsert)
    if deduplicate is not None:
        return partial(without_duplicates, within=parse_span(deduplicate, "deduplicate"))
    return None


def check_catalog(options: PipelineOptions, spark: SparkSession) -> None:
    """Raise `WrongTable` if the tables are in a catalog that exists only until the session ends."""
    if options.table is None:
        return
    catalog, _ = catalog_of(spark, name_parts(options.table))
    in_memory = spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    if catalog == "spark_catalog" and in_memory:
        raise WrongTable(
            f"the table {options.table} would vanish with this session of Spark, whose own catalog is in "
            "memory; name a table of a catalog that stays, with its settings (-X "
            f"spark.sql.catalog.NAME=…), or set spark.sql.catalogImplementation=hive"
        )


def open_sibling(
    spark: SparkSession,
    table_format: TableFormat,
    store: Store,
    common: str | None,
    table: str,
    *,
    upsert: notes.Upsert | None = None,
) -> Table:
    """Return a table in a folder, or in the same catalog and schema as ``common``, the table of events."""
    keys = upsert if table == notes.EVENTS else None
    if common is None:
        return table_in_folder(spark, table_format, store.url(table), keys)
    if table != notes.EVENTS:
        own = table in {notes.QUARANTINE, notes.OUTCOMES}
        common = sibling_name(common, f"{{}}_{table}" if own else table)
    return table_by_name(spark, table_format, common, keys)


def _check_folders(store: Store, table_format: TableFormat, routes: Mapping[str, str]) -> None:
    """Raise `WrongTable` if a folder has files of another table format.

    Readers would find the files of both formats.
    """
    for table in dict.fromkeys((*notes.TABLES, *routes.values())):
        has_folders = any("=" in name for name in store.list_names(table))
        found = folder_format(store, table) or ("parquet" if has_folders else table_format)
        if found != table_format:
            got = "folders of Parquet files" if found == "parquet" else f"one of {found}"
            raise WrongTable(
                f"{store.url(table)} must be a table of {table_format}, got {got}. "
                f"Use --to {found}, or land into a fresh folder with a fresh checkpoint"
            )
