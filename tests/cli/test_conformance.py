"""`conformance` shows which clauses are met, and which are not."""

from __future__ import annotations

import shutil

from cloudevents_kafka.conformance.library import Library


def test_the_table_has_areas_and_levels(run):
    """Areas are rows, levels are columns; what is not shown is told with its reason; exit code 0."""
    done = run("conformance", "--no-tests")
    assert done.exit_code == 0
    head, *rest = done.stdout.splitlines()
    assert head.split()[:4] == ["area", "MUST", "SHOULD", "MAY"]
    areas = list(dict.fromkeys(clause.area for clause in Library().clauses))
    assert [line.split("  ")[0] for line in rest[: len(areas) + 1]] == [*areas, "all"]
    assert "not shown: R-19 (SHOULD)" in done.stdout
    assert "running" in done.stderr


def test_a_clause_in_detail(run):
    """One clause is shown with its text, the number of its cases, and its tests."""
    done = run("conformance", "--clause", "K-07", "--no-tests")
    assert done.exit_code == 0
    assert done.stdout.startswith("K-07  MUST  Kafka binding 3.2.2\n  In binary mode no data is ")
    assert "not run: tests/clients/test_real_clients.py::test_a_tombstone" in done.stdout


def test_a_clause_that_is_none(run):
    """An id that no clause has is bad usage, and the ids there are are told."""
    done = run("conformance", "--clause", "Z-99", "--no-tests")
    assert done.exit_code == 2
    assert "no clause Z-99; there are A-01" in done.stderr


def test_what_speaks_against_a_clause_fails(run, tmp_path):
    """A case that does not hold is told with what was seen, in table and report; exit code 1."""
    shutil.copytree(Library().folder, tmp_path / "data")
    file = tmp_path / "data" / "vectors" / "spec-rows" / "sdk.json"
    spoilt = file.read_text("utf-8").replace('"mode": "not-an-event"', '"mode": "batch"')
    file.write_text(spoilt, "utf-8")
    target = tmp_path / "report.md"
    done = run("conformance", "--folder", str(tmp_path / "data"), "--no-tests", "--report", str(target))
    assert done.exit_code == 1
    assert "the mode must be 'batch', not 'not-an-event'" in done.stdout
    assert "- D-03 (MUST): " in target.read_text("utf-8")


def test_a_folder_without_clauses(run, tmp_path):
    """A folder without clauses is bad usage."""
    done = run("conformance", "--folder", str(tmp_path))
    assert done.exit_code == 2
    assert "clauses.toml" in done.stderr
