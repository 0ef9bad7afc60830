"""``stats``: what the records of a topic are, in numbers: bars on a terminal, JSON elsewhere."""

from __future__ import annotations

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
from cloudevents_kafka.cli.kafka.topic_names import topic_option
from cloudevents_kafka.cli.records.output import is_listed_as_json
from cloudevents_kafka.cli.records.statistics import count_records, statistics, to_lines
from cloudevents_kafka.cli.terminal.parameters import listing_option
from cloudevents_kafka.cli.terminal.signals import Interrupted, Interrupts
from cloudevents_kafka.cli.terminal.streams import Progress
from cloudevents_kafka.cli.terminal.text import print_lines, print_message
from cloudevents_kafka.counting import RecordCounts


@click.command()
@kafka_options
@topic_option("The topic to count.")
@range_options
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("-f", "--follow", is_flag=True, help="Count new records, too, until Ctrl-C.")
@click.option("--group", metavar="NAME", help="The group of the position 'stored'.")
@click.option("--lenient", is_flag=True, help="Accept known deviations of other producers, and count them.")
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
    """Count the records of a topic: events by type, source, mode and format, and others by verdict.

    Has sizes, keys and times, too. Reads up to the current end of the topic; POSITION is
    that of consume. At Ctrl-C, prints what has been counted so far. Of many names the most
    frequent ones are kept, and the number of all others.

    \b
    cloudevents-kafka stats -b localhost:9092 -t orders
    cloudevents-kafka stats -b localhost:9092 -t orders -o json | jq .types
    """
    settings = consumer_settings(pop_settings(options), "stats", options["group"])
    settings.check(show=show_config, topic=options["topic"])
    request = ReadRequest(**options)
    check_request(request)
    counts = RecordCounts()
    with Interrupts() as interrupts, Progress("records") as progress:
        from confluent_kafka import Consumer

        session = BrokerSession(settings, timeout, interrupts)
        stopped: Interrupted | None = None
        try:
            with closing(session.create(Consumer)) as consumer:
                reader = RangeReader(consumer, session, request)
                reader.start()
                count_records(reader.batches(), counts, count, progress, lenient=lenient)
        except Interrupted as error:
            stopped = error
    if is_listed_as_json(output):
        print(statistics(request.topic, counts))
    else:
        print_lines(to_lines(request.topic, counts))
    if stopped is not None:
        print_message("interrupted: these are the records up to here")
        raise stopped
