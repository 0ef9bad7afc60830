"""`conformance` shows which clauses are met, and which are not."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest

from cloudevents_kafka.conformance.dataset import Library


def test_the_table_has_areas_and_levels(run):
    """Areas are rows, levels are columns; what is not shown is told with its reason; exit code 0."""
    done = run("conformance", "--no-tests")
    assert done.exit_code == 0
    head, *rest = done.stdout.splitlines()
    assert head.split()[:4] == ["area", "MUST", "SHOULD", "MAY"]
    areas = list(dict.fromkeys(clause.area for clause in Library().clauses))
    assert [line.split("  ")[0] for line in rest[: len(areas) + 1]] == [*areas, "all"]
    assert max(map(len, rest[: len(areas) + 1])) <= 80
    assert "not shown: R-19 (SHOULD)" in done.stdout
    assert "running" in done.stderr


def test_the_last_lines_tell_what_the_numbers_mean(run):
    """A test counts in each area, and levels share columns: both is said; cases add up."""
    done = run("conformance", "--no-tests")
    cases, levels, clauses = done.stdout.splitlines()[-3:]
    assert (
        cases == f"{len(Library().all_cases):,} cases ran; a case is of one clause, a test may show several."
    )
    total = next(line for line in done.stdout.splitlines() if line.startswith("all "))
    assert sum(map(int, total.split()[-3:-1])) == len(Library().all_cases)
    assert levels == "RECOMMENDED counts as SHOULD, advice as derived."
    assert re.fullmatch(r"(\d+) clauses: \d+ shown, \d+ not shown, \d+ not run, none FAILED\.", clauses)
    number, *parts = map(int, re.findall(r"\d+", clauses))
    assert number == sum(parts) == len(Library().clauses)


def test_what_was_not_run_is_not_open(run):
    """With --no-tests the clauses that have tests alone stand apart from those that nothing can show."""
    text = run("conformance", "--no-tests").stdout
    left = {clause.id for clause in Library().clauses if clause.tests and not clause.vectors}
    assert set(re.findall(r"^not shown: (\S+)", text, re.MULTILINE)) == {
        clause.id for clause in Library().clauses if clause.open
    }
    (told,) = re.findall(r"^not run: .*--no-tests\n  (.*)$", text, re.MULTILINE)
    assert set(told.split(", ")) == left


def test_a_clause_in_detail(run):
    """One clause is shown with its text, each of its cases and what came of it, and each of its tests."""
    done = run("conformance", "--clause", "K-07", "--no-tests")
    assert done.exit_code == 0
    assert done.stdout.startswith("K-07  derived  Kafka binding 3.2.2\n  In binary mode no data is ")
    told = [re.split(" {2,}", line.strip(), maxsplit=2) for line in done.stdout.splitlines()]
    cases = {case["id"]: case["about"] for _, case in Library().all_cases if case["clause"] == "K-07"}
    assert {rest[0]: rest[1] for _, *rest in told if len(rest) == 2 and rest[0] in cases} == cases
    assert ["accepted", "K-07/3", "Null is no data."] in told
    assert ["refused", "K-07/5", "No data and data of no bytes are not the same."] in told
    assert [
        "not run",
        "tests/clients/test_real_clients.py::test_a_tombstone_stays_null_on_a_compacted_topic",
    ] in told
    assert f"running {len(cases)} cases" in done.stderr


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


SPOILT = {
    "D-03/3": {"mode": "batch"},
    "D-03/1": {"strict": {"verdict": "batch"}},
    "D-02/3": {"mode": "structured"},
}


@pytest.fixture
def spoilt(tmp_path):
    """A folder of data in which cases expect what is not so."""
    shutil.copytree(Library().folder, tmp_path / "data")
    file = tmp_path / "data" / "vectors" / "spec-rows" / "sdk.json"
    document = json.loads(file.read_text("utf-8"))
    document["cases"] = [case | SPOILT.get(case["id"], {}) for case in document["cases"]]
    file.write_text(json.dumps(document), "utf-8")
    return str(tmp_path / "data")


def test_what_speaks_against_a_clause_fails(run, spoilt):
    """Clauses that fail come last, each failing case with what was expected and seen; exit code 1."""
    done = run("conformance", "--folder", spoilt, "--no-tests")
    assert done.exit_code == 1
    *before, second, third, last = done.stdout.rstrip().split("\n\n")
    assert "FAILED" not in "".join(before)
    title, case, seen = second.splitlines()
    assert title.startswith("FAILED: D-02 (MUST) Structured mode is there")
    assert case == "  FAILED    D-02/3  Batch has a verdict of its own."
    assert seen.strip() == "the mode must be 'structured', not 'batch'"
    assert third.startswith("FAILED: D-03 (MUST) ")
    assert third.count("\n  FAILED    D-03/") == 2
    assert last.endswith("2 FAILED (3 cases).")


def test_a_failing_clause_in_detail(run, spoilt):
    """What failed stands behind the cases that hold, and is counted at the end."""
    done = run("conformance", "--folder", spoilt, "--no-tests", "--clause", "D-03")
    assert done.exit_code == 1
    *_, good, bad, verdict, other, mode, empty, total = done.stdout.splitlines()
    assert good.startswith("  accepted  D-03/2  ")
    assert (bad, other) == (
        "  FAILED    D-03/1  JSON in upper case.",
        "  FAILED    D-03/3  Without regard to case, but letter by letter: an s is missing.",
    )
    assert verdict.strip().startswith("the verdict must be 'batch', not 'event': Event(id='1', ")
    assert mode.strip() == "the mode must be 'batch', not 'not-an-event'"
    assert (empty, total) == ("", "1 clause: 1 FAILED (2 cases).")


def test_the_report_tells_failures_first(run, spoilt, tmp_path):
    """In the report, too, what failed stands apart from what was not run, and from what nothing can show."""
    target = tmp_path / "report.md"
    run("conformance", "--folder", spoilt, "--no-tests", "--report", str(target))
    text = target.read_text("utf-8")
    failed, rest = text.partition("\nFAILED:\n")[2].split("\nNot run:\n")
    left, rest = rest.split("\nNot shown:\n")
    assert "- D-03 (MUST): " in failed
    assert "`D-03/3`: the mode must be 'batch', not 'not-an-event'." in failed
    assert "- D-06 (SHOULD): " in left
    assert "- N-07 (SHOULD): " in rest


def test_a_terminal_obeys_nothing_of_a_folder(run, tmp_path):
    """What clauses and cases of elsewhere say is spelled out."""
    (tmp_path / "vectors").mkdir()
    (tmp_path / "clauses.toml").write_text(CLAUSES.replace('about = "a"', 'about = "\\u001b[2J"'), "utf-8")
    case = {**BASE, "about": "\x1b[2J", "kind": "sniff", "headers": [], "mode": "batch"}
    (tmp_path / "vectors" / "x.json").write_text(json.dumps({"about": "x", "cases": [case]}), "utf-8")
    for more in ([], ["--clause", "Z-01"]):
        done = run("conformance", "--folder", str(tmp_path), *more)
        assert done.exit_code == 1
        assert done.stdout.count("\\x1b[2J") == 2
        assert "\x1b" not in done.stdout


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


def test_without_pytest(run, monkeypatch, tmp_path):
    """Where pytest is missing, that is said before cases are run, and what to do; exit code 2."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', "utf-8")
    bare.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(bare))
    done = run("conformance")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "the tests cannot be run: " in done.stderr
    assert "No module named pytest" in done.stderr
    assert "pip install -e '.[test]'" in done.stderr
    assert "--no-tests leaves them out" in done.stderr


