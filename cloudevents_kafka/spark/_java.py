"""The parts of PySpark that have no public name, all in one place: most lead to Java, by py4j.

PySpark has no public functions for Hadoop's file systems, Kafka's AdminClient and Delta's snapshots. It has
none to free the rows of a local checkpoint, or to forget a Java process that has ended, and the one for the
reports of a query is slow. The names in this module are the same in all versions of `TRIED_WITH`, with which
the tests run. Sessions of Spark Connect have none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIED_WITH: Final = ("4.0.0", "4.1.1")
"""Versions of PySpark, the oldest and the newest that the extra ``spark`` allows."""


def has_java(spark: SparkSession) -> bool:
    """Return whether a session has a Java process here, which one of Spark Connect does not have."""
    return hasattr(spark, "_jsparkSession")


def java_of(spark: SparkSession) -> Any:
    """Return the Java process of a session, whose attributes are the packages of Java."""
    return spark._jvm  # noqa: SLF001


def java_session(spark: SparkSession) -> Any:
    """Return the Java object of the session."""
    return spark._jsparkSession  # noqa: SLF001


def java_frame(rows: DataFrame) -> Any:
    """Return the Java object of a frame."""
    return rows._jdf  # noqa: SLF001


def scala_seq(java: Any, items: Iterable[Any]) -> Any:
    """Return an immutable sequence of Scala."""
    values = java.java.util.ArrayList()
    for item in items:
        values.add(item)
    return java.scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq()


def scala_option(java: Any, value: Any = None) -> Any:
    """Return Scala's option of a value, or its None."""
    return getattr(java.scala, "None$").__getattr__("MODULE$") if value is None else java.scala.Some(value)


def file_system(spark: SparkSession, url: str) -> tuple[Any, Any]:
    """Return Hadoop's file system of a URL, and the URL as Hadoop's path."""
    path = java_of(spark).org.apache.hadoop.fs.Path(url)
    return path.getFileSystem(spark._jsc.hadoopConfiguration()), path  # noqa: SLF001


def free_checkpoint(rows: DataFrame) -> None:
    """Free the memory of rows that `DataFrame.localCheckpoint` has returned.

    Spark frees it by itself only after Python and Java have collected the frame.
    """
    rows._jdf.queryExecution().logical().rdd().unpersist(False)  # noqa: SLF001


def recent_reports(query: StreamingQuery) -> Iterator[Mapping[str, Any]]:
    """Yield Spark's reports on the last batches, the newest first.

    PySpark copies all reports field by field, in a thousand calls of Java; here each report is one text.
    """
    java: Any = query._jsq  # type: ignore[attr-defined]  # noqa: SLF001
    for report in reversed(java.recentProgress()):
        yield msgspec.json.decode(report.json())


def has_active_context() -> bool:
    """Return whether Spark runs in this process."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None  # noqa: SLF001


def stop_active_context() -> None:
    """Stop the Spark of this process, if it runs."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context.stop()


def forget_java() -> None:
    """Reset PySpark's references to a Java process that has ended; otherwise the next session uses it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001


def silence_accumulators(context: Any) -> None:
    """Let the thread that receives accumulators print no traceback if Java is killed."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
