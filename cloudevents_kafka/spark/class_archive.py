"""`ClassArchive` is a file with Spark's Java classes in a form that Java loads fast (class data sharing).

With the archive, a pipeline starts its first batch in about two thirds of the usual time. The archive has 170
MB, and writing it takes half a minute, so it is written only on request. The archive is written into the
cache folder. Java compares the archive with its own version and with the names, sizes and times of the jars.
Java ignores an archive that does not match. A damaged archive would crash Java, so the name of the file
contains the checksum of its content. If the content has another checksum, the file is not used.
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

# This option turns off Java's warnings about an archive that Java does not use.
_QUIET: Final = "-Xlog:cds*=off"
_BLOCK: Final = 1 << 20
# If a setting or a variable of the environment contains one of these options, Java uses another archive or
# none.
_CHOSEN: Final = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")
_VARIABLES: Final = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive for an installed Java and the installed PySpark.

    `find` returns None if the archive was not written yet.
    """

    folder: Path

    @classmethod
    def of(cls, java: Java) -> ClassArchive:
        """Return the archive for an installed Java and for the jars in ``SPARK_HOME`` or in PySpark."""
        spec = find_spec("pyspark")
        package = Path(spec.origin).parent if spec is not None and spec.origin else Path()
        home = Path(os.environ.get("SPARK_HOME") or package)
        jars = sorted((path.name, path.stat().st_size) for path in (home / "jars").glob("*.jar"))
        facts = repr((str(java.home), java.version, str(home), jars))
        digest = hashlib.sha256(facts.encode()).hexdigest()[:8]
        name = f"pyspark-{version('pyspark')}-java-{java.version}-{digest}"
        return cls(cache_folder() / "classes" / name)

    def find(self) -> Path | None:
        """Return the path of the archive, or None if the file is missing, damaged or not readable."""
        with suppress(OSError):
            for file in self.folder.glob("classes-*.jsa"):
                if file.name == _name_of(file):
                    return file
        return None

    def options_to_read(self, conf: Mapping[str, str]) -> str:
        """Return Java's options to use the archive.

        The result is empty if the archive is missing, or if users have chosen another archive.
        """
        chosen = " ".join([*conf.values(), *(os.environ.get(name, "") for name in _VARIABLES)])
        if any(option in chosen for option in _CHOSEN) or (file := self.find()) is None:
            return ""
        return f'"-XX:SharedArchiveFile={file}" {_QUIET}'


def options_to_write(file: Path) -> str:
    """Return Java's options to write an archive when Java ends; call `finish` after Java has ended."""
    return f'"-XX:ArchiveClassesAtExit={file}" {_QUIET}'


def finish(file: Path) -> str:
    """Rename an archive that Java has written, so that later starts find it; return its new name."""
    return file.rename(file.with_name(_name_of(file))).name


def _name_of(file: Path) -> str:
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"classes-{checksum:08x}.jsa"
