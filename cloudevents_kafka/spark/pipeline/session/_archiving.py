"""`write_class_archive` runs Spark for one record, and archives the Java classes that Spark loads for it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from cloudevents_kafka.jvm import Progress, building, find_java, locked
from cloudevents_kafka.spark.class_archive import ClassArchive, finish, options_to_write
from cloudevents_kafka.spark.pipeline.session._session import local_session

_COLUMNS = "key binary, value binary, headers array<struct<key: string, value: binary>>"
_RECORD = (b"k", b"{}", [("content-type", b"application/json")])


def write_class_archive() -> Path:
    """Return the path of the class archive for the installed Java and PySpark.

    If the class archive is missing, the function writes it. If several processes need the archive at the same
    time, one process writes the archive, and the others wait. Raises `NoJava`, `SparkFailed`, or
    `CacheNotWritable`.
    """
    archive = ClassArchive.of(find_java())
    with (
        Progress() as progress,
        locked(archive.folder, waiting=lambda: progress.log("Spark: another process archives its classes")),
    ):
        if found := archive.find():
            return found
        started = time.monotonic()
        progress.log("Spark: archiving its classes (once)")
        with building(archive.folder) as folder:
            file = folder / "classes.jsa"
            _run(options_to_write(file), folder)
            name = finish(file)
            shutil.rmtree(folder / "run", ignore_errors=True)
        written = archive.folder / name
        size = written.stat().st_size / 1e6
        seconds = time.monotonic() - started
        progress.log(f"Spark: {size:.0f} MB of classes archived in {seconds:.0f} s; kept in {archive.folder}")
    return written


def _run(options: str, folder: Path) -> None:
    """Decode, write and count one record, first in a batch and then in a stream."""
    from cloudevents_kafka.spark.decode import decode_events

    quick = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {options}"
    place = f"file://{folder}/run"
    with local_session(conf={"spark.driver.extraJavaOptions": quick}) as spark:
        rows = spark.createDataFrame([_RECORD], _COLUMNS)
        rows.write.parquet(f"{place}/in")
        events = decode_events(spark.readStream.schema(rows.schema).parquet(f"{place}/in"))
        query = (
            events.writeStream.foreachBatch(lambda batch, _: batch.write.parquet(f"{place}/out"))
            .option("checkpointLocation", f"{place}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        spark.read.parquet(f"{place}/out").groupBy("type").count().orderBy("count").toArrow()
