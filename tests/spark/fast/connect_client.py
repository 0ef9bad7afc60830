"""A client of Spark Connect: ``python -m tests.spark.fast.connect_client URL FOLDER CASES``.

For each case it decodes the same records in a session of its own, twice, and prints as JSON how that
went. A case is ``[cache folder, jar or null, settings]``: the jar is named by the setting, the settings
are set at the start. PySpark cannot use Spark Connect and a local Spark in one process.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cloudevents_kafka.jvm.cache import CACHE_VARIABLE
from cloudevents_kafka.spark import decode_events

from ..records import changed, edges, vectors
from ..rows import expected, read_back, rows_of

RECORDS = [*vectors(), *edges(), *changed(1500)]
JAR_SETTING = "spark.sql.catalog.cloudevents_kafka.jar"


class Messages(logging.Handler):
    """Keeps the messages of warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def run_case(url: str, folder: str, cache: str, jar: str | None) -> dict[str, Any]:
    os.environ[CACHE_VARIABLE] = cache
    spark = SparkSession.builder.remote(url).create()
    messages = Messages()
    logging.getLogger("cloudevents_kafka").addHandler(messages)
    if jar is not None:
        spark.conf.set(JAR_SETTING, jar)
    rows = spark.read.parquet(folder)
    decode_events(rows)
    decoded = decode_events(rows, keep=["offset"])
    read = read_back(decoded)
    different = [n for n, record in enumerate(RECORDS) if read[n] != expected(record)]
    start = time.perf_counter()
    decoded.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - start
    logging.getLogger("cloudevents_kafka").removeHandler(messages)
    result = {
        "java": "cloudevents_kafka.spark.Functions$Read" in decoded._explain_string(),
        "records": len(read),
        "events": sum("error" not in fields for fields in read.values()),
        "different": [(repr(RECORDS[n]), repr(read[n])) for n in different[:3]],
        "warnings": messages.texts,
        "rate": round(len(read) / seconds),
        "streamed": streamed(spark, folder),
    }
    spark.stop()
    return result


def streamed(spark: SparkSession, folder: str) -> int:
    """Return how many rows of a stream have an event."""
    rows = spark.readStream.schema(spark.read.parquet(folder).schema).parquet(folder)
    query = decode_events(rows, keep=[]).where("error IS NULL").writeStream.format("memory")
    query = query.queryName("decoded").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    return spark.table("decoded").count()


def main(url: str, folder: str, cases: str) -> None:
    if not Path(folder).exists():
        spark = SparkSession.builder.remote(url).create()
        rows_of(spark, RECORDS).repartition(2).write.parquet(folder)
        spark.stop()
    print(json.dumps([run_case(url, folder, *case) for case in json.loads(cases)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
