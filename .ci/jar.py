"""Compile the Java function of Spark, and put its jar into the package: `make jar`.

Spark's own compiler is used, so that no JDK is needed; the same sources result in the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from cloudevents_kafka.jvm import find_java

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "java"
JARS = ROOT / "cloudevents_kafka" / "spark" / "java" / "jars"
# In order of compilation: each class uses only those before it.
CLASSES = (
    *("Text", "Uri", "Time", "MediaType", "Extension", "Extensions", "Rules", "Deviations", "HeaderName"),
    *("Attributes", "Document", "Reader", "Writer", "JsonShape", "AvroShape", "Shapes", "Functions"),
)
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
SHUTDOWN_SECONDS = 20


def source(name: str) -> str:
    """Return the source of a class."""
    return (SOURCES / f"{name}.java").read_text("utf-8")


def jar_name() -> str:
    """Return the name of the jar, which has a hash of the sources."""
    digest = hashlib.sha256("".join(map(source, CLASSES)).encode())
    return f"cloudevents-kafka-{digest.hexdigest()[:16]}.jar"


def compiled(jvm: Any) -> bytes:
    """Return a jar of the compiled classes."""
    classes: dict[str, bytes] = {}
    loader = jvm.Thread.currentThread().getContextClassLoader()
    for name in CLASSES:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.setTargetVersion(8)  # earlier class files have no static methods of interfaces
        compiler.setDebuggingInformation(True, True, False)  # files and lines in stack traces, no variables
        compiler.cook(source(name))
        classes |= {name: bytes(code) for name, code in compiler.getBytecodes().items()}
        loader = compiler.getClassLoader()
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as archive:
        for name, code in sorted(classes.items()):
            archive.writestr(zipfile.ZipInfo(f"{name.replace('.', '/')}.class", ZIP_EPOCH), code)
    return jar.getvalue()


def compiled_in_own_process() -> bytes:
    """Return the jar, compiled by a Java process of the installed PySpark."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(find_java().home)
    gateway: Any = launch_gateway(SparkConf(loadDefaults=False), {"stdout": DEVNULL, "stderr": DEVNULL})
    try:
        return compiled(gateway.jvm)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # makes Java end
        gateway.proc.wait(SHUTDOWN_SECONDS)


def main() -> int:
    """Replace the jar in the package by one of the current sources."""
    content = compiled_in_own_process()
    JARS.mkdir(exist_ok=True)
    for old in JARS.glob("*.jar"):
        old.unlink()
    jar = JARS / jar_name()
    jar.write_bytes(content)
    print(jar)
    return 0


if __name__ == "__main__":
    sys.exit(main())
