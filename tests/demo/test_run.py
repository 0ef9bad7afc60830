"""The demo as users run it: all checks pass, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

SECONDS = 200.0


class Demo:
    """A process of the demo; a mark in its environment identifies it and its children."""

    def __init__(self, *options: str, folder: Path) -> None:
        self.mark = f"CE_KAFKA_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        env = {**os.environ, name: value, "TMPDIR": str(folder)}
        argv = [sys.executable, "-c", "from cloudevents_kafka.cli import main; main()", "demo", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, env=env, stdout=pipe, stderr=pipe, text=True)

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
