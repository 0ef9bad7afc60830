"""`ConnectStore`: the folder of a pipeline on Spark Connect, read and written by the server.

A client of Spark Connect has no file system of Hadoop. It reads files as rows, and writes a folder with
one file, whose name Spark chooses. Nothing can be removed; a folder can be overwritten.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote

from cloudevents_kafka.spark.pipeline.stores._store import FolderFailed, Store, local_path, without_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT: Final = "pyspark.sql.connect."  # imported only where it is used: it needs grpc
_MISSING: Final = "PATH_NOT_FOUND"
_Result = TypeVar("_Result")


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return any(kind.__module__.startswith(_CONNECT) for kind in type(spark).__mro__)


class ConnectStore(Store):
    """A folder that the server of Spark Connect reaches."""

    makes_folders = True

    def __init__(self, spark: SparkSession, root: str) -> None:
        local = local_path(root)
        self._spark = spark
        self._root = root.rstrip("/") if local is None else f"file://{local}"

    def url(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _files(self, path: str) -> list[str]:
        """Return the URLs of a file, or of all files below a folder."""
        from pyspark.errors import AnalysisException

        # The server caches the files of a plan, unless one of the plan's options has a new value.
        reader = self._spark.read.option("recursiveFileLookup", "true").option("nonce", uuid.uuid4().hex)
        try:
            found = reader.text(without_patterns(self.url(path))).inputFiles()
        except AnalysisException as error:
            if error.getCondition() == _MISSING:
                return []
            raise
        return sorted(map(unquote, found))

    def _relative(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder, relative to it."""
        base = _path(self.url(folder)) + "/"
        files = self._explained("list", folder, self._files)
        return [_path(file).removeprefix(base) for file in files if _path(file).startswith(base)]

    def _explained(self, verb: str, path: str, action: Callable[[str], _Result]) -> _Result:
        """Return the result of an action; raise `FolderFailed` instead of an error of Spark."""
        from pyspark.errors import PySparkException

        try:
            return action(path)
        except PySparkException as error:
            reason = str(error).splitlines()[0]
            raise FolderFailed(
                f"cannot {verb} {self.url(path)}: {reason}. Check that the server of Spark Connect reaches "
                "this folder, and may create files there"
            ) from error

    def list_names(self, folder: str) -> list[str]:
        return sorted({path.partition("/")[0] for path in self._relative(folder)})

    def list_files(self, folder: str, suffix: str) -> list[str]:
        return [path for path in self._relative(folder) if path.endswith(suffix)]

    def exists(self, path: str) -> bool:
        return bool(self._explained("read", path, self._files))

    def read(self, path: str) -> bytes:
        return self._explained("read", path, self._read)

    def _read(self, path: str) -> bytes:
        files = self._spark.read.format("binaryFile").option("nonce", uuid.uuid4().hex)
        rows = files.load(without_patterns(self.url(path))).select("content").collect()
        return b"".join(bytes(row["content"]) for row in rows)

    def replace(self, path: str, content: bytes) -> None:
        """Replace a folder by one with a file of this content; until the file exists, it is empty."""
        text = content.decode()
        self._explained("create", path, lambda path: self._write(path, text))

    def _write(self, path: str, text: str) -> None:
        row = self._spark.createDataFrame([(text,)], "value string").coalesce(1)
        row.write.mode("overwrite").option("compression", "none").text(self.url(path))


def _path(url: str) -> str:
    """Return the path of a URL, as Hadoop normalizes it."""
    return re.sub(r"/+", "/", re.sub(r"^[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?", "", url))
