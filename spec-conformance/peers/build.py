"""Builds each peer's runner into the user's cache folder, once for each state of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm import JvmError, cache_folder, find_java, resolve
from cloudevents_kafka.jvm.cache import building, locked

HERE: Final = Path(__file__).parent


class MissingToolchain(Exception):
    """A peer cannot be built here: the message names what is missing."""


class BuildFailed(Exception):
    """A peer's toolchain is there and did not do its work: the message has its last words."""


@dataclass(frozen=True)
class Program:
    """How a runner is started."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


def build(peer: str) -> Program:
    """Build the peer's runner unless it is in the cache; raises `MissingToolchain`, `BuildFailed`."""
    folder, make, start = _PEERS[peer]
    source = HERE / folder
    entry = cache_folder() / "peers" / f"{peer}-{_digest(source)}"
    with locked(entry, waiting=lambda: print(f"{peer}: another process builds it", file=sys.stderr)):
        if not entry.exists():
            print(f"{peer}: building the runner in {entry}", file=sys.stderr)
            with building(entry) as scratch:
                shutil.copytree(source, scratch, dirs_exist_ok=True)
                make(scratch)
    return start(entry)


def _digest(source: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(
        path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ):
        total.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:12]


def _run(folder: Path, *command: str, **environment: str) -> None:
    if shutil.which(command[0]) is None:
        raise MissingToolchain(f"{command[0]} is not on PATH")
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command)} failed in {folder}:\n{(done.stdout + done.stderr)[-3000:]}")


# --- one pair of functions for each toolchain: what to make in a folder, and how to start it ---


def _jars(folder: Path) -> str:
    found = resolve((folder / "dependencies.txt").read_text(encoding="utf-8").split())
    return os.pathsep.join([str(folder), *map(str, found)])


def _java_home() -> Path:
    try:
        return find_java().home
    except JvmError as error:
        raise MissingToolchain(str(error)) from None


def _make_java(folder: Path) -> None:
    compiler = _java_home() / "bin" / "javac"
    if not compiler.exists():
        raise MissingToolchain(f"{compiler} is not there: a JDK is needed, not only a JRE")
    _run(folder, str(compiler), "-d", ".", "-cp", _jars(folder), "Peer.java")


def _start_java(folder: Path) -> Program:
    java = _java_home() / "bin" / "java"
    return Program([str(java), "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", _jars(folder), "Peer"])


def _make_javascript(folder: Path) -> None:
    _run(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")


def _start_javascript(folder: Path) -> Program:
    if shutil.which("node") is None:
        raise MissingToolchain("node is not on PATH")
    quiet = {"KAFKAJS_NO_PARTITIONER_WARNING": "1", "NODE_NO_WARNINGS": "1"}
    return Program(["node", str(folder / "peer.js")], quiet)


def _make_go(folder: Path) -> None:
    _run(folder, "go", "build", "-o", "peer", ".", GOFLAGS="-buildvcs=false")


def _start_binary(folder: Path) -> Program:
    return Program([str(folder / "peer")])


def _make_python(folder: Path, *, major: int) -> None:
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    _run(folder, sys.executable, *pip, "--target", "packages", "-r", f"requirements{major}.txt")


def _start_python(folder: Path, *, major: int) -> Program:
    command = [sys.executable, "-s", str(folder / "peer.py"), str(major)]
    return Program(command, {"PYTHONPATH": str(folder / "packages")})


def _make_rust(folder: Path) -> None:
    if shutil.which("cmake") is None:
        raise MissingToolchain("cmake is not on PATH, and librdkafka is compiled with it")
    _run(folder, "cargo", "build", "--quiet", "--release")
    shutil.copy2(folder / "target" / "release" / "peer", folder / "peer")
    shutil.rmtree(folder / "target")


_Way = tuple[str, Callable[[Path], None], Callable[[Path], Program]]


def _python(major: int) -> _Way:
    return "python", partial(_make_python, major=major), partial(_start_python, major=major)


_PEERS: Final[dict[str, _Way]] = {
    "java": ("java", _make_java, _start_java),
    "javascript": ("javascript", _make_javascript, _start_javascript),
    "go": ("go", _make_go, _start_binary),
    "python1": _python(1),
    "python2": _python(2),
    "rust": ("rust", _make_rust, _start_binary),
}
"""Peers by name: the folder of the sources, what makes a runner of them, and what starts it."""
