"""Who of a group reads what: the two plans that all clients know, as the Java client makes them.

A plan takes what each member wants to read, by member id, and the partitions of each
topic, in ascending order. Every member is in the result, if only with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.client.batches import TopicAndPartition

Assignor: TypeAlias = Callable[
    [Mapping[str, Sequence[str]], Mapping[str, Sequence[int]]], dict[str, list[TopicAndPartition]]
]


def assign_range(
    members: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> dict[str, list[TopicAndPartition]]:
    """Give each member a chunk of each topic; the first members get one more where it does not come out."""
    plan: dict[str, list[TopicAndPartition]] = {member: [] for member in members}
    for topic in sorted(partitions):
        readers = sorted(member for member, topics in members.items() if topic in topics)
        start = 0
        for number, member in enumerate(readers):
            size, more = divmod(len(partitions[topic]), len(readers))
            end = start + size + (number < more)
            plan[member] += [(topic, partition) for partition in partitions[topic][start:end]]
            start = end
    return plan


def assign_round_robin(
    members: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> dict[str, list[TopicAndPartition]]:
    """Deal out all partitions one by one, passing over members that do not read the topic."""
    plan: dict[str, list[TopicAndPartition]] = {member: [] for member in members}
    turns = cycle(sorted(members))
    for topic in sorted(partitions):
        if not any(topic in topics for topics in members.values()):
            continue
        for partition in partitions[topic]:
            member = next(member for member in turns if topic in members[member])
            plan[member].append((topic, partition))
    return plan


ASSIGNORS: Final[dict[str, Assignor]] = {"range": assign_range, "roundrobin": assign_round_robin}
"""The plans by the names that groups agree on."""
