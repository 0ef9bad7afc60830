"""What becomes of a command whose stdin, stdout or stderr is closed, or cannot be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.calling import start

FULL = Path("/dev/full")
TALKING = [
    ["--help"],
    ["--version"],
    ["decode", "--help"],
    ["decode", "--key", "x"],
    ["decode", "--key", "x", "-o", "json"],
    ["protocol", "grammar"],
    ["protocol", "sizes"],
    ["protocol", "decode", "--hex", "0000000a00120000000000070000"],
    ["consume", "--show-config", "-b", "x:1"],
    ["conformance", "--clause", "K-07"],
]


def without(words, *closed, given=b""):
    """Run a command with some of its streams closed."""

    def close():
        for number in closed:
            os.close(number)

    return subprocess.run(
        [sys.executable, "-m", "cloudevents_kafka", *words],
        input=given,
        capture_output=True,
        check=False,
        timeout=60,
        preexec_fn=close,
    )


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("words", TALKING, ids=" ".join)
def test_stdout_cannot_be_written(words, buffered):
    """A full disk is told, in one sentence, and is bad usage, whether or not Python writes at once."""
    env = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with FULL.open("wb") as full, start(*words, stdin=subprocess.DEVNULL, stdout=full, env=env) as process:
        told = process.stderr.read().decode()
    assert process.returncode == 2, told
    assert "No space left on device" in told
    assert "Traceback" not in told
    assert "Exception ignored" not in told


@pytest.mark.parametrize("words", TALKING, ids=" ".join)
def test_stdout_is_closed(words):
    """The same of no stdout at all."""
    done = without(words, 1)
    told = done.stderr.decode()
    assert done.returncode == 2, told
    assert "Bad file descriptor" in told
    assert "Traceback" not in told
    assert "Exception ignored" not in told


def test_what_writes_nothing_needs_no_stdout(tmp_path):
    """A command that has nothing to write is content without stdout, and writes into no other file."""
    value = tmp_path / "value"
    done = without(["protocol", "sizes", "--picture", str(value), "--histogram"], 1)
    assert b"cannot write the output: Bad file descriptor" in done.stderr
    assert value.read_text().endswith("</svg>\n")
    done = without(["produce", "-b", "127.0.0.1:1"], 1)
    assert (done.returncode, done.stderr) == (0, b"")


READING = [
    ["decode"],
    ["protocol", "decode"],
    ["produce", "-b", "127.0.0.1:1"],
    ["produce", "-b", "127.0.0.1:1", "-t", "t", "--data-file", "-", "--source", "/", "--type", "t"],
    ["protocol", "produce", "127.0.0.1:1", "t"],
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_stdin_is_closed(words):
    """Without stdin, what would be read from it is bad usage."""
    done = without(words, 0)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot read stdin: Bad file descriptor" in done.stderr
    assert b"Traceback" not in done.stderr


def test_stderr_is_closed_or_full():
    """Where nothing can be said, the exit code is the same, and stdout has what is for it only."""
    given = b'{"key":"x"}\n'
    whole = without(["decode", "-o", "json"], given=given)
    silent = without(["decode", "-o", "json"], 2, given=given)
    assert (silent.returncode, silent.stdout) == (1, whole.stdout)
    assert without(["decode", "/not/there"], 2).returncode == 2
    assert without(["decode", "/not/there"], 0, 1, 2).returncode == 2
    with FULL.open("wb") as full, start("decode", "/not/there", stderr=full) as process:
        assert process.communicate()[0] == b""
    assert process.returncode in {1, 2}
