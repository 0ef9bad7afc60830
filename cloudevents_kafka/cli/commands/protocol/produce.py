"""``protocol produce``: send a record with the pure-Python client."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import Any, Final

import click

from cloudevents_kafka.cli.commands.protocol._connection import (
    ConnectionOptions,
    command_error,
    connect,
    connection_options,
    topic_partitions,
)
from cloudevents_kafka.cli.kafka.reader import check_partitions
from cloudevents_kafka.cli.kafka.session import CREATE_TOPICS, TopicNotAllowed
from cloudevents_kafka.cli.kafka.topic_names import complete_topics
from cloudevents_kafka.cli.needs import packages, require
from cloudevents_kafka.cli.records.inputs import read_stdin
from cloudevents_kafka.cli.records.json_lines import encode_json
from cloudevents_kafka.cli.terminal.errors import BrokerFailure
from cloudevents_kafka.cli.terminal.parameters import BYTES, header_option, output_option
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.protocol import Client, Message

_STDIN: Final = b"-"
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@click.command()
@connection_options
@click.argument("topic", shell_complete=complete_topics)
@click.argument("value", type=BYTES, default="-")
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="The key of the record.")
@header_option("Add a header. Its value is null if =VALUE is missing. Repeatable.")
@click.option("--null", is_flag=True, help="Send a null value (a tombstone).")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Send to this partition.")
@click.option(
    "--compression", type=click.Choice(CODECS), default="none", show_default=True, help="Compress the record."
)
@output_option
def command(
    connection: ConnectionOptions,
    topic: str,
    value: bytes,
    compression: str,
    partition: int | None,
    *,
    output: str,
    null: bool,
    **record: Any,
) -> None:
    """Send a record with the pure-Python client.

    VALUE is text. Without VALUE, or if VALUE is "-", the value of the record is all bytes of stdin. Prints
    the topic, partition and offset of the record when the broker has stored it.

    \b
    cloudevents-kafka protocol produce -b localhost:9092 orders --key c-7 hello
    """
    if null and value != _STDIN:
        raise click.UsageError("--null and VALUE exclude each other")
    if compression not in {"none", "gzip"}:
        require(f"--compression {compression}", packages("protocol"))
    record["partition"] = -1 if partition is None else partition
    with Interrupts() as interrupts, interrupts.waiting():
        record["value"] = None if null else read_stdin("the value") if value == _STDIN else value
        with connect(connection) as client:
            message = _deliver(client, connection, topic, compression, record)
    place = {"topic": topic, "partition": message.partition(), "offset": message.offset()}
    text = f"{escape(topic)}[{message.partition()}]@{message.offset()}"
    click.echo(encode_json(place) if output == "json" else text)


def _deliver(
    client: Client, connection: ConnectionOptions, topic: str, compression: str, record: dict[str, Any]
) -> Message:
    """Send one record to a partition, and return the delivery report.

    Raises `BadUsage` if the topic or the partition does not exist, and `BrokerFailure` if sending fails. If
    the user is not allowed to describe the topic, the record is sent although it is unknown whether the topic
    and the partition exist.
    """
    with suppress(TopicNotAllowed):
        _check_place(client, connection, topic, record["partition"])
    reports: list[Message] = []
    with ExitStack() as stack:
        producer = client.producer(compression=compression, delivery_timeout=connection.timeout)
        stack.callback(producer.close, 0)  # after a signal, unsent records are dropped
        producer.produce(topic, on_delivery=lambda _, message: reports.append(message), **record)
        producer.flush(connection.timeout + 1)
    if not reports:
        raise BrokerFailure(
            f"broker {connection.broker} did not accept the record within {connection.timeout:g} s; "
            "check -b and TOPIC"
        )
    if (error := reports[0].error()) is not None:
        raise command_error(error, connection)
    return reports[0]


def _check_place(client: Client, connection: ConnectionOptions, topic: str, partition: int) -> None:
    """Raise `BadUsage` if the topic or the partition does not exist.

    Raises `TopicNotAllowed` if the user is not allowed to describe the topic.
    """
    if connection.settings.effective.get(CREATE_TOPICS) == "true":
        existing = client.partitions(topic)
    else:
        existing = topic_partitions(client, connection, topic)
    if partition >= 0:
        check_partitions(topic, [partition], existing)
