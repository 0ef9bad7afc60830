"""`clauses` prints which clauses are shown, and why the others are not."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest
from conformance import Dataset

from tests.support.samples import one_in


def test_the_table_has_areas_and_levels(run):
    """Areas are rows and levels columns; a clause that is not shown has a reason; the exit code is 0."""
    done = run("clauses")
    assert done.exit_code == 0
    head, *rest = done.stdout.splitlines()
    assert head.split()[:4] == ["area", "MUST", "SHOULD", "MAY"]
    areas = list(dict.fromkeys(clause.area for clause in Dataset().clauses))
    assert [line.split("  ")[0] for line in rest[: len(areas) + 1]] == [*areas, "all"]
    assert max(map(len, rest[: len(areas) + 1])) <= 80
    assert "not shown: R-19 (SHOULD)" in done.stdout
    assert "running" in done.stderr


@pytest.mark.release
def test_the_last_lines_explain_the_numbers(run):
    """The last lines say that a test may count in several rows, and levels share columns; cases add up."""
    done = run("clauses")
    cases, levels, clauses = done.stdout.splitlines()[-3:]
    assert (
        cases
        == f"{len(Dataset().all_cases):,} cases ran; a case belongs to one clause, a test may show several."
    )
    total = next(line for line in done.stdout.splitlines() if line.startswith("all "))
    assert sum(map(int, total.split()[-3:-1])) == len(Dataset().all_cases)
    assert levels == "RECOMMENDED counts as SHOULD, advice as derived."
    assert re.fullmatch(r"(\d+) clauses: \d+ shown, \d+ not shown, \d+ not run, none FAILED\.", clauses)
    number, *parts = map(int, re.findall(r"\d+", clauses))
    assert number == sum(parts) == len(Dataset().clauses)


@pytest.mark.release
def test_clauses_that_were_not_run_stand_apart(run):
    """Without --results, clauses with tests only are not run; those that nothing can show are not shown."""
    text = run("clauses").stdout
    left = {clause.id for clause in Dataset().clauses if clause.tests and not clause.vectors}
    assert set(re.findall(r"^not shown: (\S+)", text, re.MULTILINE)) == {
        clause.id for clause in Dataset().clauses if clause.open
    }
    (names,) = re.findall(r"^not run: .*--results FILE.*\n  (.*)$", text, re.MULTILINE)
    assert set(names.split(", ")) == left


def test_a_clause_in_detail(run):
    """One clause is printed with its text and the result of each of its cases and tests."""
    done = run("clauses", "--clause", "K-07")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "K-07  derived  Kafka binding 3.2.2\n  In binary mode an event without data "
    )
    lines = [re.split(" {2,}", line.strip(), maxsplit=2) for line in done.stdout.splitlines()]
    cases = {case.id: case.about for _, case in Dataset().all_cases if case.clause == "K-07"}
    assert {rest[0]: rest[1] for _, *rest in lines if len(rest) == 2 and rest[0] in cases} == cases
    assert ["accepted", "K-07/3", "A null value is an event without data."] in lines
    assert ["refused", "K-07/5", "No data and data of no bytes are not the same."] in lines
    assert [
        "not run",
        "tests/clients/test_real_clients.py::test_a_tombstone_stays_null_on_a_compacted_topic",
    ] in lines
    assert f"running {len(cases)} cases" in done.stderr


@pytest.mark.release
def test_a_clause_in_lower_case(run):
    """An id is found regardless of case."""
    assert run("clauses", "--clause", "k-07").stdout.startswith("K-07  derived")


@pytest.mark.release
def test_a_closed_pipe(run, monkeypatch):
    """A closed pipe, as with `head`, has its exit code and no message."""

    def close(_results, _documents):
        raise BrokenPipeError

    monkeypatch.setattr("conformance.report.markdown", close)
    done = run("clauses", "--clause", "K-07", "--report", "report.md")
    assert done.exit_code == 141
    assert "Broken pipe" not in done.stderr


WRONG = {
    "D-03/3": {"mode": "batch"},
    "D-03/1": {"strict": {"verdict": "batch"}},
    "D-02/3": {"mode": "structured"},
}


@pytest.fixture
def wrong_data(tmp_path):
    """Return a folder of data in which some cases expect wrong results."""
    shutil.copytree(Dataset().folder, tmp_path / "data")
    file = tmp_path / "data" / "vectors" / "spec-rows" / "sdk.json"
    document = json.loads(file.read_text("utf-8"))
    document["cases"] = [case | WRONG.get(case["id"], {}) for case in document["cases"]]
    file.write_text(json.dumps(document), "utf-8")
    return str(tmp_path / "data")


def test_failures_come_last(run, wrong_data):
    """Clauses that fail come last, each failing case with a detail; the exit code is 1."""
    done = run("clauses", "--folder", wrong_data)
    assert done.exit_code == 1
    *before, second, third, last = done.stdout.rstrip().split("\n\n")
    assert "FAILED" not in "".join(before)
    title, case, detail = second.splitlines()
    assert title.startswith("FAILED: D-02 (MUST) An implementation supports")
    assert case == "  FAILED    D-02/3  Batch has a verdict of its own."
    assert detail.strip() == "the mode must be 'structured', not 'batch'"
    assert third.startswith("FAILED: D-03 (MUST) ")
    assert third.count("\n  FAILED    D-03/") == 2
    assert last.endswith("2 FAILED (3 cases).")


def test_a_failing_clause_in_detail(run, wrong_data):
    """Failures follow the cases that hold and are counted at the end."""
    done = run("clauses", "--folder", wrong_data, "--clause", "D-03")
    assert done.exit_code == 1
    *_, good, bad, verdict, other, mode, empty, total = done.stdout.splitlines()
    assert good.startswith("  accepted  D-03/2  ")
    assert (bad, other) == (
        "  FAILED    D-03/1  JSON in upper case.",
        "  FAILED    D-03/3  Case is ignored, letters are not: an s is missing.",
    )
    assert verdict.strip().startswith("the verdict must be 'batch', not 'event': Event(id='1', ")
    assert mode.strip() == "the mode must be 'batch', not 'not-an-event'"
    assert (empty, total) == ("", "1 clause: 1 FAILED (2 cases).")


@pytest.mark.release  # `test_failures_come_last` is its sample
def test_the_report_has_failures_first(run, wrong_data, tmp_path):
    """The report lists failures, clauses that were not run and clauses that nothing can show apart."""
    target = tmp_path / "report.md"
    run("clauses", "--folder", wrong_data, "--report", str(target))
    text = target.read_text("utf-8")
    failed, rest = text.partition("\nFAILED:\n")[2].split("\nNot run:\n")
    left, rest = rest.split("\nNot shown:\n")
    assert "- D-03 (MUST): " in failed
    assert "`D-03/3`: the mode must be 'batch', not 'not-an-event'." in failed
    assert "- D-06 (SHOULD): " in left
    assert "- N-07 (SHOULD): " in rest


def test_control_characters_are_escaped(run, tmp_path):
    """Control characters in clauses and cases of another folder are escaped."""
    (tmp_path / "vectors").mkdir()
    (tmp_path / "clauses.toml").write_text(CLAUSES.replace('about = "a"', 'about = "\\u001b[2J"'), "utf-8")
    case = {**BASE, "about": "\x1b[2J", "kind": "sniff", "headers": [], "mode": "batch"}
    (tmp_path / "vectors" / "x.json").write_text(json.dumps({"about": "x", "cases": [case]}), "utf-8")
    for more in ([], ["--clause", "Z-01"]):
        done = run("clauses", "--folder", str(tmp_path), *more)
        assert done.exit_code == 1
        assert done.stdout.count("\\x1b[2J") == 2
        assert "\x1b" not in done.stdout


BASE = {"id": "Z-01/1", "clause": "Z-01", "source": "s", "about": "a"}
SNIFF = {**BASE, "kind": "sniff", "headers": [], "mode": "binary"}
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
    ("text", "message"),
    [
        ("", "must contain vectors: Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"about": "x"}', "cases"),
        ('{"about": "x", "cases": {}}', "Expected `array`, got `object` - at `$.cases`"),
        ('{"about": "x", "cases": [1]}', "case 1: Expected `object`, got `int`"),
        ('{"about": "x", "cases": [{}]}', "case 1: kind must be one of attribute, construct, "),
        (
            '{"about": "x", "cases": [{"name": "a"}]}',
            "case decode-matrix/a: Object missing required field",
        ),
        ({**BASE, "kind": "guess"}, "case Z-01/1: kind must be one of attribute, construct, "),
        ({**BASE, "kind": []}, "verify, got []"),
        ({**BASE, "kind": "sniff", "headers": []}, "case Z-01/1: Object missing required field `mode`"),
        (
            {**SNIFF, "headers": [["a"]]},
            "of length 2, got 1 - at `$.headers[0]`",
        ),
        (
            {**BASE, "kind": "encode", "event": {"attributes": {}, "data": None}, "mode": "binary"},
            "is missing",
        ),
        ({**BASE, "kind": "attribute", "attribute": "x", "accepted": True}, "is missing"),
        (
            {**BASE, "kind": "relay", "record": {"key": "0g", "value": None, "headers": []}},
            "case Z-01/1: bytes must be hexadecimal, got '0g' - at `$.record.key`",
        ),
        (
            {**BASE, "kind": "relay", "record": {"key": {"text": "", "repeat": "0"}, "value": None}},
            "case Z-01/1: must have text or repeat and times, got ['repeat', 'text'] - at `$.record.key`",
        ),
        (
            {**BASE, "kind": "size", "event": {"attributes": {}, "data": None}, "encodings": []}
            | {"too_large": True},
            "case Z-01/1: encodings is missing or empty",
        ),
        (
            {**BASE, "kind": "attribute", "attribute": "x", "value": {"hex": "z"}, "accepted": True},
            "case Z-01/1: bytes must be hexadecimal, got 'z' - at `$.value`",
        ),
        (
            {**BASE, "kind": "construct", "event": {"attributes": {"data": "1"}, "data": None}}
            | {"accepted": True},
            "attributes must not contain 'data'; use the member data of the event - at `$.event`",
        ),
        (
            {**BASE, "kind": "relay", "record": {"key": {"text": "\ud800"}, "value": None, "headers": []}},
            "unexpected end of escaped utf-16 surrogate pair",
        ),
        ({**SNIFF, "clause": "Z-02"}, "case Z-01/1: clause Z-02 is not in clauses.toml"),
        (
            '{"about": "x", "declared": {"id": "Integer"}, "cases": []}',
            "declared: the name of an extension must",
        ),
        ('{"about": "x", "cases": ' + "[" * 100_000, "recursion"),
    ],
)
def test_invalid_vectors(run, tmp_path, text, message):
    """An invalid vector file is bad usage; the message names the file, the case and the member."""
    file = tmp_path / "vectors" / "x.json"
    file.parent.mkdir()
    (tmp_path / "clauses.toml").write_text(CLAUSES, "utf-8")
    file.write_text(text if isinstance(text, str) else json.dumps({"about": "x", "cases": [text]}), "utf-8")
    done = run("clauses", "--folder", str(tmp_path))
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == 2
    assert "x.json" in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize(
    ("level", "message"), [("MUST", "must contain JSON files with cases, got none"), ("WILL", "WILL")]
)
def test_invalid_folders(run, tmp_path, level, message):
    """A folder without vectors is bad usage, and so is an unknown level."""
    (tmp_path / "clauses.toml").write_text(CLAUSES.replace("MUST", level), "utf-8")
    done = run("clauses", "--folder", str(tmp_path))
    assert done.exit_code == 2
    assert message in done.stderr


def test_records_of_a_case_that_fails(run, wrong_data, tmp_path):
    """Records are not written if a case fails; the message names it, and the exit code is 1."""
    target = tmp_path / "records.json"
    done = run("clauses", "--folder", wrong_data, "--records", str(target))
    assert done.exit_code == 1
    assert "records cannot be written because a case failed: " in done.stderr
    assert not target.exists()


def junit(folder, **outcomes):
    """Write results of tests, each passed or with an element that says why not."""
    cases = "".join(
        f'<testcase classname="tests.conformance.test_clauses" name="{name}">{outcome}</testcase>'
        for name, outcome in outcomes.items()
    )
    (folder / "tests.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>", "utf-8")
    return str(folder / "tests.xml")


def test_results_of_tests(run, tmp_path):
    """Tests that passed in --results show their clauses; one that failed has a message and exit code 1."""
    names = {"test_x_57_a_signed_sequence_shows_a_missing_event": ""}
    done = run("clauses", "--clause", "X-57", "--results", junit(tmp_path, **names))
    assert done.exit_code == 0
    assert re.search(
        r"^  passed    tests/conformance/test_clauses\.py::test_x_57_", done.stdout, re.MULTILINE
    )
    names = dict.fromkeys(names, '<failure message="no"/>')
    done = run("clauses", "--clause", "X-57", "--results", junit(tmp_path, **names))
    assert done.exit_code == 1
    assert "failure: no" in done.stdout
    assert done.stdout.endswith("1 clause: 1 FAILED (1 test).\n")


@pytest.mark.release
def test_cases_that_need_a_missing_package(run, monkeypatch):
    """Cases that need a missing package are not run; the message says what to install."""
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    done = run("clauses")
    assert done.exit_code == 0
    verify = [case for _, case in Dataset().all_cases if case.kind == "verify" and case.keys]
    assert (
        f"not run: {len(verify)} cases, because a package is missing\n  pip install cryptography\n"
        in done.stdout
    )
    assert f"\n{len(Dataset().all_cases) - len(verify):,} cases ran; " in done.stdout
    assert done.stdout.endswith("none FAILED.\n")
    assert "  not run   X-48/7  " in run("clauses", "--clause", "X-48").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--clause", "Z-99"],
            "--clause must be the id of a clause, got 'Z-99', such as K-01; they begin with ",
        ),
        (
            ["--clause", "K-7"],
            "--clause must be the id of a clause, got 'K-7'; did you mean 'K-17' or 'K-07'?",
        ),
        (["--clause", ""], ", got ''"),
        (["--folder", "."], "clauses.toml"),
        (
            ["--results", "none.xml"],
            "none.xml cannot be read: No such file or directory; make test writes it",
        ),
        (["--report", "none/report.md"], "does not exist"),
        (["--records", "none/report.md"], "does not exist"),
        (["--report", ""], "'' cannot be written: it is a folder"),
        (["--report", "a", "--records", "./a"], "must be different files, got ./a for both"),
    ],
)
def test_bad_usage(run, tmp_path, monkeypatch, arguments, message):
    """Unknown clauses and files that cannot be used are reported before anything runs; exit code 2."""
    monkeypatch.chdir(tmp_path)
    done = run("clauses", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "running" not in done.stderr


@pytest.mark.release
@pytest.mark.parametrize("option", one_in(2, ["--report", "--records"]))
def test_a_file_that_cannot_be_written_to(run, option):
    """A file that cannot be written is bad usage; the message has its name and the reason."""
    done = run("clauses", "--clause", "K-07", option, "/dev/full")
    assert done.exit_code == 2
    assert "/dev/full cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("file", "kind", "change"),
    [
        ("behaviour.json", "moment", lambda case: case | {"now": "event"}),
        pytest.param(
            "verifiability.json",
            "verify",
            lambda case: {name: case[name] for name in case if name != "attributes"},
            marks=pytest.mark.release,
        ),
        pytest.param(
            "sdk.json",
            "http",
            lambda case: (
                {name: case[name] for name in case if name != "refused"}
                | {
                    "message": {
                        "headers": {"content-type": "application/cloudevents+json"},
                        "body": {"json": 1},
                    }
                }
                | {"mode": "structured", "event": {"attributes": {}, "data": None}}
            ),
            marks=pytest.mark.release,
        ),
    ],
)
def test_a_case_without_sense_fails(run, tmp_path, file, kind, change):
    """A case of another folder that matches the schema but makes no sense fails without a traceback."""
    shutil.copytree(Dataset().folder, tmp_path / "data")
    path = tmp_path / "data" / "vectors" / "spec-rows" / file
    document = json.loads(path.read_text("utf-8"))
    number = next(
        n for n, case in enumerate(document["cases"]) if case["kind"] == kind and case.get("attributes") != {}
    )
    document["cases"][number] = change(document["cases"][number])
    path.write_text(json.dumps(document), "utf-8")
    done = run("clauses", "--folder", str(tmp_path / "data"))
    assert (done.exit_code, "Traceback" in done.stderr) == (1, False)
    assert f"FAILED    {document['cases'][number]['id']}  " in done.stdout
