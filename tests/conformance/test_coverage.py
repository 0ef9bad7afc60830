"""The data itself: well-formed, told apart by name, and no clause without what shows it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.conformance.cases import KINDS, accepts
from cloudevents_kafka.conformance.dataset import Library
from cloudevents_kafka.conformance.schema import Schema

LIBRARY = Library()
CLAUSES = {clause.id: clause for clause in LIBRARY.clauses}
SCHEMA = Schema(LIBRARY.schema)
LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "advice", "derived"}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", LIBRARY.files)
def test_file_follows_the_schema(name: str) -> None:
    """A vector file has the shape that others are told to expect."""
    assert SCHEMA.errors(LIBRARY.document(name)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"about": "x", "cases": [{"id": "a", "clause": "K-01"}]},
        {"about": "x", "cases": [], "more": 1},
        {"about": "x", "clauses": ["K-1"], "cases": []},
    ],
)
def test_schema_refuses(wrong: Any) -> None:
    """The schema says no to files that lack something, have too much, or name no clause."""
    assert SCHEMA.errors(wrong)


def test_schema_knows_all_kinds() -> None:
    """What can be run can be written, and what can be written can be run."""
    shapes = LIBRARY.schema["$defs"]
    kinds = {
        shape["properties"]["kind"]["const"] for name, shape in shapes.items() if "const" in _kind(shape)
    }
    assert kinds == KINDS.keys()


def _kind(shape: Any) -> Any:
    return shape.get("properties", {}).get("kind") or {}


def test_ids_are_unique() -> None:
    """Each case and each clause has a name of its own over all files."""
    names = Counter(case["id"] for _, case in LIBRARY.all_cases)
    names.update(clause.id for clause in LIBRARY.clauses)
    assert [name for name, count in names.items() if count > 1] == []


def test_the_matrix_is_whole() -> None:
    """All 67 rows of the decode matrix are there, in 103 records."""
    rows = [case["row"] for name, case in LIBRARY.all_cases if name == "decode-matrix.json"]
    assert set(rows) == set(range(1, 68))
    assert len(rows) == 103


def test_clauses_name_their_vectors() -> None:
    """A clause lists the files that have cases for it, and no others."""
    there: dict[str, set[str]] = {name: set() for name in CLAUSES}
    for name, case in LIBRARY.all_cases:
        there[case["clause"]].add(name)
    assert {clause.id: set(clause.vectors) for clause in LIBRARY.clauses} == there


def test_files_name_their_clauses() -> None:
    """A case belongs to one of the clauses that its file is about, where it says that."""
    for name in LIBRARY.files:
        of_file = LIBRARY.document(name).get("clauses", CLAUSES)
        assert {case["clause"] for case in LIBRARY.cases(name)} <= set(of_file), name


@pytest.mark.parametrize("clause", LIBRARY.clauses, ids=[clause.id for clause in LIBRARY.clauses])
def test_clause_is_shown(clause: Any) -> None:
    """A clause has something that shows it, or says why nothing does; never both."""
    assert clause.level in LEVELS
    assert bool(clause.vectors or clause.tests) is (clause.open is None)


@pytest.mark.parametrize("clause", LIBRARY.clauses, ids=[clause.id for clause in LIBRARY.clauses])
def test_clause_has_both_sides(clause: Any) -> None:
    """A clause has a case of something good and one of something refused, or says why not."""
    sides = {accepts(case) for _, case in LIBRARY.all_cases if case["clause"] == clause.id}
    if clause.vectors:
        assert (len(sides) == 2) is (clause.one_sided is None)


def test_named_tests_exist() -> None:
    """A test that shall show a clause is there, under that name."""
    for clause in LIBRARY.clauses:
        for test in clause.tests:
            path, _, name = test.partition("::")
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_tests_named_after_a_clause_are_listed() -> None:
    """``test_t_07_…`` is about T-07, which says so."""
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and (
                match := re.match(r"test_([a-z]{1,2})_(\d\d)_", node.name)
            ):
                clause = CLAUSES[f"{match[1].upper()}-{match[2]}"]
                assert f"tests/conformance/{path.name}::{node.name}" in clause.tests


def test_errors_name_listed_clauses() -> None:
    """A clause that an error of the library names can be looked up in the list."""
    assert SECTIONS.keys() <= CLAUSES.keys()
