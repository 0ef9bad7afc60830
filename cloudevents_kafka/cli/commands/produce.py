"""``produce``: send JSON lines, or one event from options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka import formats
from cloudevents_kafka.binding import ContentMode, attribute_key, extra_headers
from cloudevents_kafka.cli.kafka import (
    BrokerSession,
    Sender,
    Settings,
    create_producer,
    kafka_options,
    parse_pairs,
    pop_settings,
    quiet_settings,
)
from cloudevents_kafka.cli.records import (
    EventOptions,
    InputLine,
    JsonLine,
    Overrides,
    encode_event,
    event_from_options,
    read_line,
    read_lines,
    resolve_line,
)
from cloudevents_kafka.cli.terminal import (
    BYTES,
    FILE,
    BadData,
    BadUsage,
    BrokerFailure,
    HeaderType,
    Interrupted,
    Interrupts,
    Progress,
    escape,
    require_extra,
)
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

_MIN_MESSAGE_TIMEOUT: Final = 60.0  # seconds; a long queue on a slow network is not a failure yet
_TOPIC_CREATION_SECONDS: Final = 3.0  # within which a broker may create a missing topic
_HELP: Final = """Send events: JSON lines, or one from options.

The lines of FILES or stdin are plain events (CloudEvents in the JSON format, one on
each line) or the output of consume, which is sent again byte for byte: key, headers,
value. If you edit the "event" of such a line, the edited event is sent, encoded like
the original record.

Waits until the brokers have all records. A bad line is reported with its number and
skipped; the exit code is then 1.

\b
cloudevents-kafka produce -b localhost:9092 -t orders \\
    --source /shop --type order.placed --data '{"total": 12.5}' --key-from subject
cloudevents-kafka consume -b old:9092 -t orders | cloudevents-kafka produce -b new:9092
"""


class ProduceOptions(msgspec.Struct, kw_only=True):
    """The options of `produce`, without those of all Kafka commands and of one event."""

    files: tuple[str, ...]
    topic: str | None
    mode: ContentMode | None
    format: str | None
    key: bytes | None
    key_from: str | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    keep_partitions: bool
    keep_timestamps: bool
    strict: bool


@click.command(help=_HELP)
@click.argument("files", nargs=-1, type=FILE, metavar="[FILES]...")
@kafka_options
@click.option("-t", "--topic", metavar="TOPIC", help="The topic; overrides the topic of a line.")
@click.option(
    "-m",
    "--mode",
    type=click.Choice(["binary", "structured"]),
    help="Content mode.  [default: that of the line, or binary]",
)
@click.option(
    "--format",
    type=click.Choice(formats.writable()),
    help="Event format of structured mode.  [default: that of the line, or json]",
)
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="The key of every record.")
@click.option("--key-from", metavar="NAME", help="Use an attribute as key: partitionkey, subject, …")
@click.option(
    "--header",
    "headers",
    multiple=True,
    type=HeaderType(),
    metavar="NAME=VALUE",
    help="Add a header. Repeatable.",
)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Send to this partition.")
@click.option("--keep-partitions", is_flag=True, help="Send each line to its own partition.")
@click.option("--keep-timestamps", is_flag=True, help="Send each line with its own timestamp.")
@click.option("--strict", is_flag=True, help="Stop at the first bad line.")
@click.option("--id", help="One event: its id.  [default: a new UUID]")
@click.option("--source", help="One event: its source.")
@click.option("--type", help="One event: its type.")
@click.option("--subject", help="One event: its subject.")
@click.option("--time", metavar="now|RFC3339", help="One event: its time.")
@click.option("--dataschema", metavar="URI", help="One event: its dataschema.")
@click.option("--content-type", metavar="TYPE", help="One event: its datacontenttype.")
@click.option(
    "--data", metavar="TEXT", help="One event: its data, JSON unless --content-type is another type."
)
@click.option(
    "--data-file", type=FILE, metavar="FILE", help="One event: its data, from a file, byte for byte."
)
@click.option(
    "--ext",
    "extensions",
    multiple=True,
    callback=parse_pairs,
    metavar="NAME=VALUE",
    help="One event: an extension. Repeatable.",
)
def command(timeout: float, *, show_config: bool, **options: Any) -> None:
    """Send JSON lines, or one event."""
    settings = pop_settings(options)
    event_options = EventOptions(**{name: options.pop(name) for name in EventOptions.__struct_fields__})
    chosen = ProduceOptions(**options)
    settings = _client_settings(settings, timeout)
    if show_config:
        click.echo(settings.to_text(), nl=False)
        return
    overrides = _overrides(chosen)
    settings.bootstrap_servers  # noqa: B018  # raises if they are missing
    if event_options and chosen.files:
        raise click.UsageError("FILES and the options of one event exclude each other")
    event = event_from_options(event_options) if event_options else None
    _run(chosen, overrides, event, settings, timeout)


def _client_settings(settings: Settings, timeout: float) -> Settings:
    set_by_user = settings.effective.keys()
    defaults = {**quiet_settings(settings), "queue.buffering.max.kbytes": "65536"}
    if not set_by_user & {"message.timeout.ms", "delivery.timeout.ms"}:
        defaults["message.timeout.ms"] = str(int(max(timeout, _MIN_MESSAGE_TIMEOUT) * 1000))
    if not set_by_user & {"acks", "request.required.acks", "max.in.flight", "retries"}:
        defaults["enable.idempotence"] = "true"  # keeps the order and sends no record twice on retries
    return settings.with_defaults("defaults of produce", defaults)


def _overrides(options: ProduceOptions) -> Overrides:
    if options.key is not None and options.key_from is not None:
        raise click.UsageError("--key and --key-from exclude each other")
    if options.partition is not None and options.keep_partitions:
        raise click.UsageError("--partition and --keep-partitions exclude each other")
    if options.mode == "binary" and options.format is not None:
        raise click.UsageError("binary mode has no event format: leave out --format, or use -m structured")
    if options.format == "protobuf":
        require_extra("protobuf", "--format protobuf")
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
    options: ProduceOptions, overrides: Overrides, event: Event | None, settings: Settings, timeout: float
) -> None:
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        session = BrokerSession(settings, timeout, interrupts)
        producer = create_producer(session)
        report = ProduceReport(stack.enter_context(Progress("delivered")))
        sender = Sender(producer, session, report.undelivered)
        topics = TopicChecker(
            lambda topic: session.partitions(producer, topic, grace=_TOPIC_CREATION_SECONDS)
        )
        if options.topic is not None:
            topics.check(options.topic)
        job = ProduceJob(options, overrides, sender, report, topics)
        try:
            if event is not None:
                job.send("the event", encode_event(event, JsonLine(record=Record()), overrides).record)
            else:
                job.send_lines(read_lines(options.files, interrupts))
        except BadUsage:
            _flush(sender)  # the lines before the error are good
            raise
        except Interrupted:
            _flush(sender)
            click.echo(
                f"cloudevents-kafka: interrupted; {pluralize(sender.delivered, 'record')} delivered", err=True
            )
            raise
        _flush(sender)
        report.finish(sender)


def _flush(sender: Sender) -> None:
    """Wait for the broker's answers, also after the first Ctrl-C; a second one ends the wait."""
    try:
        sender.flush()
    finally:
        if sender.unanswered:
            records = pluralize(sender.unanswered, "record")
            click.echo(f"cloudevents-kafka: {records} may or may not be delivered", err=True)


