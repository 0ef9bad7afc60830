"""A Spark session for a pipeline on this machine: quiet, in UTC, bound to loopback, with the connector."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import find_java
from cloudevents_kafka.spark.connector import connector_jars
from cloudevents_kafka.spark.pipeline.errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.options import on_command_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_SECONDS_TO_END = 20
_SECONDS_TO_DIE = 10
_SECONDS_TO_SEE = 1
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# Java's log goes to its stderr, which is a file: this process says itself what matters.
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


_DIED = (
    "Spark's Java process ended in the middle of its work: killed, perhaps for want of memory. "
    "What has landed is whole; start again, and it goes on after that"
)


class SparkFailed(CloudEventsKafkaError):
    """Spark did not start, or its Java process ended."""


def settings(*, master: str | None, ui: bool, conf: Mapping[str, str], log4j: Path | None) -> dict[str, str]:
    """Give Spark's settings; those in `conf` win over ours."""
    ours = {
        "spark.master": master or "local[*]",
        "spark.app.name": "cloudevents-kafka",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.jars": ",".join(map(str, connector_jars())),
        # Few rows are ever shuffled here (counts); 200 tasks for them would take longer than the batch.
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        # No parquet summary or success files in the staging folders: they are moved file by file.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if log4j is not None:
        ours[_JAVA_OPTIONS] = (
            f"-Dlog4j2.configurationFile={log4j.as_uri()} {conf.get(_JAVA_OPTIONS, '')}".strip()
        )
        conf = {name: value for name, value in conf.items() if name != _JAVA_OPTIONS}
    return {**ours, **conf}


class _NotOfPy4j(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname


_MUTE = _NotOfPy4j()


@contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Keep py4j from logging tracebacks, to the root logger, of a Java that is gone: we say so ourselves.

    After an error it stays quiet: its threads may log later than the block ends.
    """
    loggers = [logging.getLogger(name) for name in (None, "py4j.clientserver", "py4j.java_gateway")]
    for logger in loggers:
        logger.addFilter(_MUTE)
    yield
    for logger in loggers:
        logger.removeFilter(_MUTE)


@contextmanager
def local_session(
    *,
    master: str | None = None,
    ui: bool = False,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """Run Spark within this block, its Java process included; `log` gets Java's log.

    Raises `NoJava`, `NoConnector`, or `SparkFailed` with the end of the log.
    """
    with tempfile.TemporaryDirectory(prefix="cloudevents-kafka-spark-") as folder:
        log4j = Path(folder) / "log4j2.properties"
        log4j.write_text(_LOG4J, encoding="utf-8")
        # Spark leaves folders behind when it is killed: here they go with this one.
        scratch = {"spark.local.dir": folder, "spark.sql.warehouse.dir": f"file://{folder}/warehouse"}
        chosen = settings(master=master, ui=ui, conf={**scratch, **(conf or {})}, log4j=log4j)
        gateway = _launch(chosen, log or Path(folder) / "java.log")
        with _quiet_py4j():
            try:
                yield _connect(chosen, gateway)
            except Exception as error:
                died = _has_died(gateway.proc, error)
                _end(gateway)
                if died:
                    raise SparkFailed(_DIED) from error
                raise
            except BaseException:
                # Ctrl-C: whatever Java is still at must not hold it up.
                gateway.proc.kill()
                _end(gateway)
                raise
            _end(gateway)


def _has_died(process: Any, error: Exception) -> bool:
    """Return whether an error comes of Java's death.

    Almost any can: py4j makes a `Py4JError`, an `OSError` or an `EOFError` of a connection that
    breaks, and an `AttributeError` or `TypeError` of an answer that is empty. A connection breaks
    a moment before its process has ended, and longer before where much memory is to be freed.
    """
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]

    seen = (error.__cause__ or error) if isinstance(error, PipelineFailed) else error
    if isinstance(seen, CloudEventsKafkaError):
        return False
    broken = isinstance(seen, Py4JError | OSError | EOFError) and not isinstance(seen, Py4JJavaError)
    with suppress(TimeoutExpired):
        process.wait(_SECONDS_TO_DIE if broken else _SECONDS_TO_SEE)
    return process.poll() is not None or isinstance(seen, Py4JNetworkError)


def _launch(chosen: Mapping[str, str], log: Path) -> Any:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(find_java().home)
    # Workers need this package too: not whatever python3 is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Else Spark looks for another address of this host, and warns when it is loopback.
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    # Command lines can be read by anyone on the machine: what may be a secret follows when Java runs.
    early = {name: value for name, value in chosen.items() if on_command_line(name)}
    conf = SparkConf(loadDefaults=False).setAll(list(early.items()))
    with log.open("ab") as output, ThreadPoolExecutor(1) as pool:
        launch = pool.submit(launch_gateway, conf, {"stdout": output, "stderr": output})
        try:
            return launch.result()
        except Exception as error:
            end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])
            raise SparkFailed(
                f"Spark's Java process did not start ({error}); the end of its log:\n{end}"
            ) from error
        except BaseException:
            _abandon(launch)
            raise


def _abandon(launch: Future[Any]) -> None:
    """End a Java that is just being started, however often Ctrl-C is pressed meanwhile.

    Interrupted itself, PySpark would leave it behind, waiting for nothing.
    """
    while not launch.done():
        with suppress(BaseException):
            wait([launch])
    if launch.exception() is None:
        launch.result().proc.kill()


def _connect(chosen: Mapping[str, str], gateway: Any) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    ours = signal.getsignal(signal.SIGINT)
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(chosen.items()))
    context = SparkContext(conf=conf, gateway=gateway)
    if threading.current_thread() is threading.main_thread():
        # Spark puts a handler of its own there. It would end a batch half-way, and as it calls Java,
        # in the middle of a call of ours both would get the wrong answers.
        signal.signal(signal.SIGINT, ours)
    # Its thread would print a traceback where Java is killed.
    accumulators = getattr(context, "_accumulatorServer", None)
    if accumulators is not None:
        accumulators.handle_error = lambda *_: None
    return SparkSession(context)


def _end(gateway: Any) -> None:
    """Stop Spark, wait until its Java process is gone, and let PySpark forget it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context  # noqa: SLF001
    # Of a Java that is gone, or goes just now, any error may come.
    with suppress(Exception):
        if context is not None and gateway.proc.poll() is None:
            context.stop()
    with suppress(OSError):
        gateway.proc.stdin.close()  # at which Java ends
    try:
        gateway.proc.wait(_SECONDS_TO_END)
    except TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    with suppress(Exception):
        gateway.shutdown()
    # Else the next session would talk to the Java that is gone.
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
