"""Commands whose stdin, stdout or stderr is closed or cannot be written."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import is_zipfile

import pytest

from cloudevents_kafka.cli.terminal.streams import Progress, standard_streams
from tests.cli.command_line import start
from tests.support.cases import each
from tests.support.samples import one_in

FULL = Path("/dev/full")
PRINTING = [
    ["--help"],
    ["--version"],
    ["decode", "--help"],
    ["decode", "--key", "x"],
    ["decode", "--key", "x", "-o", "json"],
    ["protocol", "grammar"],
    ["protocol", "decode", "--hex", "0000000a00120000000000070000"],
    ["consume", "--show-config", "-b", "x:1"],
]


def without(words, *closed, stdin=b""):
    """Run a command with some of its streams closed."""

    def close():
        for number in closed:
            os.close(number)

    return subprocess.run(
        [sys.executable, "-m", "cloudevents_kafka", *words],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        preexec_fn=close,
    )


@each("buffered", [True, False])
@pytest.mark.parametrize("words", one_in(3, PRINTING), ids=" ".join)
def test_stdout_is_full(words, buffered):
    """A full disk is one error and bad usage, with buffered and unbuffered output."""
    env = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with FULL.open("wb") as full, start(*words, stdin=subprocess.DEVNULL, stdout=full, env=env) as process:
        errors = process.stderr.read().decode()
    assert process.returncode == 2, errors
    assert "No space left on device" in errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


@pytest.mark.parametrize("words", one_in(3, PRINTING), ids=" ".join)
def test_stdout_is_closed(words):
    """A closed stdout is one error and bad usage."""
    result = without(words, 1)
    errors = result.stderr.decode()
    assert result.returncode == 2, errors
    assert "Bad file descriptor" in errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


def test_a_closed_stdout_without_output(tmp_path):
    """A command without output succeeds, and none writes into another file."""
    value = tmp_path / "value.zip"
    result = without(["spark-zip", str(value)], 1)
    assert b"cannot write the output: Bad file descriptor" in result.stderr
    assert is_zipfile(value)
    result = without(["produce", "-b", "127.0.0.1:1"], 1)
    assert (result.returncode, result.stderr) == (0, b"")


READING = [
    ["decode"],
    ["protocol", "decode"],
    ["produce", "-b", "127.0.0.1:1"],
    ["produce", "-b", "127.0.0.1:1", "-t", "t", "--data-file", "-", "--source", "/", "--type", "t"],
    ["protocol", "produce", "-b", "127.0.0.1:1", "t"],
]


@pytest.mark.parametrize("words", one_in(2, READING), ids=" ".join)
def test_stdin_is_closed(words):
    """Reading from a closed stdin is bad usage."""
    result = without(words, 0)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"cannot read stdin: Bad file descriptor" in result.stderr
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize("buffered", [True, pytest.param(False, marks=pytest.mark.release)])
def test_stderr_is_closed_or_full(monkeypatch, buffered):
    """Without stderr the exit code and stdout are the same, with buffered and unbuffered output."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if buffered else "1")
    stdin = b'{"key":"x"}\n'
    whole = without(["decode", "-o", "json"], stdin=stdin)
    silent = without(["decode", "-o", "json"], 2, stdin=stdin)
    assert (silent.returncode, silent.stdout) == (1, whole.stdout)
    assert without(["decode", "/not/there"], 2).returncode == 2
    assert without(["decode", "/not/there"], 0, 1, 2).returncode == 2
    with FULL.open("wb") as full, start("decode", "/not/there", stderr=full) as process:
        assert process.communicate()[0] == b""
    assert process.returncode in {1, 2}


def test_an_unbuffered_stdout_stays_open(monkeypatch, tmp_path):
    """A program that calls a command, and then sets its own stdout again, can write to this stdout."""
    path = tmp_path / "out"
    with path.open("wb") as file:  # as Python does with stdout
        raw = io.FileIO(file.fileno(), "w", closefd=False)
        stdout = io.TextIOWrapper(raw, "utf-8", write_through=True)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            with standard_streams():
                sys.stdout.write("in the command\n")
        stdout.write("after it\n")
    assert path.read_text() == "in the command\nafter it\n"


def test_a_count_agrees_with_its_noun(monkeypatch):
    """One record is not several; ``delivered`` has one form."""
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    stderr.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    for label in ("records", "delivered"):
        with Progress(label) as progress:
            for done in (1, 2000):
                progress._updated = float("-inf")
                progress.update(done)
    shown = re.findall(r"\r([^\r\x1b]+)", stderr.getvalue())
    assert shown == ["1 record", "2,000 records", "1 delivered", "2,000 delivered"]
