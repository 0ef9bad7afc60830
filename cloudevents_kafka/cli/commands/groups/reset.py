"""``groups reset``: change the committed offsets of a group; without ``--apply``, only print the change."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from cloudevents_kafka.cli.commands.groups import connected
from cloudevents_kafka.cli.kafka.cluster import Partition
from cloudevents_kafka.cli.kafka.reader import (
    PositionType,
    RangeReader,
    ReadRequest,
    check_partitions,
    consumer_settings,
    partitions_option,
)
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import group_option, topic_option
from cloudevents_kafka.cli.records.output import print_listing
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import listing_option
from cloudevents_kafka.cli.terminal.text import near, print_message
from cloudevents_kafka.positions import Position
from cloudevents_kafka.primitives.plural import pluralize


@click.command()
@kafka_options
@group_option("The group.")
@topic_option("The topic.")
@partitions_option("Change only the offsets of these partitions.")
@click.option("--to", "position", type=PositionType(), metavar="POSITION", help="The new offsets.")
@click.option("--apply", is_flag=True, help="Commit the offsets. Without --apply, only print the changes.")
@listing_option
def command(
    group: str | None,
    topic: str | None,
    position: Position | None,
    timeout: float,
    output: str | None,
    *,
    partitions: tuple[int, ...],
    apply: bool,
    show_config: bool,
    **options: Any,
) -> None:
    """Change the committed offsets of a group in a topic.

    Without --apply, the command prints what would change, and changes nothing. POSITION is written as in
    consume, such as earliest, 1741, -10 or @2026-11-21T12:00:00Z. All members of the group must be stopped.

    \b
    cloudevents-kafka groups reset --group billing -t orders --to -100 --apply
    """
    settings = consumer_settings(pop_settings(options), "groups reset", group)
    settings.check(show=show_config, group=group, topic=topic, position=position)
    if group is None or topic is None or position is None:
        return  # `require` has raised
    request = ReadRequest(
        topics=(topic,), partitions=partitions, begin=position, end=None, follow=False, group=group
    )
    with connected(settings, timeout) as cluster:
        existing = cluster.partitions(topic)
        check_partitions(topic, partitions, existing)
        chosen = [(topic, number) for number in partitions or existing]
        before, after = cluster.committed(group), _starts(cluster.session, request, chosen)
        known = cluster.group_names()
        members = len(cluster.groups([group])[0].members) if group in known else 0
        if members and apply:
            raise BadUsage(f"group {group!r} has {pluralize(members, 'member')}; stop all of them first")
        if apply:
            cluster.commit(group, after)
    rows = [[f"{topic}[{one[1]}]", before.get(one, ""), after[one]] for one in chosen]
    objects = [
        {"topic": topic, "partition": one[1], "from": before.get(one), "to": after[one]} for one in chosen
    ]
    print_listing(["partition", "from", "to"], rows, objects, output)
    if group not in known:
        print_message(f"group {group!r} {'is' if apply else 'would be'} new{near(group, known)}")
    if not apply:
        more = f", after stopping {pluralize(members, 'member')}" if members else ""
        print_message(f"nothing was changed: add --apply{more}")


def _starts(
    session: BrokerSession, request: ReadRequest, partitions: list[Partition]
) -> dict[Partition, int]:
    """Return the offset at which the command `consume` would start in each partition."""
    from confluent_kafka import Consumer

    with closing(session.create(Consumer)) as consumer:
        return RangeReader(consumer, session, request).starts(partitions)
