"""The report: which clauses are shown, by area and level, as lines of a table and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from cloudevents_kafka.conformance.dataset import Document
from cloudevents_kafka.conformance.runner import Shown

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
    of_level = ([shown.word == "shown" for shown in some if shown.column == column] for column in COLUMNS)
    counts = (f"{sum(holds)} of {len(holds)}" if holds else "" for holds in of_level)
    tests = {test.name for shown in some for test in shown.tests if test.word != "not run"}
    sums = (sum(s.count("accepted") for s in some), sum(s.count("refused") for s in some), len(tests))
    return (name, *counts, *map(str, sums))


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
        "A case is of one clause; a test may show several. *derived* is what follows from a requirement,",
        "or is advice.\n",
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
    missing = sorted((shown for shown in found if shown.word != "shown"), key=_word)
    if not missing:
        yield "Nothing is left unshown.\n"
    for word, some in groupby(missing, key=_word):
        yield f"{_capital(word)}:\n"
        for shown in some:
            yield f"- {shown.clause.id} ({shown.clause.level}): {shown.clause.about} {_why(shown)}"
        yield ""


def _word(shown: Shown) -> str:
    return shown.word


def _why(shown: Shown) -> str:
    """Say why a clause is not shown: what failed, what was not run, or why nothing can show it."""
    if shown.failures:
        return _sentence("; ".join(f"`{failure.name}`: {failure.seen}" for failure in shown.failures))
    return _sentence(shown.clause.open or "What shows it was not run")


def _line(shown: Shown) -> tuple[str, ...]:
    clause = shown.clause
    about = f"{clause.about} ({clause.note})" if clause.note else clause.about
    return clause.id, clause.level, about, clause.source, _by(shown)


def _by(shown: Shown) -> str:
    """Say what shows a clause: cases of both sides, why there is one side only, tests."""
    said = []
    if shown.cases:
        counts = f"{shown.count('accepted')} accepted, {shown.count('refused')} refused"
        said.append(f"{counts} ({shown.clause.one_sided})" if shown.clause.one_sided else counts)
    if any(test.word == "passed" for test in shown.tests):
        said.append(", ".join(f"`{test.name.partition('::')[2]}`" for test in shown.tests))
    return "; ".join(said) if shown.word == "shown" else f"**{shown.word}**"


def _sentence(text: str) -> str:
    return _capital(text) + ("" if text.endswith(".") else ".")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for line in lines:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
