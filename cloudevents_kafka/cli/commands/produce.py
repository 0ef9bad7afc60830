"""``produce``: send JSON lines, or one event from options."""

from __future__ import annotations

from collections.abc import Iterator
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
    pop_settings,
)
from cloudevents_kafka.cli.records import (
    InputLine,
    JsonLine,
    Overrides,
    encode_event,
    event_from_options,
    event_options,
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
    Interrupted,
    Interrupts,
    Progress,
    escape,
    header_option,
    parse_pairs,
    require_extra,
)
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

_MIN_MESSAGE_TIMEOUT: Final = 60.0  # seconds; a long queue on a slow network is not a failure yet
_TOPIC_CREATION_SECONDS: Final = 3.0  # within which a broker may create a missing topic


class _Options(msgspec.Struct, kw_only=True):
    """The options of `produce` for records; those for one event and for the client are apart."""

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


@click.command()
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
@header_option("Add a header. Repeatable.", allow_null=False)
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
    """Send events: JSON lines, or one from options.

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
    settings = pop_settings(options)
    one_event = event_options(options)
    chosen = _Options(**{name: options[name] for name in _Options.__struct_fields__})
    settings = _client_settings(settings, timeout)
    if show_config:
        click.echo(settings.to_text(), nl=False)
        return
    overrides = _overrides(chosen)
    settings.bootstrap_servers  # noqa: B018  # raises if they are missing
    if one_event and chosen.files:
        raise click.UsageError("FILES and the options of one event exclude each other")
    event = event_from_options(**one_event) if one_event else None
    _run(chosen, overrides, event, settings, timeout)


def _client_settings(settings: Settings, timeout: float) -> Settings:
    set_by_user = settings.effective.keys()
    defaults = {"queue.buffering.max.kbytes": "65536"}
    if not set_by_user & {"message.timeout.ms", "delivery.timeout.ms"}:
        defaults["message.timeout.ms"] = str(int(max(timeout, _MIN_MESSAGE_TIMEOUT) * 1000))
    if not set_by_user & {"acks", "request.required.acks", "max.in.flight", "retries"}:
        defaults["enable.idempotence"] = "true"  # keeps the order and sends no record twice on retries
    return settings.with_defaults("defaults of produce", defaults)


def _overrides(options: _Options) -> Overrides:
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
    options: _Options, overrides: Overrides, event: Event | None, settings: Settings, timeout: float
) -> None:
    with Interrupts() as interrupts, Progress("delivered") as progress:
        job = ProduceJob(options, overrides, BrokerSession(settings, timeout, interrupts), progress)
        if options.topic is not None:
            job.check_topic(options.topic)
        try:
            if event is not None:
                job.send("the event", encode_event(event, JsonLine(record=Record()), overrides))
            else:
                job.send_lines(read_lines(options.files, interrupts))
        except BadUsage:
            job.flush()  # the lines before the error are good
            raise
        except Interrupted:
            job.flush()
            click.echo(f"cloudevents-kafka: interrupted; {job.delivered} delivered", err=True)
            raise
        job.flush()
        job.finish()


class ProduceJob:
    """A run of `produce`: it sends lines to their topics and partitions, and reports what fails on stderr."""

    def __init__(
        self, options: _Options, overrides: Overrides, session: BrokerSession, progress: Progress
    ) -> None:
        self._options = options
        self._overrides = overrides
        self._session = session
        self._progress = progress
        self._producer = create_producer(session)
        self._sender = Sender(self._producer, session, self._report_undelivered)
        self._topic_errors: dict[str, BadUsage | None] = {}
        self._bad_lines = 0

    @property
    def delivered(self) -> str:
        """The number of delivered records, as text."""
        return pluralize(self._sender.delivered, "record")

    def check_topic(self, topic: str) -> None:
        """Raise `BadUsage` if a topic does not exist; each one is looked up once."""
        if topic not in self._topic_errors:
            try:
                self._session.partitions(self._producer, topic, grace=_TOPIC_CREATION_SECONDS)
            except BadUsage as error:
                self._topic_errors[topic] = error
            else:
                self._topic_errors[topic] = None
        if (found := self._topic_errors[topic]) is not None:
            raise found

    def send_lines(self, lines: Iterator[InputLine]) -> None:
        """Send every line; report a bad one, and with --strict stop at it."""
        for line in lines:
            try:
                self.send(line.where, resolve_line(read_line(line.text), self._overrides))
            except (CloudEventsKafkaError, BadUsage) as error:
                self._bad_lines += 1
                self._report(f"{line.where}: {error}")
                if self._options.strict:
                    return
            self._progress.update(self._sender.delivered)

    def send(self, where: str, record: Record) -> None:
        """Send a record to its topic and partition."""
        options = self._options
        record = msgspec.structs.replace(
            record,
            topic=options.topic or record.topic,
            partition=record.partition if options.keep_partitions else options.partition,
            timestamp=record.timestamp if options.keep_timestamps else None,
        )
        if record.topic is None:
            raise BadUsage("the topic is missing: pass -t TOPIC, or add a topic to the line")
        self.check_topic(record.topic)
        self._sender.send(record, where)

    def flush(self) -> None:
        """Wait for the broker's answers, also after the first Ctrl-C; a second one ends the wait."""
        try:
            self._sender.flush()
        finally:
            if self._sender.unanswered:
                records = pluralize(self._sender.unanswered, "record")
                click.echo(f"cloudevents-kafka: {records} may or may not be delivered", err=True)

    def finish(self) -> None:
        """Raise the error for the exit code, if a record was not delivered or a line was bad."""
        self._progress.clear()
        sender = self._sender
        if sender.failed:
            raise BrokerFailure(f"{sender.failed:,} of {pluralize(sender.sent, 'record')} not delivered")
        if self._bad_lines:
            raise BadData(f"{pluralize(self._bad_lines, 'bad line')}; {self.delivered} delivered")

    def _report_undelivered(self, where: str, error: Any) -> None:
        self._report(f"{where}: not delivered: {error.str()}")

    def _report(self, text: str) -> None:
        self._progress.clear()
        click.echo(f"cloudevents-kafka: {escape(text)}", err=True)
