"""`open_landing`: what lands the batches of a pipeline, by its options, and whether the target suits them.

Parquet files and Iceberg tables of a folder require a store that renames a file in one step. Hadoop's clients
of object stores copy a file and then delete the original: a run that is killed in between leaves both files,
and two runs may both find a name free. Delta creates one object, and a catalog of Iceberg changes one entry.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cloudevents_kafka.primitives.redaction import mask_urls
from cloudevents_kafka.primitives.spans import parse_span
from cloudevents_kafka.spark._java import file_system
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing._compared_landing import ComparedLanding, UpsertLanding
from cloudevents_kafka.spark.pipeline.landing._function_landing import EachBatch, FunctionLanding
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.landing._parquet_landing import ParquetLanding
from cloudevents_kafka.spark.pipeline.landing._table_landing import TableLanding
from cloudevents_kafka.spark.pipeline.stores import FolderFailed, Store, open_store
from cloudevents_kafka.spark.pipeline.tables import Table
from cloudevents_kafka.spark.typed.schemas import open_schemas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cloudevents_kafka.spark.pipeline._options import PipelineOptions
    from cloudevents_kafka.spark.pipeline.landing._compared_landing import Compare
    from cloudevents_kafka.spark.table_formats import TableFormat


# S3, Google Cloud Storage, Azure Blob Storage, and those of Alibaba, Tencent and OpenStack.
_OBJECT_STORES: Final = frozenset({"s3", "s3a", "s3n", "gs", "wasb", "wasbs", "oss", "cosn", "swift"})
# Azure's newer client renames in one step if the account has a hierarchical namespace.
_AZURE: Final = frozenset({"abfs", "abfss"})
_HAS_NAMESPACE: Final = "fs.capability.etags.preserved.in.rename"


class WrongStore(FolderFailed):
    """The folder of a pipeline is in a store that does not suit the kind of its tables.

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
    """Raise `WrongStore` if the tables need renames in one step, and ``out`` is in an object store.

    Only with a session it is known of an account of Azure.
    """
    in_catalog = options.to == "iceberg" and options.table is not None
    if has_function or in_catalog or options.to == "delta":
        return
    scheme = urlsplit(options.out).scheme.lower()
    refused = scheme in _OBJECT_STORES
    if scheme in _AZURE and spark is not None:
        files, path = file_system(spark, options.out)
        refused = not files.hasPathCapability(path, _HAS_NAMESPACE)
    if refused:
        need = "parquet" if options.to == "parquet" else "iceberg without a catalog"
        raise WrongStore(
            f"out must be in a file system that renames a file in one step for {need}, got "
            f"{mask_urls(options.out)}: an object store copies and deletes, so a killed run could leave a "
            "batch incomplete. Land in Delta (--to delta), or in a table of an Iceberg catalog "
            "(--to iceberg --table CATALOG.SCHEMA.NAME)"
        )


def open_landing(
    options: PipelineOptions,
    spark: SparkSession,
    each_batch: EachBatch | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Landing:
    """Return what lands the batches in the tables of the options, or by a function."""
    landing = _open_landing(options, spark, each_batch)
    try:
        landing.schemas, landing.rescue = open_schemas(spark, options.schemas, options.tables), options.rescue
        if isinstance(landing, ParquetLanding):
            landing.check_names(spark)
        if isinstance(landing, TableLanding):
            fit = partial(landing.fit, rescue=options.rescue, lenient=options.lenient)
            landing.schemas = fit(landing.schemas, warn)
    except ValueError as error:  # of DDL, which a session reads, or of tables with several schemas
        raise WrongTable(f"schemas: {error}") from error
    return landing


def _open_landing(options: PipelineOptions, spark: SparkSession, each_batch: EachBatch | None) -> Landing:
    store = open_store(options.out, spark)
    if each_batch is not None:
        return FunctionLanding(store, each_batch)
    check_renames(options, spark)
    if options.to == "parquet":
        return ParquetLanding(store, options.tables, adopt=options.adopt)
    if options.table is None:
        _check_folders(store, options.to, options.tables)
    upsert = notes.Upsert.parse(options.upsert, options.deleted)
    open_table = partial(open_sibling, spark, options.to, store, options.table, upsert=upsert)
    for table in notes.TABLES:
        open_table(table)  # raises an error if the session does not have the format
    kind = UpsertLanding if upsert else ComparedLanding if options.deduplicate else TableLanding
    landing = kind(store, options.to, open_table, options.tables, adopt=options.adopt)
    if isinstance(landing, ComparedLanding):
        landing.compare = _comparison(upsert, options.deduplicate)
    return landing


def _comparison(upsert: notes.Upsert | None, deduplicate: str | None) -> Compare:
    """Return what compares batches with the rows of their table."""
    from cloudevents_kafka.spark.pipeline.batches import row_changes, without_duplicates

    if upsert is not None:
        return partial(row_changes, upsert=upsert)
    return partial(without_duplicates, within=parse_span(deduplicate or "", "deduplicate"))


def check_catalog(options: PipelineOptions, spark: SparkSession) -> None:
    """Raise `WrongTable` if the tables of the options would vanish with a session."""
    if options.table is None:
        return
    from cloudevents_kafka.spark.pipeline.tables import catalog_of, name_parts

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
    """Return a table in its folder, or next to the ``common`` one of events in a catalog."""
    from cloudevents_kafka.spark.pipeline.tables import sibling_name, table_by_name, table_in_folder

    keys = upsert if table == notes.EVENTS else None
    if common is None:
        return table_in_folder(spark, table_format, store.url(table), keys)
    if table != notes.EVENTS:
        own = table in {notes.QUARANTINE, notes.OUTCOMES}
        common = sibling_name(common, f"{{}}_{table}" if own else table)
    return table_by_name(spark, table_format, common, keys)


def _check_folders(store: Store, table_format: TableFormat, routes: Mapping[str, str]) -> None:
    """Raise `WrongTable` if a folder has files of another format: readers would find both."""
    from cloudevents_kafka.spark.pipeline.tables import folder_format

    for table in dict.fromkeys((*notes.TABLES, *routes.values())):
        has_folders = any("=" in name for name in store.list_names(table))
        found = folder_format(store, table) or ("parquet" if has_folders else table_format)
        if found != table_format:
            got = "folders of Parquet files" if found == "parquet" else f"one of {found}"
            raise WrongTable(
                f"{store.url(table)} must be a table of {table_format}, got {got}. "
                f"Use --to {found}, or land into a fresh folder with a fresh checkpoint"
            )
