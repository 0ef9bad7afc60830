"""The folder that a pipeline fills: on this machine, or wherever Hadoop's file systems reach.

Paths are relative to the folder, with ``/`` between. All that correctness needs of
a store is that `create` and `rename` of one file are seen whole or not at all.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from cloudevents_kafka.errors import CloudEventsKafkaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK = "_lock"


class InUse(CloudEventsKafkaError):
    """Another pipeline writes into the same folder."""


class Store(Protocol):
    """What landing needs of a file system."""

    def url(self, path: str) -> str:
        """Name a path as Spark takes it."""

    def names(self, folder: str) -> list[str]:
        """List what stands in a folder, sorted; nothing where there is none."""

    def files(self, folder: str, suffix: str) -> list[str]:
        """List all files below a folder, relative to it, sorted."""

    def exists(self, path: str) -> bool:
        """Say whether a file or folder is there."""

    def read(self, path: str) -> bytes:
        """Give a file's content."""

    def create(self, path: str, content: bytes) -> None:
        """Make a new file, whole or not at all; FileExistsError where there is one."""

    def rename(self, path: str, to: str) -> None:
        """Move a file, making the folders it needs."""

    def settle(self, path: str) -> None:
        """See to it that a file survives a power cut."""

    def remove(self, path: str) -> None:
        """Delete a file or a folder with all in it, if it is there."""

    def lock(self) -> None:
        """Keep other pipelines out until `close`; raises `InUse`."""

    def close(self) -> None:
        """Let other pipelines in."""


def open_store(location: str, spark: SparkSession) -> Store:
    """Open a folder by path or URL: here for ``file:``, else by Spark's Hadoop."""
    local = local_path(location)
    return HadoopStore(spark, location) if local is None else LocalStore(local)


@contextmanager
def locked(location: str) -> Iterator[None]:
    """Keep other pipelines out of a folder on this machine within this block; raises `InUse`."""
    local = local_path(location)
    if local is None:
        yield
        return
    store = LocalStore(local)
    store.lock()
    try:
        yield
    finally:
        store.close()


def local_path(location: str) -> Path | None:
    """Give the path of a folder on this machine, None for one elsewhere."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location):
        return Path(location).expanduser().absolute()
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" and not parts.netloc else None


class LocalStore:
    """A folder on this machine; what was created or renamed survives a power cut."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._root.mkdir(parents=True, exist_ok=True)
        self._lock: int | None = None

    def url(self, path: str) -> str:
        """Name a path as Spark takes it."""
        # Not as_uri(): Hadoop takes a path's own percent signs for what they are.
        return f"file://{self._root / path}"

    def names(self, folder: str) -> list[str]:
        """List what stands in a folder."""
        with suppress(FileNotFoundError):
            return sorted(path.name for path in (self._root / folder).iterdir())
        return []

    def files(self, folder: str, suffix: str) -> list[str]:
        """List all files below a folder, relative to it."""
        base = self._root / folder
        found = (path for path in base.rglob(f"*{suffix}") if path.is_file())
        return sorted(path.relative_to(base).as_posix() for path in found)

    def exists(self, path: str) -> bool:
        """Say whether a file or folder is there."""
        return (self._root / path).exists()

    def read(self, path: str) -> bytes:
        """Give a file's content."""
        return (self._root / path).read_bytes()

    def create(self, path: str, content: bytes) -> None:
        """Make a new file, whole or not at all."""
        final = self._root / path
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = final.with_name(f".{final.name}.draft")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if final.exists():
            draft.unlink()
            raise FileExistsError(f"{final} is there already")
        draft.replace(final)
        _flush(final.parent)

    def rename(self, path: str, to: str) -> None:
        """Move a file, making the folders it needs."""
        final = self._root / to
        final.parent.mkdir(parents=True, exist_ok=True)
        (self._root / path).rename(final)
        _flush(final.parent)

    def settle(self, path: str) -> None:
        """See to it that a file, and the names of the folders around it, survive a power cut."""
        file = self._root / path
        _flush(file)
        for folder in file.parents:
            _flush(folder)
            if folder == self._root:
                break

    def remove(self, path: str) -> None:
        """Delete a file or a folder with all in it."""
        target = self._root / path
        if target.is_dir():
            # A Java that is just being ended may still add a file; the next start clears up again.
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def lock(self) -> None:
        """Keep other pipelines of this machine out; ended with the process, however it ends."""
        import fcntl

        self._lock = os.open(self._root / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock, 20).decode("ascii", "replace").strip()
            self.close()
            raise InUse(
                f"{self._root} is being filled by another pipeline (process {holder or 'unknown'}); "
                "wait until it has ended, or choose another folder"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        """Let other pipelines in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _flush(path: Path) -> None:
    """Have a file's content, or a folder's list of names, written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class HadoopStore:
    """A folder on HDFS, S3, … by the Hadoop file system that Spark itself writes with.

    There is no lock: Spark's checkpoint notices a second writer, and stops it.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._root = root.rstrip("/")
        self._jvm: Any = spark._jvm  # noqa: SLF001 (the only way to Hadoop from Python)
        self._conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        self._fs: Any = self._path("").getFileSystem(self._conf)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.url(path))

    def url(self, path: str) -> str:
        """Name a path as Spark takes it."""
        return f"{self._root}/{path}" if path else self._root

    def names(self, folder: str) -> list[str]:
        """List what stands in a folder."""
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._fs.listStatus(self._path(folder)))

    def files(self, folder: str, suffix: str) -> list[str]:
        """List all files below a folder, relative to it."""
        if not self.exists(folder):
            return []
        base = self._fs.makeQualified(self._path(folder)).toUri().getPath().rstrip("/") + "/"
        listed = self._fs.listFiles(self._path(folder), True)
        found: list[str] = []
        while listed.hasNext():
            name = listed.next().getPath().toUri().getPath()
            if name.endswith(suffix):
                found.append(name.removeprefix(base))
        return sorted(found)

    def exists(self, path: str) -> bool:
        """Say whether a file or folder is there."""
        return bool(self._fs.exists(self._path(path)))

    def read(self, path: str) -> bytes:
        """Give a file's content."""
        stream = self._fs.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def create(self, path: str, content: bytes) -> None:
        """Make a new file by renaming a draft, which HDFS and object stores do whole or not at all."""
        folder, _, name = path.rpartition("/")
        draft = self._path(f"{folder}/_draft.{name}")
        stream = self._fs.create(draft, True)
        stream.write(content)
        stream.close()
        if self._fs.exists(self._path(path)):
            raise FileExistsError(f"{self.url(path)} is there already")
        self._move(draft, self._path(path))

    def rename(self, path: str, to: str) -> None:
        """Move a file, making the folders it needs."""
        self._move(self._path(path), self._path(to))

    def _move(self, source: Any, target: Any) -> None:
        self._fs.mkdirs(target.getParent())
        if not self._fs.rename(source, target):
            raise OSError(f"the file system did not rename {source} to {target}")

    def settle(self, path: str) -> None:
        """Do nothing: these file systems keep what was closed."""

    def remove(self, path: str) -> None:
        """Delete a file or a folder with all in it."""
        self._fs.delete(self._path(path), True)

    def lock(self) -> None:
        """Do nothing: there are no locks that all stores know."""

    def close(self) -> None:
        """Do nothing."""
