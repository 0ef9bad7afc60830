"""A client of Spark Connect: ``connect_client.py URL FOLDER CASES``.

PySpark cannot use Spark Connect and a local Spark in one process, so this is a program. CASES is a
JSON list of ``[cache folder, jar or null]``; the jar is set as the session's setting. The program
decodes the same records for each case, in a new session, and prints the results as a JSON list.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cloudevents_kafka.jvm import CACHE_VARIABLE
from cloudevents_kafka.spark import decode_events
from tests.spark.records import changed, edges, vectors
from tests.spark.rows import expected, read_back, rows_of

RECORDS = [*vectors(), *edges(), *changed(300)]
JAR_SETTING = "spark.sql.catalog.cloudevents_kafka.jar"


class Messages(logging.Handler):
    """A handler that collects the texts of warnings."""

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
    lenient = read_back(decode_events(rows, keep=["offset"], lenient=True))
    different += [n for n, record in enumerate(RECORDS) if lenient[n] != expected(record, lenient=True)]
    logging.getLogger("cloudevents_kafka").removeHandler(messages)
    result = {
        "java": "cloudevents_kafka.spark.Functions$Read" in decoded._explain_string(),
        "records": len(read),
        "events": sum("error" not in fields for fields in read.values()),
        "different": [(repr(RECORDS[n]), repr(read[n])) for n in different[:3]],
        "warnings": messages.texts,
        "streamed": count_streamed(spark, folder),
    }
    spark.stop()
    return result


def count_streamed(spark: SparkSession, folder: str) -> int:
    """Return the number of events in a stream of the records."""
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
    results = [run_case(url, folder, *case) for case in json.loads(cases)]
    sys.stdout.write(f"{json.dumps(results)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
