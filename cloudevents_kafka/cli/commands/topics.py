"""``topics``: print the topics of a cluster, with their partitions and offsets."""

from __future__ import annotations

from typing import Any

import click

from cloudevents_kafka.cli.kafka.cluster import ClusterView, Watermarks
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import complete_topics
from cloudevents_kafka.cli.records.output import print_listing
from cloudevents_kafka.cli.terminal.parameters import listing_option
from cloudevents_kafka.cli.terminal.signals import Interrupts


@click.command()
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@kafka_options
@listing_option
def command(
    names: tuple[str, ...], timeout: float, output: str | None, *, show_config: bool, **options: Any
) -> None:
    """List topics: partitions, first and last offsets, sizes.

    Prints one line for each topic, or one line for each partition of the TOPICs that are named. The size is
    the number of offsets. The topic has fewer records than offsets if compaction has removed records, or if
    the topic has markers of transactions.

    \b
    cloudevents-kafka topics -b localhost:9092
    cloudevents-kafka topics -b localhost:9092 orders
    """
    settings = pop_settings(options).with_defaults("defaults of topics", {})
    settings.check(show=show_config)
    with Interrupts() as interrupts, interrupts.waiting():
        cluster = ClusterView(BrokerSession(settings, timeout, interrupts))
        numbers = {name: cluster.partitions(name) for name in dict.fromkeys(names)} or cluster.topics()
        marks = cluster.watermarks([(name, number) for name, found in numbers.items() for number in found])
    rows: list[list[object]] = []
    objects = []
    for name, found in numbers.items():
        ranges = {number: marks[name, number] for number in found}
        rows += (
            [[f"{name}[{number}]", *_range([each])] for number, each in ranges.items()]
            if names
            else [[name, len(found), *_range(list(ranges.values()))]]
        )
        partitions = [
            {"partition": number, "first": low, "last": high - 1, "size": high - low}
            for number, (low, high) in ranges.items()
        ]
        size = sum(high - low for low, high in ranges.values())
        objects.append({"topic": name, "partitions": partitions, "size": size})
    header = ["partition"] if names else ["topic", "partitions"]
    print_listing([*header, "first", "last", "size"], rows, objects, output)


def _range(marks: list[Watermarks]) -> list[object]:
    """Return the first offset, the last offset and the size of partitions.

    An empty partition has no last offset.
    """
    low, high = min((one.low for one in marks), default=0), max((one.high for one in marks), default=0)
    size = sum(one.high - one.low for one in marks)
    return [low, high - 1 if size else "", size]
