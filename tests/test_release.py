"""The steps of `make release` run one after another, and none hides the outcome of another."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "release.py"


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_file_location("release", SCRIPT)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "release", module)
    spec.loader.exec_module(module)
    return module


def make_python(folder: Path, version: str, says: str) -> Path:
    """Return a program that prints a version as a Python does."""
    program = folder / f"python{version}"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    return program


def test_a_failure_hides_no_other_step(release: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    """Each step runs and is in the table with its time; one failure makes the exit status 1."""

    def missing() -> None:
        raise release.NotHereError("Python 3.99 is not here")

    actions = {
        "good": lambda: release.command(sys.executable, "-c", "print('good runs')"),
        "bad": lambda: release.command(sys.executable, "-c", "raise SystemExit(3)"),
        "unknown": lambda: release.command("/no/such/program"),
        "absent": missing,
        "last": lambda: release.command(sys.executable, "-c", "print('last runs')"),
    }
    steps = [release.Step(name, f"what {name} does", action) for name, action in actions.items()]
    assert release.run(steps) == 1
    output = capfd.readouterr().out
    assert all(f"=== {name}: what {name} does" in output for name in actions)
    assert "good runs" in output
    assert "last runs" in output
    table = [re.split(r" {2,}|(?<=s)  ", line) for line in output.splitlines()[-5:]]
    assert [row[0] for row in table] == list(actions)
    assert [row[-1] for row in table[:2]] == ["passed", "FAILED: exit status 3"]
    assert table[2][-1].startswith("FAILED: ")
    assert table[3][-1] == "not run: Python 3.99 is not here"
    assert all(re.fullmatch(r"\d+ s", row[-2]) for row in table)


@pytest.mark.parametrize("absent", [False, True])
def test_a_missing_python_is_not_a_failure(release: ModuleType, *, absent: bool) -> None:
    """The exit status is 0 if no step failed."""

    def action() -> None:
        if absent:
            raise release.NotHereError("Python 3.99 is not here")

    assert release.run([release.Step("one", "does something", action)]) == 0


def test_pythons_are_found(release: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python is found on PATH, among those of pyenv and of uv; one of another version is not used."""
    path, home = tmp_path / "bin", tmp_path / "home"
    monkeypatch.setenv("PATH", str(path), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(home))
    first = make_python(path, "3.98", "3.98")
    make_python(path, "3.97", "3.11")
    by_pyenv = make_python(home / ".pyenv/versions/3.97.4/bin", "3.97", "3.97")
    by_uv = make_python(home / ".local/share/uv/python/cpython-3.96.1-linux/bin", "3.96", "3.96")
    assert [release.find_python(version) for version in ("3.98", "3.97", "3.96")] == [first, by_pyenv, by_uv]
    with pytest.raises(release.NotHereError, match=r"^Python 3\.95 with venv is neither on PATH"):
        release.find_python("3.95")


def test_steps_can_be_named() -> None:
    """`--list` prints the steps; an unknown one is an error with the known ones."""
    listed = subprocess.run([sys.executable, SCRIPT, "--list"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert names == [
        "tests",
        "tables",
        "histories",
        "pages",
        "old-brokers",
        "busy",
        "check",
        "soak",
        "properties",
        "fuzz",
        "mutants",
        "newest",
        "later",
        "peers",
        "registry",
        "sdk",
        "docs",
        "site",
        "package",
        "extras",
        "oldest",
        "sdk-1",
        "neighbours",
        *(f"wheel-3.{n}" for n in (11, 12, 13, 14)),
        "threads",
    ]
    wrong = subprocess.run([sys.executable, SCRIPT, "test"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "STEP must be one of tests, tables, histories, pages, old-brokers" in wrong.stderr
    assert "got test" in wrong.stderr


def test_the_tests_of_the_sdk_need_a_checkout(release: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path the step is not run; with one the tests of that checkout are."""
    monkeypatch.delenv("CLOUDEVENTS_SDK", raising=False)
    with pytest.raises(release.NotHereError, match="must be the path of a checkout"):
        release.sdk()
    ran = []
    monkeypatch.setattr(release, "command", lambda *argv: ran.append(argv[1:]))
    monkeypatch.setenv("CLOUDEVENTS_SDK", "/sdk")
    release.sdk()
    assert ran == [("-m", "tests.support.sdk_own_tests", "/sdk")]


def test_neighbours_are_the_newest(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Next to the wheel, pip must find the release of a framework that it finds without the wheel."""
    wanted = []

    def command(*argv: object) -> None:
        if "--report" in argv:
            path, *packages = argv[argv.index("--report") + 1 :]
            wanted.append(packages)
            names = [*release.NEIGHBOURS, *(["cloudevents"] if len(packages) > 1 else [])]
            found = {"install": [{"metadata": {"name": name, "version": "3.2"}} for name in names]}
            Path(str(path)).write_text(json.dumps(found))

    monkeypatch.setattr(release, "BUILD", tmp_path)
    monkeypatch.setattr(release, "command", command)
    monkeypatch.setattr(release, "built", lambda: "a.whl")
    monkeypatch.setattr(release, "find_python", lambda _: "python3")
    release.neighbours()
    assert wanted == [each for name in release.NEIGHBOURS for each in ([name], ["a.whl", f"{name}==3.2"])]