class TopicChecker:
    """A check that topics exist, with one look-up for each topic."""

    def __init__(self, look_up: Callable[[str], object]) -> None:
        self._look_up = look_up
        self._results: dict[str, BadUsage | None] = {}

    def check(self, topic: str) -> None:
        """Raise `BadUsage` if the topic does not exist, `BrokerFailure` if no broker answers."""
        if topic not in self._results:
            try:
                self._look_up(topic)
            except BadUsage as error:
                self._results[topic] = error
            else:
                self._results[topic] = None
        result = self._results[topic]
        if result is not None:
            raise result


class ProduceReport:
    """The bad lines and undelivered records of a run, on stderr, and the number of bad lines."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._bad_lines = 0

    def bad_line(self, where: str, error: Exception) -> None:
        """Report a line that cannot be sent."""
        self._bad_lines += 1
        self._print(f"{where}: {error}")

    def undelivered(self, where: str, error: Any) -> None:
        """Report a record that no broker accepted."""
        self._print(f"{where}: not delivered: {error.str()}")

    def _print(self, text: str) -> None:
        self.progress.clear()
        click.echo(f"cloudevents-kafka: {escape(text)}", err=True)

    def finish(self, sender: Sender) -> None:
        """Raise the error for the exit code, if a record was not delivered or a line was bad."""
        self.progress.clear()
        if sender.failed:
            raise BrokerFailure(f"{sender.failed:,} of {pluralize(sender.sent, 'record')} not delivered")
        if self._bad_lines:
            delivered = pluralize(sender.delivered, "record")
            raise BadData(f"{pluralize(self._bad_lines, 'bad line')}; {delivered} delivered")


class ProduceJob:
    """A run of `produce`: it resolves lines to records and sends these to their topics and partitions."""

    def __init__(
        self,
        options: ProduceOptions,
        overrides: Overrides,
        sender: Sender,
        report: ProduceReport,
        topics: TopicChecker,
    ) -> None:
        self._options = options
        self._overrides = overrides
        self._sender = sender
        self._report = report
        self._topics = topics

    def send_lines(self, lines: Iterator[InputLine]) -> None:
        """Send every line; report a bad one, and with --strict stop at it."""
        for line in lines:
            try:
                self.send(line.where, resolve_line(read_line(line.text), self._overrides).record)
            except (CloudEventsKafkaError, BadUsage) as error:
                self._report.bad_line(line.where, error)
                if self._options.strict:
                    return
            self._report.progress.update(self._sender.delivered)

    def send(self, where: str, record: Record) -> None:
        """Send a record to its topic and partition."""
        record = self._placed(record)
        if record.topic is None:
            raise BadUsage("the topic is missing: pass -t TOPIC, or add a topic to the line")
        self._topics.check(record.topic)
        self._sender.send(record, where)

    def _placed(self, record: Record) -> Record:
        options = self._options
        partition = record.partition if options.keep_partitions else options.partition
        timestamp = record.timestamp if options.keep_timestamps else None
        return msgspec.structs.replace(
            record, topic=options.topic or record.topic, partition=partition, timestamp=timestamp
        )
