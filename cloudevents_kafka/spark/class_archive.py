"""`ClassArchive`: Spark's Java classes as Java has loaded them once (class data sharing), in the cache.

With it a pipeline needs about two thirds of the time to its first batch. It is 170 MB, and to write it takes
half a minute, so it is written on request only. Java compares it with itself and with the jars, by their
names, sizes and times, and does without one that does not fit or is damaged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm import Java, cache_folder

# Without Java's warnings about an archive that it does not use.
_QUIET: Final = "-Xlog:cds*=off"
_FILE: Final = "classes.jsa"
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

    @property
    def file(self) -> Path:
        """The path of the archive."""
        return self.folder / _FILE

    def options_to_read(self, conf: Mapping[str, str]) -> str:
        """Return the options of Java to use the archive; none without it, or if users have chosen another."""
        chosen = " ".join([*conf.values(), *(os.environ.get(name, "") for name in _VARIABLES)])
        if any(option in chosen for option in _CHOSEN) or not self.file.is_file():
            return ""
        return f'"-XX:SharedArchiveFile={self.file}" {_QUIET}'

    def options_to_write(self, folder: Path) -> str:
        """Return the options of Java to write the archive into a folder when it ends."""
        return f'"-XX:ArchiveClassesAtExit={folder / _FILE}" {_QUIET}'
