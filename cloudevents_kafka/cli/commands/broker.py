"""``broker``: a local Kafka in the foreground."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import click

from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerTrouble
from cloudevents_kafka.cli.terminal.signals import Interrupts

if TYPE_CHECKING:
    from cloudevents_kafka.testing import LocalBroker

_LOOK: Final = 0.5  # seconds between looks at the broker
_HELP: Final = """Run a local Kafka for trying things out, until Ctrl-C.

A real Apache Kafka, one node, on 127.0.0.1 only. Prints its address once it serves.
Fetches Kafka (45 MB) the first time; needs Java. Data is gone at the end, unless
--data-dir keeps it.

\b
cloudevents-kafka broker --port 9092 --topic orders:3
"""


@click.command(help=_HELP, short_help="Run a local Kafka for trying things out.")
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="Where to listen; any free port if not said."
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME[:N]",
    help="Create a topic, of N partitions. Repeatable.",
)
@click.option("--data-dir", type=click.Path(file_okay=False), metavar="FOLDER", help="Keep the data here.")
def command(port: int | None, topics: tuple[str, ...], data_dir: str | None) -> None:
    """Run a broker."""
    from cloudevents_kafka.testing import LocalBroker
    from cloudevents_kafka.testing.local import tail

    wanted = [_parse_topic(text) for text in topics]
    with Interrupts() as interrupts, ExitStack() as stack:
        broker = LocalBroker(port=port, data_dir=data_dir)
        stack.callback(broker.stop)
        with interrupts.waiting():
            broker.start()
            for name, partitions in wanted:
                _create(broker, name, partitions)
            click.echo(broker.bootstrap_servers)
            while broker.running:
                time.sleep(_LOOK)
        raise BrokerTrouble(f"the broker has ended by itself; the end of its log:\n{tail(broker.log_file)}")


def _create(broker: LocalBroker, name: str, partitions: int) -> None:
    from confluent_kafka import KafkaException

    try:
        broker.create_topic(name, partitions)
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":  # which --data-dir may hold from before
            raise BadUsage(f"--topic {name}: {error.args[0].str()}") from None


def _parse_topic(text: str) -> tuple[str, int]:
    name, colon, number = text.partition(":")
    if not name or (colon and not (number.isascii() and number.isdigit() and int(number) > 0)):
        raise click.UsageError(f"--topic {text}: write NAME, or NAME:N for N partitions")
    return name, int(number or 1)
