"""``report``: write one HTML file about a topic, about tables, or about a run of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec.structs import replace

from cloudevents_kafka.cli.kafka.lag import Lag, committed, lags
from cloudevents_kafka.cli.kafka.reader import (
    RangeReader,
    ReadRequest,
    check_request,
    consumer_settings,
    range_options,
)
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import Settings, kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import group_option, topic_option
from cloudevents_kafka.cli.needs import java, packages, require, table_format
from cloudevents_kafka.cli.records.statistics import count_records
from cloudevents_kafka.cli.report.page import PageContents, to_html
from cloudevents_kafka.cli.terminal.completion import complete_folders
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.parameters import FILE
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.streams import Progress
from cloudevents_kafka.counting import RecordCounts
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from cloudevents_kafka.spark.pipeline import Summary
    from cloudevents_kafka.spark.table_formats import TableFormat

_OF_TABLES: Final = ("folder", "names", "master", "conf")


@click.command()
@kafka_options
@topic_option("Report on a topic.")
@range_options
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@group_option("Show the lag of this group.")
@click.option("--lenient", is_flag=True, help="Accept known mistakes of other producers, and count them.")
@click.option(
    "-o",
    "--out",
    "folder",
    metavar="DIR",
    help="Report on the folder of a pipeline, or of one table.",
    shell_complete=complete_folders,
)
@click.option(
    "--table", "names", metavar="NAME", multiple=True, help="Report on a table of a catalog. Repeatable."
)
@click.option("--master", help="The Spark master, for tables.  [default: local[*]]")
@click.option(
    "--summary-json", "run", type=FILE, metavar="FILE", help="Report on the run that wrote this summary."
)
@click.option(
    "--html",
    type=FILE,
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The file to write; - is stdout.",
)
def command(timeout: float, html: str, *, show_config: bool, **options: Any) -> None:
    """Write one HTML file about a topic, tables, or a run of the pipeline.

    The file shows, in figures and tables, events over time by type, sizes, keys, and lag. For records that
    are not events, the file shows how many records have each verdict and clause, and a few samples. The file
    loads no other file, runs no script, needs no network, and has at most 1 MB. Values that may be secrets
    are masked; data is not masked.

    A topic is read up to its current end; POSITION has the form that the command consume accepts. Tables are
    the tables that a pipeline writes, in Parquet, Delta or Iceberg. Spark reads the tables; -X
    spark.NAME=VALUE passes a setting to Spark. For tables and for a run, the lag is shown if -b names a
    broker.

    \b
    cloudevents-kafka report -b localhost:9092 -t orders --group billing
    cloudevents-kafka report -b localhost:9092 --out lake/orders
    cloudevents-kafka report --summary-json run.json --html run.html
    """
    settings = pop_settings(options)
    settings, spark = settings.split("spark.")
    options["conf"] = {f"spark.{name}": value for name, value in spark.items()}
    settings = consumer_settings(settings, "report", options["group"])
    settings.check(show=show_config, broker=False)
    require("report", packages("report"))
    kinds = {"topic": _of_topic, "folder": _of_tables, "names": _of_tables, "run": _of_run}
    chosen = {kind for name, kind in kinds.items() if options[name]}
    if len(chosen) != 1:
        raise click.UsageError("pass one of -t TOPIC, --out DIR, --table NAME or --summary-json FILE")
    report = chosen.pop()(settings, timeout, options)
    page = to_html(report)
    try:
        with click.open_file(html, "w", encoding="utf-8") as file:
            file.write(page)
    except BrokenPipeError:  # of stdout, as after head
        raise
    except OSError as error:
        raise BadUsage(f"--html: cannot write {html}: {error.strerror}") from None
    click.echo(f"{html}: {len(page.encode()):,} bytes about {report.records}", err=True)


@contextmanager
def _connected(settings: Settings, timeout: float) -> Iterator[tuple[Consumer, BrokerSession]]:
    from confluent_kafka import Consumer

    with Interrupts() as interrupts:
        session = BrokerSession(settings, timeout, interrupts)
        with closing(session.create(Consumer)) as consumer:
            yield consumer, session


def _of_topic(settings: Settings, timeout: float, options: dict[str, Any]) -> PageContents:
    counts, topic, group = RecordCounts(), options["topic"], options["group"]
    asked = {name: options[name] for name in ("partitions", "begin", "end")}
    request = ReadRequest(topics=(topic,), **asked, follow=False, group=None)
    check_request(replace(request, group=group))
    with _connected(settings, timeout) as (consumer, session), Progress("records") as progress:
        reader = RangeReader(consumer, session, request)
        reader.start()
        count_records(
            reader.batches(), {topic: counts}, options["count"], progress, lenient=options["lenient"]
        )
        behind = lags(consumer, session, committed(consumer, session, topic)) if group else []
        return PageContents(
            f"Topic {topic}", [("brokers", session.address), ("group", group or "none")], counts, behind
        )


def _of_tables(settings: Settings, timeout: float, options: dict[str, Any]) -> PageContents:
    from cloudevents_kafka.spark import pipeline
    from cloudevents_kafka.spark.pipeline.maintenance import needed_formats, read_contents

    formats: tuple[TableFormat, ...] = ()
    with suppress(pipeline.WrongTable):  # plain Parquet, or no table
        formats = needed_formats(options["folder"], options["names"])
    require("report", packages("spark"), java, *map(table_format, formats))
    try:
        found = read_contents(**{name: options[name] for name in _OF_TABLES}, formats=formats)
    except (pipeline.WrongTable, ValueError) as error:
        raise BadUsage(settings.redact(str(error))) from error
    except (pipeline.PipelineFailed, pipeline.SparkFailed) as error:
        raise BrokerFailure(settings.redact(str(error))) from error
    facts = [("table", name) for name in found.tables]
    return PageContents("Tables", facts, found.counts, _behind(settings, timeout, found.positions))


def _of_run(settings: Settings, timeout: float, options: dict[str, Any]) -> PageContents:
    from cloudevents_kafka.spark.pipeline import Summary

    try:
        run = msgspec.json.decode(Path(options["run"]).read_bytes(), type=Summary)
        counts, positions = _counts_of(run)
    except OSError as error:
        raise BadUsage(f"--summary-json: cannot read {options['run']}: {error.strerror}") from None
    except ValueError as error:
        raise BadUsage(f"{options['run']} must be what pipeline --summary-json writes: {error}") from None
    rate = f"{pluralize(run.batches, 'batch', 'batches')} in {run.seconds:,.1f} s, {run.rate:,.0f} records/s"
    tables = (("table", name) for name in (run.events_table, run.quarantine_table))
    facts = [("run", rate), ("topics", ", ".join(run.topics)), *tables]
    return PageContents("Run of a pipeline", facts, counts, _behind(settings, timeout, positions))


def _counts_of(summary: Summary) -> tuple[RecordCounts, dict[tuple[str, int], int]]:
    """Return the counts of a pipeline's run, and the next offset of each partition.

    These counts do not contain sizes, times and samples of records. Raises `ValueError` if a partition in the
    summary is not a number.
    """
    run = summary.counts
    counts = RecordCounts(run.events, run.quarantined)
    for type_, modes in run.by_type.items():
        for mode, number in modes.items():
            counts.types.add(type_, number)
            counts.modes.add(mode, number)
    for labels, by_label in ((counts.errors, run.by_reason), (counts.tolerated, run.by_tolerated)):
        for outer, inner in by_label.items():
            for label, number in inner.items():
                labels.add(f"{outer} {label}", number)
    parts = ((topic, *part) for topic, partitions in run.offsets.items() for part in partitions.items())
    return counts, {(topic, int(number)): counted.last + 1 for topic, number, counted in parts}


def _behind(settings: Settings, timeout: float, positions: Mapping[tuple[str, int], int]) -> list[Lag]:
    if not settings.effective.keys() & {"bootstrap.servers", "metadata.broker.list"}:
        return []
    with _connected(settings, timeout) as (consumer, session):
        return lags(consumer, session, positions)
