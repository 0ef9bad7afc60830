"""``clauses``: run the clauses of the specification against the library."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

import conformance
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.text import Style, near, print_lines, styled
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.visible import escape
from conformance import flat_records, report

_STYLES: Final[dict[str, Style]] = {"FAILED": "error", "not run": "warning", "not shown": "warning"}
_PACKAGE: Final = re.compile(r"pip install (\S+)")
_WIDTH: Final = len("accepted")


@click.command(short_help="Run the clauses of CloudEvents against the library.")
@click.option("--clause", "clauses", multiple=True, metavar="ID", help="Only this clause. Repeatable.")
@click.option(
    "--results",
    multiple=True,
    metavar="FILE",
    help="Results of tests, in the JUnit XML that make test writes. Repeatable.",
)
@click.option("--report", "target", type=click.Path(dir_okay=False), help="Write the report, in Markdown.")
@click.option("--records", type=click.Path(dir_okay=False), help="Write all records, in hex, to one file.")
@click.option("--folder", type=click.Path(file_okay=False), help="A folder of other clauses and vectors.")
def command(
    clauses: tuple[str, ...],
    results: tuple[str, ...],
    target: str | None,
    records: str | None,
    folder: str | None,
) -> None:
    """Run the clauses of CloudEvents against the library.

    Runs every case of the vectors for each requirement of the CloudEvents core specification,
    its formats, the Kafka binding and the documented extensions. Prints how many clauses are
    shown, by area and level, and why the others are not. Clauses that tests show are not run
    without --results.
    The exit code is 0 if no case or test failed, else 1.

    \b
    python spec-conformance clauses
    python spec-conformance clauses --clause K-07
    python spec-conformance clauses --results build/tests.xml --report report.md
    """
    dataset = conformance.Dataset(Path(folder) if folder else None)
    clauses = tuple(name.upper() for name in clauses)
    try:
        _check_files(target, records)
        _check_ids(dataset, clauses)
        tests = conformance.worst_of(
            result for file in results for result in conformance.read_results(Path(file)).values()
        )
        found = conformance.run_clauses(dataset, () if target else clauses, tests=tests, progress=_progress)
        chosen = [result for result in found if not clauses or result.clause.id in clauses]
        print_lines(_details(chosen) if clauses else _overview(found))
        if target:
            _write(target, report.markdown(found, dataset.documents))
        if records:
            _write(records, flat_records.document(dataset))
    except (conformance.DatasetError, conformance.ResultsError) as error:
        raise BadUsage(str(error)) from None
    except conformance.CaseFailed as error:
        raise BadData(f"records cannot be written because a case failed: {error}") from None
    if any(result.failures for result in chosen):
        sys.exit(BAD_DATA)


def _progress(number: int) -> None:
    click.echo(f"running {pluralize(number, 'case')}", err=True)


def _check_files(target: str | None, records: str | None) -> None:
    """Raise `BadUsage` if a file cannot be written, before anything runs."""
    files = [file for file in (target, records) if file is not None]
    for file in files:
        if not (parent := Path(file).absolute().parent).is_dir():
            raise BadUsage(f"{file} cannot be written: folder {parent} does not exist")
        if Path(file).is_dir():
            raise BadUsage(f"{file or repr(file)} cannot be written: it is a folder")
    if len({Path(file).resolve() for file in files}) < len(files):
        raise BadUsage(f"--report and --records must be different files, got {records} for both")


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, "utf-8")
    except OSError as error:
        raise BadUsage(f"{file} cannot be written: {error.strerror or error}") from None


def _check_ids(dataset: conformance.Dataset, clauses: Sequence[str]) -> None:
    ids = {clause.id for clause in dataset.clauses}
    if unknown := [name for name in clauses if name not in ids]:
        families = ", ".join(sorted({name.partition("-")[0] for name in ids}))
        advice = near(unknown[0], ids) or f", such as K-01; they begin with {families}"
        raise BadUsage(f"--clause must be the id of a clause, got {', '.join(map(repr, unknown))}{advice}")


# --- the lines of results; failures come last ---


def _overview(results: Sequence[conformance.ClauseResult]) -> Iterator[str]:
    """Yield the table, the clauses that are not shown and why, the failures, and how to read the numbers."""
    yield from _table(results)
    for result in _with_status(results, "not shown"):
        reason = result.clause.open or "it has no cases and no tests"
        yield from ["", _title(result), f"  {escape(reason)}"]
    yield from _not_run(results)
    for result in _with_status(results, "FAILED"):
        yield from ["", _title(result), *_results(result.failures)]
    # How to read the table: its columns join levels, and a test may count in several rows.
    ran = _distinct(results, {"accepted", "refused", "passed", "FAILED"})
    yield from ["", f"{ran} ran; a case belongs to one clause, a test may show several."]
    yield from ["RECOMMENDED counts as SHOULD, advice as derived.", _sum(results)]


def _details(results: Sequence[conformance.ClauseResult]) -> Iterator[str]:
    """Yield clauses with each of their cases and tests."""
    for number, result in enumerate(results):
        clause = result.clause
        if number:
            yield ""
        yield styled(escape(clause.id), "heading") + escape(f"  {clause.level}  {clause.source}")
        yield from (f"  {escape(text)}" for text in (clause.about, *_remarks(result)))
        yield from _results([test for test in result.results if test.status != "FAILED"])
        yield from _results(result.failures)
    if any(result.failures for result in results):
        yield from ["", _sum(results)]


def _remarks(result: conformance.ClauseResult) -> Iterator[str]:
    clause = result.clause
    for name, text in (("one side", clause.one_sided), ("open", clause.open), ("note", clause.note)):
        if text:
            yield f"{name}: {text}"
    if result.cases:
        counts = f"{result.count('accepted'):,} accepted, {result.count('refused'):,} refused"
        yield f"cases: {counts}, in {', '.join(clause.vectors)}"


def _table(results: Sequence[conformance.ClauseResult]) -> Iterator[str]:
    """Yield the table of the report, in at most 80 columns."""
    table = [report.HEADINGS, *conformance.report.rows(results)]
    cells = [[escape(cell).removeprefix("cases ").replace(" of ", "/") for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        yield "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]).rstrip()


def _with_status(results: Iterable[conformance.ClauseResult], status: str) -> list[conformance.ClauseResult]:
    return [result for result in results if result.status == status]


def _not_run(results: Sequence[conformance.ClauseResult]) -> Iterator[str]:
    """Yield the clauses and cases that were not run, and how to run them."""
    if clauses := _with_status(results, "not run"):
        how = ": tests show these clauses; pass --results FILE, the JUnit XML that make test writes"
        names = ", ".join(result.clause.id for result in clauses)
        yield from ["", styled("not run", "warning") + how, f"  {escape(names)}"]
    cases = {case for result in results for case in result.cases if case.status == "not run"}
    if packages := {name for case in cases for name in _PACKAGE.findall(case.detail)}:
        why = f": {pluralize(len(cases), 'case')}, because a package is missing"
        command = f"  pip install {' '.join(sorted(packages))}"
        yield from ["", styled("not run", "warning") + why, escape(command)]


def _title(result: conformance.ClauseResult) -> str:
    clause = result.clause
    text = escape(f": {clause.id} ({clause.level}) {clause.about}")
    return styled(result.status, _STYLES[result.status]) + text


def _results(results: Sequence[conformance.Result]) -> Iterator[str]:
    """Yield a line for each case and test, and one with the detail if it has one."""
    width = max((len(result.name) for result in results if result.about), default=0)
    for result in results:
        text = f"{result.name:<{width}}  {result.about}" if result.about else result.name
        status = styled(f"  {result.status:<{_WIDTH}}", _STYLES.get(result.status, "dim"))
        yield f"{status}  {escape(text)}"
        if result.detail:
            yield f"  {'':<{_WIDTH}}  {escape(result.detail)}"


def _sum(results: Sequence[conformance.ClauseResult]) -> str:
    """Return the number of clauses by status."""
    numbers = [(status, len(_with_status(results, status))) for status in ("shown", "not shown", "not run")]
    parts = [f"{number:,} {status}" for status, number in numbers if number]
    head = f"{pluralize(len(results), 'clause')}: "
    if failed := len(_with_status(results, "FAILED")):
        bad = f"{failed:,} FAILED ({_distinct(results, {'FAILED'})})."
        return head + "".join(f"{text}, " for text in parts) + styled(bad, "error")
    return head + ", ".join([*parts, "none FAILED."])


def _distinct(results: Sequence[conformance.ClauseResult], statuses: set[conformance.Status]) -> str:
    """Return the number of cases and tests with a status, each counted once: ``2 cases and 1 test``."""
    cases = {case.name for result in results for case in result.cases if case.status in statuses}
    tests = {test.name for result in results for test in result.tests if test.status in statuses}
    return " and ".join(
        pluralize(len(names), thing) for names, thing in ((cases, "case"), (tests, "test")) if names
    )
