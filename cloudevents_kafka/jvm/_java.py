"""Finds a Java for Apache Kafka 4 and Spark 4: Java 17 or 21, with the module jdk.incubator.vector.

Spark 4 does not support later Java versions. Some distributions of Java, such as those in Python wheels, do
not contain all modules. Without the module ``jdk.incubator.vector``, Spark does not start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloudevents_kafka.problems import CloudEventsKafkaError

SUPPORTED: Final = (17, 21)
NEEDED_MODULE: Final = "jdk.incubator.vector"
_REQUIRED: Final = f"Java {' or '.join(map(str, SUPPORTED))} with the module {NEEDED_MODULE} is required"
_HINT: Final = (
    "Install one with the system's packages (Debian, Ubuntu: apt install openjdk-17-jre-headless or "
    "openjdk-21-jre-headless; Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to an installed one."
)

# The Java homes of systems, SDKMAN, IDEs, Homebrew and install-jdk.
JAVA_HOMES: Final = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.jdk/*",
    "~/.jdk/*/Contents/Home",
    "~/.jdks/*",
    "~/.sdkman/candidates/java/*",
)


class NoJava(CloudEventsKafkaError):
    """No suitable Java was found. ``searched`` contains one line for each folder that was searched."""

    def __init__(self, searched: Sequence[str]) -> None:
        super().__init__(searched)
        self.searched = tuple(searched)

    def __str__(self) -> str:
        places = "\n".join(f"  - {line}" for line in self.searched)
        return f"no suitable Java: {_REQUIRED}. Searched:\n{places}\n{_HINT}"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine: its home folder, the text of its version, and the names of its modules."""

    home: Path
    version: str
    modules: frozenset[str]

    @property
    def executable(self) -> Path:
        """The path of the ``java`` program."""
        return self.home / "bin" / "java"

    @property
    def problem(self) -> str | None:
        """The reason why this Java is not suitable, or None."""
        if not re.match(rf"({'|'.join(map(str, SUPPORTED))})\b", self.version):
            return f"version {self.version}"
        if NEEDED_MODULE not in self.modules:
            return f"version {self.version} without module {NEEDED_MODULE}"
        return None


def find_java() -> Java:
    """Return a suitable Java, which is searched in JAVA_HOME, then in PATH, then in the usual folders.

    The first Java that is suitable is returned. Raises `NoJava` if no Java is suitable; the error lists each
    Java that was found, and why it is not suitable.
    """
    searched: dict[Path, str] = {}
    for origin, home in _homes():
        real = home.resolve()
        if real in searched:
            continue
        java = _read_release(home) or _query(home)
        if java is not None and java.problem is None:
            return java
        searched[real] = f"{origin} {home}: {java.problem if java else 'no working Java there'}"
    raise NoJava([*searched.values()] or [f"JAVA_HOME, PATH, {', '.join(JAVA_HOMES)}: no Java at all"])


def _homes() -> Iterator[tuple[str, Path]]:
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"]).expanduser()
    if on_path := shutil.which("java"):
        # /usr/bin/java is a chain of links on Debian, a shim with jenv and on macOS.
        yield "PATH", Path(on_path).resolve().parent.parent
    for place in JAVA_HOMES:
        pattern = Path(place).expanduser()
        for home in sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))):
            if (home / "bin" / "java").is_file():
                yield "found", home


def _read_release(home: Path) -> Java | None:
    """Return the Java that a home folder's ``release`` file describes, or None if the file is incomplete."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    properties = dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    if not {"JAVA_VERSION", "MODULES"} <= properties.keys() or not (home / "bin" / "java").is_file():
        return None
    return Java(home, properties["JAVA_VERSION"], frozenset(properties["MODULES"].split()))


def _query(home: Path) -> Java | None:
    """Return the Java that the program ``java`` describes, or None if the program fails."""
    argv = [str(home / "bin" / "java"), "-XshowSettings:properties", "--list-modules"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    text = done.stderr + done.stdout
    properties = dict(re.findall(r"^ +(java\.home|java\.version) = (.+)$", text, re.MULTILINE))
    if len(properties) != 2:
        return None
    modules = frozenset(re.findall(r"^([a-z][\w.]+)@", text, re.MULTILINE))
    return Java(Path(properties["java.home"]), properties["java.version"].strip(), modules)
