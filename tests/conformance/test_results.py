"""The results of clauses: of their cases, and of tests, which are read from JUnit XML."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conformance import (
    ClauseResult,
    Dataset,
    Result,
    ResultsError,
    read_results,
    run_clauses,
)

DATASET = Dataset()

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" tests="9">{cases}</testsuite></testsuites>
"""


def junit(folder: Path, *cases: str) -> Path:
    """Write the results of test cases as pytest does: name, then an element for one that did not pass."""
    elements = [
        f'<testcase classname="tests.test_x" name="{name}">{outcome}</testcase>'
        for name, _, outcome in (case.partition(" ") for case in cases)
    ]
    file = folder / "tests.xml"
    file.write_text(JUNIT.format(cases="".join(elements)), "utf-8")
    return file


def test_results_are_those_that_pytest_writes(tmp_path: Path) -> None:
    """A test passes, fails or is skipped in the file that pytest writes, with a message on one short line."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", "utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [0, 1])\n"
        "def test_some(n):\n    assert n == 0, 'n is one' + 'x' * 9999\n"
        "def test_good():\n    pass\n"
        "def test_bare():\n    import not_there\n"
        "def test_skipped():\n    pytest.skip('not here')\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=build/tests.xml"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    results = read_results(tmp_path / "build" / "tests.xml")
    assert {name.partition("::")[2]: result.status for name, result in results.items()} == {
        "test_some": "FAILED",
        "test_good": "passed",
        "test_bare": "not run",
        "test_skipped": "not run",
    }
    detail = results["tests/test_x.py::test_some"].detail
    assert "n is one" in detail
    assert "\n" not in detail
    assert len(detail) < 500


@pytest.mark.parametrize(
    ("cases", "status"),
    [
        (("test_a[1]", "test_a[2]"), "passed"),
        (("test_a@group", "test_a[2]@group"), "passed"),
        (("test_a[1]", 'test_a[2] <failure message="no"/>', "test_a[3]"), "FAILED"),
        (('test_a[1] <error message="setup"/>', 'test_a[2] <skipped message="s"/>'), "FAILED"),
        (("test_a[1]", 'test_a[2] <skipped message="s"/>'), "not run"),
        (('test_a <skipped message="No module named x"/>',), "not run"),
        (("test_a <failure/>",), "FAILED"),
        (('test_a <failure message="ModuleNotFoundError: No module named x"/>',), "not run"),
    ],
)
def test_a_parametrized_test_has_its_worst_result(
    tmp_path: Path, cases: tuple[str, ...], status: str
) -> None:
    """A test failed if one of its cases failed, and was not run if one was skipped or needs a package."""
    assert read_results(junit(tmp_path, *cases))["tests/test_x.py::test_a"].status == status


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "no element found"),
        (b"[1]", "syntax error"),
        (b"<a/>", "got no <testcase>"),
        (b"\xff\xfe", "must be JUnit XML"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "must be JUnit XML"),
        (
            b'<!DOCTYPE a [<!ENTITY b "' + b"x" * 99 + b'"><!ENTITY c "' + b"&b;" * 999 + b'">]><a>&c;',
            "JUnit",
        ),
    ],
)
def test_a_file_that_is_not_junit_xml(tmp_path: Path, content: bytes | None, message: str) -> None:
    """A file that is missing or is not JUnit XML is named in the error."""
    file = tmp_path / "tests.xml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ResultsError, match=re.escape(message)) as error:
        read_results(file)
    assert str(file) in str(error.value)


def test_a_failure_counts_against_its_clause(tmp_path: Path) -> None:
    """A case that fails makes its clause fail, and no other."""
    shutil.copytree(DATASET.folder, tmp_path / "data")
    file = tmp_path / "data" / "vectors" / "spec-rows" / "sdk.json"
    text = file.read_text("utf-8")
    assert text.count('"mode": "not-an-event"') == 1
    file.write_text(text.replace('"mode": "not-an-event"', '"mode": "structured"'), "utf-8")
    results = run_clauses(Dataset(tmp_path / "data"))
    (failed,) = [result for result in results if result.status == "FAILED"]
    assert failed.clause.id == "D-03"
    details = [failure.detail for failure in failed.failures]
    assert details == ["the mode must be 'structured', not 'not-an-event'"]


def _clause_of(test: str, results: list[ClauseResult]) -> ClauseResult:
    return next(result for result in results if test in result.clause.tests and not result.cases)


def test_a_clause_has_the_results_of_its_tests() -> None:
    """A test counts for each clause that names it; one without a result was not run."""
    test = next(clause.tests[0] for clause in DATASET.clauses if clause.tests and not clause.vectors)
    assert _clause_of(test, run_clauses(DATASET)).status == "not run"
    passed = run_clauses(DATASET, tests={test: Result(test, "passed")})
    assert _clause_of(test, passed).status == "shown"
    failed = run_clauses(DATASET, tests={test: Result(test, "FAILED", detail="no")})
    assert [failure.detail for failure in _clause_of(test, failed).failures] == ["no"]


def test_some_clauses_can_run_alone() -> None:
    """Only the cases of the named clauses run."""
    numbers: list[int] = []
    (result,) = run_clauses(DATASET, ["D-03"], progress=numbers.append)
    assert numbers == [3]
    assert (result.status, result.count("accepted"), result.count("refused")) == ("shown", 2, 1)
