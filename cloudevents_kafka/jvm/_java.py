"""Find a Java for Apache Kafka 4 and Spark 4: version 17 or 21, with the module jdk.incubator.vector.

Spark 4 supports no later version. Some Java distributions (such as those in wheels) have fewer
modules; without ``jdk.incubator.vector`` Spark does not start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm._errors import NoJava

SUPPORTED: Final = (17, 21)
NEEDED_MODULE: Final = "jdk.incubator.vector"
REQUIRED: Final = f"Java {' or '.join(map(str, SUPPORTED))} with the module {NEEDED_MODULE} is required"
INSTALL_VARIABLE: Final = "CLOUDEVENTS_KAFKA_INSTALL_JDK"
UNCHECKED: Final = "its archive is not compared with a checksum"
HINT: Final = (
    "Install one with the system's packages (Debian, Ubuntu: apt install openjdk-17-jre-headless or "
    "openjdk-21-jre-headless; Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to an installed one. Without such packages: python -m cloudevents_kafka.jvm "
    f"--install-jdk (or {INSTALL_VARIABLE}=1) downloads one into ~/.jdk; {UNCHECKED}."
)

# The Java homes of systems, SDKMAN, IDEs, Homebrew and install-jdk.
PLACES: Final = (
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


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine: its home folder, version text and module names."""

    home: Path
    version: str
    modules: frozenset[str]

    @property
    def feature(self) -> int:
        """The feature number: 17 for 17.0.15, 8 for 1.8.0_402, 0 if unreadable."""
        match = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(match[1]) if match else 0

    @property
    def executable(self) -> Path:
        """The path of the ``java`` program."""
        return self.home / "bin" / "java"

    @property
    def problem(self) -> str | None:
        """Why this Java is not suitable, or None."""
        if self.feature not in SUPPORTED:
            return f"version {self.version}"
        if NEEDED_MODULE not in self.modules:
            return f"version {self.version} without module {NEEDED_MODULE}"
        return None


def find_java(env: Mapping[str, str] | None = None, places: Sequence[str] = PLACES) -> Java:
    """Return a suitable Java: from JAVA_HOME, then PATH, then the usual folders.

    Raises `NoJava`, which lists every Java found and its problem.
    """
    searched: list[str] = []
    for origin, home in _candidates(os.environ if env is None else env, places):
        java = read_release(home) or _query(home)
        if java is None:
            searched.append(f"{origin} {home}: no working Java there")
        elif java.problem is not None:
            searched.append(f"{origin} {home}: {java.problem}")
        else:
            return java
    raise NoJava(REQUIRED, searched or [f"JAVA_HOME, PATH, {', '.join(places)}: no Java at all"], HINT)


def _candidates(env: Mapping[str, str], places: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield each Java home once, with the origin of its name."""
    visited: set[Path] = set()
    for origin, home in _homes(env, places):
        real = home.resolve()
        if real not in visited:
            visited.add(real)
            yield origin, home


def _homes(env: Mapping[str, str], places: Sequence[str]) -> Iterator[tuple[str, Path]]:
    if env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(env["JAVA_HOME"]).expanduser()
    on_path = shutil.which("java", path=env.get("PATH", ""))
    if on_path:
        # /usr/bin/java is a chain of links on Debian, a shim with jenv and on macOS.
        yield "PATH", Path(on_path).resolve().parent.parent
    for place in places:
        pattern = Path(place).expanduser()
        for home in sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))):
            if (home / "bin" / "java").is_file():
                yield "found", home


def read_release(home: Path) -> Java | None:
    """Return the Java that a home's ``release`` file describes, or None if the file is incomplete."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    facts = dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    if "JAVA_VERSION" not in facts or "MODULES" not in facts or not (home / "bin" / "java").is_file():
        return None
    return Java(home, facts["JAVA_VERSION"], frozenset(facts["MODULES"].split()))


def _query(home: Path) -> Java | None:
    """Return the Java that ``java`` itself describes, or None if it fails."""
    argv = [str(home / "bin" / "java"), "-XshowSettings:properties", "--list-modules"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_settings(done.stderr + done.stdout)


def parse_settings(text: str) -> Java | None:
    """Return the Java in the output of ``java -XshowSettings:properties --list-modules``, or None."""
    facts = dict(re.findall(r"^ +(java\.home|java\.version) = (.+)$", text, re.MULTILINE))
    if len(facts) < len(("java.home", "java.version")):
        return None
    modules = frozenset(re.findall(r"^([a-z][\w.]+)@", text, re.MULTILINE))
    return Java(Path(facts["java.home"]), facts["java.version"].strip(), modules)
