"""Run everything that shall show a clause: cases of vectors here, tests by pytest in a checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

import msgspec

from cloudevents_kafka.conformance.assertions import Unmet
from cloudevents_kafka.conformance.cases import accepts, run
from cloudevents_kafka.conformance.dataset import Case, Clause, Library
from cloudevents_kafka.errors import CloudEventsKafkaError

LEVELS: Final[Mapping[str, str]] = {
    "MUST": "MUST",
    "MUST NOT": "MUST",
    "SHOULD": "SHOULD",
    "SHOULD NOT": "SHOULD",
    "RECOMMENDED": "SHOULD",
    "MAY": "MAY",
    "derived": "derived",
    "advice": "derived",
}
"""The column of the report for each level that a clause can have."""

Word = Literal["accepted", "refused", "passed", "FAILED", "not run"]
"""What came of a case (accepted: something good was; refused: something bad was) or of a test."""

Progress = Callable[[int, str], None]
"""Told how many of what are run next."""

_LONGEST: Final = 400  # signs of what was seen
_WHY: Final = re.compile(r"^(?:E {3,}|ERROR:? )(\S.*)", re.MULTILINE)
"""Where pytest says why it cannot begin."""
_LACKS: Final = re.compile("No module named |pip install ")
"""What is said where a package is missing, by Python or here: that speaks against no clause."""


class CannotTest(CloudEventsKafkaError):
    """The named tests cannot be run here: pytest, or a package that they need, is missing."""


class Result(msgspec.Struct, frozen=True):
    """What came of one case, or of a test, which has no ``about``; where it does not hold, what was seen."""

    name: str
    word: Word
    about: str = ""
    seen: str = ""


class Shown(msgspec.Struct, frozen=True):
    """What came of a clause: of each of its cases, and of each of its tests."""

    clause: Clause
    cases: tuple[Result, ...] = ()
    tests: tuple[Result, ...] = ()

    @property
    def column(self) -> str:
        """MUST, SHOULD, MAY or derived."""
        return LEVELS[self.clause.level]

    @property
    def results(self) -> tuple[Result, ...]:
        """What came of cases and tests."""
        return self.cases + self.tests

    @property
    def word(self) -> Literal["shown", "FAILED", "not run", "not shown"]:
        """Whether something shows the clause, and nothing speaks against it."""
        words = {result.word for result in self.results}
        if "FAILED" in words:
            return "FAILED"
        if words - {"not run"}:
            return "shown"
        return "not run" if words else "not shown"

    @property
    def failures(self) -> list[Result]:
        """What speaks against the clause."""
        return [result for result in self.results if result.word == "FAILED"]

    def count(self, word: Word) -> int:
        """Count the cases and tests of which this came."""
        return sum(result.word == word for result in self.results)


def show_all(
    library: Library,
    only: Collection[str] = (),
    *,
    with_tests: bool = True,
    progress: Progress = lambda _number, _thing: None,
) -> list[Shown]:
    """Run what shall show each clause, or ``only`` those: its cases and, in a checkout, its tests.

    One `Shown` for each clause, in order. Raises `DataMissing` and `CannotTest`.
    """
    clauses = [clause for clause in library.clauses if not only or clause.id in only]
    ids = {clause.id for clause in clauses}
    cases = [case for _, case in library.all_cases if case["clause"] in ids]
    names = sorted({name for clause in clauses for name in clause.tests})
    tests: Mapping[str, Result] = {}
    if with_tests and names and library.checkout is not None:
        progress(len(names), "test")
        tests = run_tests(library.checkout, names)
    progress(len(cases), "case")
    results = [(case, _result(case)) for case in cases]
    return [_shown(clause, results, tests) for clause in clauses]


def _result(case: Case) -> Result:
    try:
        run(case)
    except Unmet as error:
        word: Word = "not run" if _LACKS.search(str(error)) else "FAILED"
        return Result(case["id"], word, case["about"], _brief(str(error)))
    return Result(case["id"], "accepted" if accepts(case) else "refused", case["about"])


def _shown(clause: Clause, cases: Iterable[tuple[Case, Result]], tests: Mapping[str, Result]) -> Shown:
    return Shown(
        clause,
        tuple(result for case, result in cases if clause.id == case["clause"]),
        tuple(tests.get(name, Result(name, "not run")) for name in clause.tests),
    )


def run_tests(checkout: Path, names: list[str]) -> dict[str, Result]:
    """Run tests by name, ``path::function``; raises `CannotTest` where pytest cannot run all of them."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "results.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={told}"]
        command = [sys.executable, "-m", "pytest", *options, *names]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
        if done.returncode not in {0, 1} or not told.is_file():  # 1 is pytest's for tests that failed, too
            raise _cannot_test(checkout, done.stdout + done.stderr)
        results = _results(told)
    for result in results.values():
        if _LACKS.search(result.seen):
            raise _cannot_test(checkout, result.seen)
    return {name: results.get(name, Result(name, "FAILED", seen="pytest did not run it")) for name in names}


def _cannot_test(checkout: Path, output: str) -> CannotTest:
    said = _WHY.search(output)
    why = said[1] if said else output.strip().rpartition("\n")[2]
    return CannotTest(
        f"the tests cannot be run: {_brief(why)}\n"
        f"What they need comes with: pip install -e '.[test]' (in {checkout}); --no-tests leaves them out."
    )


def _results(told: Path) -> dict[str, Result]:
    results: dict[str, Result] = {}
    for element in ET.parse(told).iter("testcase"):  # noqa: S314  # written by the pytest just run
        path = str(element.get("classname")).replace(".", "/") + ".py"
        name = f"{path}::{str(element.get('name')).partition('[')[0]}"
        bad = next((child for child in element if child.tag in {"failure", "error", "skipped"}), None)
        if bad is not None:
            results[name] = Result(name, "FAILED", seen=_brief(f"{bad.tag}: {bad.get('message')}"))
        else:
            results.setdefault(name, Result(name, "passed"))
    return results


def _brief(text: str) -> str:
    """Put a text on one line, and cut it where it is too long to be read."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"
