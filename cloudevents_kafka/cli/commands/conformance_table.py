"""The results of clauses as lines for a terminal: an overview, or case by case; failures come last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cloudevents_kafka.cli.records import Style, StyledLine
from cloudevents_kafka.cli.terminal import escape
from cloudevents_kafka.conformance import ClauseResult, Result, Status, report
from cloudevents_kafka.primitives.plural import pluralize

_STYLES: Final = {"FAILED": Style.ERROR, "not run": Style.WARNING, "not shown": Style.WARNING}
_PACKAGE: Final = re.compile(r"pip install (\S+)")
_WIDTH: Final = len("accepted")


def overview(results: Sequence[ClauseResult]) -> Iterator[StyledLine]:
    """Yield the table, the clauses that are not shown and why, the failures, and how to read the numbers."""
    yield from _table(results)
    for one in _with_status(results, "not shown"):
        reason = one.clause.open or "it has no cases and no tests"
        yield from [[], _title(one), [(f"  {escape(reason)}", "")]]
    yield from _not_run(results)
    for one in _with_status(results, "FAILED"):
        yield from [[], _title(one), *_results(one.failures)]
    yield from [[], *_legend(results), _sum(results)]


def details(results: Sequence[ClauseResult]) -> Iterator[StyledLine]:
    """Yield clauses with each of their cases and tests."""
    for number, one in enumerate(results):
        clause = one.clause
        yield from [[]] if number else []
        yield [(escape(clause.id), Style.HEADING), (escape(f"  {clause.level}  {clause.source}"), "")]
        yield from ([(f"  {escape(text)}", "")] for text in (clause.about, *_remarks(one)))
        yield from _results([result for result in one.results if result.status != "FAILED"])
        yield from _results(one.failures)
    if any(one.failures for one in results):
        yield from [[], _sum(results)]


def _remarks(result: ClauseResult) -> Iterator[str]:
    clause = result.clause
    for name, text in (("one side", clause.one_sided), ("open", clause.open), ("note", clause.note)):
        if text:
            yield f"{name}: {text}"
    if result.cases:
        counts = f"{result.count('accepted'):,} accepted, {result.count('refused'):,} refused"
        yield f"cases: {counts}, in {', '.join(clause.vectors)}"


def _table(results: Sequence[ClauseResult]) -> Iterator[StyledLine]:
    """Yield the table of the report, in at most 80 columns."""
    table = [report.HEADINGS, *report.rows(results)]
    cells = [[escape(cell).removeprefix("cases ").replace(" of ", "/") for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        yield [("  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]).rstrip(), "")]


def _with_status(results: Iterable[ClauseResult], status: str) -> list[ClauseResult]:
    return [result for result in results if result.status == status]


def _not_run(results: Sequence[ClauseResult]) -> Iterator[StyledLine]:
    """Yield the clauses and cases that were not run, and how to run them."""
    if clauses := _with_status(results, "not run"):
        how = ": tests show these clauses; pass --results FILE, the JUnit XML that make test writes"
        names = ", ".join(result.clause.id for result in clauses)
        yield from [[], [("not run", Style.WARNING), (how, "")], [(f"  {escape(names)}", "")]]
    cases = {case for result in results for case in result.cases if case.status == "not run"}
    if packages := {name for case in cases for name in _PACKAGE.findall(case.detail)}:
        why = f": {pluralize(len(cases), 'case')}, because a package is missing"
        command = f"  pip install {' '.join(sorted(packages))}"
        yield from [[], [("not run", Style.WARNING), (why, "")], [(escape(command), "")]]


def _title(result: ClauseResult) -> StyledLine:
    clause = result.clause
    text = escape(f": {clause.id} ({clause.level}) {clause.about}")
    return [(result.status, _STYLES[result.status]), (text, "")]


def _results(results: Sequence[Result]) -> Iterator[StyledLine]:
    """Yield a line for each case and test, and one with the detail if it has one."""
    width = max((len(result.name) for result in results if result.about), default=0)
    for result in results:
        text = f"{result.name:<{width}}  {result.about}" if result.about else result.name
        yield [
            (f"  {result.status:<{_WIDTH}}", _STYLES.get(result.status, Style.DIM)),
            (f"  {escape(text)}", ""),
        ]
        if result.detail:
            yield [(f"  {'':<{_WIDTH}}  {escape(result.detail)}", "")]


def _legend(results: Sequence[ClauseResult]) -> Iterator[StyledLine]:
    """Yield how to read the table: its columns join levels, and a test may count in several rows."""
    ran: set[Status] = {"accepted", "refused", "passed", "FAILED"}
    yield [(f"{_distinct(results, ran)} ran; a case belongs to one clause, a test may show several.", "")]
    yield [("RECOMMENDED counts as SHOULD, advice as derived.", "")]


def _sum(results: Sequence[ClauseResult]) -> StyledLine:
    """Return the number of clauses by status."""
    numbers = [(status, len(_with_status(results, status))) for status in ("shown", "not shown", "not run")]
    parts = [f"{number:,} {status}" for status, number in numbers if number]
    head = f"{pluralize(len(results), 'clause')}: "
    if failed := len(_with_status(results, "FAILED")):
        bad = f"{failed:,} FAILED ({_distinct(results, {'FAILED'})})."
        return [(head + "".join(f"{text}, " for text in parts), ""), (bad, Style.ERROR)]
    return [(head + ", ".join([*parts, "none FAILED."]), "")]


def _distinct(results: Sequence[ClauseResult], statuses: set[Status]) -> str:
    """Return the number of cases and tests with a status, each counted once: ``2 cases and 1 test``."""
    cases = {case.name for one in results for case in one.cases if case.status in statuses}
    tests = {test.name for one in results for test in one.tests if test.status in statuses}
    return " and ".join(
        pluralize(len(names), thing) for names, thing in ((cases, "case"), (tests, "test")) if names
    )
