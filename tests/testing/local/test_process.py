"""A program under the watchdog never outlives the process that started it."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from cloudevents_kafka.testing.local import Process, tail

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(100)"]


def test_runs_and_ends(tmp_path, watch):
    """A program's output is appended to the log, and `terminate` ends it."""
    process = Process(SLEEP, log=tmp_path / "log")
    assert watch.eventually(lambda: process.tail() == "up")
    assert process.exit_code is None
    process.terminate()
    assert process.exit_code == 128 + signal.SIGTERM
    assert not watch.is_alive(process.pid)


def test_kill(tmp_path, watch):
    """`kill` sends SIGKILL, also to a program that ignores SIGTERM."""
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn += "; print('up', flush=True); time.sleep(100)"
    process = Process([sys.executable, "-c", stubborn], log=tmp_path / "log")
    assert watch.eventually(lambda: process.tail() == "up")
    process.terminate(0.2)
    process.kill()
    assert process.exit_code == 128 + signal.SIGKILL
    assert not watch.is_alive(process.pid)


def test_ends_by_itself(tmp_path, watch):
    """A process has the exit code of its program."""
    process = Process([sys.executable, "-c", "import sys; sys.exit('all is lost')"], log=tmp_path / "log")
    assert watch.eventually(lambda: process.exit_code == 1)
    assert process.tail() == "all is lost"
    process.terminate()


def test_no_such_program(tmp_path, watch):
    """A program that cannot be started has the exit code 127, and its error in the log."""
    process = Process([str(tmp_path / "nothing")], log=tmp_path / "log")
    assert watch.eventually(lambda: process.exit_code == 127)
    assert "nothing" in process.tail()


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
    time.sleep(100)
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_parent_ends(tmp_path, python, watch, name):
    """However the parent ends, the program ends and the folder is removed."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with python(PARENT.format(folder=str(folder))) as parent:
        pid, watchdog = map(int, parent.stdout.readline().split())
        os.killpg(parent.pid, getattr(signal, name))
        parent.wait()
    assert watch.eventually(lambda: not watch.is_alive(pid) and not watch.is_alive(watchdog))
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent's life")
def test_watchdog_killed(tmp_path, watch):
    """If the watchdog is killed, the kernel ends the program."""
    process = Process(SLEEP, log=tmp_path / "log")
    assert watch.eventually(lambda: process.tail() == "up")
    os.kill(process._watchdog.pid, signal.SIGKILL)
    assert watch.eventually(lambda: not watch.is_alive(process.pid))
    assert process.exit_code is not None


def test_tail(tmp_path):
    """`tail` returns the last lines of any bytes, and an empty string for a missing file."""
    log = tmp_path / "log"
    assert tail(log) == ""
    log.write_bytes(b"1\n2\n\xff\n")
    assert tail(log, 2) == "2\n\ufffd"
