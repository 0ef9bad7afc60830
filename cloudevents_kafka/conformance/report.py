"""The report: which clauses are shown, by area and level, as lines of a table and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from cloudevents_kafka.conformance.library import Document
from cloudevents_kafka.conformance.shown import Shown

COLUMNS: Final = ("MUST", "SHOULD", "MAY", "derived")
HEADINGS: Final = ("area", *COLUMNS, "cases accepted", "refused", "tests")
_CLAUSE_HEADINGS: Final = ("", "level", "what it asks", "where", "shown by")
COMMAND: Final = "cloudevents-kafka conformance --report spec-conformance/report.md"


def rows(found: Sequence[Shown]) -> Iterator[tuple[str, ...]]:
    """Give a row for each area and one for all: shown of so many, by level; cases and tests."""
    for area, some in groupby(found, key=lambda shown: shown.clause.area):
        yield _row(area, list(some))
    yield _row("all", found)


def _row(name: str, some: Sequence[Shown]) -> tuple[str, ...]:
    of_level = ([shown.holds for shown in some if shown.column == column] for column in COLUMNS)
    counts = (f"{sum(holds)} of {len(holds)}" if holds else "" for holds in of_level)
    tests = {test for shown in some for test in shown.clause.tests if test not in shown.not_run}
    sums = (sum(s.accepted for s in some), sum(s.refused for s in some), len(tests))
    return (name, *counts, *map(str, sums))


def not_shown(found: Iterable[Shown]) -> Iterator[tuple[Shown, str]]:
    """Give the clauses that are not shown, each with the reason."""
    for shown in found:
        if shown.failures:
            yield shown, "; ".join(f"{failure.name}: {failure.seen}" for failure in shown.failures)
        elif not shown.holds:
            yield shown, shown.clause.open or "its tests were not run"


def markdown(found: Sequence[Shown], documents: Iterable[Document]) -> str:
    """Write the whole report."""
    lines = [
        "# Conformance report\n",
        f"Made by `{COMMAND}`; a test compares. Each clause stands in",
        "[`clauses.toml`](clauses.toml) in our words, each case in [`vectors/`](vectors/).\n",
        *_table(("document", "version"), [(d.title, d.version) for d in documents]),
        "",
        *_table(HEADINGS, list(rows(found))),
        "",
        "A case is of something *accepted*, to be taken, written or kept, or of something *refused*.",
        "One case may show several clauses. *derived* is what follows from a requirement, or is advice.\n",
        *_open_lines(found),
    ]
    for area, some in groupby(found, key=lambda shown: shown.clause.area):
        lines += [
            f"## {area}\n",
            *_table(_CLAUSE_HEADINGS, map(_line, some)),
            "",
        ]
    return "\n".join(lines)


def _open_lines(found: Iterable[Shown]) -> Iterator[str]:
    missing = list(not_shown(found))
    yield "Not shown:\n" if missing else "Nothing is left unshown.\n"
    for shown, why in missing:
        yield f"- {shown.clause.id} ({shown.clause.level}): {shown.clause.about} {_sentence(why)}"
    if missing:
        yield ""


def _line(shown: Shown) -> tuple[str, ...]:
    clause = shown.clause
    about = f"{clause.about} ({clause.note})" if clause.note else clause.about
    return clause.id, clause.level, about, clause.source, _by(shown)


def _by(shown: Shown) -> str:
    """Say what shows a clause: cases of both sides, why there is one side only, tests."""
    said = []
    if shown.accepted + shown.refused:
        said.append(f"{shown.accepted} accepted, {shown.refused} refused")
    if shown.clause.one_sided:
        said[-1:] = [f"{said[-1]} ({shown.clause.one_sided})"]
    if shown.tests:
        said.append(", ".join(f"`{test.partition('::')[2]}`" for test in shown.clause.tests))
    return "; ".join(said) if shown.holds else "**not shown**"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for line in lines:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
