"""All uses of PySpark's internal names; most of these names call Java through py4j.

PySpark has no public functions for Hadoop's file systems, Kafka's AdminClient and Delta's snapshots. PySpark
also has no public functions that free the rows of a local checkpoint, or forget a Java process that has
ended. PySpark's public function for the reports of a query is slow. The internal names are the same in all
versions in `TRIED_WITH`; the tests run with these versions. Sessions of Spark Connect do not have these
names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIED_WITH: Final = ("4.0.0", "4.1.1")
"""The oldest and the newest version of PySpark that the extra ``spark`` allows."""


def has_java(spark: SparkSession) -> bool:
    """Return whether a session has a Java process on this machine; with Spark Connect, there is none."""
    return hasattr(spark, "_jsparkSession")


def java_of(spark: SparkSession) -> Any:
    """Return the Java process of a session, as an object whose attributes are Java's packages."""
    return spark._jvm  # noqa: SLF001


def java_session(spark: SparkSession) -> Any:
    """Return the Java object behind a session."""
    return spark._jsparkSession  # noqa: SLF001


def clone_session(spark: SparkSession) -> SparkSession:
    """Return a clone of a session, with its settings, functions and views; Spark clones sessions for streams.

    A change of the new session's settings does not change the user's session.
    """
    return type(spark)(spark.sparkContext, java_session(spark).cloneSession())


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Yield while a session is this thread's active session; Java classes read settings from this session."""
    sessions = java_of(spark).org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(java_session(spark))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def java_frame(rows: DataFrame) -> Any:
    """Return the Java object behind a DataFrame."""
    return rows._jdf  # noqa: SLF001


def stored_rows(rows: DataFrame) -> DataFrame:
    """Return a DataFrame of rows that `DataFrame.persist` stores, without the plan that computes these rows.

    Without `stored_rows`, the plan of ``rows`` still contains the expressions that have computed the rows,
    and Spark checks these expressions again. For example, Spark refuses a MERGE into an Iceberg table if one
    of the expressions is not deterministic.
    """
    from pyspark.sql import DataFrame

    frame, session = java_frame(rows), java_session(rows.sparkSession)
    stored = session.internalCreateDataFrame(frame.queryExecution().toRdd(), frame.schema(), False)
    return DataFrame(stored, rows.sparkSession)


def scala_seq(java: Any, items: Iterable[Any]) -> Any:
    """Return an immutable Scala sequence of items."""
    values = java.java.util.ArrayList()
    for item in items:
        values.add(item)
    return java.scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq()


def scala_option(java: Any, value: Any = None) -> Any:
    """Return a Scala ``Some`` that contains the value, or Scala's ``None`` if the value is None."""
    return getattr(java.scala, "None$").__getattr__("MODULE$") if value is None else java.scala.Some(value)


def file_system(spark: SparkSession, url: str) -> tuple[Any, Any]:
    """Return the Hadoop file system for a URL, and the URL as a Hadoop path."""
    path = java_of(spark).org.apache.hadoop.fs.Path(url)
    return path.getFileSystem(spark._jsc.hadoopConfiguration()), path  # noqa: SLF001


def free_checkpoint(rows: DataFrame) -> None:
    """Free the memory of rows that `DataFrame.localCheckpoint` has returned.

    If `free_checkpoint` is not called, Spark frees the memory only after the garbage collectors of Python and
    Java have collected the DataFrame.
    """
    rows._jdf.queryExecution().logical().rdd().unpersist(False)  # noqa: SLF001


def recent_reports(query: StreamingQuery) -> Iterator[Mapping[str, Any]]:
    """Yield Spark's reports on recent batches; the newest report comes first.

    PySpark copies all reports field by field, and calls Java a thousand times. `recent_reports` copies each
    report as one text.
    """
    java: Any = query._jsq  # type: ignore[attr-defined]  # noqa: SLF001
    for report in reversed(java.recentProgress()):
        yield msgspec.json.decode(report.json())


def has_active_context() -> bool:
    """Return whether Spark runs in this process."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None  # noqa: SLF001


def stop_active_context() -> None:
    """Stop the Spark context of this process, if there is one."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context.stop()


def forget_java() -> None:
    """Reset PySpark's references to a Java process that has ended.

    Without this reset, the next session would use the Java process that has ended.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001


def silence_accumulators(context: Any) -> None:
    """Prevent the thread that receives accumulators from printing a traceback if Java is killed."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
