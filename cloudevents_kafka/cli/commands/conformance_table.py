"""What came of the clauses, as lines for people: all in short, or case by case; what failed comes last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cloudevents_kafka.cli.records.text import BAD, DIM, NOTE, PLACE, Line
from cloudevents_kafka.cli.terminal.escape import visible
from cloudevents_kafka.cli.terminal.plural import count
from cloudevents_kafka.conformance import report
from cloudevents_kafka.conformance.runner import Result, Shown, Word

_STYLES: Final = {"FAILED": BAD, "not run": NOTE, "not shown": NOTE}
_PACKAGE: Final = re.compile(r"pip install (\S+)")
_WIDTH: Final = len("accepted")


def overview(found: Sequence[Shown]) -> Iterator[Line]:
    """Lay out the table, what is not shown and why, what failed, and what the numbers mean."""
    yield from _table(found)
    for shown in _of(found, "not shown"):
        yield from [
            [],
            _title(shown),
            [(f"  {visible(shown.clause.open or 'nothing is there to show it')}", "")],
        ]
    yield from _left_out(found)
    for shown in _of(found, "FAILED"):
        yield from [[], _title(shown), *_results(shown.failures)]
    yield from [[], *_meaning(found), _sum(found)]


def details(found: Sequence[Shown]) -> Iterator[Line]:
    """Lay out clauses with each of their cases and tests."""
    for number, shown in enumerate(found):
        clause = shown.clause
        yield from [[]] if number else []
        yield [(visible(clause.id), PLACE), (visible(f"  {clause.level}  {clause.source}"), "")]
        yield from ([(f"  {visible(text)}", "")] for text in (clause.about, *_remarks(shown)))
        yield from _results([result for result in shown.results if result.word != "FAILED"])
        yield from _results(shown.failures)
    if any(shown.failures for shown in found):
        yield from [[], _sum(found)]


def _remarks(shown: Shown) -> Iterator[str]:
    clause = shown.clause
    for name, text in (("one side", clause.one_sided), ("open", clause.open), ("note", clause.note)):
        if text:
            yield f"{name}: {text}"
    if shown.cases:
        counts = f"{shown.count('accepted'):,} accepted, {shown.count('refused'):,} refused"
        yield f"cases: {counts}, in {', '.join(clause.vectors)}"


def _table(found: Sequence[Shown]) -> Iterator[Line]:
    """Lay out the report's table, closely: 80 columns have to do."""
    table = [report.HEADINGS, *report.rows(found)]
    cells = [[visible(cell).removeprefix("cases ").replace(" of ", "/") for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        yield [("  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]).rstrip(), "")]


def _of(found: Iterable[Shown], word: str) -> list[Shown]:
    return [shown for shown in found if shown.word == word]


def _left_out(found: Sequence[Shown]) -> Iterator[Line]:
    """Tell what was not run, which says nothing about the library, and what to do."""
    if clauses := _of(found, "not run"):
        why = ": what shows these; tests run in a checkout, without --no-tests"
        names = ", ".join(shown.clause.id for shown in clauses)
        yield from [[], [("not run", NOTE), (why, "")], [(f"  {visible(names)}", "")]]
    cases = {case for shown in found for case in shown.cases if case.word == "not run"}
    if packages := {name for case in cases for name in _PACKAGE.findall(case.seen)}:
        why = f": {count(len(cases), 'case')}, for want of packages"
        do = f"  pip install {' '.join(sorted(packages))}"
        yield from [[], [("not run", NOTE), (why, "")], [(visible(do), "")]]


def _title(shown: Shown) -> Line:
    clause = shown.clause
    text = visible(f": {clause.id} ({clause.level}) {clause.about}")
    return [(shown.word, _STYLES[shown.word]), (text, "")]


def _results(results: Sequence[Result]) -> Iterator[Line]:
    """Lay out cases and tests, a line each, and one with what was expected and seen, if it failed."""
    width = max((len(result.name) for result in results if result.about), default=0)
    for result in results:
        text = f"{result.name:<{width}}  {result.about}" if result.about else result.name
        yield [(f"  {result.word:<{_WIDTH}}", _STYLES.get(result.word, DIM)), (f"  {visible(text)}", "")]
        if result.seen:
            yield [(f"  {'':<{_WIDTH}}  {visible(result.seen)}", "")]


def _meaning(found: Sequence[Shown]) -> Iterator[Line]:
    """Say what the table counts: its columns are no levels, and its sums of tests are not their number."""
    words: set[Word] = {"accepted", "refused", "passed", "FAILED"}
    yield [(f"{_distinct(found, words)} ran; a case is of one clause, a test may show several.", "")]
    yield [("RECOMMENDED counts as SHOULD, advice as derived.", "")]


def _sum(found: Sequence[Shown]) -> Line:
    """Count clauses by what came of them, and what failed."""
    numbers = [(word, len(_of(found, word))) for word in ("shown", "not shown", "not run")]
    told = [f"{number:,} {word}" for word, number in numbers if number]
    head = f"{count(len(found), 'clause')}: "
    if failed := len(_of(found, "FAILED")):
        bad = f"{failed:,} FAILED ({_distinct(found, {'FAILED'})})."
        return [(head + "".join(f"{text}, " for text in told), ""), (bad, BAD)]
    return [(head + ", ".join([*told, "none FAILED."]), "")]


def _distinct(found: Sequence[Shown], words: set[Word]) -> str:
    """Write ``2 cases and 1 test`` of which this came, each counted once however many clauses it shows."""
    cases = {result.name for shown in found for result in shown.cases if result.word in words}
    tests = {result.name for shown in found for result in shown.tests if result.word in words}
    return " and ".join(
        count(len(names), thing) for names, thing in ((cases, "case"), (tests, "test")) if names
    )
