"""Shared by the tests of local programs: processes observed from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import pytest


def is_alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return (
            stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
            if stat.parent.parent.exists()
            else True
        )
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(condition, seconds=15.0):
    """Wait until a condition is true; return whether it was in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


@contextmanager
def _python(source):
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield program
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
        program.stderr.close()


@pytest.fixture
def python():
    """Run a Python program in a session of its own."""
    return _python


@pytest.fixture
def watch():
    """The functions that observe processes."""

    class Watch:
        is_alive = staticmethod(is_alive)
        eventually = staticmethod(eventually)

    return Watch
