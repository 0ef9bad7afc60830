"""`open_landing`: what lands the batches of a pipeline, by its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.landing._function_landing import EachBatch, FunctionLanding
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.landing._parquet_landing import ParquetLanding
from cloudevents_kafka.spark.pipeline.landing._renames import check_namespace
from cloudevents_kafka.spark.pipeline.landing._table_landing import TableLanding
from cloudevents_kafka.spark.pipeline.landing._topic_landing import TopicLanding
from cloudevents_kafka.spark.pipeline.stores import ConnectStore, Store, is_connect, open_files
from cloudevents_kafka.spark.pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cloudevents_kafka.spark.pipeline._options import PipelineOptions
    from cloudevents_kafka.spark.table_formats import TableFormat


def open_landing(
    options: PipelineOptions, spark: SparkSession, each_batch: EachBatch | None = None
) -> Landing:
    """Return what lands the batches in the tables of the options, or by a function."""
    from cloudevents_kafka.spark.pipeline.tables import date_column

    if is_connect(spark):
        folders = ConnectStore(spark, options.out)
        return _open_tables(options, spark, folders, notes.ConnectManifests(folders))
    files = open_files(options.out, spark)
    manifests = notes.FileManifests(files)
    if each_batch is not None:
        return FunctionLanding(files, manifests, each_batch)
    check_namespace(options, spark)
    if options.to == "parquet":
        return ParquetLanding(files, options.tables, date_column(options.date_of), adopt=options.adopt)
    if options.to == "kafka":
        topic, producer = str(options.table), options.producer_options()
        return TopicLanding(files, manifests, topic, options.tables, mode=options.mode, producer=producer)
    return _open_tables(options, spark, files, manifests)


def _open_tables(
    options: PipelineOptions, spark: SparkSession, store: Store, manifests: notes.Manifests
) -> TableLanding:
    assert options.to == "delta" or options.to == "iceberg"  # noqa: PLR1714  # for the checker of types
    if options.table is None:
        _check_folders(store, options.to, options.tables)
        open_table = _in_folder(spark, options.to, store)
    else:
        open_table = _in_catalog(spark, options.to, options.table)
    for table in notes.TABLES:
        open_table(table)  # raises an error if the session does not have the format
    return TableLanding(store, manifests, options.to, open_table, options.tables, adopt=options.adopt)


def check_catalog(options: PipelineOptions, spark: SparkSession) -> None:
    """Raise `WrongTable` if the tables of the options would vanish with a session."""
    if options.table is None or options.to == "kafka":
        return
    from cloudevents_kafka.spark.pipeline.tables import name_parts

    first, *rest = name_parts(options.table)
    is_catalog = rest and spark.conf.get(f"spark.sql.catalog.{first}", None) is not None
    catalog = first if is_catalog else str(spark.catalog.currentCatalog())
    in_memory = spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    if catalog == "spark_catalog" and in_memory:
        raise WrongTable(
            f"the table {options.table} would vanish with this session of Spark, whose own catalog is in "
            "memory; name a table of a catalog that stays, with its settings (-X "
            f"spark.sql.catalog.NAME=…), or set spark.sql.catalogImplementation=hive"
        )


def _in_folder(spark: SparkSession, table_format: TableFormat, store: Store) -> Callable[[str], Table]:
    from cloudevents_kafka.spark.pipeline.tables import table_in_folder

    return lambda table: table_in_folder(spark, table_format, store.url(table))


def _in_catalog(spark: SparkSession, table_format: TableFormat, name: str) -> Callable[[str], Table]:
    from cloudevents_kafka.spark.pipeline.tables import sibling_name, table_by_name

    def full_name(table: str) -> str:
        if table == notes.QUARANTINE:
            return sibling_name(name)
        return name if table in notes.TABLES else sibling_name(name, table)

    return lambda table: table_by_name(spark, table_format, full_name(table))


def _check_folders(store: Store, table_format: TableFormat, routes: Mapping[str, str]) -> None:
    """Raise `WrongTable` if a folder has files of another format: readers would find both."""
    from cloudevents_kafka.spark.pipeline.tables import folder_format

    for table in dict.fromkeys((*notes.TABLES, *routes.values())):
        found = folder_format(store, table)
        if found is None and any("=" in name for name in store.list_names(table)):
            raise WrongTable(
                f"{store.url(table)} must be a table of {table_format}, got folders of Parquet files. "
                "Land into a fresh folder with a fresh checkpoint, and copy the rows of this one"
            )
        if found not in {None, table_format}:
            raise WrongTable(
                f"{store.url(table)} must be a table of {table_format}, got one of {found}. "
                f"Use --to {found}, or land into a fresh folder with a fresh checkpoint"
            )
