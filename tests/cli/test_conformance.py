"""`conformance` shows which clauses are met, and which are not."""

from __future__ import annotations

import json
import shutil

import pytest

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
    assert done.stdout.startswith("K-07  derived  Kafka binding 3.2.2\n  In binary mode no data is ")
    assert "not run: tests/clients/test_real_clients.py::test_a_tombstone" in done.stdout


def test_a_clause_that_is_none(run):
    """An id that no clause has is bad usage, and the ids there are are told."""
    done = run("conformance", "--clause", "Z-99", "--no-tests")
    assert done.exit_code == 2
    assert "no clause Z-99; there are A-01" in done.stderr


def test_a_clause_in_small_letters(run):
    """An id is found however its letters are spelled."""
    assert run("conformance", "--clause", "k-07", "--no-tests").stdout.startswith("K-07  derived")


def test_a_reader_that_has_gone(run, monkeypatch):
    """As with `head`: no bad usage, but the exit code that says so, and nothing on stderr."""

    def gone(_found, _documents):
        raise BrokenPipeError

    monkeypatch.setattr("cloudevents_kafka.conformance.report.markdown", gone)
    done = run("conformance", "--clause", "K-07", "--no-tests", "--report", "report.md")
    assert done.exit_code == 141
    assert "Broken pipe" not in done.stderr


@pytest.mark.parametrize("option", ["--report", "--records"])
def test_a_file_that_cannot_be_written(run, tmp_path, option):
    """It is told before anything runs, which takes minutes with the tests; exit code 2."""
    done = run("conformance", option, str(tmp_path / "none" / "report.md"))
    assert done.exit_code == 2
    assert "no folder" in done.stderr
    assert "running" not in done.stderr


@pytest.fixture
def spoilt(tmp_path):
    """A folder of data in which one case expects what is not so."""
    shutil.copytree(Library().folder, tmp_path / "data")
    file = tmp_path / "data" / "vectors" / "spec-rows" / "sdk.json"
    text = file.read_text("utf-8").replace('"mode": "not-an-event"', '"mode": "batch"')
    file.write_text(text, "utf-8")
    return str(tmp_path / "data")


def test_what_speaks_against_a_clause_fails(run, spoilt, tmp_path):
    """A case that does not hold is told with what was seen, in table and report; exit code 1."""
    target = tmp_path / "report.md"
    done = run("conformance", "--folder", spoilt, "--no-tests", "--report", str(target))
    assert done.exit_code == 1
    assert "the mode must be 'batch', not 'not-an-event'" in done.stdout
    assert "- D-03 (MUST): " in target.read_text("utf-8")


BASE = {"id": "Z-01/1", "clause": "Z-01", "source": "s", "about": "a"}
CLAUSES = """
[[document]]
title = "t"
version = "1"

[[clause]]
id = "Z-01"
area = "a"
level = "MUST"
source = "s"
about = "a"
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no vectors in"),
        ("[]", "it must be an object"),
        ('{"about": "x"}', "cases"),
        ('{"about": "x", "cases": {}}', "cases: must be an array"),
        ('{"about": "x", "cases": [1]}', "case 1: no kind of case is None; there are attribute, construct"),
        ('{"about": "x", "cases": [{}]}', "case 1: no kind of case is None"),
        ('{"about": "x", "clauses": ["Z-01"], "cases": [1]}', "case 1: $: must be of type object"),
        ({**BASE, "kind": "guess"}, "case Z-01/1: no kind of case is 'guess'; there are attribute"),
        ({**BASE, "kind": []}, "case Z-01/1: no kind of case is []"),
        ({**BASE, "kind": "sniff", "headers": []}, "case Z-01/1: $: mode is missing"),
        (
            {**BASE, "kind": "sniff", "headers": [["a"]], "mode": "binary"},
            "case Z-01/1: $.headers[0]: too short",
        ),
        (
            {**BASE, "kind": "encode", "event": {"attributes": {}, "data": None}, "mode": "binary"},
            "is missing",
        ),
        ({**BASE, "kind": "attribute", "attribute": "x", "accepted": True}, "is missing"),
        (
            {**BASE, "kind": "attribute", "attribute": "x", "value": {"hex": "z"}, "accepted": True},
            "$.value",
        ),
        (
            {
                **BASE,
                "kind": "construct",
                "event": {"attributes": {"data": "1"}, "data": None},
                "accepted": True,
            },
            "$.event.attributes.data: must not be there",
        ),
        (
            {**BASE, "kind": "relay", "record": {"key": {"text": "\ud800"}, "value": None, "headers": []}},
            "surrogates not allowed",
        ),
        (
            {**BASE, "clause": "Z-02", "kind": "sniff", "headers": [], "mode": "not-an-event"},
            "case Z-01/1: no clause Z-02 in clauses.toml",
        ),
        ('{"about": "x", "declared": {"id": "Integer"}, "cases": []}', "declared: 'id' cannot name"),
        ('{"about": "x", "cases": ' + "[" * 100_000, "recursion"),
    ],
)
def test_vectors_that_are_none(run, tmp_path, text, told):
    """A vector file that is broken is bad usage: told with its name, its case and what is wrong."""
    file = tmp_path / "vectors" / "x.json"
    file.parent.mkdir()
    (tmp_path / "clauses.toml").write_text(CLAUSES, "utf-8")
    file.write_text(text if isinstance(text, str) else json.dumps({"about": "x", "cases": [text]}), "utf-8")
    done = run("conformance", "--folder", str(tmp_path), "--no-tests")
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == 2
    assert "x.json" in done.stderr
    assert told in done.stderr


def test_a_folder_without_vectors(run, tmp_path):
    """Clauses alone show nothing: a folder without vectors is bad usage."""
    (tmp_path / "clauses.toml").write_text(CLAUSES, "utf-8")
    done = run("conformance", "--folder", str(tmp_path), "--no-tests")
    assert done.exit_code == 2
    assert "no JSON file is there" in done.stderr


def test_a_level_that_is_none(run, tmp_path):
    """A clause of a level that no document has is bad usage, too."""
    (tmp_path / "clauses.toml").write_text(CLAUSES.replace("MUST", "WILL"), "utf-8")
    done = run("conformance", "--folder", str(tmp_path), "--no-tests")
    assert done.exit_code == 2
    assert "WILL" in done.stderr


def test_records_of_a_case_that_does_not_hold(run, spoilt, tmp_path):
    """Records are written of cases that hold; else the first that does not is told, and exit code is 1."""
    target = tmp_path / "records.json"
    done = run("conformance", "--folder", spoilt, "--no-tests", "--records", str(target))
    assert done.exit_code == 1
    assert "no records were written" in done.stderr
    assert not target.exists()


def test_without_pytest(run, monkeypatch):
    """Where pytest is missing, that is said before anything is run, and what to do."""
    monkeypatch.setattr("cloudevents_kafka.cli.conformance.find_spec", lambda _: None)
    done = run("conformance")
    assert done.exit_code == 2
    assert "--no-tests leaves them out" in done.stderr


def test_a_folder_without_clauses(run, tmp_path):
    """A folder without clauses is bad usage."""
    done = run("conformance", "--folder", str(tmp_path))
    assert done.exit_code == 2
    assert "clauses.toml" in done.stderr
