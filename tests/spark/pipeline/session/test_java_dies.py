"""A Java process that is killed at any call: one sentence and exit code 3 for any error of py4j."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import TimeoutExpired
from types import SimpleNamespace
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JError, Py4JNetworkError

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.spark.pipeline import (
    EventPipeline,
    PipelineFailed,
    PipelineOptions,
)
from cloudevents_kafka.spark.pipeline.runs import _event_pipeline, _stream
from cloudevents_kafka.spark.pipeline.session import SparkFailed, _session
from cloudevents_kafka.spark.pipeline.topics import TopicState
from cloudevents_kafka.testing import LocalBroker
from tests.spark.pipeline.conftest import QUICK, hidden_spark
from tests.spark.pipeline.lake import create, produce
from tests.support.samples import one_in

ERRORS = (
    Py4JError("An error occurred while calling o42.isActive"),
    Py4JNetworkError("Answer from Java side is empty"),
    ConnectionRefusedError(111, "Connection refused"),
    ConnectionResetError(104, "Connection reset by peer"),
    OSError(9, "Bad file descriptor"),
    EOFError(),
    AttributeError("'NoneType' object has no attribute 'sc'"),
    TypeError("'JavaPackage' object is not callable"),
    RuntimeError("Cannot call methods on a stopped SparkContext"),
)
STEPS = ("connect", "tasks", "admin", "describe", "start", "isActive", "exception", "recentProgress", "stop")


class Process:
    """A killed Java process; `poll` notices its end after `wait`, or never."""

    def __init__(self, *, dies: bool) -> None:
        self._dies = dies
        self._dead = False
        self.stdin = SimpleNamespace(close=lambda: None)

    def poll(self) -> int | None:
        return -9 if self._dead else None

    def wait(self, seconds: float | None = None) -> int:
        if not self._dies:
            raise TimeoutExpired("java", seconds or 0)
        self._dead = True
        return -9

    def kill(self) -> None:
        self._dies = True


class Java:
    """A fake Spark in which one call of Java raises an error."""

    def __init__(self, step: str, error: Exception, *, dies: bool = True) -> None:
        self._step = step
        self._raised = error
        self.gateway = SimpleNamespace(proc=Process(dies=dies), shutdown=lambda: None)
        self.id = "query"

    def at(self, step: str, value: Any = None) -> Any:
        if step == self._step:
            raise self._raised
        return value

    # What the pipeline uses of a session, of a query, and of the brokers.
    sparkContext = property(lambda self: self.at("tasks", SimpleNamespace(defaultParallelism=1)))  # noqa: N815
    isActive = property(lambda self: self.at("isActive", False))  # noqa: N815
    _jsq = property(lambda self: self)

    def recentProgress(self) -> Any:  # noqa: N802
        return self.at("recentProgress", [])

    def exception(self) -> Any:
        return self.at("exception", RuntimeError("why") if self._step == "callback" else None)

    def stop(self) -> None:
        self.at("stop")

    def describe(self, topics: Any, landed: Any, timeout: float) -> dict[str, TopicState | None]:
        return self.at("describe", {topic: TopicState("A", {}) for topic in topics})

    def close(self) -> None:
        pass


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Java], Java]]:
    """Return a function that replaces Spark by a fake; the session of other tests is hidden from it."""

    def put(made: Java) -> Java:
        def query(self: Any) -> Java:
            self._unreported = {0: None}
            if made._step == "callback":
                self._error = made._raised
            return made.at("start", made)

        monkeypatch.setattr(_event_pipeline, "check_reachable", lambda _: None)
        monkeypatch.setattr(_session, "_launch", lambda *_: made.gateway)
        monkeypatch.setattr(_session, "_connect", lambda *_: made.at("connect", made))
        monkeypatch.setattr(_event_pipeline, "KafkaAdmin", lambda *_: made.at("admin", made))
        monkeypatch.setattr(_stream.Stream, "_start_query", query)
        return made

    with hidden_spark():
        yield put


@pytest.mark.parametrize("error", one_in(4, ERRORS), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step", [*STEPS, "callback"])
def test_any_error_at_any_call(
    java: Callable[[Java], Java], tmp_path: Path, step: str, error: Exception
) -> None:
    """Any error of any call is reported as the end of Java if the process has died."""
    java(Java(step, error))
    done = CliRunner().invoke(app, ["pipeline", "-b", "b:1", "-t", "t", "-o", str(tmp_path), "--once"])
    assert done.exit_code == 3, done.output
    assert "Java process ended in the middle of its work" in done.output
    assert "start again" in done.output


@pytest.mark.parametrize("error", [error for error in ERRORS if not isinstance(error, Py4JNetworkError)])
def test_errors_of_a_living_java(java: Callable[[Java], Java], tmp_path: Path, error: Exception) -> None:
    """An error with another cause is not changed."""
    java(Java("isActive", error, dies=False))
    options = PipelineOptions(bootstrap_servers="b:1", topics=("t",), out=str(tmp_path), once=True)
    with pytest.raises(type(error)) as caught:
        EventPipeline(options).run()
    assert caught.value is error


def test_errors_of_the_pipeline_stay(java: Callable[[Java], Java], tmp_path: Path) -> None:
    """An error of the pipeline itself is not replaced by the end of Java."""
    java(Java("callback", PipelineFailed("disk full")))
    options = PipelineOptions(bootstrap_servers="b:1", topics=("t",), out=str(tmp_path), once=True)
    with pytest.raises(PipelineFailed, match="disk full"):
        EventPipeline(options).run()


def test_java_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If Java is killed while it starts, the error has the end of its log."""

    def launch(*_: Any) -> Any:
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    log = tmp_path / "log"
    log.write_text("a warning\n")
    with pytest.raises(SparkFailed, match=r"did not start \(Answer from Java side is empty\).*\na warning"):
        _session._launch({}, log)


