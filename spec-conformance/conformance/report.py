"""The report of all clauses, by area and level, as rows of a table and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from cloudevents_kafka.primitives.plural import pluralize
from conformance._dataset import Document
from conformance._results import ClauseResult

COLUMNS: Final = ("MUST", "SHOULD", "MAY", "derived")
HEADINGS: Final = ("area", *COLUMNS, "cases accepted", "refused", "tests")
_CLAUSE_HEADINGS: Final = ("", "level", "requirement", "source", "shown by")


def rows(results: Sequence[ClauseResult]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each area and one for all: clauses that are shown, by level; cases; tests."""
    for area, some in groupby(results, key=lambda result: result.clause.area):
        yield _row(area, list(some))
    yield _row("all", results)


def _row(name: str, results: Sequence[ClauseResult]) -> tuple[str, ...]:
    by_level = ([one.status == "shown" for one in results if one.column == column] for column in COLUMNS)
    counts = (f"{sum(shown)} of {len(shown)}" if shown else "" for shown in by_level)
    tests = {test.name for one in results for test in one.tests if test.status != "not run"}
    sums = (sum(one.count("accepted") for one in results), sum(one.count("refused") for one in results))
    return (name, *counts, *map(str, (*sums, len(tests))))


def markdown(results: Sequence[ClauseResult], documents: Iterable[Document]) -> str:
    """Return the report in Markdown."""
    lines = [
        "# Conformance report\n",
        "`make report` writes this page from the results of `make test`. The clauses are in",
        "[`clauses.toml`](clauses.toml), and the cases are in [`vectors/`](vectors/).\n",
        *_table(("document", "version"), [(one.title, one.version) for one in documents]),
        "",
        *_table(HEADINGS, list(rows(results))),
        "",
        "A case is *accepted* if it shows what a reader or writer must accept. A case is *refused* if it",
        "shows what a reader or writer must refuse. A case belongs to one clause, and a test may show",
        "several clauses. *derived* clauses follow from a requirement or are advice.\n",
        *_open_clauses(results),
    ]
    for area, some in groupby(results, key=lambda result: result.clause.area):
        lines += [f"## {area}\n", *_table(_CLAUSE_HEADINGS, map(_clause_row, some)), ""]
    return "\n".join(lines)


def _open_clauses(results: Iterable[ClauseResult]) -> Iterator[str]:
    still_open = sorted((one for one in results if one.status != "shown"), key=attrgetter("status"))
    if not still_open:
        yield "All clauses are shown.\n"
    for status, some in groupby(still_open, key=attrgetter("status")):
        yield f"{_capitalized(status)}:\n"
        for one in some:
            yield f"- {one.clause.id} ({one.clause.level}): {one.clause.about} {_reason(one)}"
        yield ""


def _reason(result: ClauseResult) -> str:
    """Return why a clause is not shown: its failures, that nothing ran, or why nothing can show it."""
    if result.failures:
        return _sentence("; ".join(f"`{failure.name}`: {failure.detail}" for failure in result.failures))
    return _sentence(result.clause.open or "its cases and tests did not run")


def _clause_row(result: ClauseResult) -> tuple[str, ...]:
    clause = result.clause
    about = f"{clause.about} ({clause.note})" if clause.note else clause.about
    return clause.id, clause.level, about, clause.source, _evidence(result)


def _evidence(result: ClauseResult) -> str:
    """Return the number of cases on each side, the reason for one side only, and the tests that passed."""
    if result.status != "shown":
        return f"**{result.status}**"
    parts = []
    if result.cases:
        counts = f"{result.count('accepted')} accepted, {result.count('refused')} refused"
        parts.append(f"{counts} ({result.clause.one_sided})" if result.clause.one_sided else counts)
    passed = [test.name.partition("::")[2] for test in result.tests if test.status == "passed"]
    if passed:
        parts.append(", ".join(f"`{name}`" for name in passed))
    not_run = len(result.tests) - len(passed)
    if not_run:
        parts.append(f"{pluralize(not_run, 'test')} not run")
    return "; ".join(parts)


def _sentence(text: str) -> str:
    return _capitalized(text) + ("" if text.endswith(".") else ".")


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for line in lines:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
