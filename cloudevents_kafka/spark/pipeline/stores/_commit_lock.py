"""`commit_lock` allows only one commit at a time to a table in a local folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cloudevents_kafka.spark.pipeline.stores._store import FolderFailed, local_path

_COMMIT_SECONDS: Final = 300.0


@contextmanager
def commit_lock(location: str) -> Iterator[None]:
    """Lock a table in a local folder for a commit, and yield; for tables in other places, only yield.

    While this block runs, no other process of this machine commits to the table. The lock is necessary
    because Delta and Iceberg first check whether a version exists, and then rename a file. On a local disk,
    the check and the rename are two separate steps, so two commits of the same version could both succeed.
    Raises `FolderFailed` if another process has not ended its commit after 5 minutes; such a process may be
    frozen.
    """
    local = local_path(location)
    if local is None or not local.is_dir():
        yield
        return
    folder = os.open(local, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _COMMIT_SECONDS
        while not _lock(folder):
            if time.monotonic() > deadline:
                raise FolderFailed(
                    f"{location} must be free for a commit, but another process has been committing for "
                    f"{_COMMIT_SECONDS:.0f} s. End that process, and start again"
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(folder)


def _lock(folder: int) -> bool:
    """Lock a folder, and return True; return False if another process has locked the folder.

    If the file system does not support locks, return True without locking the folder.
    """
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
