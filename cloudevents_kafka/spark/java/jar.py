"""The jar of the Java function; the jar is a file in the package.

``make jar`` compiles the jar from the sources in the folder ``java`` of the repository. The same jar works
with all versions of Spark 4. The name of the jar contains a hash of the sources, because Spark Connect
rejects a second jar with the same name and different content. Spark reads the file each time an executor
starts, so the file must stay where it is until the session ends. Usually, the file of the jar is in the
package. If the package is imported from a zip file, Spark reads a copy of the jar in the cache folder. If the
cache folder is read-only, the copy is in a folder that Spark deletes at the end of the session.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import cache_folder


class NoReaderJar(CloudEventsKafkaError):
    """The jar of the Java function is missing."""


def packaged_jar() -> Traversable:
    """Return the jar in the package, which may be a zip; raise `NoReaderJar` if there is no jar."""
    folder = resources.files(__package__).joinpath("jars")
    jars = [file for file in folder.iterdir() if file.name.endswith(".jar")] if folder.is_dir() else []
    if len(jars) != 1:
        raise NoReaderJar(f"the package must have 1 jar of the Java function, got {len(jars)}; do: make jar")
    return jars[0]


def existing_jar() -> Path | None:
    """Return the file of the jar in the package, or its intact copy in the cache folder, or None."""
    packaged = packaged_jar()
    if isinstance(packaged, Path):
        return packaged
    jar = _cache_path()
    try:
        with zipfile.ZipFile(jar) as archive:
            return jar if archive.testzip() is None else None
    except (OSError, zipfile.BadZipFile):
        return None


def session_jar(jvm: Any) -> Path:
    """Return the jar as a file for a session; ``jvm`` is the session's Java process, from `java_of`."""
    jar = existing_jar()
    if jar is not None:
        return jar
    content = packaged_jar().read_bytes()
    try:
        return _write(_cache_path(), content)
    except OSError:
        # The home folder may be read-only, as in many containers.
        folder = Path(jvm.org.apache.spark.SparkFiles.getRootDirectory(), "jars")
        return _write(folder / packaged_jar().name, content)


@contextmanager
def jar_to_send() -> Iterator[Path]:
    """Yield the jar to send to a server of Spark Connect; raise `NoReaderJar` if there is no jar."""
    jar = existing_jar()
    if jar is not None:
        yield jar
        return
    with tempfile.TemporaryDirectory(prefix="cloudevents-kafka-") as folder:
        yield _write(Path(folder, packaged_jar().name), packaged_jar().read_bytes())


def _cache_path() -> Path:
    return cache_folder() / "spark" / packaged_jar().name


def _write(jar: Path, content: bytes) -> Path:
    """Write a jar in one step, so that its file is never incomplete."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=".jar-", dir=jar.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(draft).chmod(0o644)
        return Path(draft).replace(jar)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
