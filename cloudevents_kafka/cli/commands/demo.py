"""``demo``: run this library on a local Kafka and Spark."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from cloudevents_kafka.cli.needs import connector, java, kafka_jars, packages, require
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BrokerFailure
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline import PipelineFailed, SparkFailed


@click.command()
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=3000,
    show_default=True,
    metavar="N",
    help="The number of events to send.",
)
@click.option(
    "--seed",
    type=int,
    default=2026,
    show_default=True,
    help="The seed of the events. The same seed produces the same events.",
)
@click.option(
    "--events",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send the events of this file, and generate no events. Each line is a CloudEvent in JSON.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder for the tables, which must be new or empty.  [default: a new temporary folder]",
)
def command(count: int, seed: int, events: Path | None, out: Path | None) -> None:
    """Run the library on a local Kafka and Spark.

    Sends the events of a small shop in every content mode and format, mixed with invalid records. Then reads
    the records back, writes them to Parquet tables, and compares the counts and contents. Keeps the tables,
    and stops all programs that it started. The exit code is 1 if a check fails.
    """
    require("demo", packages("spark"), java, kafka_jars, connector)
    from cloudevents_kafka.cli.demo.run import format_report, run_demo

    if out is not None and out.exists() and any(out.iterdir()):
        raise click.BadParameter(f"{out} must be empty", param_hint="--out")
    folder = out or Path(tempfile.mkdtemp(prefix="cloudevents-kafka-demo-"))
    try:
        # A signal ends the demo at once: no work in progress is worth finishing.
        with Interrupts() as interrupts, interrupts.waiting():
            outcome = run_demo(folder, seed=seed, count=count, events=events)
    except BaseException as error:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, PipelineFailed | SparkFailed):
            raise BrokerFailure(str(error)) from error
        raise
    click.echo(f"\n{format_report(outcome)}")
    if outcome.invalid_lines:
        lines = pluralize(len(outcome.invalid_lines), "invalid line")
        click.echo(f"skipped {lines} of {events}, see above", err=True)
    if not outcome.passed or outcome.invalid_lines:
        raise click.exceptions.Exit(BAD_DATA)
