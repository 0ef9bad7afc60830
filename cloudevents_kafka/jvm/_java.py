"""Find or install a Java for Apache Kafka 4 and Spark 4: version 17 or 21, with jdk.incubator.vector.

Spark 4 supports no later version. Some Java distributions (such as those in wheels) have fewer
modules; without ``jdk.incubator.vector`` Spark does not start.

Packages of apt are signed. The archive that install-jdk downloads is not checked, so the download
needs the option ``--install-jdk`` or ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1``.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm._progress import Progress

SUPPORTED: Final = (17, 21)
NEEDED_MODULE: Final = "jdk.incubator.vector"
INSTALL_OPTION: Final = "--install-jdk"
INSTALL_VARIABLE: Final = "CLOUDEVENTS_KAFKA_INSTALL_JDK"
_REQUIRED: Final = f"Java {' or '.join(map(str, SUPPORTED))} with the module {NEEDED_MODULE} is required"
_UNCHECKED: Final = "its archive is not compared with a checksum"
_NOT_TRIED: Final = (
    f"install-jdk: not tried (needs {INSTALL_OPTION} or {INSTALL_VARIABLE}=1, as {_UNCHECKED})"
)
_HINT: Final = (
    "Install one with the system's packages (Debian, Ubuntu: apt install openjdk-17-jre-headless or "
    "openjdk-21-jre-headless; Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to an installed one. Without such packages: python -m cloudevents_kafka.jvm "
    f"{INSTALL_OPTION} (or {INSTALL_VARIABLE}=1) downloads one into ~/.jdk; {_UNCHECKED}."
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
    """No suitable Java was found. ``searched`` has a line for each place and each attempt to install one."""

    def __init__(self, searched: Sequence[str]) -> None:
        super().__init__(searched)
        self.searched = tuple(searched)

    def __str__(self) -> str:
        places = "\n".join(f"  - {line}" for line in self.searched)
        return f"no suitable Java: {_REQUIRED}. Searched:\n{places}\n{_HINT}"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine: its home folder, version text and module names."""

    home: Path
    version: str
    modules: frozenset[str]

    @property
    def executable(self) -> Path:
        """The path of the ``java`` program."""
        return self.home / "bin" / "java"

    @property
    def problem(self) -> str | None:
        """Why this Java is not suitable, or None."""
        if not re.match(rf"({'|'.join(map(str, SUPPORTED))})\b", self.version):
            return f"version {self.version}"
        if NEEDED_MODULE not in self.modules:
            return f"version {self.version} without module {NEEDED_MODULE}"
        return None


def find_java() -> Java:
    """Return a suitable Java: from JAVA_HOME, then PATH, then the usual folders.

    Raises `NoJava`, which lists every Java found and its problem.
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
    """Return the Java that a home's ``release`` file describes, or None if the file is incomplete."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    properties = dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    if not {"JAVA_VERSION", "MODULES"} <= properties.keys() or not (home / "bin" / "java").is_file():
        return None
    return Java(home, properties["JAVA_VERSION"], frozenset(properties["MODULES"].split()))


def _query(home: Path) -> Java | None:
    """Return the Java that ``java`` itself describes, or None if it fails."""
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


def install_java(*, download: bool = False) -> Java:
    """Return a suitable Java; install one with apt if there is none, as root on Debian and Ubuntu.

    With ``download`` or ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1`` install-jdk downloads one if apt fails; its
    archive is not checked. Only the commands that prepare a machine call this function.
    Raises `NoJava`, which lists the attempts.
    """
    download = download or os.environ.get(INSTALL_VARIABLE, "") not in {"", "0"}
    attempts: list[str] = []
    for install in (_by_apt, _by_install_jdk) if download else (_by_apt,):
        with suppress(NoJava):
            return find_java()
        attempts.append(install())
    if not download:
        attempts.append(_NOT_TRIED)
    try:
        return find_java()
    except NoJava as error:
        raise NoJava([*error.searched, *attempts]) from None


def _by_apt() -> str:
    """Install a headless JRE with apt; return the result as text."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "apt: not tried (needs root on Debian or Ubuntu)"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with Progress() as progress:
        progress.log("Java: installing with apt")
        subprocess.run(["apt-get", "update", "-qq"], env=env, check=False, stdout=subprocess.DEVNULL)
        for feature in SUPPORTED:
            package = f"openjdk-{feature}-jre-headless"
            argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
            done = subprocess.run(argv, env=env, check=False, capture_output=True, text=True)
            if done.returncode == 0:
                return f"apt: installed {package}"
    return f"apt: failed ({(done.stderr.strip() or 'no message').splitlines()[-1]})"


def _by_install_jdk() -> str:
    """Download a JDK into ``~/.jdk`` with the package install-jdk; return the result as text."""
    try:
        jdk = importlib.import_module("jdk")
    except ImportError:
        return "install-jdk: not installed (pip install 'cloudevents-kafka[testing]')"
    with Progress() as progress:
        progress.log(f"Java: downloading version {SUPPORTED[0]} into {Path.home() / '.jdk'}; {_UNCHECKED}")
        try:
            return f"install-jdk: installed {jdk.install(str(SUPPORTED[0]))}"
        except (OSError, ValueError, jdk.JdkError) as error:
            return f"install-jdk: failed ({error})"
