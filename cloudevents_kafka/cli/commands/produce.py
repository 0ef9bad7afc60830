"""``produce``: send JSON lines, or one event from options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from cloudevents_kafka import formats
from cloudevents_kafka.binding import ContentMode, attribute_key, extra_headers
from cloudevents_kafka.cli.kafka.options import kafka_options, pairs, take_settings
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.records.inputs import Given, Text, make_event, read_texts
from cloudevents_kafka.cli.records.json_lines import Line, read_line
from cloudevents_kafka.cli.records.resolve import Wanted, meant, record_of
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerTrouble
from cloudevents_kafka.cli.terminal.escape import visible
from cloudevents_kafka.cli.terminal.extras import need
from cloudevents_kafka.cli.terminal.parameters import BYTES, FILE, Header
from cloudevents_kafka.cli.terminal.plural import count
from cloudevents_kafka.cli.terminal.progress import Progress
from cloudevents_kafka.cli.terminal.signals import Interrupted, Interrupts
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from cloudevents_kafka.cli.kafka.sender import Sender

_LEAST_MESSAGE_TIMEOUT: Final = 60.0  # seconds; a long queue on a slow line is no trouble yet
_CREATION: Final = 3.0  # seconds in which a broker may create a topic that was asked for
_HELP: Final = """Send events: JSON lines, or one from options.

Lines, from FILES or stdin, are plain events (CloudEvents in the JSON format, one on a
line) or what consume wrote, which goes back byte for byte: key, headers, value. Edit
"event" on the way, and the edited event is sent, like its record was.

Waits until the brokers have it all. A bad line is told with its number and left out;
the exit code is 1 then.

\b
cloudevents-kafka produce -b localhost:9092 -t orders \\
    --source /shop --type order.placed --data '{"total": 12.5}' --key-from subject
cloudevents-kafka consume -b old:9092 -t orders | cloudevents-kafka produce -b new:9092
"""


class Choices(msgspec.Struct, kw_only=True):
    """The command's own options, but for those that make an event."""

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


@click.command(help=_HELP, short_help="Send events: JSON lines, or one from options.")
@click.argument("files", nargs=-1, type=FILE, metavar="[FILES]...")
@kafka_options
@click.option("-t", "--topic", metavar="TOPIC", help="The topic; wins over that of a line.")
@click.option(
    "-m", "--mode", type=click.Choice(["binary", "structured"]), help="Content mode; binary if not said."
)
@click.option(
    "--format", type=click.Choice(formats.writable()), help="Event format of structured mode; json."
)
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="The key of every record.")
@click.option("--key-from", metavar="NAME", help="Take the key from an attribute: partitionkey, subject, …")
@click.option(
    "--header",
    "headers",
    multiple=True,
    type=Header(),
    metavar="NAME=VALUE",
    help="Add a header. Repeatable.",
)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Send to this partition.")
@click.option("--keep-partitions", is_flag=True, help="Send each line to the partition it names.")
@click.option("--keep-timestamps", is_flag=True, help="Give records the timestamp of their line.")
@click.option("--strict", is_flag=True, help="Stop at the first bad line.")
@click.option("--id", help="One event: its id; a new UUID if not said.")
@click.option("--source", help="One event: its source.")
@click.option("--type", help="One event: its type.")
@click.option("--subject", help="One event: its subject.")
@click.option("--time", metavar="now|RFC3339", help="One event: its time.")
@click.option("--dataschema", metavar="URI", help="One event: its dataschema.")
@click.option("--content-type", metavar="TYPE", help="One event: what its data is.")
@click.option("--data", metavar="TEXT", help="One event: its data; JSON if --content-type says nothing else.")
@click.option(
    "--data-file", type=FILE, metavar="FILE", help="One event: its data, from a file, byte for byte."
)
@click.option(
    "--ext",
    "extensions",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="One event: an extension.",
)
def command(timeout: float, *, show_config: bool, **options: Any) -> None:
    """Send JSON lines, or one event."""
    settings = take_settings(options)
    given = Given(**{name: options.pop(name) for name in Given.__struct_fields__})
    choices = Choices(**options)
    settings = _client_settings(settings, timeout)
    if show_config:
        click.echo(settings.shown(), nl=False)
        return
    wanted = _wanted(choices)
    settings.brokers  # noqa: B018  # says at once that there are none
    if given and choices.files:
        raise click.UsageError("give FILES, or the options of one event")
    event = make_event(given) if given else None
    _run(choices, wanted, event, settings, timeout)


def _client_settings(settings: Settings, timeout: float) -> Settings:
    from cloudevents_kafka.cli.kafka.clients import quiet

    set_by_user = settings.effective.keys()
    defaults = {**quiet(settings), "queue.buffering.max.kbytes": "65536"}
    if not set_by_user & {"message.timeout.ms", "delivery.timeout.ms"}:
        defaults["message.timeout.ms"] = str(int(max(timeout, _LEAST_MESSAGE_TIMEOUT) * 1000))
    if not set_by_user & {"acks", "request.required.acks", "max.in.flight", "retries"}:
        defaults["enable.idempotence"] = "true"  # in order, and none twice, whatever the network does
    return settings.with_defaults("defaults of produce", defaults)


