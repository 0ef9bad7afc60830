"""The folder of a pipeline: local, or in any file system of Hadoop.

Paths are relative to the folder and use ``/``. Correctness requires one property of a store:
`Store.create` and `Store.rename` of one file happen completely or not at all.
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
    """Another pipeline writes to the same folder."""


class Store(Protocol):
    """The file system operations that landing needs."""

    def url(self, path: str) -> str:
        """Return the URL of a path, for Spark."""

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; empty if the folder is missing."""

    def list_files(self, folder: str, suffix: str) -> list[str]:
        """Return the paths of all files below a folder, relative to it, sorted."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def create(self, path: str, content: bytes) -> None:
        """Create a file, completely or not at all; raise `FileExistsError` if it exists."""

    def rename(self, path: str, to: str) -> None:
        """Move a file, and create the folders of its new path."""

    def sync(self, path: str) -> None:
        """Make a file survive a power failure."""

    def remove(self, path: str) -> None:
        """Delete a file or a whole folder, if it exists."""

    def lock(self) -> None:
        """Lock the folder until `close`; raise `InUse` if another pipeline has locked it."""

    def close(self) -> None:
        """Unlock the folder."""


def open_store(location: str, spark: SparkSession) -> Store:
    """Return the store of a folder, by path or URL: local, or through Spark's Hadoop."""
    local = local_path(location)
    return HadoopStore(spark, location) if local is None else LocalStore(local)


@contextmanager
def folder_lock(location: str) -> Iterator[None]:
    """Yield with a local folder locked; raise `InUse` if another pipeline has locked it."""
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
    """Return the path of a local folder, or None for a folder elsewhere."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location):
        return Path(location).expanduser().absolute()
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" and not parts.netloc else None


class LocalStore(Store):
    """A local folder; created and renamed files survive a power failure."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._root.mkdir(parents=True, exist_ok=True)
        self._lock_file: int | None = None

    def url(self, path: str) -> str:
        # Not as_uri(): Hadoop does not decode percent signs in paths.
        return f"file://{self._root / path}"

    def list_names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(path.name for path in (self._root / folder).iterdir())
        return []

    def list_files(self, folder: str, suffix: str) -> list[str]:
        base = self._root / folder
        found = (path for path in base.rglob(f"*{suffix}") if path.is_file())
        return sorted(path.relative_to(base).as_posix() for path in found)

    def exists(self, path: str) -> bool:
        return (self._root / path).exists()

    def read(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def create(self, path: str, content: bytes) -> None:
        final = self._root / path
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = final.with_name(f".{final.name}.draft")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if final.exists():
            draft.unlink()
            raise FileExistsError(f"{final} exists already")
        draft.replace(final)
        _fsync(final.parent)

    def rename(self, path: str, to: str) -> None:
        final = self._root / to
        final.parent.mkdir(parents=True, exist_ok=True)
        (self._root / path).rename(final)
        _fsync(final.parent)

    def sync(self, path: str) -> None:
        file = self._root / path
        _fsync(file)
        for folder in file.parents:
            _fsync(folder)
            if folder == self._root:
                break

    def remove(self, path: str) -> None:
        target = self._root / path
        if target.is_dir():
            # A Java process that is about to end may still add a file; the next start removes it.
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def lock(self) -> None:  # by the system, which unlocks it when the process ends
        import fcntl

        self._lock_file = os.open(self._root / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock_file, 20).decode("ascii", "replace").strip()
            self.close()
            raise InUse(
                f"{self._root} is being filled by another pipeline (process {holder or 'unknown'}); "
                "wait until it has ended, or choose another folder"
            ) from None
        os.ftruncate(self._lock_file, 0)
        os.pwrite(self._lock_file, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def _fsync(path: Path) -> None:
    """Write the content of a file, or the entries of a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class HadoopStore(Store):
    """A folder on HDFS, S3 and others, through the Hadoop file system that Spark writes with.

    Closed files survive a power failure there. There is no common lock: Spark's checkpoint notices a
    second writer and stops it.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._root = root.rstrip("/")
        self._jvm: Any = spark._jvm  # noqa: SLF001 (the only way to Hadoop from Python)
        self._conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        self._fs: Any = self._path("").getFileSystem(self._conf)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.url(path))

    def url(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def list_names(self, folder: str) -> list[str]:
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._fs.listStatus(self._path(folder)))

    def list_files(self, folder: str, suffix: str) -> list[str]:
        if not self.exists(folder):
            return []
        base = self._fs.makeQualified(self._path(folder)).toUri().getPath().rstrip("/") + "/"
        files = self._fs.listFiles(self._path(folder), True)
        paths: list[str] = []
        while files.hasNext():
            path = files.next().getPath().toUri().getPath()
            if path.endswith(suffix):
                paths.append(path.removeprefix(base))
        return sorted(paths)

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(self._path(path)))

    def read(self, path: str) -> bytes:
        stream = self._fs.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def create(self, path: str, content: bytes) -> None:
        folder, _, name = path.rpartition("/")
        draft = self._path(f"{folder}/_draft.{name}")  # HDFS and object stores rename in one step
        stream = self._fs.create(draft, True)
        stream.write(content)
        stream.close()
        if self._fs.exists(self._path(path)):
            raise FileExistsError(f"{self.url(path)} exists already")
        self._move(draft, self._path(path))

    def rename(self, path: str, to: str) -> None:
        self._move(self._path(path), self._path(to))

    def _move(self, source: Any, target: Any) -> None:
        self._fs.mkdirs(target.getParent())
        if not self._fs.rename(source, target):
            raise OSError(f"the file system did not rename {source} to {target}")

    def remove(self, path: str) -> None:
        self._fs.delete(self._path(path), True)

    def sync(self, path: str) -> None:
        """Do nothing."""

    def lock(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
