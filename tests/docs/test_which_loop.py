"""Each promise in the table of the page "Which loop" names tests, which exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "how-to" / "which_loop.md"
SHOWN = tomllib.loads(Path(__file__).with_name("which_loop.toml").read_text("utf-8"))


def table() -> list[list[str]]:
    """Return the cells of the table, with its head."""
    text = PAGE.read_text("utf-8").partition("\n## What each promises\n")[2]
    found = re.search(r"^\|.*(?:\n\|.*)*", text, re.MULTILINE)
    assert found is not None
    head, _, *lines = found[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *lines)]


def test_each_cell_names_tests() -> None:
    """The lines and columns of the table are those of the file, and each cell has a promise and a test."""
    head, *lines = table()
    assert {line[0]: head[1:] for line in lines} == {name: list(cells) for name, cells in SHOWN.items()}
    assert all(all(line) for line in lines)
    assert all(tests for cells in SHOWN.values() for tests in cells.values())


def test_the_tests_exist() -> None:
    """Each of them is collected by pytest, also those that only a release runs."""
    named = sorted({test for cells in SHOWN.values() for tests in cells.values() for test in tests})
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", ""]
    done = subprocess.run(
        [*command, *(f"tests/{test}" for test in named)],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    collected = {name for line in done.stdout.splitlines() for name in (line, line.partition("[")[0])}
    assert [test for test in named if f"tests/{test}" not in collected] == []
