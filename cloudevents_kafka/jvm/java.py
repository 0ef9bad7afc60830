"""Find a Java that Apache Kafka 4 and Spark 4 both run on: 17 or 21, with its vector module.

The newest Java is not the best one: Spark 4 knows 17 and 21. And a Java cut
down to fewer modules (as in some wheels) lacks `jdk.incubator.vector`, without
which Spark does not start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudevents_kafka.jvm.errors import NoJava

SUPPORTED = (17, 21)
NEEDED_MODULE = "jdk.incubator.vector"
WANTED = f"needed is Java {' or '.join(map(str, SUPPORTED))} with the module {NEEDED_MODULE}"
INSTALL_VARIABLE = "CLOUDEVENTS_KAFKA_INSTALL_JDK"
UNCHECKED = "its archive is compared with no checksum, and unpacked as it is"
HINT = (
    "Install one with the system's packages (Debian, Ubuntu: apt install openjdk-17-jre-headless or "
    "openjdk-21-jre-headless; Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to one that you have. Without such packages: python -m cloudevents_kafka.jvm "
    f"--install-jdk (or {INSTALL_VARIABLE}=1) downloads one into ~/.jdk; {UNCHECKED}."
)

# Where systems, SDKMAN, IDEs, Homebrew and install-jdk put Java homes.
PLACES = (
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
        """Give the feature number: 17 for 17.0.15, 8 for 1.8.0_402, 0 if unreadable."""
        match = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(match[1]) if match else 0

    @property
    def executable(self) -> Path:
        """Name the ``java`` program."""
        return self.home / "bin" / "java"

    @property
    def lacks(self) -> str | None:
        """Say why this Java does not do, or None."""
        if self.feature not in SUPPORTED:
            return f"version {self.version}"
        if NEEDED_MODULE not in self.modules:
            return f"version {self.version} without module {NEEDED_MODULE}"
        return None


def find_java(env: Mapping[str, str] | None = None, places: Sequence[str] = PLACES) -> Java:
    """Find a suitable Java: JAVA_HOME, then PATH, then the usual folders.

    Raises `NoJava`, which lists every Java seen and why it was passed over.
    """
    looked: list[str] = []
    for origin, home in candidates(os.environ if env is None else env, places):
        java = read_release(home) or ask(home)
        if java is None:
            looked.append(f"{origin} {home}: no working Java there")
        elif java.lacks is not None:
            looked.append(f"{origin} {home}: {java.lacks}")
        else:
            return java
    raise NoJava(WANTED, looked or [f"JAVA_HOME, PATH, {', '.join(places)}: no Java at all"], HINT)


def candidates(env: Mapping[str, str], places: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """List Java homes to look at, each once, with where the name came from."""
    seen: set[Path] = set()
    for origin, home in _homes(env, places):
        real = home.resolve()
        if real not in seen:
            seen.add(real)
            yield origin, home


def _homes(env: Mapping[str, str], places: Sequence[str]) -> Iterator[tuple[str, Path]]:
    if env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(env["JAVA_HOME"]).expanduser()
    on_path = shutil.which("java", path=env.get("PATH", ""))
    if on_path:
        # `/usr/bin/java` is a chain of links on Debian, a shim under jenv and macOS.
        yield "PATH", Path(on_path).resolve().parent.parent
    for place in places:
        pattern = Path(place).expanduser()
        for home in sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))):
            if (home / "bin" / "java").is_file():
                yield "found", home


def read_release(home: Path) -> Java | None:
    """Read a Java home's ``release`` file; None if it does not say enough."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    facts = dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    if "JAVA_VERSION" not in facts or "MODULES" not in facts or not (home / "bin" / "java").is_file():
        return None
    return Java(home, facts["JAVA_VERSION"], frozenset(facts["MODULES"].split()))


def ask(home: Path) -> Java | None:
    """Run ``java`` to learn its home, version and modules; None if that fails."""
    argv = [str(home / "bin" / "java"), "-XshowSettings:properties", "--list-modules"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_settings(done.stderr + done.stdout)


def parse_settings(text: str) -> Java | None:
    """Read what ``java -XshowSettings:properties --list-modules`` prints."""
    facts = dict(re.findall(r"^ +(java\.home|java\.version) = (.+)$", text, re.MULTILINE))
    if len(facts) < len(("java.home", "java.version")):
        return None
    modules = frozenset(re.findall(r"^([a-z][\w.]+)@", text, re.MULTILINE))
    return Java(Path(facts["java.home"]), facts["java.version"].strip(), modules)
