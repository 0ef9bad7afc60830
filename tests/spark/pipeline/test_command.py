"""The options of ``cloudevents-kafka pipeline`` are those of the pipeline, or an error of usage."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.cli.commands import _pipeline_console
from cloudevents_kafka.cli.commands import pipeline as command
from cloudevents_kafka.spark import pipeline

if TYPE_CHECKING:
    from cloudevents_kafka.spark.pipeline import PipelineOptions
    from cloudevents_kafka.testing import LocalBroker

pytestmark = pytest.mark.spark


def run(
    monkeypatch: pytest.MonkeyPatch,
    *options: str,
    error: Exception | None = None,
    once: bool = True,
    send: int | None = None,
    source: tuple[str, str] | None = None,
) -> Any:
    """Return the result of the command and the options of the pipeline that it made.

    With ``source``, brokers and a topic, the brokers are asked for the topic.
    """
    made: list[PipelineOptions] = []

    class Fake:
        def __init__(self, options: PipelineOptions, **_: Any) -> None:
            made.append(options)

        def run(self, **_: Any) -> pipeline.Summary:
            if error is not None:
                raise error
            if send is not None:
                signal.raise_signal(send)
            counts = pipeline.BatchCounts(read=3, events=3, routed={"orders": 2})
            return pipeline.Summary(
                topics=("t",),
                events_table="o/events",
                quarantine_table="o/quarantine",
                checkpoint="o/_checkpoint",
                batches=1,
                recovered=None,
                complete=True,
                seconds=1.0,
                counts=counts,
                total=counts,
                tables={"events": "o/events", "orders": "o/orders", "quarantine": "o/quarantine"},
            )

    monkeypatch.setattr(pipeline, "EventPipeline", Fake)
    if source is None:
        monkeypatch.setattr(command, "_refuse_unknown_topics", lambda *_: None)
    brokers, topic = source or ("b:1", "t")
    done = CliRunner().invoke(
        app, ["pipeline", "-b", brokers, "-t", topic, "-o", "o", *["--once"] * once, *options]
    )
    return done, made


def test_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns are in the order of the command line, and may have an equals sign."""
    done, made = run(monkeypatch, "--route", "a=b.*=orders", "--route", "x.*=others", "--to", "delta")
    assert done.exit_code == 0, done.output
    assert list(made[0].tables.items()) == [("a=b.*", "orders"), ("x.*", "others")]
    assert re.search(r"orders +2\n", done.output)
    assert "o/orders" in done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--route", "x"], "--route must be TYPES=TABLE, such as com.example.order.*=orders, got 'x'"),
        (["--route", "x=a", "--route", "x=b"], "--route must have each pattern once, got 'x' again"),
        (["--threshold", "lag>many"], "a threshold must be quarantine>SHARE%/WINDOW or lag>LIMIT"),
        (["--metrics-port", "all"], "metrics_port must be PORT or HOST:PORT"),
        (["--group", ""], "group must be the name of a consumer group"),
        (["--route", "x=_batches"], "the name of a table must be"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(monkeypatch: pytest.MonkeyPatch, options: list[str], words: str) -> None:
    """Wrong tables and topics are refused before Spark starts."""
    done, made = run(monkeypatch, *options)
    assert (done.exit_code, made) == (2, [])
    assert words in done.output


def test_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures, a group and thresholds are the options of the pipeline."""
    options = (
        "--metrics-file",
        "m.jsonl",
        "--group",
        "g",
        "--threshold",
        "lag>5m:end",
        "--threshold",
        "lag>9",
    )
    done, made = run(monkeypatch, *options)
    assert done.exit_code == 0, done.output
    assert (made[0].metrics_file, made[0].metrics_port, made[0].group) == ("m.jsonl", None, "g")
    assert made[0].thresholds == tuple(map(pipeline.Threshold.parse, ("lag>5m:end", "lag>9")))


def test_port_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that Prometheus reads is on stderr."""
    made: list[PipelineOptions] = []

    class Fake:
        metrics_url = "http://127.0.0.1:1/metrics"

        def __init__(self, options: PipelineOptions, **_: Any) -> None:
            made.append(options)

        def start(self) -> Fake:
            return self

        def run(self, **_: Any) -> pipeline.Summary:
            raise pipeline.ThresholdCrossed("topic t is behind")

    monkeypatch.setattr(pipeline, "EventPipeline", Fake)
    monkeypatch.setattr(command, "_refuse_unknown_topics", lambda *_: None)
    arguments = ["pipeline", "-b", "b:1", "-t", "t", "-o", "o", "--metrics-port", "0"]
    done = CliRunner().invoke(app, arguments)
    assert made[0].metrics_port == "0"
    assert "metrics: http://127.0.0.1:1/metrics\n" in done.stderr
    assert done.stderr.endswith("cloudevents-kafka: topic t is behind\n")
    assert done.exit_code == 4


def test_wrong_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that cannot take the rows is wrong usage."""
    done, _ = run(monkeypatch, error=pipeline.WrongTable("the table t must have the column c"))
    assert done.exit_code == 2
    assert "the table t must have the column c" in done.output


@pytest.mark.parametrize(("final", "code"), [(False, 3), (True, 2)])
def test_failures(monkeypatch: pytest.MonkeyPatch, code: int, *, final: bool) -> None:
    """A failure that a new start does not mend is wrong usage, any other one is of Spark or the brokers."""
    done, _ = run(monkeypatch, error=pipeline.PipelineFailed("a failure", final=final))
    assert done.exit_code == code
    assert "a failure" in done.output


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals(monkeypatch: pytest.MonkeyPatch, number: int, code: int) -> None:
    """Ctrl-C is the normal end of a continuous run, which prints its summary; SIGTERM has its exit code."""
    done, _ = run(monkeypatch, once=False, send=number)
    assert done.exit_code == code
    assert "3 records read" in done.output


def test_continuous_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each batch has a line with the time, and writes the summary; a quiet minute has the state."""
    path = tmp_path / "summary.json"
    written: list[bool] = []
    counts = pipeline.BatchCounts(read=3, events=3)

    class Fake:
        def __init__(self, options: PipelineOptions, *, report: Any, warn: Any) -> None:
            self._report = report

        def run(self, *, stop: Any) -> pipeline.Summary:
            self._report(
                pipeline.BatchProgress(number=4, counts=counts, behind=9, lags={"t[0]": 2, "t[1]": 7})
            )
            written.append(path.exists())
            stop()
            return self.summary()

        def status(self) -> str:
            return "waiting for records, 0 behind"

        def summary(self) -> pipeline.Summary:
            return pipeline.Summary(
                topics=("t",),
                events_table="e",
                quarantine_table="q",
                checkpoint="c",
                batches=1,
                recovered=None,
                complete=False,
                seconds=1.0,
                counts=counts,
                total=counts,
            )

    monkeypatch.setattr(pipeline, "EventPipeline", Fake)
    monkeypatch.setattr(command, "_refuse_unknown_topics", lambda *_: None)
    monkeypatch.setattr(_pipeline_console, "_HEARTBEAT_SECONDS", -1.0)
    arguments = ["pipeline", "-b", "b:1", "-t", "t", "-o", "o", "--summary-json", str(path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    time = r"\d\d:\d\d:\d\dZ "
    assert re.search(time + r"batch 4: 3 read = .* 9 behind \(most t\[1\]: 7\)\n", done.stderr)
    assert re.search(time + r"waiting for records, 0 behind\n", done.stderr)
    assert written == [True]
    assert json.loads(path.read_text())["tally"]["read"] == 3
    assert list(tmp_path.iterdir()) == [path]


def test_help() -> None:
    """The help names all kinds of tables."""
    text = " ".join(CliRunner().invoke(app, ["pipeline", "--help"]).output.split())
    assert "[parquet|delta|iceberg]" in text
    assert "exactly once" in text
    assert "Parquet tables" not in text


@pytest.mark.broker
def test_an_unknown_topic_is_refused_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, kafka_broker: LocalBroker, kafka_topic: str
) -> None:
    """A topic that does not exist is an error with a near name before Spark starts; one that does is read."""
    servers = kafka_broker.bootstrap_servers
    done, made = run(monkeypatch, source=(servers, f"{kafka_topic}x"))
    assert (done.exit_code, made) == (2, [])
    assert re.search(rf"topic \S+ does not exist: .*; did you mean '{kafka_topic}'", done.stderr)
    done, made = run(monkeypatch, source=(servers, kafka_topic))
    assert (done.exit_code, len(made)) == (0, 1)
    assert done.stderr.endswith("Z starting Spark, which takes some seconds\n")


def test_a_broker_that_refuses_connections_is_reported_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If nothing listens at the address, Spark is not started; exit code 3, and the address."""
    done, made = run(monkeypatch, source=("127.0.0.1:1", "t"))
    assert (done.exit_code, made) == (3, [])
    assert "broker 127.0.0.1:1 refuses connections: " in done.stderr


def test_missing_options_are_reported_together() -> None:
    """The topic, the folder and the broker are in one message."""
    done = CliRunner().invoke(app, ["pipeline"])
    assert done.exit_code == 2
    assert all(name in done.stderr for name in ("-t TOPIC", "--out DIR", "-b host:port"))


def test_quiet_runs_print_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --quiet nothing is printed before the summary."""
    assert run(monkeypatch, "--quiet")[0].stderr == ""
