"""`open_store`: the store of a folder, for each kind of session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudevents_kafka.spark.pipeline._connect_store import ConnectStore, is_connect
from cloudevents_kafka.spark.pipeline._store import HadoopStore, LocalStore, Store, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_store(location: str, spark: SparkSession) -> Store:
    """Return the store of a folder, by path or URL: local, or through Spark's Hadoop or Spark Connect."""
    if is_connect(spark):
        return ConnectStore(spark, location)
    local = local_path(location)
    return HadoopStore(spark, location) if local is None else LocalStore(local)
