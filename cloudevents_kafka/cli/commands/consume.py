"""``consume``: read a topic, or a range of it, as JSON lines or text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable, decode
from cloudevents_kafka.cli.kafka.offsets import Position, PositionType
from cloudevents_kafka.cli.kafka.options import kafka_options, pairs, take_settings
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.records.filters import Filter
from cloudevents_kafka.cli.records.output import FORMS, Output, make_output, reader_has_gone
from cloudevents_kafka.cli.terminal.errors import BadData
from cloudevents_kafka.cli.terminal.parameters import Header
from cloudevents_kafka.cli.terminal.plural import count
from cloudevents_kafka.cli.terminal.progress import Progress
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.record import Record

# The client wants a group's name even where none is used.
_NO_GROUP: Final = "cloudevents-kafka-cli"


class Choices(msgspec.Struct, kw_only=True):
    """The command's own options."""

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


def _numbers(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for text in texts for part in text.split(","))
    except ValueError:
        raise click.BadParameter("partitions are numbers, with commas between", ctx, param) from None
    if any(number < 0 for number in numbers):
        raise click.BadParameter("partitions are counted from 0", ctx, param)
    return tuple(dict.fromkeys(numbers))


_HELP: Final = """Read events, and whatever else is there, from a topic.

Reads to where the topic ends now, without a group, and commits nothing. Each record
is a JSON line that produce takes back, byte for byte; one that is no event has an
"error" that says why.

\b
WHERE, for --from and --until, in every partition:
  earliest, latest      its ends
  1741                  an offset
  -10                   the last ten
  @2026-11-21T12:00:00Z the first record from that time on (RFC 3339)
  @1795262400000        the same, in ms since the epoch
  stored                where the --group is

\b
cloudevents-kafka consume -b localhost:9092 -t orders --type 'order.*' | jq .event
cloudevents-kafka consume -b localhost:9092 -t orders --from -1 --follow
"""


@click.command(help=_HELP, short_help="Read events, and whatever else is there, from a topic.")
@kafka_options
@click.option("-t", "--topic", metavar="TOPIC", help="The topic to read.")
@click.option(
    "--from", "begin", type=PositionType(), metavar="WHERE", help="Where to begin; earliest if not said."
)
@click.option("--until", "end", type=PositionType(), metavar="WHERE", help="Where to end, itself not read.")
@click.option("-p", "--partitions", multiple=True, callback=_numbers, metavar="N,…", help="Only these.")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="End after N records.")
@click.option("-f", "--follow", is_flag=True, help="Wait for more, instead of ending at the end.")
@click.option("--group", metavar="NAME", help="Go on from its stored offsets, unless --from is given.")
@click.option("--commit", is_flag=True, help="Store the group's offsets for what was written.")
@click.option("--type", "types", multiple=True, metavar="GLOB", help="Only events of such a type.")
@click.option("--source", "sources", multiple=True, metavar="GLOB", help="Only events of such a source.")
@click.option("--subject", "subjects", multiple=True, metavar="GLOB", help="Only events of such a subject.")
@click.option(
    "--where",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Only events with this attribute. Repeatable: all must hold.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    type=Header(valueless=True),
    metavar="NAME[=VALUE]",
    help="Only records with this header. Repeatable: all must hold.",
)
@click.option("--lenient", is_flag=True, help="Take what known producers send beside the rules, and say so.")
@click.option("--strict", is_flag=True, help="Stop at the first record that is no event: exit code 1.")
@click.option("-o", "--output", type=click.Choice(FORMS), help="By default text on a terminal, else json.")
def command(timeout: float, *, show_config: bool, **options: Any) -> None:
    """Read a topic, or a range of it."""
    settings = take_settings(options)
    choices = Choices(**options)
    settings = _client_settings(settings, choices)
    if show_config:
        click.echo(settings.shown(), nl=False)
        return
    _check(choices)
    settings.brokers  # noqa: B018  # says at once that there are none
    _run(choices, settings, timeout)


