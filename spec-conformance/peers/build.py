"""Build the runners of peers in the user's cache folder, once for each state of their sources."""

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

from cloudevents_kafka.jvm import NoJava, building, cache_folder, find_java, locked, resolve

HERE: Final = Path(__file__).parent


class MissingToolchain(Exception):
    """A peer cannot be built because a tool is missing; the message names it."""


class BuildFailed(Exception):
    """The toolchain of a peer failed; the message has the end of its output."""


@dataclass(frozen=True)
class Program:
    """The command and environment of a runner."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


def build(peer: str) -> Program:
    """Return the runner of a peer, built unless it is in the cache.

    Raises `MissingToolchain` and `BuildFailed`.
    """
    folder, compile_runner, start = _PEERS[peer]
    source = HERE / folder
    entry = cache_folder() / "peers" / f"{peer}-{_digest(source)}"
    with locked(
        entry, waiting=lambda: print(f"{peer}: another process is building it; waiting", file=sys.stderr)
    ):
        if not entry.exists():
            print(f"{peer}: building the runner in {entry}", file=sys.stderr)
            with building(entry) as scratch:
                shutil.copytree(source, scratch, dirs_exist_ok=True)
                compile_runner(scratch)
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


# --- toolchains: a function that builds a runner in a folder, and one that starts it ---


def _jars(folder: Path) -> str:
    found = resolve((folder / "dependencies.txt").read_text(encoding="utf-8").split())
    return os.pathsep.join([str(folder), *map(str, found)])


def _java_home() -> Path:
    try:
        return find_java().home
    except NoJava as error:
        raise MissingToolchain(str(error)) from None


def _build_java(folder: Path) -> None:
    compiler = _java_home() / "bin" / "javac"
    if not compiler.exists():
        raise MissingToolchain(f"{compiler} is missing: install a JDK, not only a JRE")
    _run(folder, str(compiler), "-d", ".", "-cp", _jars(folder), "Peer.java")


def _start_java(folder: Path) -> Program:
    java = _java_home() / "bin" / "java"
    return Program([str(java), "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", _jars(folder), "Peer"])


def _build_javascript(folder: Path) -> None:
    _run(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")


def _start_javascript(folder: Path) -> Program:
    if shutil.which("node") is None:
        raise MissingToolchain("node is not on PATH")
    quiet = {"KAFKAJS_NO_PARTITIONER_WARNING": "1", "NODE_NO_WARNINGS": "1"}
    return Program(["node", str(folder / "peer.js")], quiet)


def _build_go(folder: Path) -> None:
    _run(folder, "go", "build", "-o", "peer", ".", GOFLAGS="-buildvcs=false")


def _start_binary(folder: Path) -> Program:
    return Program([str(folder / "peer")])


def _build_python(folder: Path, *, major: int) -> None:
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    _run(folder, sys.executable, *pip, "--target", "packages", "-r", f"requirements{major}.txt")


def _start_python(folder: Path, *, major: int) -> Program:
    command = [sys.executable, "-s", str(folder / "peer.py"), str(major)]
    return Program(command, {"PYTHONPATH": str(folder / "packages")})


def _build_rust(folder: Path) -> None:
    if shutil.which("cmake") is None:
        raise MissingToolchain("cmake is not on PATH; it is needed to compile librdkafka")
    _run(folder, "cargo", "build", "--quiet", "--release")
    shutil.copy2(folder / "target" / "release" / "peer", folder / "peer")
    shutil.rmtree(folder / "target")


_Toolchain = tuple[str, Callable[[Path], None], Callable[[Path], Program]]


def _python(major: int) -> _Toolchain:
    return "python", partial(_build_python, major=major), partial(_start_python, major=major)


_PEERS: Final[dict[str, _Toolchain]] = {
    "java": ("java", _build_java, _start_java),
    "javascript": ("javascript", _build_javascript, _start_javascript),
    "go": ("go", _build_go, _start_binary),
    "python1": _python(1),
    "python2": _python(2),
    "rust": ("rust", _build_rust, _start_binary),
}
"""Peers by name: the folder of the sources, and the functions that build and start the runner."""
