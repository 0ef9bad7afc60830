"""The table of the documents' statements is complete and current, and names existing tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from .conformance_table import TABLE, entries, load, render

ROOT = Path(__file__).parents[2]
# How many lines there are of each kind, numbered from 1; the one without a number is alone.
LINES = {
    "guide": {"S0-P": 6, "S0-F": 4, "S0-N": 11, "S0-M": 8, "S0-A": 20, "S0-C": 2, "S0-D": 1},
    "0.7": {"S2-H": 4, "S2-F": 2, "S2-M": 1, "S2-O": 2, "S2-Z": 7, "S2-R": 2, "S2-B": 3, "S2-X": 0},
    "kip-625": {"S3-E": 5, "S3-T": 4, "S3-M": 4, "S3-C": 1},
    "join-group": {"S4-R": 3, "S4-B": 6},
}


@cache
def named_in(path):
    """Return the names of a file's tests, none if the file does not exist."""
    file = ROOT / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    return {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_each_line_is_there_once():
    """The table has each line of the checklist, in order, under its document."""
    wanted = [
        (document, f"{kind}{number}" if most else kind)
        for document, kinds in LINES.items()
        for kind, most in kinds.items()
        for number in range(1, max(most, 1) + 1)
    ]
    assert [(line["document"], line["id"]) for line in load()["lines"]] == wanted
    assert len(wanted) == len(set(wanted)) == 97


def test_each_line_is_shown_or_says_why_not():
    """A line or correction has either tests, each once, or a reason."""
    for entry in entries(load()["lines"]):
        assert entry.get("line") or entry.get("found"), entry
        assert ("shown_by" in entry) != ("not_shown" in entry), entry
        tests = entry.get("shown_by", ["a reason stands instead"])
        assert len(tests) == len(set(tests)) > 0, entry
        assert len(entry.get("not_shown", "as tests are named")) > 15, entry


def test_named_tests_exist():
    """Every named test exists in the named file."""
    tests = {test for entry in entries(load()["lines"]) for test in entry.get("shown_by", [])}
    assert len(tests) > 200
    assert [
        test for test in sorted(tests) if test.partition("::")[2] not in named_in(test.partition("::")[0])
    ] == []


def test_a_missing_test_is_detected():
    """A missing test or file is detected."""
    assert "test_a_missing_test_is_detected" in named_in("tests/protocol/test_conformance_table.py")
    assert "test_nothing" not in named_in("tests/protocol/test_conformance_table.py")
    assert named_in("tests/protocol/test_not_there.py") == set()


def test_the_table_is_current():
    """The Markdown is current; otherwise run python -m tests.protocol.conformance_table."""
    assert TABLE.read_text(encoding="utf-8") == render(load())
