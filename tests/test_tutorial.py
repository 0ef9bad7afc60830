"""The tutorial works as it is written: its files, its commands in three terminals, and what they print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from cloudevents_kafka.testing.local import free_ports

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
INSTALLS = ("python3 -m venv", ". .venv", "git clone", "pip install")
SECONDS = 100  # for each thing that a reader waits for


class Block(NamedTuple):
    """A block of the page: its language, its title (a file or a terminal) and its text."""

    language: str
    title: str
    text: str


def page() -> list[Block]:
    """Return the blocks of the tutorial in their order."""
    found = re.findall(
        r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return [Block(*parts) for parts in found]


def matches(expected: str, printed: str) -> bool:
    """Return whether all lines were printed, one after the other; … is any text."""
    lines = (re.escape(line).replace("…", ".*") for line in expected.splitlines())
    return re.search(r" *\n(?:.*\n)*? *".join(lines), printed) is not None


class Terminals:
    """A reader's terminals: the first runs a command to its end, the others go on."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._printed = ""

    def _log(self, title: str) -> Path:
        return self._folder / f"{title}.log"

    def run(self, command: str, title: str) -> None:
        """Run a command: in a terminal with a title, without waiting for its end."""
        arguments = ["bash", "-o", "pipefail", "-c", command]
        if title:
            with self._log(title).open("wb") as log:
                self._running[title] = subprocess.Popen(
                    ["bash", "-c", f"exec {command}"],
                    cwd=self._folder,
                    env=self._environment,
                    stdout=log,
                    stderr=log,
                )
            return
        done = subprocess.run(
            arguments,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}\n{self}"
        self._printed = done.stdout

    def expect(self, text: str, title: str) -> None:
        """Check what the last command has printed, or wait until a terminal with a title has."""
        deadline = time.monotonic() + SECONDS
        while not matches(text, self._log(title).read_text("utf-8") if title else self._printed):
            going_on = title and time.monotonic() < deadline and self._running[title].poll() is None
            assert going_on, f"expected:\n{text}\nprinted:\n{self._printed}\n{self}"
            time.sleep(0.05)

    def interrupt(self) -> None:
        """Press Ctrl-C in the terminals, the last first, and wait until their programs end."""
        for title, process in reversed(self._running.items()):
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)
            assert process.returncode in (0, 130), f"{title}: {process.returncode}\n{self}"

    def kill(self) -> None:
        """End what still runs after a failure."""
        for process in self._running.values():
            process.kill()
            process.wait()

    def __str__(self) -> str:
        return "\n".join(f"{title}:\n{self._log(title).read_text('utf-8')}" for title in self._running)


@contextmanager
def terminals(folder: Path, scripts: Path) -> Iterator[Terminals]:
    """Return a context manager for terminals in an empty folder, with the programs of an environment."""
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    opened = Terminals(
        folder, {**os.environ, "PATH": path, "JDK_JAVA_OPTIONS": java, "PYTHONUNBUFFERED": "1"}
    )
    try:
        yield opened
        opened.interrupt()
    finally:
        opened.kill()


def follow(reader: Terminals, folder: Path) -> None:
    """Do what the page says, with a free port in place of 9092."""
    (port,) = free_ports(1)
    for block in page():
        text = block.text.replace("9092", str(port))
        if block.language == "sh":
            for command in re.split(r"(?<![\\|])\n", text.rstrip()):  # some have several lines
                if not command.startswith(INSTALLS):
                    reader.run(command, block.title)
        elif block.language == "text":
            reader.expect(text, block.title)
        else:
            (folder / block.title).write_text(text, "utf-8")


@pytest.mark.release  # the demo and the other pages are its sample
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_tutorial_works(tmp_path: Path) -> None:
    """Each command of the tutorial succeeds, and prints what the page says."""
    with terminals(tmp_path, Path(sys.executable).parent) as reader:
        follow(reader, tmp_path)


@pytest.mark.release
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tutorial_works_in_an_empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing but what the page's installation brings, from this source."""
    (install,) = (
        line for block in page() for line in block.text.splitlines() if line.startswith("pip install")
    )
    extras = install.partition("[")[2].partition("]")[0]
    monkeypatch.delenv("PYTHONPATH", raising=False)
    home = tmp_path / "new"
    venv.create(home, with_pip=True)
    pip = [home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{ROOT}[{extras}]"], check=True, timeout=1200)
    with terminals(tmp_path, home / "bin") as reader:
        follow(reader, tmp_path)
