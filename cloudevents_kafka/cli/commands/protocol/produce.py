"""``protocol produce``: a record, sent by the client in pure Python."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import click

from cloudevents_kafka.cli.kafka.protocol_client import (
    Way,
    check_partition,
    failure,
    live_options,
    reaching,
    take_way,
)
from cloudevents_kafka.cli.records.inputs import read_stdin
from cloudevents_kafka.cli.records.json_lines import encoded
from cloudevents_kafka.cli.terminal.errors import BrokerTrouble
from cloudevents_kafka.cli.terminal.escape import visible
from cloudevents_kafka.cli.terminal.extras import need
from cloudevents_kafka.cli.terminal.parameters import BYTES, Header
from cloudevents_kafka.cli.terminal.signals import Interrupts

if TYPE_CHECKING:
    from cloudevents_kafka.protocol import Client, Message

_HELP: Final = """Send a record with the client in pure Python.

VALUE is text; without it, or as -, all bytes of stdin are the value. Prints where the
record stands once the broker has it.

\b
cloudevents-kafka protocol produce localhost:9092 orders --key c-7 --header trace=1 hello
"""
_STDIN: Final = b"-"
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@click.command(help=_HELP, short_help="Send a record with the client in pure Python.")
@live_options
@click.argument("topic")
@click.argument("value", type=BYTES, default="-")
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="The record's key.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    type=Header(valueless=True),
    metavar="NAME[=VALUE]",
    help="Add a header; null without =VALUE. Repeatable.",
)
@click.option("--null", is_flag=True, help="Send null for a value: a tombstone.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Send to this partition.")
@click.option("--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print where it stands as a JSON line.")
def command(topic: str, value: bytes, *, as_json: bool, **options: Any) -> None:
    """Send it, and say where it stands."""
    if options["null"] and value != _STDIN:
        raise click.UsageError("--null and VALUE exclude each other")
    way = take_way(options)
    compression = options.pop("compression")
    if compression not in {"none", "gzip"}:
        need("protocol", f"--compression {compression}")
    with Interrupts() as interrupts, interrupts.waiting():
        record = _record(value, **options)
        with reaching(way) as client:
            message = _delivered(client, way, topic, compression, record)
    place = {"topic": topic, "partition": message.partition(), "offset": message.offset()}
    click.echo(encoded(place) if as_json else f"{visible(topic)}[{message.partition()}]@{message.offset()}")


def _record(
    value: bytes,
    *,
    key: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    partition: int | None,
    null: bool,
) -> dict[str, Any]:
    """Make what a producer takes."""
    return {
        "value": None if null else read_stdin("the value") if value == _STDIN else value,
        "key": key,
        "headers": list(headers),
        "partition": -1 if partition is None else partition,
    }


def _delivered(client: Client, way: Way, topic: str, compression: str, record: dict[str, Any]) -> Message:
    if record["partition"] >= 0:
        check_partition(topic, record["partition"], client.partitions(topic))
    reports: list[Message] = []
    with ExitStack() as stack:
        producer = client.producer(compression=compression, delivery_timeout=way.timeout)
        # What a signal leaves unsent is not waited for.
        stack.callback(producer.close, 0)
        producer.produce(topic, on_delivery=lambda _, message: reports.append(message), **record)
        producer.flush(way.timeout + 1)
    if not reports:
        raise BrokerTrouble(
            f"broker {way.broker} took nothing within {way.timeout:g} s; check BROKER and TOPIC"
        )
    if (error := reports[0].error()) is not None:
        raise failure(error, way)
    return reports[0]
