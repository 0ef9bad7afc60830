"""``consume``: read a topic, or a range of it, as JSON lines or text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable, decode
from cloudevents_kafka.cli.kafka import (
    BrokerSession,
    Position,
    PositionType,
    RangeReader,
    ReadRequest,
    Settings,
    create_consumer,
    kafka_options,
    pop_settings,
)
from cloudevents_kafka.cli.records import OUTPUT_FORMATS, Output, create_output, is_pipe_closed
from cloudevents_kafka.cli.terminal import BadData, Interrupts, Progress, header_option, parse_pairs
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

_UNUSED_GROUP: Final = "cloudevents-kafka-cli"  # the client requires a group.id


class _Options(msgspec.Struct, kw_only=True):
    """The options of `consume`, apart from the client's settings."""

    topic: str | None
    begin: Position | None
    end: Position | None
    partitions: tuple[int, ...]
    count: int | None
    follow: bool
    group: str | None
    commit: bool
    types: tuple[str, ...]
    sources: tuple[str, ...]
    subjects: tuple[str, ...]
    where: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, bytes | None], ...]
    lenient: bool
    strict: bool
    output: str | None


def _parse_partitions(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for text in texts for part in text.split(","))
    except ValueError:
        raise click.BadParameter("partitions must be numbers, separated by commas", ctx, param) from None
    if any(number < 0 for number in numbers):
        raise click.BadParameter("partitions must be numbers from 0", ctx, param)
    return tuple(dict.fromkeys(numbers))


