"""The results of clauses: of cases, which run here, and of tests, from the JUnit XML that pytest writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError
from conformance._case import Case, CaseFailed
from conformance._dataset import Clause, Dataset

Status = Literal["accepted", "refused", "passed", "FAILED", "not run"]
"""A case that passes is accepted or refused, as what it reads or writes is; a test is passed."""

_WORST_FIRST: Final[tuple[Status, ...]] = ("FAILED", "not run", "passed")
_FUNCTION: Final = re.compile(r"\w*")  # before "[parameters]" and pytest-xdist's "@group"
_MAX_DETAIL: Final = 400  # characters of a detail
_MISSING_PACKAGE: Final = re.compile("No module named |pip install ")
"""How Python and this library report a missing package; a clause does not fail because of it."""


class Result(msgspec.Struct, frozen=True):
    """The result of a case, or of a test, which has no ``about``; ``detail`` says why it does not hold."""

    name: str
    status: Status
    about: str = ""
    detail: str = ""


class ResultsError(CloudEventsKafkaError):
    """A file of test results cannot be read or is not JUnit XML."""


def failure(name: str, message: str, about: str = "") -> Result:
    """Return the result of a case or test that failed, or was not run because a package is missing."""
    line = " ".join(message.split())
    detail = line if len(line) <= _MAX_DETAIL else f"{line[:_MAX_DETAIL]} …"
    return Result(name, "not run" if _MISSING_PACKAGE.search(message) else "FAILED", about, detail)


def read_results(path: Path) -> dict[str, Result]:
    """Return the results of tests in a JUnit XML file by name, ``path::function``.

    The cases of a parametrized test count as one test: it failed if one of them failed, and
    was not run if one of them was skipped. Raises `ResultsError` if it is not such a file.
    """
    try:
        elements = list(ET.parse(path).iter("testcase"))  # expat limits the expansion of entities
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror or error}; make test writes it") from None
    except (ET.ParseError, LookupError, ValueError) as error:
        raise ResultsError(f"{path} must be JUnit XML as pytest writes it: {error}") from None
    if not elements:
        raise ResultsError(f"{path} must be JUnit XML as pytest writes it, got no <testcase>")
    return worst_of(map(_result, elements))


def worst_of(results: Iterable[Result]) -> dict[str, Result]:
    """Return the worst result of each name."""
    worst: dict[str, Result] = {}
    for result in results:
        other = worst.setdefault(result.name, result)
        worst[result.name] = min(other, result, key=lambda one: _WORST_FIRST.index(one.status))
    return worst


def _result(element: ET.Element) -> Result:
    path = f"{element.get('classname', '').replace('.', '/')}.py"
    function = _FUNCTION.match(element.get("name", ""))
    name = f"{path}::{function[0] if function else ''}"
    bad = next((child for child in element if child.tag in {"failure", "error", "skipped"}), None)
    if bad is None:
        return Result(name, "passed")
    result = failure(name, f"{bad.tag}: {bad.get('message', '')}")
    return msgspec.structs.replace(result, status="not run") if bad.tag == "skipped" else result


# --- clauses ---------------------------------------------------------------------

_COLUMNS: Final = {"RECOMMENDED": "SHOULD", "advice": "derived"}
"""The levels that the report counts as another one."""


class ClauseResult(msgspec.Struct, frozen=True):
    """The result of a clause: the results of its cases and of its tests."""

    clause: Clause
    cases: tuple[Result, ...] = ()
    tests: tuple[Result, ...] = ()

    @property
    def column(self) -> str:
        """MUST, SHOULD, MAY or derived."""
        level = self.clause.level.removesuffix(" NOT")
        return _COLUMNS.get(level, level)

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of cases, then of tests."""
        return self.cases + self.tests

    @property
    def status(self) -> Literal["shown", "FAILED", "not run", "not shown"]:
        """Shown if a case or test passed and none failed; not shown if it has neither."""
        statuses = {result.status for result in self.results}
        if "FAILED" in statuses:
            return "FAILED"
        if statuses - {"not run"}:
            return "shown"
        return "not run" if statuses else "not shown"

    @property
    def failures(self) -> list[Result]:
        """The results that failed."""
        return [result for result in self.results if result.status == "FAILED"]

    def count(self, status: Status) -> int:
        """Return the number of results with a status."""
        return sum(result.status == status for result in self.results)


def run_clauses(
    dataset: Dataset,
    only: Collection[str] = (),
    *,
    tests: Mapping[str, Result] | None = None,
    progress: Callable[[int], None] = lambda _number: None,
) -> list[ClauseResult]:
    """Run the cases of all clauses, or of ``only`` those, and return a result for each clause in order.

    ``tests`` are results by name, as `read_results` returns them; a test without a result
    was not run. ``progress`` is called with the number of cases before they run.
    """
    clauses = [clause for clause in dataset.clauses if not only or clause.id in only]
    ids = {clause.id for clause in clauses}
    cases = [case for _, case in dataset.all_cases if case.clause in ids]
    progress(len(cases))
    of_cases = [(case, _run(case)) for case in cases]
    of_tests = tests or {}
    return [
        ClauseResult(
            clause,
            tuple(result for case, result in of_cases if clause.id == case.clause),
            tuple(of_tests.get(name, Result(name, "not run")) for name in clause.tests),
        )
        for clause in clauses
    ]


def _run(case: Case) -> Result:
    try:
        case.run()
    except CaseFailed as error:
        return failure(case.id, str(error), case.about)
    return Result(case.id, "accepted" if case.accepts else "refused", case.about)
