"""``pipeline``: land topics of events in Parquet tables, each record once, with Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cloudevents_kafka.cli.kafka.options import config_option
from cloudevents_kafka.cli.kafka.settings import Settings, gather
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerTrouble
from cloudevents_kafka.cli.terminal.extras import need
from cloudevents_kafka.cli.terminal.parameters import FILE, Seconds
from cloudevents_kafka.cli.terminal.signals import Interrupts

if TYPE_CHECKING:
    from cloudevents_kafka.spark.pipeline import BatchProgress, PipelineOptions, Summary

# Of -X: what goes to Spark's Kafka source as it is, beside kafka.… and spark.….
_SOURCE: Final = ("minPartitions", "groupIdPrefix", "kafkaConsumer.", "fetchOffset.", "minOffsetsPerTrigger")
_SOURCE_MORE: Final = ("maxTriggerDelay", "fetchoffset.")

_HELP: Final = """Land topics of CloudEvents in Parquet tables, each record exactly once.

OUT/events has the events, in folders by type and date; OUT/quarantine the records
that are none, as they came and with the reason. Run it again, after whatever ended
it, and it goes on where it was. A topic that was deleted and created again, and
a checkpoint that does not go with OUT, end the run with exit code 2: land into a
fresh OUT then.

-X takes settings for reaching the brokers as in the other commands
(security.protocol, sasl.username, ssl.ca.location …), any other of the Java client's
as kafka.NAME=VALUE, and Spark's as spark.NAME=VALUE; NAME@=FILE reads from a file.
No error shows their values, but for those known to be harmless.
"""


@click.command(help=_HELP)
@click.option("-b", "--brokers", metavar="HOST:PORT,…", help="Brokers to begin with.")
@click.option("-t", "--topic", "topics", multiple=True, required=True, help="Topic to read. Repeatable.")
@click.option("-o", "--out", required=True, metavar="DIR", help="Folder to fill: a path, or a URL for Spark.")
@click.option(
    "--checkpoint", metavar="DIR", help="Where Spark notes what is done.  [default: OUT/_checkpoint]"
)
@click.option("--once", is_flag=True, help="Read what is there, then end; else run until Ctrl-C.")
@click.option(
    "--interval",
    type=Seconds(none=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="From one batch to the next.",
)
@click.option(
    "--from",
    "start",
    default="earliest",
    show_default=True,
    help='Where a first run begins: earliest, latest, or offsets as {"topic": {"0": 17}}.',
)
@click.option(
    "--max-records",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    metavar="N",
    help="Most records of a batch.",
)
@click.option("--allow-data-loss", is_flag=True, help="Go on where records expired before they were read.")
@click.option(
    "--date-of",
    type=click.Choice(["time", "timestamp"]),
    default="time",
    show_default=True,
    help="Whose date the folders have: the event's time, or the record's timestamp.",
)
@click.option(
    "--summary-json",
    type=FILE,
    metavar="FILE",
    help="Write the summary as JSON; - for stdout, instead of text.",
)
@click.option("--master", help="Spark master.  [default: local[*]]")
@click.option("--ui", is_flag=True, help="Let Spark serve its web page while it runs.")
@click.option("--spark-log", "log", type=FILE, metavar="FILE", help="Keep Spark's own warnings in a file.")
@click.option(
    "-X", "settings", metavar="NAME=VALUE", multiple=True, help="Any setting, see above. Repeatable."
)
@config_option
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of each batch.")
def command(
    brokers: str | None,
    settings: tuple[str, ...],
    config: str | None,
    summary_json: str | None,
    *,
    quiet: bool,
    **options: Any,
) -> None:
    """Run a pipeline."""
    need("spark", "pipeline")
    gathered = gather(config, os.environ, settings, brokers)
    chosen = _options(gathered, options)
    with Interrupts() as interrupts:
        summary = _run(chosen, gathered, interrupts, quiet=quiet)
    _show(summary, summary_json)
    # Stopping is how a pipeline without an end is ended; --once was to read all.
    if interrupts.asked and not summary.complete and chosen.once:
        interrupts.check()


def _options(settings: Settings, options: dict[str, Any]) -> PipelineOptions:
    from cloudevents_kafka.spark.pipeline import PipelineOptions
    from cloudevents_kafka.spark.pipeline.kafka_settings import kafka_options

    given = settings.effective
    spark = {name: value for name, value in given.items() if name.startswith("spark.")}
    source = {
        name: value for name, value in given.items() if name.startswith(("kafka.", *_SOURCE, *_SOURCE_MORE))
    }
    rest = {name: value for name, value in given.items() if name not in spark and name not in source}
    try:
        kafka = {**kafka_options(rest), **source}
        return PipelineOptions(bootstrap_servers=settings.brokers, kafka=kafka, conf=spark, **options)
    except ValueError as error:
        raise BadUsage(settings.redact(str(error))) from None


def _run(options: PipelineOptions, settings: Settings, interrupts: Interrupts, *, quiet: bool) -> Summary:
    from cloudevents_kafka.cli.terminal.escape import visible_lines
    from cloudevents_kafka.spark.pipeline import (
        InUse,
        Miscounted,
        PipelineFailed,
        SparkFailed,
        TopicChanged,
        WrongCheckpoint,
        run,
    )

    told = False

    def stop() -> bool:
        nonlocal told
        if interrupts.asked and not told:
            told = True
            click.echo("stopping after the batch under way (again to stop at once)", err=True)
        return interrupts.asked

    def report(batch: BatchProgress) -> None:
        if not quiet:
            click.echo(str(batch), err=True)

    def warn(text: str) -> None:
        click.echo(f"warning: {visible_lines(settings.redact(text))}", err=True)

    try:
        return run(options, report=report, warn=warn, stop=stop)
    except (InUse, WrongCheckpoint, TopicChanged) as error:
        raise BadUsage(str(error)) from error
    except Miscounted as error:
        raise BadData(str(error)) from error
    except (PipelineFailed, SparkFailed) as error:
        raise BrokerTrouble(options.redact(settings.redact(str(error)))) from error


def _show(summary: Summary, summary_json: str | None) -> None:
    if summary_json == "-":
        print(summary.to_json())
        return
    print(summary.to_text())
    if summary_json is not None:
        Path(summary_json).write_text(summary.to_json() + "\n", encoding="utf-8")
    sys.stdout.flush()
