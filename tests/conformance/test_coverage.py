"""The vectors themselves: well-formed, told apart by name, and no clause without a case."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.clauses import SECTIONS

from .loading import FILES, MATRIX, VECTORS, Case, all_cases, document
from .schema import Schema

CLAUSES = {clause["id"]: clause for clause in document("clauses.json")["clauses"]}
SCHEMA = Schema(json.loads((VECTORS / "schema.json").read_text("utf-8")))
ACCEPTING = ("sniff", "transcode", "relay", "round-trip", "equal", "key")


@pytest.mark.parametrize("name", [MATRIX, "clauses.json", *FILES])
def test_file_follows_the_schema(name: str) -> None:
    """A vector file has the shape that others are told to expect."""
    assert SCHEMA.errors(document(name)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"about": "x", "cases": [{"id": "a", "clause": "K-01"}]},
        {"about": "x", "cases": [], "more": 1},
        {
            "about": "x",
            "clauses": [{"id": "K-1", "level": "MUST", "source": "s", "about": "a", "refuses": True}],
        },
    ],
)
def test_schema_refuses(wrong: Any) -> None:
    """The schema says no to files that lack something, have too much, or name no clause."""
    assert SCHEMA.errors(wrong)


def test_every_file_is_run() -> None:
    """No file lies beside the others unread."""
    there = {path.relative_to(VECTORS).as_posix() for path in VECTORS.glob("**/*.json")}
    assert there == {MATRIX, "clauses.json", "schema.json", *FILES}


def test_ids_are_unique() -> None:
    """Each case has a name of its own over all files."""
    counts = Counter(case["id"] for case in all_cases())
    assert [name for name, count in counts.items() if count > 1] == []


def test_cases_name_known_clauses() -> None:
    """A case belongs to a clause of the list, in the file that says so."""
    assert {case["clause"] for case in all_cases()} <= CLAUSES.keys()
    for name in FILES:
        of_file = document(name).get("clauses", CLAUSES)
        assert {case["clause"] for case in document(name)["cases"]} <= set(of_file)


@pytest.mark.parametrize("clause", CLAUSES)
def test_clause_has_a_case(clause: str) -> None:
    """Each testable clause has a case or a test; one that refuses has cases for both sides."""
    own = [case for case in all_cases() if case["clause"] == clause]
    assert own or clause in _clauses_of_tests()
    if CLAUSES[clause]["refuses"]:
        named = clause in _clauses_of_tests()
        assert any(map(_accepts, own)), "nothing is accepted"
        assert named or not all(map(_accepts, own)), "nothing is refused"


def test_errors_name_listed_clauses() -> None:
    """A clause that an error of the library names can be looked up in the list."""
    assert SECTIONS.keys() <= CLAUSES.keys()


def _accepts(case: Case) -> bool:
    if case["kind"] == "decode":
        return case["strict"]["verdict"] == "event"
    if case["kind"] == "encode":
        return "refused" not in case
    return bool(case["kind"] in ACCEPTING or case.get("accepted") or case.get("is_json"))


def _clauses_of_tests() -> set[str]:
    """Read clause ids from names: ``test_t_07_…`` is a test of T-07."""
    found = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_([a-z])_(\d\d)_", node.name)):
                found.add(f"{match[1].upper()}-{match[2]}")
    return found
