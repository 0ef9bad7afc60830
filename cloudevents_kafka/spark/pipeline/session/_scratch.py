"""`scratch_folder` creates the temporary folder of a local Spark.

If a process is killed, its temporary folder remains. The next process of the same user that starts a local
Spark deletes the folders of killed processes. Each temporary folder contains a locked file, which shows that
a process still uses the folder. The operating system unlocks this file when both the Python process and its
Java process have ended. So if the file in a folder is not locked, no running process uses the folder.
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
    """Yield a new folder and the open file that locks the folder; delete the folder at the end of this block.

    A child process that inherits the open file keeps the folder locked. Before `scratch_folder` creates the
    folder, it deletes this user's folders of killed processes.
    """
    delete_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        lock = _lock(Path(name))
        try:
            yield Path(name), lock
        finally:
            os.close(lock)


def delete_abandoned(parent: Path) -> None:
    """Delete this user's temporary Spark folders in ``parent``, except folders that a process still uses."""
    with suppress(OSError):
        for folder in parent.glob(f"{_PREFIX}*"):
            with suppress(OSError):  # another process uses or deletes the folder
                _delete_if_abandoned(folder)


def _lock(folder: Path) -> int:
    """Return a locked file in a folder; the file receives its final name only after it is locked."""
    import fcntl

    draft = folder / f"{_LOCK}.draft"
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):  # without a lock, the file keeps this name, and no process deletes the folder
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
