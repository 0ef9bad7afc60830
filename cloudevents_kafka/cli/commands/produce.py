"""``produce``: send events from JSON lines, or one event from options."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.binding import ContentMode, attribute_key, extra_headers
from cloudevents_kafka.cli.kafka.sender import TopicSender, producer_settings
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import Settings, kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import topic_option
from cloudevents_kafka.cli.needs import packages, require
from cloudevents_kafka.cli.records.inputs import event_from_options, read_lines
from cloudevents_kafka.cli.records.json_lines import JsonLine, read_line
from cloudevents_kafka.cli.records.resolve import Overrides, encode_event, resolve_line
from cloudevents_kafka.cli.terminal.completion import complete_from
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.parameters import BYTES, FILE, PAIR, header_option
from cloudevents_kafka.cli.terminal.signals import Interrupted, Interrupts
from cloudevents_kafka.cli.terminal.streams import Progress
from cloudevents_kafka.cli.terminal.text import print_message
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.record import Record

_MIN_MESSAGE_TIMEOUT: Final = 60.0  # seconds; a long queue on a slow network is not a failure yet


class _Options(msgspec.Struct, kw_only=True):
    """The options of the command `produce`, except the options for one event and for the Kafka client."""

    files: tuple[str, ...]
    topic: str | None
    mode: ContentMode | None
    format: str | None
    key: bytes | None
    key_from: str | None
    headers: tuple[tuple[str, bytes], ...]
    partition: int | None
    keep_partitions: bool
    keep_timestamps: bool
    strict: bool
    verbose: bool


@click.command()
@click.argument("files", nargs=-1, type=FILE, metavar="[FILES]...")
@kafka_options
@topic_option("The topic; overrides the topic of a line.")
@click.option(
    "-m",
    "--mode",
    type=click.Choice(["binary", "structured"]),
    help="Content mode.  [default: the line's mode, or binary]",
)
@click.option(
    "--format",
    type=click.Choice(formats.writable()),
    help="Event format of structured mode.  [default: the line's format, or json]",
)
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="The key of every record.")
@click.option(
    "--key-from",
    metavar="NAME",
    help="Use the value of an attribute as the key, such as partitionkey or subject.",
    shell_complete=complete_from(lambda: [*CORE, *DOCUMENTED]),
)
@header_option("Add a header. Repeatable.", allow_null=False)
@click.option(
    "--partition", type=click.IntRange(0, 2**31 - 1), metavar="N", help="Send all records to this partition."
)
@click.option("--keep-partitions", is_flag=True, help="Send each line to the partition that the line names.")
@click.option(
    "--keep-timestamps", is_flag=True, help="Send each line with the timestamp that the line contains."
)
@click.option("--strict", is_flag=True, help="Stop at the first bad line.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Print each record's position, such as orders[0]@17, on stdout."
)
@click.option("--id", help="The id of a single event.  [default: a new UUID]")
@click.option("--source", help="The source of a single event.")
@click.option("--type", help="The type of a single event.")
@click.option("--subject", help="The subject of a single event.")
@click.option("--time", metavar="now|RFC3339", help="The time of a single event.")
@click.option("--dataschema", metavar="URI", help="The dataschema of a single event.")
@click.option("--content-type", metavar="TYPE", help="The datacontenttype of a single event.")
@click.option(
    "--data",
    metavar="TEXT",
    help="The data of a single event. It is JSON unless --content-type is another type.",
)
@click.option(
    "--data-file",
    type=FILE,
    metavar="FILE",
    help="A file that contains the data of a single event, byte for byte.",
)
@click.option(
    "--ext",
    "extensions",
    multiple=True,
    type=PAIR,
    metavar="NAME=VALUE",
    help="An extension of a single event. Repeatable.",
)
def command(timeout: float, *, show_config: bool, **options: Any) -> None:
    """Send events from JSON lines, or one event from options.

    The lines of FILES or stdin are CloudEvents in the JSON format, one on each line, or the output of
    consume. For a line that consume wrote, produce sends the same key, headers and value again, byte for
    byte. If you edit the "event" of a line that consume wrote, produce sends the edited event, encoded like
    the original record.

    Waits until the brokers have all records. If a line is bad, its number is printed and the line is skipped;
    the exit code is then 1.

    \b
    cloudevents-kafka produce -b localhost:9092 -t orders --key-from subject \\
        --source /shop --type order.placed --data '{"total": 12.5}'
    cloudevents-kafka consume -b old:9092 -t orders |
        cloudevents-kafka produce -b new:9092
    """
    settings = pop_settings(options)
    chosen = _Options(**{name: options.pop(name) for name in _Options.__struct_fields__})
    one_event = {name: value for name, value in options.items() if value not in (None, ())}
    settings = _client_settings(settings, timeout)
    needed = {"topic": chosen.topic, **{name: options[name] for name in ("source", "type")}}
    settings.check(show=show_config, **(needed if one_event else {}))
    overrides = _overrides(chosen)
    if one_event and chosen.files:
        raise click.UsageError("FILES and the options of one event exclude each other")
    missing = [file for file in chosen.files if file != "-" and not Path(file).exists()]
    if missing and chosen.topic is None:
        raise BadUsage(f"FILES must exist, got {missing[0]}; to send to a topic, pass -t TOPIC")
    event = event_from_options(**one_event) if one_event else None
    _run(chosen, overrides, event, settings, timeout)


def _client_settings(settings: Settings, timeout: float) -> Settings:
    set_by_user = settings.effective.keys()
    defaults = {"queue.buffering.max.kbytes": "65536"}
    if not set_by_user & {"message.timeout.ms", "delivery.timeout.ms"}:
        defaults["message.timeout.ms"] = str(int(max(timeout, _MIN_MESSAGE_TIMEOUT) * 1000))
    return producer_settings(settings, "produce", defaults)


def _overrides(options: _Options) -> Overrides:
    if options.key is not None and options.key_from is not None:
        raise click.UsageError("--key and --key-from exclude each other")
    if options.partition is not None and options.keep_partitions:
        raise click.UsageError("--partition and --keep-partitions exclude each other")
    if options.mode == "binary" and options.format is not None:
        raise click.UsageError("binary mode has no event format: leave out --format, or use -m structured")
    if options.format == "protobuf":
        require("--format protobuf", packages("protobuf"))
    try:
        headers = extra_headers(options.headers)
    except EncodeError as error:
        raise BadUsage(f"--header: {error}") from None
    return Overrides(
        mode=options.mode,
        format=options.format,
        key=options.key,
        key_mapper=None if options.key_from is None else attribute_key(options.key_from),
        headers=headers,
    )


def _run(
    options: _Options, overrides: Overrides, event: Event | None, settings: Settings, timeout: float
) -> None:
    from confluent_kafka import Producer

    typed = (
        event is None and sys.stdin.isatty() and not set(options.files) - {"-"}
    )  # a person types the lines
    with Interrupts() as interrupts, Progress("delivered", enabled=not typed) as progress:

        def print_place(place: str) -> None:
            progress.clear()
            click.echo(escape(place))

        def report(where: str, reason: object) -> None:
            progress.clear()
            print_message(escape(f"{where}: {reason}"))

        session = BrokerSession(settings, timeout, interrupts)
        on_place = print_place if options.verbose else None
        sender = TopicSender(session.create(Producer), session, report, on_place)
        if options.topic is not None:
            sender.check_topic(options.topic, options.partition)
        bad_lines = 0
        with _flush_at_end(sender):
            if event is not None:
                record = encode_event(event, JsonLine(record=Record()), overrides)
                sender.send(_place(record, options), "the event")
            else:
                for where, error in _send_lines(options, overrides, sender, interrupts):
                    if error is not None:
                        bad_lines += 1
                        report(where, error)
                    progress.update(sender.delivered)
        progress.clear()
        if sender.failed:
            records = f"{sender.failed:,} of {pluralize(sender.sent, 'record')}"
            raise BrokerFailure(f"{records} not delivered{sender.advice}")
        if bad_lines:
            delivered = pluralize(sender.delivered, "record")
            raise BadData(f"{pluralize(bad_lines, 'bad line')}; {delivered} delivered")


def _send_lines(
    options: _Options, overrides: Overrides, sender: TopicSender, interrupts: Interrupts
) -> Iterator[tuple[str, Exception | None]]:
    """Send the record in each line of files or stdin; yield the line's position, and an error or None."""
    for line in read_lines(options.files, interrupts, while_waiting=sender.poll):
        try:
            sender.send(_place(resolve_line(read_line(line.text), overrides), options), line.where)
        except (CloudEventsKafkaError, BadUsage) as error:
            yield line.where, error
            if options.strict:
                return
        else:
            yield line.where, None


def _place(record: Record, options: _Options) -> Record:
    """Return a record with the topic, the partition and the timestamp that the options of the command set."""
    placed = msgspec.structs.replace(
        record,
        topic=options.topic or record.topic,
        partition=record.partition if options.keep_partitions else options.partition,
        timestamp=record.timestamp if options.keep_timestamps else None,
    )
    if placed.topic is None:
        raise BadUsage("the topic is missing: pass -t TOPIC, or add a topic to the line")
    if placed.timestamp == 0:
        raise BadUsage(
            "the timestamp must not be 0, which the client replaces by the current time; "
            "write 1, or leave out --keep-timestamps"
        )
    return placed


@contextmanager
def _flush_at_end(sender: TopicSender) -> Iterator[None]:
    """Return a context manager that waits for the brokers, even after an error or the first Ctrl-C."""
    try:
        try:
            yield
        finally:
            sender.flush()  # the records before an error are good
    except Interrupted:
        delivered = pluralize(sender.delivered, "record")
        print_message(f"interrupted; {delivered} delivered")
        raise
