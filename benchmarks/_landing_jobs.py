"""The jobs that land a topic: plain, decoded only, and the pipeline; and what a job took."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark import EventPipeline, decode_events
from cloudevents_kafka.spark.pipeline import PipelineOptions, local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = ("parquet", "delta", "iceberg")
RAW: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_CATALOG: Final = "bench"
# As the pipeline's tables: otherwise Iceberg shuffles rows by partition before it writes them. Each task
# sorts its rows.
_AS_THEY_COME: Final = "'write.distribution-mode'='none','write.spark.fanout.enabled'='false'"


@dataclass(frozen=True)
class Took:
    """The seconds of each batch of a job, with its records; those of the whole job, and of processors."""

    batches: list[tuple[int, float]]
    whole: float
    processors: float

    @property
    def rate(self) -> float:
        """Records a second while batches ran."""
        return sum(records for records, _ in self.batches) / sum(seconds for _, seconds in self.batches)

    @property
    def rate_by_processors(self) -> float:
        """Records for each second of a processor, of all processes but the broker."""
        return sum(records for records, _ in self.batches) / self.processors

    @property
    def around(self) -> float:
        """The seconds outside of batches: to start and to end the query."""
        return self.whole - sum(seconds for _, seconds in self.batches)

    def median_of_last(self, number: int) -> float:
        """Return the median of the seconds of the last batches."""
        return statistics.median(seconds for _, seconds in self.batches[-number:])


class Jobs:
    """The jobs of one session, each into a fresh folder, which is removed at its end."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path, batch: int) -> None:
        self._spark, self._servers, self._folder, self._batch = spark, servers, folder, batch
        self._numbers = count(1)

    @contextmanager
    def _fresh(self) -> Iterator[Path]:
        folder = self._folder / f"lake-{next(self._numbers)}"
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _source(self, topic: str) -> DataFrame:
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": str(self._batch),
        }
        return self._spark.readStream.format("kafka").options(**options).load()

    def plain(self, topic: str, kind: str) -> Took:
        """Land the columns of Kafka, as they are."""
        return self._native(self._source(topic).select(*RAW), kind)

    def decoded(self, topic: str, kind: str) -> Took:
        """Land the columns of `decode_events`, events and errors in one table."""
        return self._native(decode_events(self._source(topic)), kind)

    def _native(self, rows: DataFrame, kind: str) -> Took:
        """Land rows by Spark's own sink for the kind of table, partitioned by the record's date."""
        rows = rows.selectExpr("*", "to_date(timestamp) AS record_date")
        with self._fresh() as folder:
            writer = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
            writer = writer.trigger(availableNow=True)
            if kind == "iceberg":
                table = f"{_CATALOG}.{folder.name.replace('-', '_')}"
                empty = self._spark.createDataFrame([], rows.schema)
                empty.writeTo(table).using("iceberg").partitionedBy("record_date").create()
                self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({_AS_THEY_COME})")
                watch = Watch()
                query = writer.toTable(table)
            else:
                writer = writer.format(kind).partitionBy("record_date")
                watch = Watch()
                query = writer.start(f"{folder}/table")
            took = watch.took(query, query.awaitTermination)
            if kind == "iceberg":
                self._spark.sql(f"DROP TABLE {table} PURGE")
        return took

    def pipeline(self, topic: str, kind: str, **more: Any) -> Took:
        """Land the topic by `EventPipeline`, with more options."""
        with self._fresh() as folder:
            return self.landed(topic, kind, folder, **more)

    def landed(self, topic: str, kind: str, folder: Path, **more: Any) -> Took:
        """Land the topic by `EventPipeline` in a folder, which stays."""
        options = PipelineOptions(
            bootstrap_servers=self._servers,
            topics=(topic,),
            out=str(folder),
            to=kind,  # type: ignore[arg-type]  # one of FORMATS
            once=True,
            max_records=self._batch,
            **more,
        )
        watch = Watch()
        with closing(EventPipeline(options, spark=self._spark).start()) as pipeline:
            took = watch.took(pipeline.query, pipeline.wait)
            read = pipeline.summary().total.read
        records = sum(records for records, _ in took.batches)
        if read != records:
            raise RuntimeError(f"the pipeline must have read {records:,} records, got {read:,}")
        return took

    @contextmanager
    def kept_events(self, topic: str) -> Iterator[DataFrame]:
        """Yield the events of a topic as they land, kept in memory."""
        with self._fresh() as folder:
            self.landed(topic, "parquet", folder)
            events = self._spark.read.parquet(str(folder / "events")).persist()
            events.count()
            try:
                yield events
            finally:
                events.unpersist()

    def written(self, rows: DataFrame) -> tuple[float, int]:
        """Write rows to Parquet; return the seconds of processors and the number of bytes."""
        with self._fresh() as folder:
            start = _processor_seconds()
            rows.write.partitionBy("record_date").parquet(str(folder))
            took = _processor_seconds() - start
            return took, sum(file.stat().st_size for file in folder.rglob("*.parquet"))


class Watch:
    """The time since it was made: elapsed, and of processors."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._processors = _processor_seconds()

    def took(self, query: Any, wait: Callable[[], object]) -> Took:
        """Wait for the end of a query and return what it took."""
        wait()
        whole = time.monotonic() - self._start
        processors = _processor_seconds() - self._processors
        batches = [
            (progress["numInputRows"], progress["durationMs"]["triggerExecution"] / 1000)
            for progress in query.recentProgress
            if progress["numInputRows"]
        ]
        return Took(batches, whole, processors)


def _processor_seconds() -> float:
    """Return the seconds that this process, Java and Python workers have used."""
    own = os.getpid()
    java = [child for child in children(own) if "org.apache.spark" in command_of(child)]
    processes = [own, *java, *(below for child in java for below in descendants(child))]
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(ticks) for field in fields for ticks in field[11:13]) / os.sysconf("SC_CLK_TCK")


def command_of(process: int) -> str:
    """Return the command line of a process."""
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    found: list[int] = []
    for task in tasks:
        with suppress(OSError):  # the thread has ended
            found += map(int, task.read_text().split())
    return found


def descendants(process: int) -> Iterator[int]:
    """Yield the processes below a process."""
    for child in children(process):
        yield child
        yield from descendants(child)


@contextmanager
def session(folder: Path, cores: int, memory: str = "4g") -> Iterator[SparkSession]:
    """Start a Spark that has Kafka, Delta, Iceberg, and a catalog of Iceberg in a folder."""
    catalog = f"spark.sql.catalog.{_CATALOG}"
    conf = {
        "spark.driver.memory": memory,
        "spark.sql.streaming.numRecentProgressUpdates": "200",
        "spark.sql.shuffle.partitions": str(cores),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": f"file://{folder}/warehouse",
    }
    with local_session(master=f"local[{cores}]", conf=conf, formats=("delta", "iceberg", "avro")) as spark:
        yield spark
