"""A driver on a cluster whose workers do not have the package: ``driver.py MASTER FOLDER``.

It prints what it finds as JSON. Its steps: events of Java only; a record that needs Python, before and
after the zip is added; executors killed while a job runs, after our files in the temporary folder were
deleted; Java killed.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.spark import decode_events
from cloudevents_kafka.spark.package_zip import write_zip
from tests.spark.cluster.spark_home import QUICK, descendants, kill
from tests.spark.records import BASE, binary, structured
from tests.spark.rows import expected, read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VALID = [binary(BASE), structured(BASE)]
BROKEN = binary({**BASE, "id": ""})
ROWS = 40_000
EXECUTOR = "CoarseGrainedExecutorBackend"


def session(master: str, folder: Path) -> SparkSession:
    local = folder / "local"
    local.mkdir()
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} {QUICK}",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.local.dir": str(local),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.task.maxFailures": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master).appName("cluster")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def is_read(spark: SparkSession, records: list[Any]) -> bool:
    read = read_back(decode_events(rows_of(spark, records), keep=["offset"]))
    return [read[offset] for offset in range(len(records))] == [expected(record) for record in records]


def error_of(spark: SparkSession, records: list[Any]) -> str:
    try:
        is_read(spark, records)
    except PySparkException as error:
        return str(error)
    return ""


def many_rows(spark: SparkSession) -> DataFrame:
    """Return rows of valid and broken records by turns, in many partitions."""
    kinds = rows_of(spark, [*VALID, BROKEN, VALID[0]]).withColumnRenamed("offset", "kind")
    numbers = spark.range(0, ROWS, 1, 40).withColumnRenamed("id", "offset")
    return numbers.join(F.broadcast(kinds), numbers["offset"] % 4 == kinds["kind"]).drop("kind")


def executors(java: int, other_than: set[int] = frozenset()) -> set[int]:  # type: ignore[assignment]
    """Return the executors; wait until there is one that is not in ``other_than``."""
    deadline = time.monotonic() + 60
    while True:
        found = set(descendants(java, EXECUTOR))
        if found - other_than or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def counts_while(spark: SparkSession, java: int, leftovers: list[str], folder: Path) -> dict[str, int]:
    """Count events and errors while every executor of the start is killed, one after another."""
    counts: dict[str, int] = {}

    def count() -> None:
        decoded = decode_events(many_rows(spark), keep=["offset"])
        row = decoded.agg(
            F.count("id").alias("events"),
            F.count("error").alias("errors"),
            F.count_distinct("offset").alias("offsets"),
        ).first()
        counts.update(row.asDict() if row else {})

    before = executors(java)
    thread = threading.Thread(target=count)
    thread.start()
    for executor in sorted(before):
        time.sleep(1)
        kill(executor)
        for path in folder.glob("cloudevents-kafka*"):
            leftovers.append(path.name)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    thread.join(150)
    counts["killed"] = len(before)
    counts["started"] = len(executors(java, before) - before)
    return counts


def main(master: str, where: str) -> None:
    folder = Path(where)
    spark = session(master, folder)
    java = spark.sparkContext._gateway.proc.pid
    found: dict[str, Any] = {
        "valid": is_read(spark, VALID),
        "java": "Functions$Read" in str(decode_events(rows_of(spark, VALID))._jdf.queryExecution()),
        "error": error_of(spark, [*VALID, BROKEN]),
    }
    write_zip(folder / "package.zip")
    spark.sparkContext.addPyFile(str(folder / "package.zip"))
    found["with zip"] = is_read(spark, [*VALID, BROKEN])
    leftovers: list[str] = []
    found["killed"] = counts_while(spark, java, leftovers, folder)
    found["after"] = is_read(spark, [*VALID, BROKEN])
    kill(java)
    found["left"] = leftovers + [path.name for path in folder.glob("cloudevents-kafka*")]
    sys.stdout.write(f"{json.dumps(found)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
