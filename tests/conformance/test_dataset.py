"""The data: it is well formed, names are unique, and every clause has cases or tests."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from conformance import Clause, Dataset, DatasetError
from conformance._dataset import KINDS

from tests.support.cases import each

DATASET = Dataset()
CLAUSES = {clause.id: clause for clause in DATASET.clauses}
VECTORS = DATASET.folder / "vectors"
SCHEMA = json.loads((VECTORS / "schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "advice", "derived"}
ROOT = Path(__file__).parents[2]


def test_the_schema_is_valid() -> None:
    """The schema is a JSON Schema of draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", [*DATASET.files, pytest.param("records.json", marks=pytest.mark.release)])
def test_file_matches_the_schema(name: str) -> None:
    """A vector file, and the file of all records, has the documented shape."""
    folder = ROOT / "spec-conformance" if name == "records.json" else VECTORS
    VALIDATOR.validate(json.loads((folder / name).read_text("utf-8")))


@each(
    "wrong",
    [
        {"about": "x", "cases": [{"id": "a", "clause": "K-01"}]},
        {"about": "x", "cases": [], "more": 1},
        {"about": "x", "clauses": ["K-1"], "cases": []},
    ],
)
def test_schema_refuses(wrong: Any) -> None:
    """The schema refuses files with a missing or an unknown member, and clauses with a wrong id."""
    assert not VALIDATOR.is_valid(wrong)


def _schemas_of_kinds() -> dict[str, Any]:
    """Return the schema of each kind of case."""
    kinds = {name: shape.get("properties", {}).get("kind") for name, shape in SCHEMA["$defs"].items()}
    return {
        kind["const"]: SCHEMA["$defs"][name]
        for name, kind in kinds.items()
        if isinstance(kind, dict) and "const" in kind
    }


def test_schema_and_types_have_the_same_kinds() -> None:
    """Each kind of case has a schema and a type."""
    assert _schemas_of_kinds().keys() == KINDS.keys()


@each("kind", KINDS)
def test_schema_and_type_have_the_same_members(kind: str) -> None:
    """The schema and the type of a kind have the same members, and the same of them are required."""
    schema, cls = _schemas_of_kinds()[kind], KINDS[kind]
    fields = msgspec.structs.fields(cls)
    assert schema["properties"].keys() == {"kind", *(field.name for field in fields)}
    required = {field.name for field in fields if field.required}
    assert {*schema["required"], *SCHEMA["$defs"]["case"]["required"]} == {"kind", *required}


def test_ids_are_unique() -> None:
    """The ids of cases and clauses are unique over all files."""
    names = Counter(case.id for _, case in DATASET.all_cases)
    names.update(clause.id for clause in DATASET.clauses)
    assert [name for name, count in names.items() if count > 1] == []


def test_the_matrix_is_whole() -> None:
    """All 68 rows of the decode matrix are there, in 104 records."""
    rows = [case["row"] for case in json.loads((VECTORS / "decode-matrix.json").read_text("utf-8"))["cases"]]
    assert set(rows) == set(range(1, 69))
    assert len(rows) == 104


def test_clauses_name_their_vectors() -> None:
    """A clause lists the files that have cases for it, and no others."""
    there: dict[str, set[str]] = {name: set() for name in CLAUSES}
    for name, case in DATASET.all_cases:
        there[case.clause].add(name)
    assert {clause.id: set(clause.vectors) for clause in DATASET.clauses} == there


def test_files_name_their_clauses() -> None:
    """A case belongs to one of the clauses that its file lists."""
    for name in DATASET.files:
        clauses = DATASET.file(name).clauses or CLAUSES
        assert {case.clause for case in DATASET.cases(name)} <= set(clauses), name


@each("clause", DATASET.clauses, ids=[clause.id for clause in DATASET.clauses])
def test_clause_has_cases_tests_or_a_reason(clause: Clause) -> None:
    """A clause has cases or tests, or a reason why it has none; never both."""
    assert clause.level in LEVELS
    assert bool(clause.vectors or clause.tests) is (clause.open is None)


@each("clause", DATASET.clauses, ids=[clause.id for clause in DATASET.clauses])
def test_clause_has_both_sides(clause: Clause) -> None:
    """A clause with cases has one of something accepted and one of something refused, or a reason why not."""
    sides = {case.accepts for _, case in DATASET.all_cases if case.clause == clause.id}
    if clause.vectors:
        assert (len(sides) == 2) is (clause.one_sided is None)


def test_named_tests_exist() -> None:
    """Each test that a clause names exists, `make test` runs it, and its cases have results of their own.

    In a loop, a case whose package is missing would make those that fail next to it count as not run.
    """
    for test in sorted({test for clause in DATASET.clauses for test in clause.tests}):
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name in functions, test
        marks = " ".join(map(ast.unparse, functions[name].decorator_list))
        assert not re.search(r"mark\.(peer|release)\b|\beach\(", marks), test


def test_tests_named_after_a_clause_are_listed() -> None:
    """The clause T-07 lists the tests that are named ``test_t_07_…``."""
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and (
                match := re.match(r"test_([a-z]{1,2})_(\d\d)_", node.name)
            ):
                clause = CLAUSES[f"{match[1].upper()}-{match[2]}"]
                assert f"tests/conformance/{path.name}::{node.name}" in clause.tests


@pytest.mark.parametrize("text", ["", "[[clause]]\nid = 1\n", "not toml", '[[clause]]\nid = "A"\n'])
def test_a_folder_without_clauses(tmp_path: Path, text: str) -> None:
    """A file of clauses that is missing or has another shape is named in the error."""
    with pytest.raises(DatasetError, match=r"clauses\.toml"):
        _ = Dataset(tmp_path).clauses
    (tmp_path / "clauses.toml").write_text(text, "utf-8")
    with pytest.raises(DatasetError, match=r"clauses\.toml"):
        _ = Dataset(tmp_path).clauses
