"""The cache folder: shared by processes, and whole or absent at any moment.

Each entry is a folder that is built beside its place under a lock and renamed
into it when complete, so neither Ctrl-C nor a power cut leaves half of one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE_VARIABLE = "CLOUDEVENTS_KAFKA_CACHE"


def cache_folder() -> Path:
    """Name the cache folder: ``CLOUDEVENTS_KAFKA_CACHE``, else the XDG cache folder."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME")
    base = Path(xdg) if xdg and Path(xdg).is_absolute() else Path.home() / ".cache"
    return base / "cloudevents-kafka"


@contextmanager
def locked(entry: Path, *, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock of a cache entry; call `waiting` when another process has it."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    with (entry.parent / f".{entry.name}.lock").open("ab") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def building(entry: Path) -> Iterator[Path]:
    """Give an empty folder to fill; it becomes `entry` if the block ends well.

    Hold the lock of `entry` meanwhile. What an earlier, killed process left
    behind is removed first, so a crash costs space only until the next try.
    """
    for left in entry.parent.glob(f".{entry.name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{entry.name}-", dir=entry.parent))
    retired = scratch.with_name(scratch.name + ".old")
    try:
        yield scratch
        scratch.chmod(0o755)
        if entry.exists():
            entry.rename(retired)
        scratch.rename(entry)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(retired, ignore_errors=True)
