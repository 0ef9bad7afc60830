"""``stats``: count the records of topics; print bars on a terminal, and JSON elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import click

from cloudevents_kafka.cli.kafka.reader import (
    RangeReader,
    ReadRequest,
    check_request,
    consumer_settings,
    range_options,
)
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import group_option, topics_options
from cloudevents_kafka.cli.records.output import is_listed_as_json
from cloudevents_kafka.cli.records.selection import Filter, filter_options
from cloudevents_kafka.cli.records.statistics import count_records, statistics, to_lines
from cloudevents_kafka.cli.terminal.parameters import listing_option
from cloudevents_kafka.cli.terminal.signals import Interrupted, Interrupts
from cloudevents_kafka.cli.terminal.streams import Progress
from cloudevents_kafka.cli.terminal.text import print_lines, print_message
from cloudevents_kafka.counting import RecordCounts


@click.command()
@kafka_options
@topics_options
@range_options
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("-f", "--follow", is_flag=True, help="Also count new records, until Ctrl-C.")
@group_option("The group whose committed offsets are the position 'stored'.")
@filter_options
@click.option("--lenient", is_flag=True, help="Accept known mistakes of other producers, and count them.")
@listing_option
def command(
    timeout: float,
    count: int | None,
    output: str | None,
    *,
    lenient: bool,
    show_config: bool,
    **options: Any,
) -> None:
    """Count the records of topics: events by type, source, mode and format; other records by verdict.

    Also prints sizes, keys and times for each topic. Reads the topics up to their current end; POSITION has
    the form that the command consume accepts. At Ctrl-C, prints the counts so far. If there are many names,
    only the most frequent names are shown. The records with all other names are counted together.

    \b
    cloudevents-kafka stats -b localhost:9092 -t orders
    cloudevents-kafka stats -b localhost:9092 -t orders -o json | jq .types
    """
    settings = consumer_settings(pop_settings(options), "stats", options["group"])
    settings.check(show=show_config, topic=options["topics"] or options["topic_pattern"])
    request = ReadRequest(**{name: options.pop(name) for name in ReadRequest.__struct_fields__})
    check_request(request)
    counts: dict[str, RecordCounts] = {}
    stopped: Interrupted | None = None
    with Interrupts() as interrupts, Progress("records") as progress:
        from confluent_kafka import Consumer

        session = BrokerSession(settings, timeout, interrupts)
        try:
            with closing(session.create(Consumer)) as consumer:
                reader = RangeReader(consumer, session, request)
                reader.start()
                counts.update((topic, RecordCounts()) for topic in reader.topics)
                chosen = Filter(**options)
                count_records(reader.batches(), counts, count, progress, lenient=lenient, filter=chosen)
        except Interrupted as error:
            stopped = error
    _print(counts, output)
    if stopped is not None:
        print_message("interrupted: these are the records up to here")
        raise stopped


def _print(counts: Mapping[str, RecordCounts], output: str | None) -> None:
    """Print the counts of each topic as a line of JSON, or as text with an empty line between topics."""
    as_json = is_listed_as_json(output)
    for number, item in enumerate(counts.items()):
        if as_json:
            print(statistics(*item))
        else:
            print_lines([*([""] if number else []), *to_lines(*item)])
