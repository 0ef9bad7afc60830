"""A program under the watchdog never outlives the process that started it."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from cloudevents_kafka.testing.local import Process, tail
from tests.testing.local.programs import eventually, is_alive, python

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(100)"]


def test_runs_and_ends(tmp_path):
    """A program's output is appended to the log, and `terminate` ends it."""
    process = Process(SLEEP, log=tmp_path / "log")
    assert eventually(lambda: tail(tmp_path / "log") == "up")
    assert process.exit_code is None
    process.terminate()
    assert process.exit_code == 128 + signal.SIGTERM
    assert not is_alive(process.pid)


def test_kill(tmp_path):
    """`kill` sends SIGKILL, also to a program that ignores SIGTERM."""
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn += "; print('up', flush=True); time.sleep(100)"
    process = Process([sys.executable, "-c", stubborn], log=tmp_path / "log")
    assert eventually(lambda: tail(tmp_path / "log") == "up")
    process.terminate(0.2)
    process.kill()
    assert process.exit_code == 128 + signal.SIGKILL
    assert not is_alive(process.pid)


def test_ends_by_itself(tmp_path):
    """A process has the exit code of its program."""
    process = Process([sys.executable, "-c", "import sys; sys.exit('all is lost')"], log=tmp_path / "log")
    assert eventually(lambda: process.exit_code == 1)
    assert tail(tmp_path / "log") == "all is lost"
    process.terminate()


def test_no_such_program(tmp_path):
    """A program that cannot be started has the exit code 127, and its error in the log."""
    process = Process([str(tmp_path / "nothing")], log=tmp_path / "log")
    assert eventually(lambda: process.exit_code == 127)
    assert "nothing" in tail(tmp_path / "log")


def test_starts_in_threads(tmp_path):
    """Programs can be started from several threads at once."""
    processes: list[Process] = []
    threads = [
        threading.Thread(target=lambda n=n: processes.append(Process(SLEEP, log=tmp_path / str(n))))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({process.pid for process in processes}) == 4
    for process in processes:
        process.kill()


PARENT = """
    import sys, time
    from pathlib import Path
    from cloudevents_kafka.testing.local import Process
    folder = Path({folder!r})
    sleep = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(100)"]
    process = Process(sleep, log=folder / "log", remove=folder)
    print(process.pid, process._watchdog.pid, flush=True)
    while True:
        time.sleep(0.1)  # a signal that arrives just before a sleep has its effect after it
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_parent_ends(tmp_path, name):
    """However the parent ends, the program ends and the folder is removed."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with python(PARENT.format(folder=str(folder))) as parent:
        pid, watchdog = map(int, parent.stdout.readline().split())
        os.killpg(parent.pid, getattr(signal, name))
        parent.wait()
    assert eventually(lambda: not is_alive(pid) and not is_alive(watchdog))
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent's life")
def test_watchdog_killed(tmp_path):
    """If the watchdog is killed, the kernel ends the program."""
    process = Process(SLEEP, log=tmp_path / "log")
    assert eventually(lambda: tail(tmp_path / "log") == "up")
    os.kill(process._watchdog.pid, signal.SIGKILL)
    assert eventually(lambda: not is_alive(process.pid))
    # The kernel ends the program before the watchdog has an exit code.
    assert eventually(lambda: process.exit_code is not None)


def test_tail(tmp_path):
    """`tail` returns the last lines of any bytes, and an empty string for a missing file."""
    log = tmp_path / "log"
    assert tail(log) == ""
    log.write_bytes(b"1\n" + b"2\n" * 24 + b"\xff\n")
    assert tail(log) == "2\n" * 24 + "\ufffd"
