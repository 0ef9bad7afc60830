"""Local programs, observed from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path


def is_alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc").exists()  # macOS


def eventually(condition, seconds=15.0):
    """Wait until a condition is true; return whether it was in time."""
    deadline = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return result


@contextmanager
def python(source):
    """Run a Python program in a session of its own."""
    argv = [sys.executable, "-c", textwrap.dedent(source)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as program:
        try:
            yield program
        finally:
            program.kill()
