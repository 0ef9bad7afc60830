"""``protocol fetch``: records, read by the client in pure Python."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import click

from cloudevents_kafka.cli.kafka.offsets import Bounds, Position, PositionType, resolve
from cloudevents_kafka.cli.kafka.protocol_client import (
    Way,
    check_partition,
    live_options,
    reaching,
    take_way,
)
from cloudevents_kafka.cli.records.json_lines import encoded, written
from cloudevents_kafka.cli.records.text import Painter, bytes_text, head, header_lines, row
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerTrouble
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from cloudevents_kafka.protocol import Client, Consumer

_HELP: Final = """Read records with the client in pure Python.

Reads one PARTITION of TOPIC, or all, up to where they end now; joins no group and
commits nothing. Records are shown as they are, events or not.

\b
cloudevents-kafka protocol fetch localhost:9092 orders --offset earliest --count 3
"""
_TURN: Final = 0.5  # seconds


@click.command(help=_HELP, short_help="Read records with the client in pure Python.")
@live_options
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0), required=False)
@click.option(
    "--offset",
    type=PositionType(),
    default="earliest",
    show_default=True,
    metavar="POSITION",
    help="Where to begin: earliest, latest, N, -N (the last N), @TIME (RFC 3339, or ms).",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End after so many records.")
@click.option("--json", "as_json", is_flag=True, help="A JSON line for each record.")
def command(
    topic: str, partition: int | None, offset: Position, count: int | None, *, as_json: bool, **options: Any
) -> None:
    """Read and show."""
    if offset.kind == "stored":
        raise click.UsageError("--offset stored: that is for groups, and this joins none")
    way = take_way(options)
    painter = Painter(sys.stdout, colours=sys.stdout.isatty())
    with Interrupts() as interrupts, interrupts.waiting(), reaching(way) as client:
        for number, record in enumerate(_records(client, way, topic, partition, offset), 1):
            if as_json:
                click.echo(encoded(_members(record)))
            else:
                painter.paint(_lines(record))
                painter.flush()
            if number == count:
                break


def _records(
    client: Client, way: Way, topic: str, partition: int | None, begin: Position
) -> Iterator[Record]:
    from cloudevents_kafka.protocol import TopicPartition

    partitions = _partitions(client, way, topic, partition)
    with closing(client.consumer(reset="error", auto_commit=None)) as consumer:
        bounds = {
            n: Bounds(*consumer.get_watermark_offsets(TopicPartition(topic, n), way.timeout))
            for n in partitions
        }
        starts = {n: resolve(begin, held, _found(client, topic, n, begin)) for n, held in bounds.items()}
        left = {n: held.high for n, held in bounds.items() if starts[n] < held.high}
        consumer.assign(TopicPartition(topic, n, starts[n]) for n in left)
        yield from _until(consumer, way, topic, left)


def _until(consumer: Consumer, way: Way, topic: str, left: dict[int, int]) -> Iterator[Record]:
    """Give records until each partition is read up to where it ended."""
    from cloudevents_kafka.protocol import TopicPartition

    heard = time.monotonic()
    while left:
        message = consumer.poll(_TURN)
        if message is not None and message.offset() < left.get(message.partition(), 0):
            heard = time.monotonic()
            yield Record.of(message)
        if message is None:
            left = {n: end for n, end in left.items() if consumer.fetched(TopicPartition(topic, n)) < end}
        else:
            left = {
                n: end for n, end in left.items() if n != message.partition() or message.offset() + 1 < end
            }
        if time.monotonic() - heard > way.timeout:
            raise BrokerTrouble(
                f"broker {way.broker}: no records of {topic!r} came within {way.timeout:g} s; "
                "see what it sends by --trace FILE"
            )


def _partitions(client: Client, way: Way, topic: str, partition: int | None) -> list[int]:
    """Return which partitions to read; asks for all topics, as asking for one may make it."""
    known = {found.name: found for found in client.metadata().topics}
    if topic not in known:
        raise BadUsage(f"broker {way.broker} has no topic {topic!r}: check TOPIC")
    numbers = sorted(part.partition_index for part in known[topic].partitions)
    if partition is None:
        return numbers
    check_partition(topic, partition, numbers)
    return [partition]


def _found(client: Client, topic: str, partition: int, position: Position) -> int | None:
    return client.offset_at(topic, partition, position.number) if position.kind == "time" else None


def _members(record: Record) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": written(record.key),
        "headers": [[name, written(value)] for name, value in record.headers],
        "value": written(record.value),
    }


def _lines(record: Record) -> list[list[tuple[str, str]]]:
    return [
        head(record),
        *header_lines(record, foreign=False),
        row("value", bytes_text(record.value), ""),
        [],
    ]
