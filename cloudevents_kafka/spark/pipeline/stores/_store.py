"""The folder of a pipeline: a local folder, or a folder in any file system that Hadoop supports.

Paths are relative to the folder of the pipeline, and ``/`` separates their parts. A pipeline is correct only
if `Store.create` and `Store.rename` are atomic: each call for a file succeeds completely or changes nothing.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from cloudevents_kafka.spark._java import file_system, java_of
from cloudevents_kafka.spark.pipeline._errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK = "_lock"
BACKFILL_FOLDER: Final = "_backfill"
"""The subfolder of a pipeline's folder for the files of backfills that may run next to the pipeline."""
REPLAYS_FOLDER: Final = "_replays"
"""The subfolder of a pipeline's folder that contains the files of replays."""
_PATTERN_CHARACTERS: Final = re.compile(r"[\\*?\[\]{}]")
_ADVICE: Final = {
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "The pipeline must be allowed to create, rename and delete files there: change the rights, or choose "
        "another folder",
    ),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free some space"),
    errno.EXDEV: "A pipeline's folder and its subfolders must be on one file system, to rename files there",
    errno.EISDIR: "It must be a file: remove the folder",
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST), "It must be a folder: choose another name"),
}


class InUse(PipelineError):
    """Another pipeline already writes to the same folder.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, InUse, PipelineOptions
        >>> options = PipelineOptions(bootstrap_servers="localhost:9092", topics=("orders",), out="lake/")
        >>> with EventPipeline(options, spark=spark):
        ...     try:
        ...         EventPipeline(options, spark=spark).run()
        ...     except InUse as error:
        ...         print(error)
        /... is being filled by another pipeline (process ...); wait until it has ended, or ...
    """


class FolderFailed(PipelineError):
    """The folder of a pipeline cannot be read or written; all landed batches are complete.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, FolderFailed, PipelineOptions
        >>> options = PipelineOptions(bootstrap_servers="kafka:9092", topics=("orders",), out="/dev/null/a")
        >>> try:
        ...     EventPipeline(options).run()
        ... except FolderFailed as error:
        ...     print(error)
        cannot create file:///dev/null/a: Not a directory. It must be a folder: choose another name
    """


class Store(Protocol):
    """A folder in which this process reads, creates, renames and removes files."""

    def url(self, path: str) -> str:
        """Return the URL of a path, for Spark."""

    def list_names(self, folder: str) -> list[str]:
        """Return the sorted names of files and folders in a folder, or no names if it is missing."""

    def list_files(self, folder: str, suffix: str) -> list[str]:
        """Return the paths of files in a folder and its subfolders; each path ends with ``suffix``.

        The returned paths are relative to ``folder``, and sorted.
        """

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def create(self, path: str, content: bytes) -> None:
        """Create a file, completely or not at all; raise `FileExistsError` if the file exists already."""

    def rename(self, path: str, to: str) -> None:
        """Move a file to a new path, and create the folders of this path."""

    def sync(self, paths: Iterable[str]) -> None:
        """Make files durable, so that they survive a power failure."""

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all its files, if the path exists."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file; if a file with this path exists already, replace the existing file.

        A local file is replaced in one step. In other file systems, the file is missing if the process is
        killed between the removal of the old file and the creation of the new file.
        """
        self.remove(path)
        self.create(path, content)


def open_store(location: str, spark: SparkSession) -> Store:
    """Return a store for a path or URL of a folder: a local store, or a store in a Hadoop file system."""
    local = local_path(location)
    return HadoopStore(spark, location) if local is None else LocalStore(local)


def without_patterns(url: str) -> str:
    """Return a URL for Spark's readers, in which special characters are escaped.

    Without these escapes, Spark would read braces, brackets, asterisks and question marks as patterns of file
    names.
    """
    return _PATTERN_CHARACTERS.sub(r"\\\g<0>", url)


@contextmanager
def folder_lock(location: str) -> Iterator[None]:
    """Lock a local folder and yield; raise `InUse` if another process has locked the folder."""
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


_THIS_MACHINE: Final = ("", "localhost")  # the hosts of a file URL that Java and this process can open


def local_path(location: str) -> Path | None:
    """Return the path of the folder if the folder is local, otherwise None."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location):
        return Path(location).expanduser().absolute()
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.netloc in _THIS_MACHINE else None


