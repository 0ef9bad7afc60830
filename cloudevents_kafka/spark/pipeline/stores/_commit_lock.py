"""`commit_lock`: one commit at a time to a table in a local folder."""

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
    """Yield while no other process of this machine commits to the table in a local folder.

    Delta and Iceberg look whether a version exists, then rename a file; on a local disk these are two steps.
    Raises `FolderFailed` if another process, which may be frozen, does not end its commit within 5 minutes.
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
    """Lock a folder, unless its file system has no locks; return False if it is locked."""
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
