"""``replay``: send dead letters back to the topics that they came from, or to another topic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.cli.kafka.cluster import Partition
from cloudevents_kafka.cli.kafka.reader import RangeReader, ReadRequest, consumer_settings, range_options
from cloudevents_kafka.cli.kafka.resending import Resender
from cloudevents_kafka.cli.kafka.sender import TopicSender, producer_settings
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import complete_topics, group_option, topic_option
from cloudevents_kafka.cli.records.reading import read
from cloudevents_kafka.cli.records.selection import Filter, filter_options
from cloudevents_kafka.cli.terminal.errors import BadData
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import print_message
from cloudevents_kafka.clients.dead_letters import DeadLetter
from cloudevents_kafka.counting import Labels
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.text_table import format_table
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.record import Record

_MAX_ROWS: Final = 50  # rows of the report: errors are untrusted input
_MAX_NAME: Final = 60


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The options that choose which dead letters are sent, and to which topic.

    If ``errors`` contains globs, at least one of these globs must match the error of a dead letter.
    """

    topic: str | None
    to: str | None
    errors: tuple[str, ...]
    max_attempt: int | None
    drop_headers: tuple[str, ...]
    count: int | None


@click.command()
@kafka_options
@topic_option("The topic of the dead letters.")
@click.option(
    "--to",
    metavar="TOPIC",
    help="Send the records to this topic.  [default: the original topic of each record]",
    shell_complete=complete_topics,
)
@click.option("--send", is_flag=True, help="Send the records. Without --send, only print what would be sent.")
@range_options
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Send at most N dead letters.")
@group_option("Start after the dead letters that an earlier run with this group has read.")
@click.option(
    "--error", "errors", multiple=True, metavar="GLOB", help="Send only dead letters whose error matches."
)
@click.option(
    "--max-attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="Send only dead letters with at most N tries.",
)
@filter_options
@click.option(
    "--drop-header",
    "drop_headers",
    multiple=True,
    metavar="GLOB",
    help="Send the records without these headers. Repeatable.",
)
def command(timeout: float, *, send: bool, show_config: bool, **options: Any) -> None:
    """Send dead letters back to the topics that they came from, or to another topic.

    Without --send, the command prints what would be sent, and sends nothing. A record is sent with its key,
    value and headers. The headers that describe the failure are sent, too: if the record fails again, the
    number of tries in these headers is increased. --drop-header 'dlq_*' removes these headers. If the value
    of a dead letter was left out because the value was too large, the dead letter is not sent. A dead letter
    is refused if its topic was deleted, or if the topic accepts only smaller records. A refused dead letter
    stays in its topic, and the reason is printed. All other dead letters are sent, and the exit code is 1.

    Reads the topic of the dead letters up to its current end. Without --group, each run sends all matching
    dead letters. With --group NAME, a run continues after the dead letters that an earlier run with this
    group has read.

    \b
    cloudevents-kafka replay -b localhost:9092 -t orders.dead
    cloudevents-kafka replay -b localhost:9092 -t orders.dead -n 10 --send
    """
    settings = pop_settings(options)
    group = options["group"]
    choice = _Choice(**{name: options.pop(name) for name in _Choice.__struct_fields__})
    request = ReadRequest(
        topics=(choice.topic or "",),
        follow=False,
        **{name: options.pop(name) for name in ("partitions", "begin", "end", "group")},
    )
    consuming = consumer_settings(settings, "replay", group)
    producing = producer_settings(settings, "replay", {})
    (producing if send else consuming).check(show=show_config, topic=choice.topic)
    if choice.to == choice.topic:
        raise click.UsageError("--to must be another topic than the topic of the dead letters")
    with ExitStack() as stack:
        from confluent_kafka import Consumer, Producer

        interrupts = stack.enter_context(Interrupts())
        session = BrokerSession(consuming, timeout, interrupts)
        consumer = session.create(Consumer)
        stack.callback(consumer.close)
        reader = RangeReader(consumer, session, request)
        sender = None
        if send:
            session = BrokerSession(producing, timeout, interrupts)
            sender = TopicSender(session.create(Producer), session, _print_failure)
            if choice.to is not None:
                sender.check_topic(choice.to)
        replay = _Replay(
            choice, Filter(**options), None if sender is None else Resender(sender, _print_failure)
        )
        reader.start()
        try:
            for offsets in replay.run(reader.batches()):
                if group is not None and send:
                    reader.commit(offsets)
        finally:
            replay.print_report(sent=None if sender is None else sender.delivered)
            if group is not None and send:
                replay.print_passed(group)
        replay.check(group)


def _print_failure(where: str, reason: str) -> None:
    """Print the reason why a record of the dead letter topic was not sent."""
    print_message(escape(f"{where}: {reason}"))


