"""Spark's Kafka connector: its coordinate for the installed PySpark, and its jars.

Give `connector_jars` to ``spark.jars``, or `kafka_package` to
``spark.jars.packages`` and let Spark fetch it. The first downloads four jars
(10 MB) once; the second all eleven, most of which Spark has already.
``python -m cloudevents_kafka.spark.connector`` fetches them and prints where.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import NoJars, resolve

KNOWN_GOOD = "4.0.0"

# What the connector names as needed and PySpark brings along.
IN_PYSPARK = (
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
    """There is no Kafka connector for the installed PySpark."""


def kafka_package() -> str:
    """Name the connector of the installed PySpark as a Maven coordinate.

    Raises `NoConnector` where PySpark is not installed.
    """
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_pyspark_version()}"


def connector_jars() -> list[Path]:
    """Give the connector's jar files, from the cache or fetched into it.

    Raises `NoConnector` when none is published for the installed PySpark or
    it cannot be fetched.
    """
    try:
        return resolve([kafka_package()], exclude=IN_PYSPARK)
    except NoJars as error:
        raise NoConnector(_no_connector(error)) from error


def _pyspark_version() -> str:
    if importlib.util.find_spec("pyspark") is None:
        raise NoConnector("PySpark is not installed; do: pip install 'cloudevents-kafka[spark]'")
    return version("pyspark")


def _no_connector(error: NoJars) -> str:
    installed = _pyspark_version()
    advice = "" if installed == KNOWN_GOOD else f"\nKnown to work: pip install pyspark=={KNOWN_GOOD}"
    return f"no Kafka connector for PySpark {installed}: {error}{advice}"


def main() -> int:
    """Fetch the connector and print its jars; 1 if there is none to be had."""
    try:
        jars = connector_jars()
    except CloudEventsKafkaError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{jar}\n" for jar in jars))
    return 0


if __name__ == "__main__":
    sys.exit(main())