class LocalStore(Store):
    """A local folder; created and renamed files survive a power failure."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        with self._explained("create"):
            self._root.mkdir(parents=True, exist_ok=True)
        self._lock_file: int | None = None

    def url(self, path: str) -> str:
        # Not as_uri(): Hadoop does not decode percent signs in paths.
        return f"file://{self._root / path}"

    def _explained(self, verb: str, path: str = "") -> AbstractContextManager[None]:
        return _explained(verb, self.url(path).rstrip("/"))

    def list_names(self, folder: str) -> list[str]:
        with self._explained("list", folder), suppress(FileNotFoundError):
            return sorted(path.name for path in (self._root / folder).iterdir())
        return []

    def list_files(self, folder: str, suffix: str) -> list[str]:
        base = self._root / folder
        with self._explained("list", folder):
            found = (path for path in base.rglob(f"*{suffix}") if path.is_file())
            return sorted(path.relative_to(base).as_posix() for path in found)

    def exists(self, path: str) -> bool:
        with self._explained("read", path):
            return (self._root / path).exists()

    def read(self, path: str) -> bytes:
        with self._explained("read", path):
            return (self._root / path).read_bytes()

    def create(self, path: str, content: bytes) -> None:
        final = self._root / path
        with self._explained("create", path):
            exists = _move_if_absent(_write_draft(final, content), final)
            _fsync(final.parent)
        if exists:
            raise FileExistsError(f"{final} exists already")

    def replace(self, path: str, content: bytes) -> None:
        final = self._root / path
        with self._explained("replace", path):
            _write_draft(final, content).replace(final)
            _fsync(final.parent)

    def rename(self, path: str, to: str) -> None:
        final = self._root / to
        with self._explained("rename", path):
            final.parent.mkdir(parents=True, exist_ok=True)
            (self._root / path).rename(final)
            _fsync(final.parent)

    def sync(self, paths: Iterable[str]) -> None:
        folders: set[str] = set()
        for path in paths:
            with self._explained("write", path):
                _fsync(self._root / path)
            folders.update(map(str, PurePosixPath(path).parents))
        for folder in sorted(folders, reverse=True):  # inner folders first
            with self._explained("write", folder):
                _fsync(self._root / folder)

    def remove(self, path: str) -> None:
        target = self._root / path
        if target.is_dir():
            # A Java process that is about to end may still add a file; the next start removes this file.
            shutil.rmtree(target, ignore_errors=True)
        else:
            with self._explained("delete", path):
                target.unlink(missing_ok=True)

    def lock(self) -> None:
        """Lock the folder of the store until `close` is called or the process ends.

        Raises `InUse` if another process has locked the folder.
        """
        import fcntl

        with self._explained("write", LOCK):
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
        """Unlock the folder."""
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def _write_draft(final: Path, content: bytes) -> Path:
    """Write the content of a file into a temporary file in the same folder, and return the temporary path."""
    final.parent.mkdir(parents=True, exist_ok=True)
    draft = final.with_name(f".{final.name}.draft")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def _move_if_absent(draft: Path, final: Path) -> bool:
    """Rename a temporary file, unless the final file exists; return whether the final file existed."""
    try:
        os.link(draft, final)
    except FileExistsError:
        exists = True
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}:
            raise
        exists = final.exists()  # the file system has no links
        if not exists:
            draft.replace(final)
            return False
    else:
        exists = False
    draft.unlink()
    return exists


def _fsync(path: Path) -> None:
    """Flush the content of a file, or the entries of a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _explained(verb: str, url: str) -> Iterator[None]:
    """Raise `FolderFailed` instead of an error of the operating system."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Start again when the file system works")
        raise FolderFailed(f"cannot {verb} {url}: {error.strerror or error}. {advice}") from error


class HadoopStore(Store):
    """A folder in any file system that Hadoop supports.

    No type of lock works in all file systems that Hadoop supports. Spark uses its checkpoint to detect a
    second pipeline that writes to the folder, and stops this second pipeline.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._root = root.rstrip("/")
        with _hadoop_explained("open", self._root):
            self._fs, _ = file_system(spark, self._root)
        self._path_class: Any = java_of(spark).org.apache.hadoop.fs.Path

    def _path(self, path: str) -> Any:
        return self._path_class(self.url(path))

    def url(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def list_names(self, folder: str) -> list[str]:
        if not self.exists(folder):
            return []
        with _hadoop_explained("list", self.url(folder)):
            return sorted(status.getPath().getName() for status in self._fs.listStatus(self._path(folder)))

    def list_files(self, folder: str, suffix: str) -> list[str]:
        if not self.exists(folder):
            return []
        with _hadoop_explained("list", self.url(folder)):
            base = self._fs.makeQualified(self._path(folder)).toUri().getPath().rstrip("/") + "/"
            files = self._fs.listFiles(self._path(folder), True)
            paths: list[str] = []
            while files.hasNext():
                path = files.next().getPath().toUri().getPath()
                if path.endswith(suffix):
                    paths.append(path.removeprefix(base))
            return sorted(paths)

    def exists(self, path: str) -> bool:
        with _hadoop_explained("read", self.url(path)):
            return bool(self._fs.exists(self._path(path)))

    def read(self, path: str) -> bytes:
        with _hadoop_explained("read", self.url(path)):
            stream = self._fs.open(self._path(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def create(self, path: str, content: bytes) -> None:
        folder, _, name = path.rpartition("/")
        with _hadoop_explained("create", self.url(path)):
            draft = self._path(f"{folder}/_draft.{name}")  # readers see the whole file or no file
            stream = self._fs.create(draft, True)
            stream.write(content)
            stream.close()
        if self.exists(path):
            raise FileExistsError(f"{self.url(path)} exists already")
        self._move(draft, self._path(path))

    def rename(self, path: str, to: str) -> None:
        self._move(self._path(path), self._path(to))

    def _move(self, source: Any, target: Any) -> None:
        with _hadoop_explained("rename", str(source)):
            self._fs.mkdirs(target.getParent())
            if not self._fs.rename(source, target):
                raise FolderFailed(
                    f"cannot rename {source} to {target}: the file system refused it. The file system must "
                    "support renaming, and the pipeline must be allowed to create, rename and delete files"
                )

    def remove(self, path: str) -> None:
        with _hadoop_explained("delete", self.url(path)):
            self._fs.delete(self._path(path), True)

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing: files survive a power failure as soon as they are closed."""


@contextmanager
def _hadoop_explained(verb: str, url: str) -> Iterator[None]:
    """Raise `FolderFailed` instead of an error of Hadoop's file system."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

    try:
        yield
    except Py4JJavaError as error:
        reason = str(error.java_exception.toString()).splitlines()[0]
        raise FolderFailed(
            f"cannot {verb} {url}: {reason}. Check the name, the rights and the settings of this file system"
        ) from error
