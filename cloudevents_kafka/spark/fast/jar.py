"""The jar of the Java function: compiled by Spark's own compiler, kept in the cache folder.

One jar serves all versions of Spark 4. Its name has a hash of the sources, because Spark Connect
refuses a jar that has the name of another one but not its content.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any, Final

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import cache_folder, find_java

# In order of compilation: each class uses only those before it.
_CLASSES: Final = (
    *("Text", "Uri", "Time", "MediaType", "Extension", "Extensions"),
    *("Attributes", "Document", "Reader", "Functions"),
)
_ZIP_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_SHUTDOWN_SECONDS: Final = 20


class NoReaderJar(CloudEventsKafkaError):
    """The jar of the Java function is missing, or cannot be compiled."""


def cached_jar() -> Path | None:
    """Return the jar in the cache folder, or None if it is missing or damaged."""
    jar = _cache_path()
    try:
        with zipfile.ZipFile(jar) as archive:
            return jar if archive.testzip() is None else None
    except (OSError, zipfile.BadZipFile):
        return None


def build_jar(jvm: Any) -> Path:
    """Return the jar, compiled in a Java process of Spark (``spark._jvm``) unless it is in the cache."""
    jar = cached_jar()
    if jar is not None:
        return jar
    classes = _compile(jvm)
    try:
        return _write(_cache_path(), classes)
    except OSError:
        # The home folder may be read-only, as in many containers.
        return _write(Path(tempfile.mkdtemp(prefix="cloudevents-kafka-")) / _cache_path().name, classes)


def write_jar(path: Path) -> None:
    """Write the jar to a file; compile it in a Java process of the installed PySpark if necessary.

    Raises `NoReaderJar` if that has no Java classes or does not start, `NoJava`, and `OSError`.
    """
    shutil.copyfile(cached_jar() or _build_in_own_process(), path)


def _cache_path() -> Path:
    return cache_folder() / "spark" / _jar_name()


@functools.cache
def _jar_name() -> str:
    digest = hashlib.sha256()
    for name in _CLASSES:
        digest.update(_source(name).encode())
    return f"cloudevents-kafka-{digest.hexdigest()[:16]}.jar"


def _source(name: str) -> str:
    return resources.files(__package__).joinpath("java", f"{name}.java").read_text("utf-8")


def _compile(jvm: Any) -> dict[str, bytes]:
    """Return the classes by their full names."""
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
    return compiled


def _write(jar: Path, classes: dict[str, bytes]) -> Path:
    """Write a jar in one step; the same classes result in the same bytes."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=".jar-", dir=jar.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, code in sorted(classes.items()):
                archive.writestr(zipfile.ZipInfo(f"{name.replace('.', '/')}.class", _ZIP_EPOCH), code)
        Path(draft).chmod(0o644)
        return Path(draft).replace(jar)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _build_in_own_process() -> Path:
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
            return build_jar(gateway.jvm)
        finally:
            gateway.shutdown()
            gateway.proc.stdin.close()  # makes Java end
            gateway.proc.wait(_SHUTDOWN_SECONDS)
    except (OSError, Py4JError, PySparkException) as error:
        raise NoReaderJar(
            f"the jar cannot be compiled: {error}; use a PySpark that has Spark's Java classes "
            "(pip install pyspark, not pyspark-client)"
        ) from error
