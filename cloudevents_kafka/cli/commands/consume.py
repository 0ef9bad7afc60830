"""``consume``: read a topic, or a range of a topic, as JSON lines or text."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing, nullcontext
from typing import Any

import click

from cloudevents_kafka.cli.data_schemas import REGISTRY
from cloudevents_kafka.cli.kafka.reader import (
    RangeReader,
    ReadRequest,
    check_request,
    consumer_settings,
    range_options,
)
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import Settings, kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import group_option, topics_options
from cloudevents_kafka.cli.records.output import is_pipe_closed
from cloudevents_kafka.cli.records.registry_data import RegistryData
from cloudevents_kafka.cli.records.selection import Filter, RecordWriter, filter_options
from cloudevents_kafka.cli.records.writing import OUTPUT_FORMATS, Output
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.streams import Progress
from cloudevents_kafka.cli.terminal.text import print_message


@click.command()
@kafka_options
@topics_options
@range_options
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("-f", "--follow", is_flag=True, help="Wait for new records at the end of the topic.")
@group_option("Start at the committed offsets of this group, unless --from is set.")
@click.option("--commit", is_flag=True, help="Commit the offsets of written records for the group.")
@filter_options
@click.option("--lenient", is_flag=True, help="Accept known mistakes of other producers, and list them.")
@click.option(
    "--strict", is_flag=True, help="Stop at the first record that is not an event, with exit code 1."
)
@click.option(
    "-o", "--output", type=click.Choice(OUTPUT_FORMATS), help="[default: text on a terminal, else json]"
)
@click.option(
    "--format",
    "template",
    metavar="TEMPLATE",
    help="Print each record as one line of this form, such as '{offset:>8} {type} {data}'.",
)
@click.option(
    "--schema-registry",
    metavar="URL",
    help="Decode data that serializers of this schema registry wrote. -X schema.registry.NAME=VALUE sets "
    "other options of the registry's client.",
)
def command(
    timeout: float,
    count: int | None,
    output: str | None,
    template: str | None,
    schema_registry: str | None,
    *,
    commit: bool,
    lenient: bool,
    strict: bool,
    show_config: bool,
    **options: Any,
) -> None:
    """Read events and other records from topics.

    Reads the topics up to their current end, without a consumer group, and commits no offsets. Each record
    becomes a JSON line, from which produce can send the same bytes again. If a record is not an event,
    "error" contains the reason.

    \b
    POSITION, for --from and --until, in every partition:
      earliest, latest      the start or the end
      1741                  an offset
      -10                   the last 10 records
      -1h                   the first record of the last hour (s, m, h or d)
      @2026-11-21           the first record on or after that day (UTC)
      @2026-11-21T12:00:00Z the first record at or after that time
      @1795262400000        that time in ms since the epoch
      stored                the committed offset of --group

    A TEMPLATE has the syntax of Python's str.format. Its fields are topic, partition, offset, place,
    timestamp, key, value, headers, mode, verdict, reason, clauses, data, the core attributes, and ce_NAME for
    the attribute NAME.

    \b
    cloudevents-kafka consume -b localhost:9092 -t orders --type 'order.*' -n 9
    cloudevents-kafka consume -b localhost:9092 -t orders --from -1 --follow
    """
    settings = pop_settings(options)
    request = ReadRequest(**{name: options.pop(name) for name in ReadRequest.__struct_fields__})
    if template is not None and output is not None:
        raise click.UsageError("--format and --output exclude each other")
    interrupts = Interrupts()
    settings, registry = _registry(settings, schema_registry, interrupts)
    printed = Output(output, template, registry)
    writer = RecordWriter(printed, Filter(**options), count=count, lenient=lenient, strict=strict)
    settings = consumer_settings(settings, "consume", request.group)
    settings.check(show=show_config, topic=request.topics or request.topic_pattern)
    _check(request, commit=commit)

    def report_lost_brokers() -> None:
        if request.follow and session.connected:  # without a first connection, the command ends
            print_message("the brokers cannot be reached; retrying until Ctrl-C")

    session = BrokerSession(settings, timeout, interrupts, report_lost_brokers)
    with interrupts, nullcontext() if registry is None else closing(registry):
        _run(request, writer, session, commit=commit)


def _registry(
    settings: Settings, url: str | None, interrupts: Interrupts
) -> tuple[Settings, RegistryData | None]:
    """Return the settings of the Kafka client, and a decoder of data with the schemas of a registry.

    The decoder is None if neither the settings nor ``url`` name a registry.
    """
    settings, own = settings.split(REGISTRY)
    url = url or own.pop("url", None)
    return settings, RegistryData(url, own, interrupts) if url else None


def _check(request: ReadRequest, *, commit: bool) -> None:
    """Raise `click.UsageError` for options that exclude each other."""
    if commit and not request.group:
        raise click.UsageError("--commit stores the offsets of a group: pass --group, too")
    check_request(request)


def _run(request: ReadRequest, writer: RecordWriter, session: BrokerSession, *, commit: bool) -> None:
    from confluent_kafka import Consumer

    with ExitStack() as stack:
        consumer = session.create(Consumer)
        stack.callback(consumer.close)
        reader = RangeReader(consumer, session, request)
        reader.start()
        progress = stack.enter_context(Progress("records", enabled=not sys.stdout.isatty()))
        for offsets in writer.write(reader.batches()):
            progress.update(writer.written)
            if commit:
                reader.commit(offsets)
            if is_pipe_closed():
                raise BrokenPipeError
            if request.follow:
                reader.assign_added()
        progress.clear()
        writer.finish()
