"""A session of Spark of its own, quiet and in UTC, for a program that is not run by pytest."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def quick_session() -> SparkSession:
    """Return a session with the Java functions and Spark's Avro, on loopback."""
    from pyspark.sql import SparkSession

    from cloudevents_kafka.spark import configure_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = configure_session(builder, formats=["avro"]).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
