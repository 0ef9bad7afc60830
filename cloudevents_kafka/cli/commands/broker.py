"""``broker``: run a local Kafka broker in the foreground."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Final

import click

from cloudevents_kafka.cli.needs import java, kafka_jars, require
from cloudevents_kafka.cli.needs import port as free_port
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local import tail

_CHECK_INTERVAL: Final = 0.5  # seconds


@click.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="The port of the broker.  [default: a free port]",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME[:N]",
    help="Create a topic with N partitions. Repeatable.",
)
@click.option(
    "--data-dir", type=click.Path(file_okay=False), metavar="FOLDER", help="Keep the data in this folder."
)
def command(port: int | None, topics: tuple[str, ...], data_dir: str | None) -> None:
    """Run a local Kafka broker for trying things out, until Ctrl-C.

    The broker is Apache Kafka, one node, on 127.0.0.1 only. Prints the address of the broker when the broker
    accepts connections. Downloads Kafka (45 MB) the first time; needs Java. The data of the broker is deleted
    at the end, unless --data-dir is set.

    \b
    cloudevents-kafka broker --port 9092 --topic orders:3
    """
    new_topics = [_parse_topic(text) for text in topics]
    ports = [] if port is None else [free_port(port)]
    require("broker", java, kafka_jars, *ports)
    with Interrupts() as interrupts, ExitStack() as stack:
        broker = LocalBroker(port=port, data_dir=data_dir)
        stack.callback(broker.stop)
        with interrupts.waiting():
            broker.start()
            for name, partitions in new_topics:
                _create(broker, name, partitions)
            click.echo(broker.bootstrap_servers)
            while broker.running:
                time.sleep(_CHECK_INTERVAL)
        raise BrokerFailure(f"the broker has stopped by itself; its log ends with:\n{tail(broker.log_file)}")


def _create(broker: LocalBroker, name: str, partitions: int) -> None:
    from confluent_kafka import KafkaException

    try:
        broker.create_topic(name, partitions)
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":  # from an earlier run with --data-dir
            raise BadUsage(f"--topic {name}: {error.args[0].str()}") from None


def _parse_topic(text: str) -> tuple[str, int]:
    name, colon, number = text.partition(":")
    if not name or (colon and not (number.isascii() and number.isdigit() and int(number) > 0)):
        raise click.UsageError(f"--topic {text}: a topic must be NAME, or NAME:N for N partitions")
    return name, int(number or 1)
