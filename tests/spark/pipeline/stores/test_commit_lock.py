"""One commit at a time to a table in a local folder, and no wait without an end."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from cloudevents_kafka.spark.pipeline.stores import FolderFailed, _commit_lock, commit_lock

HOLD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_commits_of_threads_do_not_overlap(tmp_path: Path) -> None:
    """Of eight threads that commit to one table, one is in its commit at a time."""
    inside, most = [0], [0]

    def commit() -> None:
        for _ in range(20):
            with commit_lock(f"file://{tmp_path}"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=commit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_commit_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that keeps the lock ends the wait with an error, and one that dies frees the table."""
    monkeypatch.setattr(_commit_lock, "_COMMIT_SECONDS", 0.1)
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(FolderFailed, match="must be free for a commit, but another process"),
            ExitStack() as own,
        ):
            own.enter_context(commit_lock(str(tmp_path)))
        holder.kill()
    with commit_lock(str(tmp_path)):
        pass


def test_a_store_without_folders_has_no_lock() -> None:
    """A table in an object store, and one that does not exist, need none."""
    with commit_lock("s3a://lake/events"), commit_lock("/no/such/folder"):
        pass
