"""Whether a store renames a file in one step, as Parquet files and Iceberg tables of a folder require.

Hadoop's clients of object stores copy a file and then delete the original. A run that is killed in between
leaves both files, and two runs may both find a name free. Delta's and Iceberg's commits do not rename:
Delta creates one object, and a catalog of Iceberg changes one entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cloudevents_kafka.primitives.redaction import mask_urls
from cloudevents_kafka.spark._java import file_system
from cloudevents_kafka.spark.pipeline.stores import FolderFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cloudevents_kafka.spark.pipeline._options import PipelineOptions

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


def check_renames(options: PipelineOptions, *, has_function: bool = False) -> None:
    """Raise `WrongStore` if the tables need renames in one step, and ``out`` is in an object store."""
    if _needs_renames(options, has_function=has_function) and _scheme(options.out) in _OBJECT_STORES:
        raise _refused(options)


def check_namespace(options: PipelineOptions, spark: SparkSession) -> None:
    """Raise `WrongStore` for the same reason if ``out`` is in an account of Azure without folders."""
    if not _needs_renames(options) or _scheme(options.out) not in _AZURE:
        return
    files, path = file_system(spark, options.out)
    if not files.hasPathCapability(path, _HAS_NAMESPACE):
        raise _refused(options)


def _needs_renames(options: PipelineOptions, *, has_function: bool = False) -> bool:
    if has_function or options.to in {"delta", "kafka"}:
        return False
    return options.to == "parquet" or options.table is None


def _scheme(location: str) -> str:
    return urlsplit(location).scheme.lower()


def _refused(options: PipelineOptions) -> WrongStore:
    need = "parquet" if options.to == "parquet" else "iceberg without a catalog"
    return WrongStore(
        f"out must be in a file system that renames a file in one step for {need}, got "
        f"{mask_urls(options.out)}: an object store copies and deletes, so a killed run could leave a batch "
        "incomplete. Land in Delta (--to delta), or in a table of an Iceberg catalog "
        "(--to iceberg --table CATALOG.SCHEMA.NAME)"
    )
