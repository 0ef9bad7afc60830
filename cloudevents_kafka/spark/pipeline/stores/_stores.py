"""`open_store` and `open_files`: the store of a folder, for each kind of session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudevents_kafka.spark.pipeline.stores._connect_store import ConnectStore, is_connect
from cloudevents_kafka.spark.pipeline.stores._store import (
    FileStore,
    HadoopStore,
    LocalStore,
    Store,
    local_path,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_store(location: str, spark: SparkSession) -> Store:
    """Return the store of a folder, by path or URL: local, or through Spark's Hadoop or Spark Connect."""
    return ConnectStore(spark, location) if is_connect(spark) else open_files(location, spark)


def open_files(location: str, spark: SparkSession) -> FileStore:
    """Return the store of a folder, local or Hadoop's, whose files a session of this process can write."""
    local = local_path(location)
    return HadoopStore(spark, location) if local is None else LocalStore(local)