def _wanted(choices: Choices) -> Wanted:
    if choices.key is not None and choices.key_from is not None:
        raise click.UsageError("--key and --key-from exclude each other")
    if choices.partition is not None and choices.keep_partitions:
        raise click.UsageError("--partition and --keep-partitions exclude each other")
    if choices.mode == "binary" and choices.format is not None:
        raise click.UsageError("binary mode has no event format: leave out --format, or --mode structured")
    if choices.format == "protobuf":
        need("protobuf", "--format protobuf")
    try:
        headers = extra_headers(choices.headers)
    except EncodeError as error:
        raise BadUsage(f"--header: {error}") from None
    return Wanted(
        mode=choices.mode,
        format=choices.format,
        key=choices.key,
        key_mapper=None if choices.key_from is None else attribute_key(choices.key_from),
        headers=headers,
    )


def _run(choices: Choices, wanted: Wanted, event: Event | None, settings: Settings, timeout: float) -> None:
    from cloudevents_kafka.cli.kafka.clients import Reach, make_producer
    from cloudevents_kafka.cli.kafka.sender import Sender

    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        reach = Reach(settings, timeout, interrupts)
        producer = make_producer(reach)
        tally = Tally(stack.enter_context(Progress("delivered")))
        sender = Sender(producer, reach, tally.undelivered)
        topics = Topics(lambda topic: reach.partitions(producer, topic, grace=_CREATION))
        if choices.topic is not None:
            topics.check(choices.topic)
        job = Job(choices, wanted, sender, tally, topics)
        try:
            if event is not None:
                job.send("the event", record_of(event, Line(record=Record()), wanted).record)
            else:
                job.send_all(read_texts(choices.files, interrupts))
        except BadUsage:
            _flush(sender)  # what came before it was good
            raise
        except Interrupted:
            _flush(sender)
            click.echo(
                f"cloudevents-kafka: interrupted; {count(sender.delivered, 'record')} delivered", err=True
            )
            raise
        _flush(sender)
        tally.finish(sender)


def _flush(sender: Sender) -> None:
    """Wait for what was sent, also after the first Ctrl-C; the second one ends this."""
    try:
        sender.flush()
    finally:
        if sender.sent > sender.delivered + sender.failed:
            owed = sender.sent - sender.delivered - sender.failed
            click.echo(f"cloudevents-kafka: nobody knows what became of {count(owed, 'record')}", err=True)


class Topics:
    """Asks once for every topic whether it is there, before anything is sent to it."""

    def __init__(self, ask: Callable[[str], object]) -> None:
        self._ask = ask
        self._known: dict[str, BadUsage | None] = {}

    def check(self, topic: str) -> None:
        """Raise `BadUsage` for a topic that is not there, `BrokerTrouble` if nobody answers."""
        if topic not in self._known:
            try:
                self._ask(topic)
            except BadUsage as error:
                self._known[topic] = error
            else:
                self._known[topic] = None
        refused = self._known[topic]
        if refused is not None:
            raise refused


class Tally:
    """Counts what went wrong, and tells it on stderr as it happens."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.bad = 0

    def bad_line(self, where: str, error: Exception) -> None:
        """Tell a line that cannot be sent."""
        self.bad += 1
        self._say(f"{where}: {error}")

    def undelivered(self, where: str, error: Any) -> None:
        """Tell a record that no broker took."""
        self._say(f"{where}: not delivered: {error.str()}")

    def _say(self, text: str) -> None:
        self.progress.end()
        click.echo(f"cloudevents-kafka: {visible(text)}", err=True)

    def finish(self, sender: Sender) -> None:
        """Raise what the exit code is to say."""
        self.progress.end()
        if sender.failed:
            raise BrokerTrouble(f"{sender.failed:,} of {count(sender.sent, 'record')} not delivered")
        if self.bad:
            raise BadData(f"{count(self.bad, 'bad line')}; {count(sender.delivered, 'record')} delivered")


class Job:
    """Turns lines into records, puts them where they belong, and sends them."""

    def __init__(
        self, choices: Choices, wanted: Wanted, sender: Sender, tally: Tally, topics: Topics
    ) -> None:
        self._choices = choices
        self._wanted = wanted
        self._sender = sender
        self._tally = tally
        self._topics = topics

    def send_all(self, texts: Iterator[Text]) -> None:
        """Send every line; a bad one is told, and with --strict is the last."""
        for text in texts:
            try:
                self.send(text.where, meant(read_line(text.text), self._wanted).record)
            except (CloudEventsKafkaError, BadUsage) as error:
                self._tally.bad_line(text.where, error)
                if self._choices.strict:
                    return
            self._tally.progress.show(self._sender.delivered)

    def send(self, where: str, record: Record) -> None:
        """Send a record to where it belongs."""
        record = self._placed(record)
        if record.topic is None:
            raise BadUsage("no topic: give -t TOPIC, or a line with a topic")
        self._topics.check(record.topic)
        self._sender.send(record, where)

    def _placed(self, record: Record) -> Record:
        choices = self._choices
        partition = record.partition if choices.keep_partitions else choices.partition
        timestamp = record.timestamp if choices.keep_timestamps else None
        return msgspec.structs.replace(
            record, topic=choices.topic or record.topic, partition=partition, timestamp=timestamp
        )