def run_killed(broker: LocalBroker, topic: str, out: Path, at: int, moment: str) -> tuple[int, str]:
    """Run a pipeline whose Java is killed at a call; return exit code and stderr."""
    where = ("-b", broker.bootstrap_servers, "-t", topic, "-o", str(out))
    program = [sys.executable, str(Path(__file__).with_name("killer.py")), str(at), moment]
    command = [*program, "pipeline", *where, "--once", "--max-records", "30", *QUICK]
    # A killed Spark leaves the folder artifacts where it runs.
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, cwd=out.parent)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def topic(kafka_broker: LocalBroker) -> str:
    name = create(kafka_broker, "java-dies")
    produce(kafka_broker, name, 60)
    return name


# A run calls Java more than 5,000 times: to start Spark, for each batch, and while it waits.
_MOMENTS = [(number, ("before", "after")[number % 2]) for number in range(11, 4900, 97)]


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.long
@pytest.mark.release  # test_soak is its sample
def test_killed_at_many_calls(kafka_broker: LocalBroker, topic: str, tmp_path: Path) -> None:
    """A killed Java ends the run with the sentence and code 3; the next run continues."""
    out = tmp_path / "lake"
    died = 0
    for at, moment in _MOMENTS:
        code, stderr = run_killed(kafka_broker, topic, out, at, moment)
        assert "Traceback" not in stderr, (at, moment, stderr)
        # A run with less to do may end before that call, or be about to end: then all records must
        # have landed.
        assert code == 3 or (code == 0 and "Java process" not in stderr), (at, moment, stderr)
        died += code == 3
        assert code == 0 or "Java process ended in the middle of its work" in stderr, (at, moment, stderr)
        if code == 0:
            check_whole(out)
            out = out.with_name(f"after-{at}")
    assert died > len(_MOMENTS) / 2
    code, stderr = run_killed(kafka_broker, topic, out, 0, "never")
    assert code == 0, stderr
    check_whole(out)


def check_whole(out: Path) -> None:
    offsets = ds.dataset(out / "events").to_table(["offset"]).to_pydict()["offset"]
    assert sorted(offsets) == list(range(60))
