"""A topic full of everything, and the pipeline as a program of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark.pipeline.session import local_session
from cloudevents_kafka.testing import LocalBroker

from .lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Short runs: what Java spends on optimizing would not come back.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = ("-X", f"spark.driver.extraJavaOptions={_QUICK}")
SECONDS = 200.0


class Program:
    """A pipeline in a process of its own, watched on stderr."""

    def __init__(self, broker: LocalBroker, topic: str, out: Path, *options: str) -> None:
        call = "from cloudevents_kafka.cli import main; main()"
        where = ("-b", broker.bootstrap_servers, "-t", topic, "-o", str(out))
        argv = [sys.executable, "-c", call, "pipeline", *where, *QUICK, "--summary-json", "-", *options]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.told: list[str] = []
        self._output = ""
        self._readers = [threading.Thread(target=read) for read in (self._read_errors, self._read_output)]
        for reader in self._readers:
            reader.start()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as errors:
            self.told.extend(line.rstrip() for line in iter(errors.readline, ""))

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self._output = output.read()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a moment, looking every few milliseconds."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None, "\n".join(self.told)
            assert time.monotonic() < deadline, "\n".join(self.told)
            time.sleep(0.002)

    def java(self) -> int:
        """Give the process id of its Java."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        if children.exists():
            return int(children.read_text().split()[0])
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=True
        )
        return int(found.stdout.split()[0])

    def end(self) -> tuple[int, str]:
        """Wait for the end; gives the exit code and what it said on stderr."""
        code = self.process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)
        return code, "\n".join(self.told)

    def summary(self) -> dict[str, Any]:
        """Wait for the end, which must be a good one; gives the summary."""
        code, told = self.end()
        assert code == 0, told
        found: dict[str, Any] = json.loads(self._output)
        return found

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.end()


Run = Callable[..., Program]


@pytest.fixture
def pipeline(kafka_broker: LocalBroker) -> Iterator[Run]:
    """Start pipelines; none of them outlives the test."""
    programs: list[Program] = []

    def run(topic: str, out: Path, *options: str) -> Program:
        programs.append(Program(kafka_broker, topic, out, *options))
        return programs[-1]

    yield run
    for program in programs:
        program.process.kill()
        program.end()


@pytest.fixture(scope="module", autouse=True)
def no_other_spark() -> Iterator[None]:
    """Set aside the Spark of other tests: the pipeline brings its own, and ends what it finds."""
    pytest.importorskip("pyspark")
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    places = (
        (SparkContext, "_active_spark_context"),
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkSession, "_instantiatedSession"),
    )
    with pytest.MonkeyPatch.context() as patch:
        for holder, name in places:
            patch.setattr(holder, name, None)
        yield


@pytest.fixture(scope="module")
def session(no_other_spark: None) -> Iterator[SparkSession]:
    """Run Spark with the connector in this process."""
    with local_session(master="local[2]", conf={"spark.driver.extraJavaOptions": _QUICK}) as spark:
        yield spark


@pytest.fixture
def lake(session: SparkSession, kafka_broker: LocalBroker, tmp_path: Path) -> Lake:
    return Lake(session, kafka_broker, tmp_path)
