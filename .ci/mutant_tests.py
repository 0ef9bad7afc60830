"""The tests that may kill a mutant, and their runs in forks of this process.

`record` runs a file of tests without a change, and notes what its tests take and call. `tests_of` returns the
tests that call functions of a module, the quickest first; `run` ends a test that a mutant keeps from ending.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import resource
import sys
import threading
import time
from collections import Counter
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release" / "mutants"
PACKAGE = "cloudevents_kafka"
SAMPLED = ("attributes", "binding", "codecs", "formats")
"""The packages whose tests may kill mutants of each other."""

# Tests for these packages that stand in other folders.
OTHER_TESTS = ("tests/event", "tests/test_properties.py", "tests/test_refusals.py")
# These count calls, so it is not seen what they call: they run last for each mutant of these packages.
COUNTS = ("tests/test_function_calls.py", "tests/test_slow_path.py")
# What tests import and the package does not change: a worker imports it once for all its mutants.
IMPORTED = (
    "_hypothesis_pytestplugin",
    "confluent_kafka",
    "fastavro",
    "google.protobuf",
    "hypothesis",
    "msgspec",
)
VARIABLES = {"PYTHONDONTWRITEBYTECODE": "1", "EXAMPLES": "0.2", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
# Only what the tests need: other plug-ins take longer than most of them.
PYTEST = ["-x", "-q", "--timeout=600", "--tb=no", "--assert=plain", "--hypothesis-profile=first"]
PYTEST += ["-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout", "-p", "xdist.plugin"]
PYTEST += ["-p", "no:cacheprovider", "-p", "no:unraisableexception"]
PYTEST += ["-m", "not broker and not spark and not legacy and not peer and not release and not slow"]
FORK = multiprocessing.get_context("fork")
# A mutant with which a test takes ten times its CPU seconds, and these in addition, does not end.
CPU_SECONDS = 5
MOST_CPU_SECONDS = 100  # of imports, and of a test without a change
MEMORY = 4 << 30


class Called(NamedTuple):
    """What a test takes and calls: CPU seconds, and lines of functions, first and last, by module."""

    seconds: float
    lines: dict[str, list[list[int]]]


def mirror_of(module: str) -> str:
    """Return the path of the file of tests that mirrors a module, which need not exist."""
    path = Path("tests", module)
    return str(path.with_name(f"test_{path.name.removeprefix('_')}"))


def files_of(modules: set[str]) -> list[str]:
    """Return the files of tests that may kill mutants of modules."""
    mirrors = {mirror for mirror in map(mirror_of, modules) if (ROOT / mirror).exists()}
    if not any(module.startswith(SAMPLED) for module in modules):
        return sorted(mirrors)
    paths = [ROOT / name for name in (*(f"tests/{name}" for name in SAMPLED), *OTHER_TESTS, *COUNTS)]
    found = (file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py")))
    return sorted(mirrors | {str(file.relative_to(ROOT)) for file in found}, reverse=True)


def record(file: str) -> int:
    """Run a file of tests without a change, write what its tests call, and return as `run` does."""
    return run([file], Recorder(BUILD / f"{file.replace('/', '.')}.json"))


@cache
def recorded() -> dict[str, Called]:
    """Return what tests take and call, by their names."""
    documents = [json.loads(path.read_text("utf-8")) for path in BUILD.glob("*.json")]
    return {name: Called(*test) for tests in documents for name, test in tests.items()}


def is_killed(module: str, line: int) -> bool:
    """Return whether a test fails for a module as it is here, which is mutated in a line."""
    runs = (run(sorted({*map(file_of, names)}), Chosen(names)) for names in tests_of(module, line))
    return any(runs)


def tests_of(module: str, line: int) -> list[list[str]]:
    """Return the tests that call functions of a module: of the file that knows it best, and of others.

    First are those that call the function of this line, the quickest first. A line that no function has may
    be a constant of other modules, so any test may notice it.
    """
    tests = {name: (called.lines.get(module, []), called.seconds) for name, called in recorded().items()}
    is_constant = not any(at(lines, line) for lines, _ in tests.values())
    order = {
        name: (not at(lines, line), not lines, seconds)
        for name, (lines, seconds) in tests.items()
        if lines or is_constant or file_of(name) in COUNTS
    }
    files = Counter(file_of(name) for name, (is_elsewhere, *_) in order.items() if not is_elsewhere)
    mirror = mirror_of(module)
    if mirror in map(file_of, order):
        files[mirror] += len(order)
    own = max(files, key=files.__getitem__, default="")
    names = sorted(order, key=order.__getitem__)
    parts = [name for name in names if file_of(name) == own], [name for name in names if file_of(name) != own]
    return [part for part in parts if part]


def at(functions: list[list[int]], line: int) -> bool:
    """Return whether a line is one of functions."""
    return any(first <= line <= last for first, last in functions)


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


class Recorder:
    """A plug-in of pytest that writes what tests take and call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: dict[str, Called] = {}
        self._codes: dict[int, CodeType] = {}  # by identity: a hash is one of all that a function does
        self._before = 0.0

    def pytest_runtest_logstart(self) -> None:
        """Begin to note functions."""
        limit_cpu(MOST_CPU_SECONDS)
        self._codes, self._before = {}, cpu_seconds()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note what the test took and called."""
        sys.setprofile(None)
        threading.setprofile(None)
        lines: dict[str, list[list[int]]] = {}
        for code in self._codes.values():
            _, is_ours, module = code.co_filename.rpartition(f"/{PACKAGE}/")
            if is_ours and code.co_flags & CO_OPTIMIZED:  # which no module or class has
                last = max(line for *_, line in code.co_lines() if line)
                lines.setdefault(module, []).append([code.co_firstlineno, last])
        self._tests[nodeid] = Called(cpu_seconds() - self._before, lines)

    def pytest_sessionfinish(self) -> None:
        """Write what all tests took and called."""
        self._path.write_text(json.dumps(self._tests), "utf-8")

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._codes[id(frame.f_code)] = frame.f_code


class Chosen:
    """A plug-in of pytest that runs chosen tests in their order, and ends one that does not end."""

    def __init__(self, names: list[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave the chosen tests, in their order."""
        # A mutant may change parameters of tests, and so their names.
        chosen = [item for item in items if item.nodeid in self._places or item.nodeid not in recorded()]
        items[:] = sorted(chosen, key=lambda item: self._places.get(item.nodeid, -1))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limit the CPU seconds of the test."""
        seconds = recorded()[nodeid].seconds if nodeid in recorded() else 1
        limit_cpu(CPU_SECONDS + 10 * seconds)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def limit_cpu(seconds: float) -> None:
    """End this process after some more seconds of CPU."""
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))


def run(files: list[str], plugin: Recorder | Chosen) -> int:
    """Return 0 if no test fails in a fork of this process, else the exit status of pytest, or the signal."""
    child = FORK.Process(target=run_here, args=(files, plugin))
    child.start()
    child.join()
    return int(child.exitcode or 0)


def run_here(files: list[str], plugin: Recorder | Chosen) -> None:
    """Run tests, without any output, and end this process."""
    import pytest

    limit_cpu(MOST_CPU_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.dont_write_bytecode = True
    os.environ |= {**VARIABLES, "PYTHONPATH": os.pathsep.join((str(Path.cwd()), *sys.path))}
    sys.path.insert(0, str(Path.cwd()))
    code = pytest.main([*PYTEST, *files], [plugin])
    os._exit(0 if code is pytest.ExitCode.NO_TESTS_COLLECTED else code)
