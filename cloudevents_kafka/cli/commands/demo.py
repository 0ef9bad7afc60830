"""``demo``: the library at work on a local Kafka and a local Spark."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BrokerTrouble
from cloudevents_kafka.cli.terminal.extras import need
from cloudevents_kafka.cli.terminal.signals import Interrupts

if TYPE_CHECKING:
    from cloudevents_kafka.demo.run import Outcome

_HELP = """Show the library at work, on a local Kafka and a local Spark.

Sends the events of a small shop in all modes and formats, with other records between
them; reads them back; lands them in Parquet tables; and compares. Leaves the tables,
and nothing running. Exit code 1 if the sums do not add up.
"""


@click.command(help=_HELP)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=3000,
    show_default=True,
    metavar="N",
    help="Events to send.",
)
@click.option(
    "--seed", type=int, default=2026, show_default=True, help="The same seed gives the same events."
)
@click.option(
    "--events",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send these instead: CloudEvents as JSON, one to a line.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the tables, a new one.  [default: a fresh one in the system's temporary folder]",
)
def command(count: int, seed: int, events: Path | None, out: Path | None) -> None:
    """Run the demo."""
    from cloudevents_kafka.demo.report import report

    need("spark", "demo")
    if out is not None and out.exists() and any(out.iterdir()):
        raise click.BadParameter(f"{out} is not empty", param_hint="--out")
    folder = out or Path(tempfile.mkdtemp(prefix="cloudevents-kafka-demo-"))
    try:
        outcome = _run(folder, count, seed, events)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    report(outcome)
    if outcome.bad_lines:
        click.echo(f"{len(outcome.bad_lines):,} lines of {events} are no events, see above", err=True)
    if not outcome.good or outcome.bad_lines:
        raise click.exceptions.Exit(BAD_DATA)


def _run(folder: Path, count: int, seed: int, events: Path | None) -> Outcome:
    from cloudevents_kafka.demo.run import demonstrate
    from cloudevents_kafka.spark.pipeline import PipelineFailed, SparkFailed

    try:
        # Nothing of a demo need be finished: a signal ends it where it stands, and all that runs with it.
        with Interrupts() as interrupts, interrupts.waiting():
            return demonstrate(folder, seed=seed, count=count, events=events)
    except (PipelineFailed, SparkFailed) as error:
        raise BrokerTrouble(str(error)) from error
