"""Fixtures: the pipeline as a program, a session with the connector, and a lake."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.jvm import resolve
from cloudevents_kafka.spark.pipeline import local_session
from cloudevents_kafka.testing import LocalBroker
from tests.spark.pipeline.in_each_run import IN_EACH_RUN
from tests.spark.pipeline.lake import Lake
from tests.support.quick_spark import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Short runs do not benefit from more optimization.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
QUICK = ("-X", f"spark.driver.extraJavaOptions={_QUICK}")
SECONDS = 900.0  # only what hangs takes longer, also on a busy machine
LIMIT = 1_800  # of a phase of a test


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests with a session that are not listed to ``make release``; limit the time of each test."""
    folder = "tests/spark/pipeline/"
    for item in items:
        if item.nodeid.startswith(folder) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT))
        if item.nodeid.startswith(folder) and "session" in getattr(item, "fixturenames", ()):
            listed = IN_EACH_RUN.get(item.nodeid.removeprefix(folder).partition("::")[0], ())
            if getattr(item, "originalname", "") not in listed:
                item.add_marker(pytest.mark.release)


class Program:
    """A pipeline in a process of its own; without a topic the options have a pattern."""

    def __init__(self, broker: LocalBroker, topic: str, out: Path, *options: str) -> None:
        call = "from cloudevents_kafka.cli import main; main()"
        where = ("-b", broker.bootstrap_servers, *(("-t", topic) if topic else ()), "-o", str(out))
        argv = [sys.executable, "-c", call, "pipeline", *where, *QUICK, "--summary-json", "-", *options]
        pipe = subprocess.PIPE
        # A killed Spark leaves the folder artifacts where it runs.
        self.process = subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, cwd=out.parent)
        self.stderr_lines: list[str] = []
        self._output = ""
        self._readers = [threading.Thread(target=read) for read in (self._read_errors, self._read_output)]
        for reader in self._readers:
            reader.start()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as errors:
            self.stderr_lines.extend(line.rstrip() for line in iter(errors.readline, ""))

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self._output = output.read()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None, "\n".join(self.stderr_lines)
            assert time.monotonic() < deadline, "\n".join(self.stderr_lines)
            time.sleep(0.002)

    def java(self) -> int:
        """Return the process id of its Java process."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        if children.exists():
            return int(children.read_text().split()[0])
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=True
        )
        return int(found.stdout.split()[0])

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and stderr."""
        code = self.process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)
        return code, "\n".join(self.stderr_lines)

    def summary(self) -> dict[str, Any]:
        """Wait for a successful end; return the summary."""
        code, stderr = self.end()
        assert code == 0, stderr
        found: dict[str, Any] = json.loads(self._output)
        return found

    def kill(self) -> None:
        """Kill the process."""
        self.process.send_signal(signal.SIGKILL)
        self.end()


Run = Callable[..., Program]


@pytest.fixture
def pipeline(kafka_broker: LocalBroker) -> Iterator[Run]:
    """Return a function that starts pipelines; the fixture ends them."""
    programs: list[Program] = []

    def run(topic: str, out: Path, *options: str) -> Program:
        programs.append(Program(kafka_broker, topic, out, *options))
        return programs[-1]

    yield run
    for program in programs:
        program.process.kill()
        program.end()


@contextmanager
def hidden_spark() -> Iterator[None]:
    """Hide the Spark session of other tests, which a pipeline would stop at the end of its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    references = (
        (SparkContext, "_active_spark_context"),
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkSession, "_instantiatedSession"),
        (SparkSession, "_activeSession"),
    )
    with pytest.MonkeyPatch.context() as patch:
        for holder, name in references:
            patch.setattr(holder, name, None)
        yield


@pytest.fixture(scope="package", autouse=True)
def no_other_spark() -> Iterator[None]:
    pytest.importorskip("pyspark")
    with hidden_spark():
        yield


@pytest.fixture(scope="package")
def session(no_other_spark: None) -> Iterator[SparkSession]:
    """Start Spark with the connector, Delta, Iceberg, Avro and SQLite in this process."""
    (sqlite,) = resolve(["org.xerial:sqlite-jdbc:3.50.3.0"])  # for a catalog of Iceberg
    conf = {
        "spark.driver.extraJavaOptions": _QUICK,
        "spark.jars": str(sqlite),
        "spark.python.daemon.module": "tests.spark.worker_daemon",
        "spark.ui.enabled": "false",
    }
    with local_session(master="local[2]", conf=conf, formats=("delta", "iceberg", "avro")) as spark:
        yield spark


@pytest.fixture
def spark_defaults() -> None:
    """Keep Spark's defaults in a test: what users run is run, once for each format."""


@pytest.fixture(autouse=True)
def quick_queries(request: pytest.FixtureRequest) -> Iterator[None]:
    """Interpret the queries of a test with a session, if the run has the option ``--quick-spark``."""
    names = request.fixturenames
    if not request.config.option.quick_spark or "session" not in names or "spark_defaults" in names:
        yield
        return
    conf = request.getfixturevalue("session").conf
    before = {name: conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        conf.set(name, value)
    yield
    for name, value in before.items():
        conf.set(name, value)


@pytest.fixture
def lake(session: SparkSession, kafka_broker: LocalBroker, tmp_path: Path) -> Lake:
    return Lake(session, kafka_broker, tmp_path)
