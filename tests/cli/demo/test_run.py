"""The demo: its checks and its report, and as users run it: all checks pass, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloudevents_kafka.cli.demo.run import Outcome, format_report, read_rows, run_checks
from cloudevents_kafka.cli.demo.traffic import TrafficCounts
from cloudevents_kafka.spark.pipeline import BatchCounts, PartitionCounts, Summary

SECONDS = 200.0


def consistent_results(folder: Path) -> tuple[TrafficCounts, TrafficCounts, Summary]:
    """Return results for which all checks pass, and write their table."""
    sent = TrafficCounts(events=Counter({("t", "binary"): 2}), others=Counter({("batch", "a batch"): 1}))
    back = TrafficCounts(
        events=Counter({("t", "binary"): 2}),
        others=Counter({("batch", "why"): 1}),
        payloads={(0, 0): ("1", b"x"), (0, 1): ("2", None)},
    )
    counts = BatchCounts(
        read=3,
        events=2,
        quarantined=1,
        by_type={"t": {"binary": 2}},
        by_reason={"batch": {"why": 1}},
        offsets={"shop": {"0": PartitionCounts(0, 2, 3)}},
    )
    (folder / "events").mkdir()
    rows = {"partition": [0, 0], "offset": [0, 1], "id": ["1", "2"], "data": [b"x", None]}
    pq.write_table(pa.table(rows), folder / "events" / "a.parquet")
    summary = Summary(
        topics=("shop",),
        events_table="",
        quarantine_table="",
        checkpoint="",
        batches=1,
        recovered=None,
        complete=True,
        seconds=1.0,
        counts=counts,
        total=counts,
    )
    return sent, back, summary


def test_consistent_results_pass(tmp_path: Path) -> None:
    """All checks pass for consistent results."""
    checks = run_checks(*consistent_results(tmp_path), tmp_path)
    assert [str(check) for check in checks if not check.passed] == []
    assert {str(check)[:8] for check in checks} == {"ok      "}


def test_differences_are_found(tmp_path: Path) -> None:
    """A lost event, a changed byte and a duplicate row fail a check that shows the difference."""
    sent, back, summary = consistent_results(tmp_path)
    sent.events["t", "structured avro"] += 1
    back.payloads[0, 1] = ("2", b"")
    failed = [str(check) for check in run_checks(sent, back, summary, tmp_path) if not check.passed]
    assert len(failed) == 4
    assert failed[0].endswith(": expected 4, got 3")
    assert "('t', 'structured avro'): expected 1, got none" in failed[1]
    assert "(0, 1): expected ('2', b''), got ('2', None)" in failed[3]
    duplicate = tmp_path / "events" / "b.parquet"
    duplicate.write_bytes((tmp_path / "events" / "a.parquet").read_bytes())
    assert len(read_rows(tmp_path / "events")) == 4


def outcome(folder: Path, lost: int = 0) -> Outcome:
    sent, back, summary = consistent_results(folder)
    sent.events["t", "binary"] += lost
    return Outcome(sent, back, summary, run_checks(sent, back, summary, folder), [], 1.2)


def test_report_of_passed_checks(tmp_path: Path) -> None:
    """The report has the tables and the checks; the last line has numbers that agree with their nouns."""
    text = format_report(outcome(tmp_path))
    assert ["t", "2", "0", "0", "2", "2", "2"] in [line.split() for line in text.splitlines()]
    assert text.count("\n  ok      ") == 6
    assert text.splitlines()[-1] == (
        "All checks passed in 1 s: 3 records were sent, read back, and written to tables "
        "in 1 batch (0 with a key, 0 events without data)."
    )


def test_report_of_failed_checks(tmp_path: Path) -> None:
    """The last line has the number of failed checks."""
    text = format_report(outcome(tmp_path, lost=1))
    assert "\n  FAILED  4 records sent = 2 events + 1 quarantined: expected 4, got 3\n" in text
    assert text.splitlines()[-1] == "3 of 6 checks failed, see above."


class Demo:
    """A process of the demo; a mark in its environment identifies it and its children."""

    def __init__(self, *options: str, folder: Path) -> None:
        self.mark = f"CE_KAFKA_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        env = {**os.environ, name: value, "TMPDIR": str(folder)}
        argv = [sys.executable, "-c", "from cloudevents_kafka.cli import main; main()", "demo", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, env=env, stdout=pipe, stderr=pipe, text=True, cwd=folder.parent)

    def wait_for(self, words: str) -> None:
        assert self.process.stderr is not None
        for line in iter(self.process.stderr.readline, ""):
            if words in line:
                return
        pytest.fail(f"stderr does not contain {words!r}")

    def end(self) -> tuple[int, str, str]:
        output, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, output, errors

    def left(self) -> list[str]:
        """Return the processes that are left after at most 5 seconds."""
        deadline = time.monotonic() + 5
        while (found := self._marked()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return found

    def _marked(self) -> list[str]:
        listed = subprocess.run(["ps", "axeww"], capture_output=True, text=True, errors="replace", check=True)
        return [line for line in listed.stdout.splitlines() if self.mark in line]


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[list[Demo]]:
    """A list of demos that are killed at the end of the test."""
    started: list[Demo] = []
    yield started
    for demo in started:
        if demo.process.poll() is None:
            demo.process.kill()
            demo.process.communicate()


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.release
def test_checks_pass_and_no_process_is_left(tmp_path: Path, demos: list[Demo]) -> None:
    """A small demo passes its checks and leaves its tables, but no process."""
    out = tmp_path / "out"
    demos.append(demo := Demo("--count", "150", "--out", str(out), folder=tmp_path))
    code, output, errors = demo.end()
    assert code == 0, output + errors
    assert "All checks passed in " in output
    assert output.count("  ok  ") == 6
    assert "  FAILED" not in output
    assert str(out / "events") in output
    assert {path.name for path in out.iterdir()} >= {"events", "quarantine"}
    assert "batch 0: " in errors
    assert demo.left() == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_ctrl_c_leaves_no_process(tmp_path: Path, demos: list[Demo]) -> None:
    """Ctrl-C while Spark starts stops Kafka, Spark and the demo, and deletes their folders."""
    demos.append(demo := Demo("--count", "50", folder=tmp_path))
    demo.wait_for("starting Spark")
    time.sleep(2)
    demo.process.send_signal(signal.SIGINT)
    code, output, errors = demo.end()
    assert code == 130, output + errors
    assert "Traceback" not in errors
    assert demo.left() == []
    assert list(tmp_path.iterdir()) == []
