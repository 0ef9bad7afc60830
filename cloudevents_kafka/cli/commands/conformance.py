"""``conformance``: run the clauses of the specification against the library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from cloudevents_kafka.cli.commands.conformance_table import details, overview
from cloudevents_kafka.cli.records import StyledPrinter
from cloudevents_kafka.cli.terminal import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.conformance import (
    CaseFailed,
    Dataset,
    DatasetError,
    Result,
    ResultsError,
    flat_records,
    read_results,
    report,
    run_clauses,
    worst_of,
)
from cloudevents_kafka.primitives.plural import pluralize


@click.command(short_help="Run the clauses of CloudEvents against this library.")
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
    """Run the clauses of CloudEvents against this library.

    Runs every case of the vectors for each requirement of the CloudEvents core specification,
    its formats, the Kafka binding and the documented extensions. Prints how many clauses are
    shown, by area and level, and why the others are not. Clauses that tests show are not run
    without --results.
    The exit code is 0 if no case or test failed, else 1.

    \b
    cloudevents-kafka conformance
    cloudevents-kafka conformance --clause K-07
    cloudevents-kafka conformance --results build/tests.xml --report report.md
    """
    dataset = Dataset(Path(folder) if folder else None)
    clauses = tuple(name.upper() for name in clauses)
    try:
        _check_files(target, records)
        _check_ids(dataset, clauses)
        tests = _read_all(results)
        found = run_clauses(dataset, () if target else clauses, tests=tests, progress=_progress)
        chosen = [result for result in found if not clauses or result.clause.id in clauses]
        printer = StyledPrinter(sys.stdout, color=sys.stdout.isatty())
        printer.print_lines(details(chosen) if clauses else overview(found))
        printer.flush()
        if target:
            _write(target, report.markdown(found, dataset.documents))
        if records:
            _write(records, flat_records.document(dataset))
    except (DatasetError, ResultsError) as error:
        raise BadUsage(str(error)) from None
    except CaseFailed as error:
        raise BadData(f"records cannot be written because a case failed: {error}") from None
    if any(result.failures for result in chosen):
        sys.exit(BAD_DATA)


def _read_all(files: Sequence[str]) -> dict[str, Result]:
    return worst_of(result for file in files for result in read_results(Path(file)).values())


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


def _check_ids(dataset: Dataset, clauses: Sequence[str]) -> None:
    ids = {clause.id for clause in dataset.clauses}
    if unknown := [name or repr(name) for name in clauses if name not in ids]:
        raise BadUsage(f"--clause must be one of {', '.join(sorted(ids))}, got {', '.join(unknown)}")