def _client_settings(settings: Settings, choices: Choices) -> Settings:
    from cloudevents_kafka.cli.kafka.clients import quiet

    defaults = {**quiet(settings), "auto.offset.reset": "earliest"}
    rules = {"enable.auto.commit": "false", "enable.partition.eof": "true"}
    rules["group.id"] = choices.group or _NO_GROUP
    return settings.with_defaults("defaults of consume", defaults).with_rules("rules of consume", rules)


def _check(choices: Choices) -> None:
    if not choices.topic:
        raise click.UsageError("no topic: give -t TOPIC")
    if choices.commit and not choices.group:
        raise click.UsageError("--commit stores offsets for a group: give --group too")
    if choices.follow and choices.end is not None:
        raise click.UsageError("--follow has no end and --until is one: give one of them")
    positions = (choices.begin, choices.end)
    if any(position and position.kind == "stored" for position in positions) and not choices.group:
        raise click.UsageError("stored offsets are a group's: give --group too")


def _run(choices: Choices, settings: Settings, timeout: float) -> None:
    from cloudevents_kafka.cli.kafka.clients import Reach, make_consumer
    from cloudevents_kafka.cli.kafka.reader import Reading, Request

    request = Request(
        topic=choices.topic or "",
        partitions=choices.partitions,
        begin=choices.begin or Position("stored" if choices.group else "earliest"),
        end=choices.end,
        follow=choices.follow,
        group=choices.group,
    )
    with ExitStack() as stack:
        on_lost = _say_lost if choices.follow else lambda: None
        reach = Reach(settings, timeout, stack.enter_context(Interrupts()), on_lost)
        consumer = make_consumer(reach)
        stack.callback(consumer.close)
        reading = Reading(consumer, reach, request)
        reading.start()
        progress = stack.enter_context(Progress("records", shown=not sys.stdout.isatty()))
        copying = Copying(choices, make_output(choices.output), progress)
        for offsets in copying.through(reading.batches()):
            if choices.commit:
                reading.commit(offsets)
            if reader_has_gone():
                raise BrokenPipeError
        copying.finish()


def _say_lost() -> None:
    click.echo("cloudevents-kafka: no broker can be reached now; trying on, Ctrl-C ends it", err=True)


class Copying:
    """Writes the records that are wanted, and keeps count."""

    def __init__(self, choices: Choices, output: Output, progress: Progress) -> None:
        globs = {"type": choices.types, "source": choices.sources, "subject": choices.subjects}
        self._filter = Filter(globs=globs, where=choices.where, headers=choices.headers)
        self._choices = choices
        self._output = output
        self._progress = progress
        self._written = 0
        self._left_out = 0
        self._failed: BadData | None = None

    def through(self, batches: Iterator[list[Record]]) -> Iterator[dict[int, int]]:
        """Write batch by batch; gives the offsets to go on from, once all before them is written.

        Ends after --count records, and with --strict at a record that is no event.
        """
        for batch in batches:
            offsets: dict[int, int] = {}
            for record in batch:
                if self._enough() or not self._take(decode(record, lenient=self._choices.lenient)):
                    break
                if record.partition is not None and record.offset is not None:
                    offsets[record.partition] = record.offset + 1
            self._output.flush()
            self._progress.show(self._written)
            yield offsets
            if self._enough() or self._failed:
                return

    def _take(self, item: Decoded | Undecodable) -> bool:
        if isinstance(item, Undecodable):
            if self._choices.strict:
                self._failed = BadData(f"{item.error}; read on without --strict")
                return False
            if self._filter.on_events:
                self._left_out += 1
        if self._filter.passes(item):
            self._output.write(item)
            self._written += 1
        return True

    def _enough(self) -> bool:
        return self._choices.count is not None and self._written >= self._choices.count

    def finish(self) -> None:
        """Say what was left out, and raise what --strict found."""
        self._progress.end()
        if self._left_out:
            told = count(self._left_out, "record")
            click.echo(f"cloudevents-kafka: left out by the filters, being no events: {told}", err=True)
        if self._failed:
            raise self._failed
