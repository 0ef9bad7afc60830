"""An archive of Spark's Java classes (class data sharing), with which a Spark starts in half the CPU time.

    python -m tests.support.spark_classes

writes it into the virtual environment. `tests/conftest.py` passes it to the Spark of each test and
program. Java ignores an archive of another version of Java, or of jars elsewhere.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

# Without Java's warnings about classes that cannot be archived, and archives that it ignores.
_QUIET = "-Xlog:disable"


ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"


def share_classes() -> None:
    """Let each Spark that is started from here use the archive, if there is one."""
    if ARCHIVE.is_file():
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-XX:SharedArchiveFile={ARCHIVE} {_QUIET}")


def write(path: Path) -> None:
    """Run what tests run, and archive the classes that it has loaded."""
    with tempfile.TemporaryDirectory(prefix="spark-classes-", dir=path.parent) as folder:
        written = Path(folder) / path.name
        os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={written} {_QUIET}"
        os.chdir(folder)
        _use_spark(Path(folder))
        written.replace(path)


def _use_spark(folder: Path) -> None:
    from cloudevents_kafka.spark import decode_events
    from cloudevents_kafka.spark.pipeline import local_session

    columns = "key binary, value binary, headers array<struct<key: string, value: binary>>"
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    with local_session(conf=quick) as spark:
        rows = spark.createDataFrame([(b"k", b"{}", [("content-type", b"application/json")])], columns)
        rows.write.parquet(str(folder / "in"))
        events = decode_events(spark.readStream.schema(rows.schema).parquet(str(folder / "in")))
        query = (
            events.writeStream.foreachBatch(lambda batch, _: batch.write.parquet(str(folder / "out")))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        spark.read.parquet(str(folder / "out")).groupBy("type").count().orderBy("count").toPandas()


if __name__ == "__main__":
    write(ARCHIVE)
