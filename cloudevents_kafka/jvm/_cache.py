"""The cache folder, which several processes share; each of its entries is always complete or absent.

An entry of the cache is a folder. A process locks the entry, fills a folder that has a temporary name, and
then renames this folder. So Ctrl-C or a power cut never leaves a partial entry.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from cloudevents_kafka.problems import CloudEventsKafkaError

CACHE_VARIABLE: Final = "CLOUDEVENTS_KAFKA_CACHE"


def cache_folder() -> Path:
    """Return the folder that ``CLOUDEVENTS_KAFKA_CACHE`` names, or a folder in the XDG cache folder."""
    configured = os.environ.get(CACHE_VARIABLE)
    if configured:
        return Path(configured).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME")
    base = Path(xdg) if xdg and Path(xdg).is_absolute() else Path.home() / ".cache"
    return base / "cloudevents-kafka"


class CacheNotWritable(CloudEventsKafkaError):
    """An entry of the cache is missing or damaged, and this user cannot write to the cache folder."""

    def __str__(self) -> str:
        return (
            f"the cache folder must be writable for this user, got {cache_folder()} "
            f"({self.args[0]}); set {CACHE_VARIABLE} to another folder, or copy the missing files into it "
            "from the cache folder of another machine"
        )


def check_cache() -> None:
    """Raise `CacheNotWritable` if this user cannot add jars to the cache. No file is created."""
    jars = cache_folder() / "jars"
    nearest = next(folder for folder in (jars, *jars.parents) if os.access(folder, os.F_OK))
    if not nearest.is_dir():
        raise CacheNotWritable(f"{nearest} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise CacheNotWritable(f"this user is not allowed to write to {nearest}")


@contextmanager
def locked(entry: Path, *, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Yield while this process has locked an entry; first call ``waiting`` if another process has locked it.

    Raises `CacheNotWritable` if the lock file cannot be created.
    """
    import fcntl  # which Windows does not have

    with _open_lock(entry) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _open_lock(entry: Path) -> BinaryIO:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        return (entry.parent / f".{entry.name}.lock").open("ab")
    except OSError as error:
        raise CacheNotWritable(error.strerror or str(error)) from error


@contextmanager
def building(entry: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; if the block raises no error, the folder then replaces ``entry``.

    The caller must hold the lock of ``entry``. Before the folder is yielded, partial folders of killed
    processes are removed.
    """
    for partial in entry.parent.glob(f".{entry.name}-*"):
        shutil.rmtree(partial, ignore_errors=True)
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