@click.command()
@kafka_options
@click.option("-t", "--topic", metavar="TOPIC", help="The topic to read.")
@click.option(
    "--from", "begin", type=PositionType(), metavar="POSITION", help="Start here.  [default: earliest]"
)
@click.option("--until", "end", type=PositionType(), metavar="POSITION", help="Stop before this position.")
@click.option(
    "-p",
    "--partitions",
    multiple=True,
    callback=_parse_partitions,
    metavar="N,…",
    help="Read only these.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("-f", "--follow", is_flag=True, help="Wait for new records at the end of the topic.")
@click.option(
    "--group", metavar="NAME", help="Start at the committed offsets of this group, unless --from is set."
)
@click.option("--commit", is_flag=True, help="Commit the offsets of written records for the group.")
@click.option("--type", "types", multiple=True, metavar="GLOB", help="Only events whose type matches.")
@click.option("--source", "sources", multiple=True, metavar="GLOB", help="The same for their source.")
@click.option("--subject", "subjects", multiple=True, metavar="GLOB", help="The same for their subject.")
@click.option(
    "--where",
    multiple=True,
    callback=parse_pairs,
    metavar="NAME=VALUE",
    help="Only events with this attribute. Repeatable: all must match.",
)
@header_option("Only records with this header. Repeatable: all must match.")
@click.option("--lenient", is_flag=True, help="Accept known deviations of other producers, and list them.")
@click.option(
    "--strict", is_flag=True, help="Stop at the first record that is not an event, with exit code 1."
)
@click.option(
    "-o", "--output", type=click.Choice(OUTPUT_FORMATS), help="[default: text on a terminal, else json]"
)
def command(timeout: float, *, show_config: bool, **options: Any) -> None:
    """Read events and other records from a topic.

    Reads up to the current end of the topic, without a consumer group, and commits
    nothing. Each record is a JSON line that produce can send again byte for byte; a record
    that is not an event has the reason in "error".

    \b
    POSITION, for --from and --until, in every partition:
      earliest, latest      the start or the end
      1741                  an offset
      -10                   the last 10 records
      @2026-11-21T12:00:00Z the first record from that time on (RFC 3339)
      @1795262400000        the same, in ms since the epoch
      stored                the committed offset of --group

    \b
    cloudevents-kafka consume -b localhost:9092 -t orders --type 'order.*' | jq .event
    cloudevents-kafka consume -b localhost:9092 -t orders --from -1 --follow
    """
    settings = pop_settings(options)
    chosen = _Options(**options)
    settings = _client_settings(settings, chosen.group)
    if show_config:
        click.echo(settings.to_text(), nl=False)
        return
    topic = _check(chosen)
    settings.bootstrap_servers  # noqa: B018  # raises if they are missing
    _run(topic, chosen, settings, timeout)


def _client_settings(settings: Settings, group: str | None) -> Settings:
    defaults = {"auto.offset.reset": "earliest"}
    overrides = {
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "group.id": group or _UNUSED_GROUP,
    }
    return settings.with_defaults("defaults of consume", defaults).with_overrides(
        "overrides of consume", overrides
    )


def _check(options: _Options) -> str:
    """Return the topic; raises `click.UsageError` for options that exclude each other."""
    if not options.topic:
        raise click.UsageError("the topic is missing: pass -t TOPIC")
    if options.commit and not options.group:
        raise click.UsageError("--commit stores the offsets of a group: pass --group, too")
    if options.follow and options.end is not None:
        raise click.UsageError("--follow and --until exclude each other")
    positions = (options.begin, options.end)
    if any(position and position.kind == "stored" for position in positions) and not options.group:
        raise click.UsageError("'stored' is the offset of a group: pass --group, too")
    return options.topic


def _run(topic: str, options: _Options, settings: Settings, timeout: float) -> None:
    request = ReadRequest(
        topic=topic,
        partitions=options.partitions,
        begin=options.begin or Position("stored" if options.group else "earliest"),
        end=options.end,
        follow=options.follow,
        group=options.group,
    )
    with ExitStack() as stack:
        on_lost = _report_lost_brokers if options.follow else lambda: None
        session = BrokerSession(settings, timeout, stack.enter_context(Interrupts()), on_lost)
        consumer = create_consumer(session)
        stack.callback(consumer.close)
        reader = RangeReader(consumer, session, request)
        reader.start()
        progress = stack.enter_context(Progress("records", enabled=not sys.stdout.isatty()))
        job = ConsumeJob(options, create_output(options.output), progress)
        for offsets in job.write(reader.batches()):
            if options.commit:
                reader.commit(offsets)
            if is_pipe_closed():
                raise BrokenPipeError
        job.finish()


def _report_lost_brokers() -> None:
    click.echo("cloudevents-kafka: the brokers cannot be reached; retrying until Ctrl-C", err=True)


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that a record must all meet.

    ``globs`` maps attribute names to globs, of which one must match; ``attributes`` are names with
    their exact text; ``headers`` are names with the value of one such header, or None for any value.
    """

    globs: Mapping[str, Sequence[str]] = {}
    attributes: Sequence[tuple[str, str]] = ()
    headers: Sequence[tuple[str, bytes | None]] = ()

    @property
    def needs_event(self) -> bool:
        """Whether only events can match, since a condition is on attributes."""
        return bool(self.attributes) or any(self.globs.values())

    def matches(self, item: Decoded | Undecodable) -> bool:
        """Return whether a record meets all conditions."""
        found = item.record.headers
        if not all(any(n == name and value in (None, v) for n, v in found) for name, value in self.headers):
            return False
        return not self.needs_event or (isinstance(item, Decoded) and self._matches_event(item.event))

    def _matches_event(self, event: Event) -> bool:
        return all(event.text(name) == value for name, value in self.attributes) and all(
            (text := event.text(name)) is not None and any(fnmatchcase(text, glob) for glob in globs)
            for name, globs in self.globs.items()
            if globs
        )


class ConsumeJob:
    """A run of `consume`: it decodes, filters, writes and counts records."""

    def __init__(self, options: _Options, output: Output, progress: Progress) -> None:
        globs = {"type": options.types, "source": options.sources, "subject": options.subjects}
        self._filter = Filter(globs=globs, attributes=options.where, headers=options.headers)
        self._options = options
        self._output = output
        self._progress = progress
        self._written = 0
        self._skipped = 0
        self._error: BadData | None = None

    def write(self, batches: Iterator[list[Record]]) -> Iterator[dict[int, int]]:
        """Write each batch, and yield the next offset of its partitions after the output is flushed.

        Ends after --count records, and with --strict at a record that is not an event.
        """
        for batch in batches:
            offsets: dict[int, int] = {}
            for record in batch:
                if self._is_done() or not self._write_item(decode(record, lenient=self._options.lenient)):
                    break
                if record.partition is not None and record.offset is not None:
                    offsets[record.partition] = record.offset + 1
            self._output.flush()
            self._progress.update(self._written)
            yield offsets
            if self._is_done() or self._error:
                return

    def _write_item(self, item: Decoded | Undecodable) -> bool:
        """Write a record if it matches; return False if --strict ends the command at it."""
        if isinstance(item, Undecodable):
            if self._options.strict:
                self._error = BadData(f"{item.error}; to read on, leave out --strict")
                return False
            if self._filter.needs_event:
                self._skipped += 1
        if self._filter.matches(item):
            self._output.write(item)
            self._written += 1
        return True

    def _is_done(self) -> bool:
        return self._options.count is not None and self._written >= self._options.count

    def finish(self) -> None:
        """Report skipped records, and raise the error that --strict found."""
        self._progress.clear()
        if self._skipped:
            skipped = pluralize(self._skipped, "record that is not an event", "records that are not events")
            click.echo(f"cloudevents-kafka: the filters skipped {skipped}", err=True)
        if self._error:
            raise self._error
