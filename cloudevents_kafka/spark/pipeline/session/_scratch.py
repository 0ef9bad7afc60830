"""`scratch_folder` creates the temporary folder of a local Spark.

The next local Spark deletes a folder that was left behind.

A process that is killed cannot delete its folder. Each folder contains a locked file. The operating system
unlocks this file when the process and its Java process have ended. So a folder whose file is not locked does
not belong to a running process.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "cloudevents-kafka-spark-"
_LOCK: Final = "_lock"


@contextmanager
def scratch_folder() -> Iterator[tuple[Path, int]]:
    """Yield a new folder and an open file, and delete the folder at the end of this block.

    A child process that inherits the file keeps the folder locked. Folders that earlier processes of this
    user left behind are deleted first.
    """
    delete_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        lock = _lock(Path(name))
        try:
            yield Path(name), lock
        finally:
            os.close(lock)


def delete_abandoned(parent: Path) -> None:
    """Delete Spark's temporary folders in a folder that belong to this user, but not to a running process."""
    with suppress(OSError):
        for folder in parent.glob(f"{_PREFIX}*"):
            with suppress(OSError):  # it is in use, or another process deletes it
                _delete_if_abandoned(folder)


def _lock(folder: Path) -> int:
    """Return a locked file in a folder; the file gets its final name after it is locked."""
    import fcntl

    draft = folder / f"{_LOCK}.draft"
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):  # without a lock the file keeps this name, so the folder is never deleted
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.rename(folder / _LOCK)
    return handle


def _delete_if_abandoned(folder: Path) -> None:
    import fcntl

    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
