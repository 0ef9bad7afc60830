"""A client of Spark Connect that runs pipelines: ``connect_lander.py URL``.

PySpark cannot use Spark Connect and a local Spark in one process, so this is a program. Each line of its
input has a command, and the JSON of `PipelineOptions` or SQL; each line of its output is what came of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from cloudevents_kafka.spark.pipeline import BatchProgress, EventPipeline, PipelineError, PipelineOptions
from cloudevents_kafka.spark.pipeline.tables import LedgerChanged, table_by_name, table_in_folder
from tests.spark.pipeline.sample_batches import ranges, rows, take


def run(spark: SparkSession, options: PipelineOptions) -> dict[str, Any]:
    """Land a topic, and return the summary, the reports and the warnings, or the error."""

    def report(progress: BatchProgress) -> None:
        reports.append(str(progress))
        sys.stderr.write(f"{progress}\n")  # for who waits for a batch
        sys.stderr.flush()

    reports: list[str] = []
    warnings: list[str] = []
    pipeline = EventPipeline(options, spark=spark, report=report, warn=warnings.append)
    try:
        summary = pipeline.run()
    except Exception as error:  # noqa: BLE001
        return {"error": type(error).__name__, "text": str(error)}
    return {"summary": msgspec.to_builtins(summary), "reports": reports, "warnings": warnings}


def landed(spark: SparkSession, options: PipelineOptions) -> dict[str, list[tuple[int, int]]]:
    """Return the partitions and offsets in each table."""
    found: dict[str, list[tuple[int, int]]] = {}
    for table in ("events", "quarantine"):
        if options.table is not None:
            suffix = "" if table == "events" else "_quarantine"
            opened: Any = table_by_name(spark, options.to, options.table + suffix)
        else:
            opened = table_in_folder(spark, options.to, f"file://{options.out}/{table}")
        if opened.exists():
            frame = spark.table(opened._sql_name).select("partition", "offset")
            found[table] = sorted((row["partition"], row["offset"]) for row in frame.collect())
    return found


def append(spark: SparkSession, asked: dict[str, Any]) -> bool | str:
    """Return whether a table took a batch, or the error."""
    start, end = asked["start"], asked["end"]
    table = table_in_folder(spark, "delta", asked["url"])
    try:
        return take(table, rows(spark, start, end), ranges(start, end), asked["pipeline"])
    except PipelineError as error:
        return f"{type(error).__name__}: {error}"


def race(spark: SparkSession, asked: dict[str, Any]) -> list[str]:
    """Return what two commits after one ledger came to: of batches that do not overlap."""
    tables = [table_in_folder(spark, "delta", asked["url"]) for _ in range(2)]
    staged = [table.stage(rows(spark, 50 + n, 51 + n)) for n, table in enumerate(tables)]
    before = tables[0].ledger()
    results = []
    for number, table in enumerate(tables):
        after = before.add(f"p{number}", {}, ranges(50 + number, 51 + number))
        try:
            table.commit([staged[number]], before, after)
            results.append("committed")
        except (LedgerChanged, PipelineError) as error:
            results.append(type(error).__name__)
    return results


def main(url: str) -> None:
    spark = SparkSession.builder.remote(url).create()
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] in {"append", "race"}:
            answer: Any = {"append": append, "race": race}[command["do"]](spark, command["options"])
        elif command["do"] == "sql":
            answer = [row.asDict() for row in spark.sql(command["options"]).collect()]
        else:
            options = msgspec.convert(command["options"], PipelineOptions)
            answer = {"run": run, "rows": landed}[command["do"]](spark, options)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
