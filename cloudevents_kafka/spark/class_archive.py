"""`ClassArchive`: Spark's Java classes as Java has loaded them once (class data sharing), in the cache.

With the archive, a pipeline needs about two thirds of the time until its first batch. It has 170 MB, and
writing it takes half a minute, so it is written only on request. Java checks that the archive matches Java
itself and the jars (names, sizes and times), and ignores it otherwise. A damaged archive would crash Java, so
the name of the file has its checksum, and a file with another checksum is not used.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm import Java, cache_folder

# Without Java's warnings about an archive that it does not use.
_QUIET: Final = "-Xlog:cds*=off"
_BLOCK: Final = 1 << 20
# Options of users with which Java has another archive, or none; from the settings and from the environment.
_CHOSEN: Final = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")
_VARIABLES: Final = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of a Java and of the installed PySpark, which may not be written yet."""

    folder: Path

    @classmethod
    def of(cls, java: Java) -> ClassArchive:
        """Return the archive of a Java, by the jars of PySpark or of ``SPARK_HOME``."""
        spec = find_spec("pyspark")
        package = Path(spec.origin).parent if spec is not None and spec.origin else Path()
        home = Path(os.environ.get("SPARK_HOME") or package)
        jars = sorted((path.name, path.stat().st_size) for path in (home / "jars").glob("*.jar"))
        facts = repr((str(java.home), java.version, str(home), jars))
        digest = hashlib.sha256(facts.encode()).hexdigest()[:8]
        name = f"pyspark-{version('pyspark')}-java-{java.version}-{digest}"
        return cls(cache_folder() / "classes" / name)

    def find(self) -> Path | None:
        """Return the path of the archive; None if it is not written yet, damaged, or cannot be read."""
        with suppress(OSError):
            for file in self.folder.glob("classes-*.jsa"):
                if file.name == _name_of(file):
                    return file
        return None

    def options_to_read(self, conf: Mapping[str, str]) -> str:
        """Return the options of Java to use the archive; none without it, or if users have set another."""
        chosen = " ".join([*conf.values(), *(os.environ.get(name, "") for name in _VARIABLES)])
        if any(option in chosen for option in _CHOSEN) or (file := self.find()) is None:
            return ""
        return f'"-XX:SharedArchiveFile={file}" {_QUIET}'


def options_to_write(file: Path) -> str:
    """Return the options of Java to write an archive when it ends; then `finish` it."""
    return f'"-XX:ArchiveClassesAtExit={file}" {_QUIET}'


def finish(file: Path) -> str:
    """Rename an archive of Java to the name that later starts look for, and return that name."""
    return file.rename(file.with_name(_name_of(file))).name


def _name_of(file: Path) -> str:
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"classes-{checksum:08x}.jsa"
