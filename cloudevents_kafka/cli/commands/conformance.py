"""``conformance``: hold the library against every clause of the specification."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from cloudevents_kafka.cli.commands.conformance_table import details, overview
from cloudevents_kafka.cli.records.text import Painter
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.plural import count
from cloudevents_kafka.conformance import flat_records, report
from cloudevents_kafka.conformance.assertions import Unmet
from cloudevents_kafka.conformance.dataset import DataMissing, Library
from cloudevents_kafka.conformance.runner import CannotTest, show_all

_HELP: Final = """Show what CloudEvents asks, and that it is met.

Runs every case of the vectors and, in a checkout, every test that shall show a clause
of the CloudEvents core specification, its formats, the Kafka binding and the documented
extensions. Prints how many are shown, by area and level, and which are not, and why.
Exit code 0 where nothing speaks against a clause, else 1.

\b
cloudevents-kafka conformance
cloudevents-kafka conformance --clause K-07
cloudevents-kafka conformance --no-tests --report report.md
"""


@click.command(help=_HELP, short_help="Show what CloudEvents asks, and that it is met.")
@click.option("--clause", "clauses", multiple=True, metavar="ID", help="Just these, by case. Repeatable.")
@click.option("--report", "target", type=click.Path(dir_okay=False), help="Write the report, in Markdown.")
@click.option("--records", type=click.Path(dir_okay=False), help="Write all records, as hex, in one file.")
@click.option("--tests/--no-tests", default=True, help="Run the named tests too (they need the repository).")
@click.option("--folder", type=click.Path(file_okay=False), help="Clauses and vectors from elsewhere.")
def command(
    clauses: tuple[str, ...], target: str | None, records: str | None, folder: str | None, *, tests: bool
) -> None:
    """Run everything, and print the table."""
    library = Library(Path(folder) if folder else None)
    clauses = tuple(name.upper() for name in clauses)
    try:
        _check_files(target, records)
        _check_ids(library, clauses)
        found = show_all(library, () if target else clauses, with_tests=tests, progress=_progress)
        chosen = [shown for shown in found if not clauses or shown.clause.id in clauses]
        painter = Painter(sys.stdout, colours=sys.stdout.isatty())
        painter.paint(details(chosen) if clauses else overview(found))
        painter.flush()
        if target:
            _write(target, report.markdown(found, library.documents))
        if records:
            _write(records, flat_records.document(library))
    except (CannotTest, DataMissing) as error:
        raise BadUsage(str(error)) from None
    except Unmet as error:
        raise BadData(f"no records were written, as a case does not hold: {error}") from None
    if any(shown.failures for shown in chosen):
        sys.exit(BAD_DATA)


def _progress(number: int, thing: str) -> None:
    click.echo(f"running {count(number, thing)}", err=True)


def _check_files(target: str | None, records: str | None) -> None:
    """Tell that a file cannot be written before all is run for it."""
    files = [file for file in (target, records) if file is not None]
    for file in files:
        if not (parent := Path(file).absolute().parent).is_dir():
            raise BadUsage(f"{file} cannot be written: there is no folder {parent}")
        if Path(file).is_dir():
            raise BadUsage(f"{file or repr(file)} cannot be written: it is a folder")
    if len({Path(file).resolve() for file in files}) < len(files):
        raise BadUsage(f"--report and --records name the same file: {records}")


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, "utf-8")
    except OSError as error:
        raise BadUsage(f"{file} cannot be written: {error.strerror or error}") from None


def _check_ids(library: Library, clauses: Sequence[str]) -> None:
    known = {clause.id for clause in library.clauses}
    if unknown := [name or repr(name) for name in clauses if name not in known]:
        raise BadUsage(f"no clause {', '.join(unknown)}; there are {', '.join(sorted(known))}")