def test_without_packages_that_cases_need(run, monkeypatch):
    """Cases that lack a package speak against no clause: they were not run, and what to install is told."""
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    done = run("conformance", "--no-tests")
    assert done.exit_code == 0
    verify = [case for _, case in Library().all_cases if case["kind"] == "verify" and case["keys"]]
    assert f"not run: {len(verify)} cases, for want of packages\n  pip install cryptography\n" in done.stdout
    assert f"\n{len(Library().all_cases) - len(verify):,} cases ran; " in done.stdout
    assert done.stdout.endswith("none FAILED.\n")
    assert "  not run   X-48/7  " in run("conformance", "--no-tests", "--clause", "X-48").stdout


def test_a_folder_without_clauses(run, tmp_path):
    """A folder without clauses is bad usage."""
    done = run("conformance", "--folder", str(tmp_path))
    assert done.exit_code == 2
    assert "clauses.toml" in done.stderr


def test_an_empty_id_is_no_clause(run):
    """An unset variable of a script does not pass for a clause that holds."""
    done = run("conformance", "--clause", "", "--no-tests")
    assert done.exit_code == 2
    assert "no clause ''; there are A-01" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--report", "/dev/full"], "/dev/full cannot be written: No space left on device"),
        (["--records", "/dev/full"], "/dev/full cannot be written: No space left on device"),
        (["--report", ""], "'' cannot be written: it is a folder"),
        (["--report", "same", "--records", "./same"], "--report and --records name the same file: ./same"),
    ],
)
def test_a_file_that_cannot_be_written_to(run, tmp_path, monkeypatch, arguments, said):
    """Which it is, and why, is told; two of one name would leave just the second."""
    monkeypatch.chdir(tmp_path)
    done = run("conformance", "--no-tests", "--clause", "K-07", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("file", "kind", "change"),
    [
        ("behaviour.json", "moment", lambda case: case | {"now": "event"}),
        (
            "verifiability.json",
            "verify",
            lambda case: {name: case[name] for name in case if name != "attributes"},
        ),
    ],
)
def test_a_case_that_cannot_be_run_speaks_against_its_clause(run, tmp_path, file, kind, change):
    """A folder of elsewhere may follow the schema and make no sense all the same: no traceback."""
    shutil.copytree(Library().folder, tmp_path / "data")
    path = tmp_path / "data" / "vectors" / "spec-rows" / file
    document = json.loads(path.read_text("utf-8"))
    number = next(
        n for n, case in enumerate(document["cases"]) if case["kind"] == kind and case.get("attributes") != {}
    )
    document["cases"][number] = change(document["cases"][number])
    path.write_text(json.dumps(document), "utf-8")
    done = run("conformance", "--no-tests", "--folder", str(tmp_path / "data"))
    assert (done.exit_code, "Traceback" in done.stderr) == (1, False)
    assert f"FAILED    {document['cases'][number]['id']}  " in done.stdout
