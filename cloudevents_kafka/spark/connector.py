"""Spark's Kafka connector: its Maven coordinate for the installed PySpark, and its jars.

`connector_jars` downloads four jars (10 MB) once. With ``spark.jars.packages``, Spark itself would download
all eleven jars of `kafka_package`, although PySpark already contains most of them. ``python -m
cloudevents_kafka.spark.connector`` downloads the four jars and prints their paths.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from pathlib import Path
from typing import Final

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import NoJars, print_jars, resolve
from cloudevents_kafka.primitives.installing import pip_install

# The versions of PySpark for which the connector and all its dependencies are published.
KNOWN_GOOD: Final = ("4.0.0", "4.1.1", "4.2.0")

# Dependencies of the connector that PySpark contains.
IN_PYSPARK: Final = (
    "org.apache.spark:spark-tags_2.13",
    "org.scala-lang:scala-library",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.lz4:lz4-java",
    "org.xerial.snappy:snappy-java",
    "org.slf4j:slf4j-api",
    "com.google.code.findbugs:jsr305",
    "org.scala-lang.modules:scala-parallel-collections_2.13",
)


class NoConnector(CloudEventsKafkaError):
    """The installed PySpark has no Kafka connector, or the connector cannot be downloaded."""


def kafka_package() -> str:
    """Return the Maven coordinate of the connector for the installed PySpark.

    Raises `NoConnector` if PySpark is not installed.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise NoConnector(f"PySpark is not installed; do: {pip_install('spark')}")
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version('pyspark')}"


def connector_jars() -> list[Path]:
    """Return the connector's jar files, downloaded into the cache at the first use.

    This package lists the jars for PySpark 4.0.0, 4.1.1 and 4.2.0; for other versions, the function finds the
    connector's dependencies in its POM file. Raises `NoConnector` if no connector is published for the
    installed PySpark, or if the download fails.
    """
    try:
        return resolve([kafka_package()], exclude=IN_PYSPARK)
    except NoJars as error:
        installed = version("pyspark")
        others = " or ".join(KNOWN_GOOD[1:])
        advice = (
            "" if installed in KNOWN_GOOD else f"\nDo: pip install pyspark=={KNOWN_GOOD[0]} (or {others})"
        )
        raise NoConnector(f"no Kafka connector for PySpark {installed}: {error}{advice}") from error


if __name__ == "__main__":
    print_jars(connector_jars)