class _Replay:
    """Reads dead letters, sends those that match, and counts these by destination and error."""

    def __init__(self, choice: _Choice, filter: Filter, resender: Resender | None) -> None:
        self._choice = choice
        self._filter = filter
        self._resender = resender
        self._counts = Labels[tuple[str, str]]()
        self._read = 0
        self._others = self._without_origin = self._without_value = 0

    def run(self, batches: Iterator[list[Record]]) -> Iterator[dict[Partition, int]]:
        """Send each batch of dead letters, and yield the offsets to commit.

        Raises `BrokerFailure` after a batch with a record that was neither sent nor refused.
        """
        for batch in batches:
            offsets: dict[Partition, int] = {}
            taken: list[tuple[Record, Record]] = []
            for record in batch:
                if self._counts.total == self._choice.count:
                    break
                if (letter := self._take(record)) is not None:
                    taken.append((record, letter))
                offsets[record.topic or "", record.partition or 0] = (record.offset or 0) + 1
            yield self._send(taken, offsets)
            if self._resender is not None and self._resender.failure is not None:
                raise self._resender.failure
            if self._counts.total == self._choice.count:
                return

    def _send(
        self, taken: list[tuple[Record, Record]], offsets: dict[Partition, int]
    ) -> dict[Partition, int]:
        """Send records; return the offsets to commit.

        A later run reads unsent records again.
        """
        for left in self._resender.send(taken) if self._resender is not None else ():
            partition, offset = (left.topic or "", left.partition or 0), left.offset or 0
            offsets[partition] = min(offset, offsets[partition])
        return offsets

    def _take(self, record: Record) -> Record | None:
        """Return the record to send for a dead letter, or None if it is not chosen or cannot be sent."""
        self._read += 1
        letter = DeadLetter.of(record) or DeadLetter()
        if not self._matches(record, letter):
            self._others += 1
            return None
        topic = self._choice.to or letter.topic
        if topic is None or topic == self._choice.topic:
            self._without_origin += 1
            return None
        if letter.value_size is not None and record.value is None:
            self._without_value += 1
            return None
        name = (letter.error or "").partition(":")[0][:_MAX_NAME]
        self._counts.add((topic, name or "(none)"))
        headers = [header for header in record.headers if not self._is_dropped(header[0])]
        return Record(key=record.key, value=record.value, headers=headers, topic=topic)

    def _matches(self, record: Record, letter: DeadLetter) -> bool:
        choice = self._choice
        if choice.errors and not any(fnmatchcase(letter.error or "", glob) for glob in choice.errors):
            return False
        if choice.max_attempt is not None and (letter.attempt or 0) > choice.max_attempt:
            return False
        return self._filter.matches(read(record))

    def _is_dropped(self, name: str) -> bool:
        return any(fnmatchcase(name, glob) for glob in self._choice.drop_headers)

    def print_report(self, *, sent: int | None) -> None:
        """Print the counts of records; ``sent`` is the number of sent records, or None without --send."""
        if self._counts.total:
            most, _ = self._counts.most_common(_MAX_ROWS)
            rows = [[topic, error, f"{count:,}"] for (topic, error), count in sorted(most)]
            click.echo(format_table(["to", "error", "records"], rows))
        matching = pluralize(self._counts.total, "matches", "match")
        done = "nothing was sent: add --send" if sent is None else f"{sent:,} sent"
        click.echo(f"of {pluralize(self._read, 'record')} read, {matching}; {done}")

    def print_passed(self, group: str) -> None:
        """Print how many dead letters did not match.

        A later run with the group does not read these dead letters again.
        """
        if self._others:
            records = pluralize(self._others, "record does", "records do")
            print_message(
                f"{records} not match, and a later run with the group {escape(group)} starts after them; to "
                "send these records, leave out --group or name another group"
            )

    def check(self, group: str | None) -> None:
        """Raise `BadData` if a matching dead letter was refused, has no destination, or lost its value."""
        if texts := [*self._stayed(group)]:
            raise BadData("\n".join(texts))

    def _stayed(self, group: str | None) -> Iterator[str]:
        if self._resender is not None and self._resender.refused:
            records = pluralize(self._resender.refused, "matching record was", "matching records were")
            yield (
                f"{records} refused, see above, and stayed in the topic; correct the cause, then send them "
                "by position (-p, --from, -n), without --group"
            )
        if self._without_value:
            records = pluralize(self._without_value, "matching record has", "matching records have")
            yield (
                f"{records} no value, which was too large for a dead letter (dlq_value_size), and stayed in "
                "the topic; handle the record at its dlq_topic, dlq_partition and dlq_offset"
            )
        if self._without_origin:
            records = pluralize(self._without_origin, "matching record has", "matching records have")
            yield (
                f"{records} no header dlq_topic with another topic, and stayed in the topic; pass --to TOPIC "
                "to send them" + (", without --group" if group else "")
            )
