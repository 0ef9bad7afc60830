"""Run the cases of each clause and combine their results with those of its tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Literal

import msgspec

from cloudevents_kafka.conformance._assertions import CaseFailed
from cloudevents_kafka.conformance._cases import run
from cloudevents_kafka.conformance._dataset import Clause, Dataset
from cloudevents_kafka.conformance._results import Result, Status, failure
from cloudevents_kafka.conformance._vectors import Case

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
"""The column of the report for each level of a clause."""

Progress = Callable[[int], None]
"""A function that is called with the number of cases before they run."""


class ClauseResult(msgspec.Struct, frozen=True):
    """The result of a clause: the results of its cases and of its tests."""

    clause: Clause
    cases: tuple[Result, ...] = ()
    tests: tuple[Result, ...] = ()

    @property
    def column(self) -> str:
        """MUST, SHOULD, MAY or derived."""
        return LEVELS[self.clause.level]

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
    progress: Progress = lambda _number: None,
) -> list[ClauseResult]:
    """Run the cases of all clauses, or of ``only`` those, and return a result for each clause in order.

    ``tests`` are results by name, as `read_results` returns them; a test without a result
    was not run. Raises `DatasetError`.
    """
    clauses = [clause for clause in dataset.clauses if not only or clause.id in only]
    ids = {clause.id for clause in clauses}
    cases = [case for _, case in dataset.all_cases if case.clause in ids]
    progress(len(cases))
    results = [(case, _run(case)) for case in cases]
    return [_clause_result(clause, results, tests or {}) for clause in clauses]


def _run(case: Case) -> Result:
    try:
        run(case)
    except CaseFailed as error:
        return failure(case.id, str(error), case.about)
    return Result(case.id, "accepted" if case.accepts else "refused", case.about)


def _clause_result(
    clause: Clause, cases: Iterable[tuple[Case, Result]], tests: Mapping[str, Result]
) -> ClauseResult:
    return ClauseResult(
        clause,
        tuple(result for case, result in cases if clause.id == case.clause),
        tuple(tests.get(name, Result(name, "not run")) for name in clause.tests),
    )
