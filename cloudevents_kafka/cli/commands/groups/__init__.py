"""``groups``: print consumer groups with members, offsets and lag; the module `reset` changes offsets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from cloudevents_kafka.cli.app import LazyGroup
from cloudevents_kafka.cli.kafka.cluster import ClusterView, Group, Partition
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import Settings, kafka_options, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import group_option
from cloudevents_kafka.cli.records.output import print_listing
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import listing_option
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import near

COMMANDS: Final = {"reset": "Change the committed offsets of a group."}


@contextmanager
def connected(settings: Settings, timeout: float) -> Iterator[ClusterView]:
    """Return a context manager for the cluster that settings name; a signal ends its block immediately."""
    with Interrupts() as interrupts, interrupts.waiting():
        defaults = settings.with_defaults("defaults of groups", {})
        yield ClusterView(BrokerSession(defaults, timeout, interrupts))


@click.group(cls=LazyGroup, package=__name__, summaries=COMMANDS, invoke_without_command=True)
@kafka_options
@group_option("Show this group. Repeatable.", "names", repeatable=True)
@listing_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    timeout: float,
    output: str | None,
    *,
    show_config: bool,
    **options: Any,
) -> None:
    """List consumer groups: members, offsets, lag.

    Prints one line for each group, or one line for each partition of the groups that are named. The lag is
    the number of offsets between the committed offset and the end of the partition.

    \b
    cloudevents-kafka groups -b localhost:9092
    cloudevents-kafka groups -b localhost:9092 --group billing
    """
    if ctx.invoked_subcommand is not None:
        if names or output or show_config or any(options.values()):
            raise click.UsageError(f"options of {ctx.invoked_subcommand} must stand after its name")
        return
    settings = pop_settings(options)
    settings.check(show=show_config)
    with connected(settings, timeout) as cluster:
        known = cluster.group_names()
        for name in names:
            if name not in known:
                raise BadUsage(f"there is no group {name!r}{near(name, known) or '; check --group'}")
        groups = cluster.groups(names or known)
    objects = list(map(_object, groups))
    if names:
        rows = [row for group in groups for row in _rows(group)]
        print_listing(["group", "partition", "offset", "end", "lag", "member"], rows, objects, output)
        return
    rows = [[group.name, group.state.lower(), len(group.members), group.behind] for group in groups]
    print_listing(["group", "state", "members", "lag"], rows, objects, output)


def _owners(group: Group) -> dict[Partition, Any]:
    return {
        (one.topic, one.partition): member
        for member in group.members
        for one in member.assignment.topic_partitions
    }


def _rows(group: Group) -> Iterator[list[object]]:
    """Yield a row for each partition that a group reads, or in which it has committed an offset."""
    owners = _owners(group)
    for one in sorted({*group.lags, *owners}):
        owner, lag = owners.get(one), group.lags.get(one)
        offsets = ["", "", ""] if lag is None else [lag.next_offset, lag.end, lag.behind]
        yield [
            group.name,
            f"{one[0]}[{one[1]}]",
            *offsets,
            f"{owner.client_id} {owner.host}" if owner else "",
        ]


def _object(group: Group) -> dict[str, Any]:
    members = [
        {
            "id": member.member_id,
            "client": member.client_id,
            "host": member.host,
            "partitions": [f"{one.topic}[{one.partition}]" for one in member.assignment.topic_partitions],
        }
        for member in group.members
    ]
    partitions = [
        {"topic": topic, "partition": number, "offset": lag.next_offset, "end": lag.end, "lag": lag.behind}
        for (topic, number), lag in group.lags.items()
    ]
    return {
        "group": group.name,
        "state": group.state.lower(),
        "members": members,
        "partitions": partitions,
        "lag": group.behind,
    }
