"""`local_session` starts a Spark session on this machine, in the time zone UTC and without log output.

The session listens on 127.0.0.1, and includes the jars and settings that a pipeline needs.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import find_java
from cloudevents_kafka.primitives.redaction import is_secret_name
from cloudevents_kafka.spark._java import (
    forget_java,
    has_active_context,
    has_java,
    silence_accumulators,
    stop_active_context,
)
from cloudevents_kafka.spark.class_archive import ClassArchive
from cloudevents_kafka.spark.pipeline._errors import (
    IN_PROCESS,
    LATER_BATCHES,
    NotOnConnect,
    PipelineError,
    PipelineFailed,
)
from cloudevents_kafka.spark.pipeline.session._scratch import scratch_folder
from cloudevents_kafka.spark.session import session_settings
from cloudevents_kafka.spark.table_formats import SessionFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_SHUTDOWN_SECONDS = 120  # Java takes longer only if it hangs, even on a busy machine
# How long to wait for the end of the Java process, after its connection broke and after other errors.
_BROKEN_CONNECTION_SECONDS = 10
_OTHER_ERROR_SECONDS = 1
# Settings that Spark needs when its Java process starts. All other settings can be set later.
_LAUNCH_SETTINGS = (
    "spark.master",
    "spark.app.name",
    "spark.archives",
    "spark.driver.",
    "spark.files",
    "spark.jars",
    "spark.local.dir",
    "spark.log.",
    "spark.submit.",
)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# Java logs to its stderr, which is redirected to a file, because this process reports errors itself.
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


_JAVA_DIED = (
    "Spark's Java process ended in the middle of its work: it was killed, perhaps because memory ran out. "
    "All landed batches are complete; start again to continue after them. If the error returns, run fewer "
    f"tasks at a time (--master 'local[2]'), or use a machine with more memory; {LATER_BATCHES}"
)


class SparkFailed(PipelineError):
    """Spark did not start, or the Java process of Spark ended.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import SparkFailed, local_session
        >>> try:
        ...     with local_session(conf={"spark.driver.memory": "much"}) as spark:
        ...         print(spark.range(3).count())
        ... except SparkFailed as error:
        ...     print(error)
        Spark's Java process did not start (...
    """


def spark_settings(
    *,
    master: str | None,
    ui: bool,
    conf: Mapping[str, str],
    log4j: Path | None,
    formats: Collection[SessionFormat] = (),
    kafka: bool = True,
) -> dict[str, str]:
    """Return the settings of a local Spark session.

    Settings in ``conf`` override the default settings; jars in ``conf`` are added to the jars of the
    pipeline.
    """
    # This comes first: Java needs all jars at its start, and a missing jar is reported before Java starts.
    conf = session_settings(formats, kafka=kafka, conf=conf)
    defaults = {
        "spark.master": master or "local[*]",
        "spark.app.name": "cloudevents-kafka",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Only the few rows of the counts are shuffled; 200 tasks would take longer than the batch.
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        # Staging folders must contain only Parquet files, because their files are renamed one by one.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if log4j is not None:
        defaults[_JAVA_OPTIONS] = (
            f"-Dlog4j2.configurationFile={log4j.as_uri()} {conf.get(_JAVA_OPTIONS, '')}".strip()
        )
        conf = {name: value for name, value in conf.items() if name != _JAVA_OPTIONS}
    return {**defaults, **conf}


# PySpark logs the errors of statements here, with plans and stack traces. It also raises these errors.
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname and record.name not in _QUERY_LOGGERS


@contextmanager
def _silence_py4j() -> Iterator[None]:
    """While this block runs, drop log records of py4j and of the loggers in `_QUERY_LOGGERS`.

    The log records are dropped because py4j logs tracebacks when the Java process dies. If the block raises
    an error, log records are dropped until this Python process ends, because py4j's threads may still log
    after the block.
    """
    from pyspark.logger import PySparkLogger

    loggers = [logging.getLogger(name) for name in (None, "py4j.clientserver", "py4j.java_gateway")]
    loggers += [PySparkLogger.getLogger(name) for name in _QUERY_LOGGERS]
    for logger in loggers:
        logger.addFilter(_is_not_py4j)
    yield
    for logger in loggers:
        logger.removeFilter(_is_not_py4j)


def check_in_process(spark: SparkSession) -> None:
    """Raise `NotOnConnect` for a session of Spark Connect."""
    if not has_java(spark):
        raise NotOnConnect(
            f"spark must be a Spark session of this process, got a Spark Connect session. {IN_PROCESS}"
        )


@contextmanager
def local_session(
    *,
    master: str | None = None,
    ui: bool = False,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
    formats: Collection[SessionFormat] = (),
    kafka: bool = True,
) -> Iterator[SparkSession]:
    """Start Spark with its Java process, yield the session, and stop Spark at the end of the block.

    Java writes its log to the file ``log``. The session can write Parquet and the table formats in
    ``formats``; the session can also read Kafka, unless ``kafka`` is false. Raises `NoJava`, `NoConnector`,
    `NoTableFormat`, or `SparkFailed` with the end of the log.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import local_session
        >>> with local_session(master="local[2]", formats=("delta",)) as spark:
        ...     print(spark.range(3).count())
        3
    """
    if has_active_context():
        raise SparkFailed(
            "Spark must not run in this process already, because a process can start only one Spark; pass "
            "the running session: EventPipeline(options, spark=spark). Several pipelines can use one session"
        )
    with _no_artifacts(), scratch_folder() as (folder, lock):
        log4j = folder / "log4j2.properties"
        log4j.write_text(_LOG4J, encoding="utf-8")
        # A killed Spark leaves its files behind. They are in the scratch folder, which is deleted later.
        scratch = {"spark.local.dir": str(folder), "spark.sql.warehouse.dir": f"file://{folder}/warehouse"}
        settings = spark_settings(
            master=master, ui=ui, conf={**scratch, **(conf or {})}, log4j=log4j, formats=formats, kafka=kafka
        )
        archive = ClassArchive.of(find_java()).options_to_read(settings)
        settings[_JAVA_OPTIONS] = f"{settings[_JAVA_OPTIONS]} {archive}".strip()
        gateway = _launch(settings, log or folder / "java.log", lock)
        with _silence_py4j(), _stopping(gateway):
            yield _connect(settings, gateway)


@contextmanager
def _no_artifacts() -> Iterator[None]:
    """At the end of the block, remove the empty folder ``artifacts`` from the current folder.

    Spark creates the folder ``artifacts`` if jars are added.
    """
    folder = Path("artifacts").absolute()
    existed = folder.exists()
    try:
        yield
    finally:
        if not existed:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def _stopping(gateway: Any) -> Iterator[None]:
    """Stop Spark and its Java process at the end of this block; raise `SparkFailed` if Java has died."""
    try:
        yield
    except Exception as error:
        died = _has_died(gateway.proc, error)
        _shut_down(gateway)
        if died:
            raise SparkFailed(_JAVA_DIED) from error
        raise
    except BaseException:
        # Ctrl-C: do not wait for Java's current work.
        gateway.proc.kill()
        _shut_down(gateway)
        raise
    _shut_down(gateway)


def _has_died(process: Any, error: Exception) -> bool:
    """Return whether the death of the Java process has caused an error.

    When the Java process dies, py4j may raise almost any type of error. A broken connection to Java becomes a
    `Py4JError`, an `OSError` or an `EOFError`, and an empty answer of Java becomes an `AttributeError` or a
    `TypeError`. The connection to Java breaks before the Java process has ended. If the Java process must
    free much memory, it ends several seconds after the connection breaks.
    """
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]

    cause = (error.__cause__ or error) if isinstance(error, PipelineFailed) else error
    if isinstance(cause, CloudEventsKafkaError):
        return False
    broken = isinstance(cause, Py4JError | OSError | EOFError) and not isinstance(cause, Py4JJavaError)
    with suppress(TimeoutExpired):
        process.wait(_BROKEN_CONNECTION_SECONDS if broken else _OTHER_ERROR_SECONDS)
    return process.poll() is not None or isinstance(cause, Py4JNetworkError)


def is_launch_setting(name: str) -> bool:
    """Return whether a setting of Spark may be on Java's command line, which other users can read.

    The command line contains only the settings that Java needs at its start, except settings that may be
    secrets.
    """
    return name.startswith(_LAUNCH_SETTINGS) and not is_secret_name(name)


def _launch(settings: Mapping[str, str], log: Path, *inherited: int) -> Any:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(find_java().home)
    # Workers import this package, which may not be installed for the python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Otherwise Spark looks up an address of this host, and warns if this is a loopback address.
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    # Other users can read command lines, so settings that may be secret are set later, when Java runs.
    early = {name: value for name, value in settings.items() if is_launch_setting(name)}
    conf = SparkConf(loadDefaults=False).setAll(list(early.items()))
    with log.open("ab") as output, ThreadPoolExecutor(1) as pool:
        launch = pool.submit(
            launch_gateway, conf, {"stdout": output, "stderr": output, "pass_fds": inherited}
        )
        try:
            return launch.result()
        except Exception as error:
            end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])
            raise SparkFailed(
                f"Spark's Java process did not start ({error}); the end of its log:\n{end}"
            ) from error
        except BaseException:
            _kill_launched(launch)
            raise


def _kill_launched(launch: Future[Any]) -> None:
    """Wait until a Java process has started, and kill it, even if Ctrl-C is pressed again meanwhile.

    If PySpark were interrupted while it starts Java, the Java process would continue to run.
    """
    while not launch.done():
        with suppress(BaseException):
            wait([launch])
    if launch.exception() is None:
        launch.result().proc.kill()


def _connect(settings: Mapping[str, str], gateway: Any) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    handler = signal.getsignal(signal.SIGINT)
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(settings.items()))
    context = SparkContext(conf=conf, gateway=gateway)
    if threading.current_thread() is threading.main_thread():
        # PySpark's handler of Ctrl-C would cancel the current batch. It also calls Java: if this happens
        # during another call of Java, the answers of the two calls are mixed up.
        signal.signal(signal.SIGINT, handler)
    silence_accumulators(context)
    return SparkSession(context)


def _shut_down(gateway: Any) -> None:
    """Stop Spark, wait until its Java process has ended, and remove PySpark's references to the process."""
    # If Java has died, any error is possible.
    with suppress(Exception):
        if gateway.proc.poll() is None:
            stop_active_context()
    with suppress(OSError):
        gateway.proc.stdin.close()  # Java ends when its input is closed
    try:
        gateway.proc.wait(_SHUTDOWN_SECONDS)
    except TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    with suppress(Exception):
        gateway.shutdown()
    forget_java()
