"""``protocol fetch``: read records with the pure-Python client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import click

from cloudevents_kafka.cli.commands.protocol._connection import (
    ConnectionOptions,
    connect,
    connection_options,
    topic_partitions,
)
from cloudevents_kafka.cli.kafka.reader import PositionType, check_partitions, resolve_offset
from cloudevents_kafka.cli.kafka.topic_names import complete_topics
from cloudevents_kafka.cli.records.json_lines import encode_json, record_object
from cloudevents_kafka.cli.records.output import content_lines, record_heading
from cloudevents_kafka.cli.terminal.errors import BrokerFailure
from cloudevents_kafka.cli.terminal.parameters import output_option
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import print_lines
from cloudevents_kafka.positions import Position
from cloudevents_kafka.protocol import Client, Consumer, TopicPartition
from cloudevents_kafka.record import Record

_POLL_SECONDS: Final = 0.5


@click.command()
@connection_options
@click.argument("topic", shell_complete=complete_topics)
@click.argument("partition", type=click.IntRange(min=0), required=False)
@click.option(
    "--from",
    "begin",
    type=PositionType(stored=False),
    default="earliest",
    show_default=True,
    metavar="POSITION",
    help="Start at this position: earliest, latest, N, -N (the last N offsets), -1h (a time ago: s, m, h, "
    "d), @2026-11-26 (a day in UTC), or @TIME (RFC 3339, or ms).",
)
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@output_option
def command(
    connection: ConnectionOptions,
    topic: str,
    partition: int | None,
    begin: Position,
    count: int | None,
    *,
    output: str,
) -> None:
    """Read records with the pure-Python client.

    Reads one PARTITION of TOPIC, or all its partitions, up to their current end. The command joins no
    consumer group, and commits no offsets. Records are printed without decoding events.

    \b
    cloudevents-kafka protocol fetch -b localhost:9092 orders --from earliest -n 3
    """
    with Interrupts() as interrupts, interrupts.waiting(), connect(connection) as client:
        for number, record in enumerate(_read(client, connection, topic, partition, begin), 1):
            if output == "json":
                click.echo(encode_json(record_object(record)))
            else:
                print_lines([record_heading(record), *content_lines(record), ""])
            if number == count:
                break


def _read(
    client: Client, connection: ConnectionOptions, topic: str, partition: int | None, begin: Position
) -> Iterator[Record]:
    """Yield the records of partitions from the position ``begin`` to the current end of each partition."""
    partitions = _partitions(client, connection, topic, partition)
    with closing(client.consumer(reset="error", auto_commit=None)) as consumer:
        starts, ends = {}, {}
        for n in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, n), connection.timeout)
            known = client.offset_at(topic, n, begin.number) if begin.kind == "time" else None
            start = resolve_offset(begin, (low, high), known)
            if start < high:
                starts[n], ends[n] = start, high
        consumer.assign(TopicPartition(topic, n, start) for n, start in starts.items())
        yield from _read_until(consumer, connection, topic, ends)


def _read_until(
    consumer: Consumer, connection: ConnectionOptions, topic: str, ends: dict[int, int]
) -> Iterator[Record]:
    """Yield the records of partitions until each partition has been read up to its end offset."""
    last_answer, reached = time.monotonic(), dict[int, int]()
    while ends:
        message = consumer.poll(_POLL_SECONDS)
        if message is None:
            before, reached = reached, {n: consumer.fetch_position(TopicPartition(topic, n)) for n in ends}
            ends = {n: end for n, end in ends.items() if reached[n] < end}
            if reached != before:
                last_answer = time.monotonic()
        else:
            partition, offset = message.partition(), message.offset()
            if offset < ends.get(partition, 0):
                yield Record.of(message)
                last_answer = time.monotonic()  # after the yield: the caller may be slow
            if offset + 1 >= ends.get(partition, 0):
                ends.pop(partition, None)
        if time.monotonic() - last_answer > connection.timeout:
            raise BrokerFailure(
                f"broker {connection.broker} sent no record of {topic!r} within {connection.timeout:g} s; "
                "to see its answers, use --trace FILE"
            )


def _partitions(
    client: Client, connection: ConnectionOptions, topic: str, partition: int | None
) -> list[int]:
    """Return the partitions of the topic that the command reads."""
    existing = topic_partitions(client, connection, topic)
    if partition is None:
        return existing
    check_partitions(topic, [partition], existing)
    return [partition]
