"""What the tests of local programs share: looking after processes from outside."""

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
    """Say whether a process runs; one that ended and was not collected does not."""
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


def eventually(holds, seconds=15.0):
    """Wait until something holds; give whether it did in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
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
    """Run a Python program as another user of the library would, in a session of its own."""
    return _python


@pytest.fixture
def watch():
    """The two ways of looking at processes."""

    class Watch:
        is_alive = staticmethod(is_alive)
        eventually = staticmethod(eventually)

    return Watch
