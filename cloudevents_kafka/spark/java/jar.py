"""The jar of the Java function: a file of the package, compiled from its sources by Spark's compiler.

One jar serves all versions of Spark 4. Its name has a hash of the sources, because Spark Connect
refuses a jar that has the name of another one but not its content. Spark reads the file where it is
each time an executor starts, so it must stay there as long as the session: in the package; if that
is a zip, or if its sources were changed, in the cache folder; if that is read-only, in the folder
that Spark deletes with the session.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import cache_folder, find_java

# In order of compilation: each class uses only those before it.
_CLASSES: Final = (
    *("Text", "Uri", "Time", "MediaType", "Extension", "Extensions", "Rules", "Deviations", "HeaderName"),
    *("Attributes", "Document", "Reader", "Writer", "Functions"),
)
_ZIP_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_SHUTDOWN_SECONDS: Final = 20


class NoReaderJar(CloudEventsKafkaError):
    """The jar of the Java function is missing, or cannot be compiled."""


def existing_jar() -> Path | None:
    """Return the jar in the package, else the one in the cache folder, or None without an intact one."""
    packaged = packaged_jar()
    if isinstance(packaged, Path) and packaged.is_file():
        return packaged
    jar = _cache_path()
    try:
        with zipfile.ZipFile(jar) as archive:
            return jar if archive.testzip() is None else None
    except (OSError, zipfile.BadZipFile):
        return None


def build_jar(jvm: Any) -> Path:
    """Return the jar for a session of a Java process (`java_of`), compiled there if there is none."""
    jar = existing_jar()
    if jar is not None:
        return jar
    content = _packaged_content() or _compile(jvm)
    try:
        return _write(_cache_path(), content)
    except OSError:
        # The home folder may be read-only, as in many containers.
        return _write(Path(jvm.org.apache.spark.SparkFiles.getRootDirectory(), "jars", _jar_name()), content)


@contextmanager
def jar_to_send() -> Iterator[Path]:
    """Yield the jar for a server of Spark Connect; raise `NoReaderJar` without one."""
    jar = existing_jar()
    if jar is not None:
        yield jar
        return
    content = _packaged_content()
    if content is None:
        raise NoReaderJar("the jar of the Java function is neither in the package nor in the cache folder")
    with tempfile.TemporaryDirectory(prefix="cloudevents-kafka-") as folder:
        yield _write(Path(folder, _jar_name()), content)


def write_jar(path: Path) -> None:
    """Write the jar to a file; compile it in a Java process of the installed PySpark if necessary.

    Raises `NoReaderJar` if that has no Java classes or does not start, `NoJava`, and `OSError`.
    """
    jar = existing_jar()
    content = jar.read_bytes() if jar is not None else _packaged_content()
    path.write_bytes(content or _compile_in_own_process())


def packaged_jar() -> Traversable:
    """Return the jar in the package, which may be a zip; it is missing if the sources were changed."""
    return resources.files(__package__).joinpath("jars", _jar_name())


def _packaged_content() -> bytes | None:
    packaged = packaged_jar()
    return packaged.read_bytes() if packaged.is_file() else None


def _cache_path() -> Path:
    return cache_folder() / "spark" / _jar_name()


@functools.cache
def _jar_name() -> str:
    digest = hashlib.sha256()
    for name in _CLASSES:
        digest.update(_source(name).encode())
    return f"cloudevents-kafka-{digest.hexdigest()[:16]}.jar"


def _source(name: str) -> str:
    return resources.files(__package__).joinpath("src", f"{name}.java").read_text("utf-8")


def _compile(jvm: Any) -> bytes:
    """Return a jar of the compiled classes; the same sources result in the same bytes."""
    compiled: dict[str, bytes] = {}
    loader = jvm.Thread.currentThread().getContextClassLoader()
    for name in _CLASSES:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.setTargetVersion(8)  # earlier class files have no static methods of interfaces
        compiler.setDebuggingInformation(True, True, False)  # files and lines in stack traces, no variables
        compiler.cook(_source(name))
        compiled |= {name: bytes(code) for name, code in compiler.getBytecodes().items()}
        loader = compiler.getClassLoader()
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as archive:
        for name, code in sorted(compiled.items()):
            archive.writestr(zipfile.ZipInfo(f"{name.replace('.', '/')}.class", _ZIP_EPOCH), code)
    return jar.getvalue()


def _write(jar: Path, content: bytes) -> Path:
    """Write a jar in one step."""
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


def _compile_in_own_process() -> bytes:
    from subprocess import DEVNULL

    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
    from pyspark import SparkConf
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(find_java().home)
    try:
        gateway: Any = launch_gateway(  # type: ignore[no-untyped-call]
            SparkConf(loadDefaults=False), {"stdout": DEVNULL, "stderr": DEVNULL}
        )
        try:
            return _compile(gateway.jvm)
        finally:
            gateway.shutdown()
            gateway.proc.stdin.close()  # makes Java end
            gateway.proc.wait(_SHUTDOWN_SECONDS)
    except (OSError, Py4JError, PySparkException) as error:
        raise NoReaderJar(
            f"the jar cannot be compiled: {error}; use a PySpark that has Spark's Java classes "
            "(pip install pyspark, not pyspark-client)"
        ) from error
