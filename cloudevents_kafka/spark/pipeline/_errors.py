"""`PipelineError` and `PipelineFailed`, and how a Java stack trace of Spark becomes a short message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cloudevents_kafka.errors import CloudEventsKafkaError

IN_PROCESS: Final = (
    "Run the pipeline in the process of Spark's driver, with spark-submit or as a job of the platform: see "
    "docs/how-to/connect_and_clusters.md"
)
"""What to do instead of using Spark Connect. CHANGELOG.md contains the same sentence."""

LATER_BATCHES: Final = "a smaller --max-records makes only later batches smaller, except in a backfill"
"""Why a smaller --max-records does not help the batch that has failed: a planned batch keeps its offsets."""

_MAX_LENGTH: Final = 600

_ADVICE: Final = {
    "expired": (
        "records expired before they were read, or a topic was removed from the list. "
        "To continue with the remaining records, allow data loss (--allow-data-loss); "
        "the summary then lists the offsets without a record"
    ),
    "no topic": "the topic does not exist: check its name, or create it first",
    "no broker": "no broker answered: check the bootstrap servers and the security settings",
    "refused": "the broker refused access: check the security settings and the rights on the topic",
    "no login": (
        "Kafka's Java client got no token: check that the token endpoint answers, and the client id and "
        "secret (sasl.oauthbearer.…)"
    ),
    "url not allowed": (
        "add -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=URL to spark.driver.extraJavaOptions and "
        "spark.executor.extraJavaOptions"
    ),
    "two writers": "another pipeline uses the same checkpoint: use one folder for each pipeline",
    "rights": (
        "the pipeline, and each worker of Spark, must be allowed to create, rename and delete files "
        "in the folder and in the checkpoint; then start again: all landed batches are complete"
    ),
    "space": "free some space, and start again; all landed batches are complete",
    "checkpoint": (
        "a file of the checkpoint is damaged: restore it, or land into a fresh folder with a fresh checkpoint"
    ),
    "generated": (
        "rows of the table have another value of a generated column, perhaps from another time zone, and no "
        "row of the batch has landed in the table: in a session with spark.sql.session.timeZone=UTC, "
        "compute the column again (UPDATE … SET column = expression), and start again"
    ),
    "constraint": (
        "a constraint of the table refuses a record, and no row of the batch has landed in the table: drop "
        "the constraint (ALTER TABLE … DROP CONSTRAINT, or DROP NOT NULL), and filter rows when you read them"
    ),
    "metrics": (
        "PySpark 4.1 and 4.2 stop with this error after a repeated batch (SPARK-55271), and the pipeline has "
        "already continued once; all landed batches are complete: start again"
    ),
    "python died": (
        "a Python process of Spark ended: it was killed, perhaps because memory ran out; start again: all "
        "landed batches are complete. If the error returns, run fewer tasks at a time (--master 'local[2]') "
        "with fewer rows (-X spark.sql.execution.arrow.maxRecordsPerBatch=100); "
        f"{LATER_BATCHES}"
    ),
    "too large": (
        "a record is larger than the producer or the topic allows: raise kafka.max.request.size "
        "(-X kafka.max.request.size=…) and the topic's max.message.bytes; then start again"
    ),
    "python slow": (
        "a Python process of Spark did not start within its time limit: the machine is busy, or its Python "
        "does not work; start again: all landed batches are complete"
    ),
    "memory": (
        "Spark ran out of memory: raise the limit (-X spark.driver.memory=4g), or run fewer tasks at a time "
        f"(--master 'local[2]'); {LATER_BATCHES}"
    ),
    "results": (
        "the tasks of Spark return more bytes than the driver accepts: raise the limit "
        "(-X spark.driver.maxResultSize=4g), and start again"
    ),
}
# Errors that occur again after a new start, until the user changes something.
_FINAL: Final = frozenset(
    {
        "expired",
        "no topic",
        "url not allowed",
        "two writers",
        "rights",
        "checkpoint",
        "too large",
        "results",
        "constraint",
        "generated",
    }
)
# After a batch that Spark's Kafka source did not plan, the source has no latest offsets. Its metrics fail,
# because they need the latest offsets.
_METRICS: Final = r"IterableOps\.map\(.*Option\.get\(\)\" is null"
_PATTERNS: Final = (
    (r"CHECK constraint Generated Column", "generated"),
    (r"DELTA_VIOLATE_CONSTRAINT|DELTA_NOT_NULL_CONSTRAINT_VIOLATED|NOT_NULL_ASSERT_VIOLATION", "constraint"),
    (r"KAFKA_DATA_LOSS|[Ss]ome data may have been lost|failOnDataLoss", "expired"),
    (r"waiting for the Python worker to connect", "python slow"),
    (r"UnknownTopicOrPartition|does not host this topic-partition", "no topic"),
    (r"not present in metadata after", "no topic"),
    (r"RecordTooLargeException|MessageSizeTooLarge", "too large"),
    (r"oauthbearer\.allowed\.urls", "url not allowed"),
    (r"LoginException", "no login"),
    (r"SaslAuthentication|SslAuthentication|AuthorizationException", "refused"),
    (r"TimeoutException|No resolvable bootstrap urls", "no broker"),
    (r"Concurrent update to the log|CONCURRENT_STREAM_LOG_UPDATE", "two writers"),
    (r"OutOf(Direct)?Memory(Error|Exception)", "memory"),
    (r"serialized results .* is bigger than .*maxResultSize", "results"),
    (_METRICS, "metrics"),
    (r"No space left on device|Disk quota exceeded", "space"),
    (r"Permission denied|Operation not permitted|Read-only file system|AccessControl|AccessDenied", "rights"),
    (r"FileAlreadyExistsException", "two writers"),
    (r"Mkdirs failed|[Ff]ailed to rename", "rights"),
    (r"^java\.io\.EOFException|Python worker exited unexpectedly", "python died"),
    (r"ChecksumException|Incomplete log file|Log file was malformed|batch \d+ doesn't exist", "checkpoint"),
)


# A query plan that follows the message of an error: the root of the plan, and the lines of its tree.
_PLAN: Final = re.compile(
    r";?[ \t]*\n(?:== .* Plan ==\n)?'?[A-Z]\w*\b.*(?:\n[ \t:|]*[+:]- .*)+|;[ \t]*\n'?[A-Z]\w* .*#\d.*"
)
_BRIDGE: Final = re.compile(r"py4j|An error occurred while calling ", re.IGNORECASE)


class PipelineError(CloudEventsKafkaError):
    """The base class of the errors of a pipeline.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineError, PipelineOptions
        >>> options = PipelineOptions(bootstrap_servers="127.0.0.1:1", topics=("orders",), out="lake/")
        >>> try:
        ...     EventPipeline(options).run()
        ... except PipelineError as error:
        ...     print(type(error).__name__)
        PipelineFailed
    """


class PipelineFailed(PipelineError):
    """The pipeline failed; all landed batches are complete, and the next run continues after these batches.

    ``final`` is true if each new run fails in the same way until you change something, such as a setting.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineFailed, PipelineOptions
        >>> options = PipelineOptions(bootstrap_servers="127.0.0.1:1", topics=("orders",), out="lake/")
        >>> try:
        ...     EventPipeline(options).run()
        ... except PipelineFailed as error:
        ...     print(error)
        no broker accepts a connection: 127.0.0.1:1 (Connection refused); check the bootstrap servers, ...
    """

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


class WrongTable(PipelineError):
    """A table is missing, or the pipeline cannot write its rows into the table.

    The pipeline cannot write its rows if the columns of the table do not match the rows, or if another
    pipeline has already landed the same offsets in the table.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline.maintenance import WrongTable, optimize_tables
        >>> try:
        ...     list(optimize_tables(folder="/nowhere"))
        ... except WrongTable as error:
        ...     print(error)
        /nowhere is missing: it must be a Delta or Iceberg table, or the folder of a pipeline that writes ...
    """


class NotOnConnect(PipelineError, ValueError):
    """A pipeline or a replay got a session of Spark Connect, but needs a Spark session in this process.

    Examples:
        >>> from pyspark.sql import SparkSession
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, NotOnConnect, PipelineOptions
        >>> spark = SparkSession.builder.remote("sc://localhost:15002").getOrCreate()
        >>> options = PipelineOptions(bootstrap_servers="kafka:9092", topics=("orders",), out="/lake/orders")
        >>> try:
        ...     EventPipeline(options, spark=spark).run()
        ... except NotOnConnect as error:
        ...     print(error)
        spark must be a Spark session of this process, got a Spark Connect session. ...
    """


def ends_after_repeated_batch(text: str) -> bool:
    """Return whether SPARK-55271 ended a query.

    SPARK-55271 is a bug of Spark that ends a query after the query's first batch, if this batch repeats a
    batch of an earlier query. All records of the repeated batch have landed.
    """
    return re.search(_METRICS, text) is not None


@contextmanager
def failures_in_words(redact: Callable[[str], str]) -> Iterator[None]:
    """Yield to a block, and convert an error of Spark in this block to a `PipelineFailed`.

    The function ``redact`` removes secrets from the text of the error.
    """
    try:
        yield
    except spark_errors() as error:
        raise failure_of(redact(str(error))) from error


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the classes of Spark's errors, including errors that come from Java."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JJavaError)


def failure_of(text: str) -> PipelineFailed:
    """Return a `PipelineFailed` with the innermost cause in ``text``, and with advice for known causes."""
    key = next((key for pattern, key in _PATTERNS if re.search(pattern, text)), None)
    advice = "" if key is None else f"\n{_ADVICE[key]}"
    return PipelineFailed(f"Spark stopped: {_cause(text)}{advice}", final=key in _FINAL)


def _cause(text: str) -> str:
    """Return the innermost cause in an error text of Spark.

    The result is the last ``Caused by`` in the text. If the text has no ``Caused by``, the result is another
    error in the text. If the text contains no error, the result is the first lines of the text. The result
    contains no lines of a query plan, and no lines of the bridge between Python and Java.
    """
    text = "\n".join(line for line in _PLAN.sub("", text).splitlines() if not _BRIDGE.search(line))
    java = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    python = re.findall(r"^\s*((?:\w+\.)*\w+(?:Error|Exception): .+)$", text, re.MULTILINE)
    called = re.findall(r"^: (.+)$", text, re.MULTILINE)  # the line after "An error occurred while calling"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if java and "PythonException" in java[-1] and python:
        java = []  # the lines of Java before the traceback of a worker
    cause = (java or python or called[:1] or [" ".join(lines[:3])])[-1]
    return cause if len(cause) <= _MAX_LENGTH else f"{cause[:_MAX_LENGTH]}…"
