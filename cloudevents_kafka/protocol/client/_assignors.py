"""The range and round-robin assignors of the Java client, and the encoding of subscriptions and assignments.

An assignor is a function with two dictionaries as arguments. The first dictionary maps the id of each group
member to the topics of this member. The second dictionary maps each topic to a list of its partitions, in
ascending order. The result of an assignor contains all members, even members that receive no partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.client._message import PartitionId, by_topic
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.messages.groups import AssignedTopic, Assignment, Subscription

Assignor: TypeAlias = Callable[
    [Mapping[str, Sequence[str]], Mapping[str, Sequence[int]]], dict[str, list[PartitionId]]
]


def assign_range(
    members: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> dict[str, list[PartitionId]]:
    """For each topic, assign a range of partitions to each subscriber; range sizes differ by at most 1.

    Return each member's partitions.
    """
    plan: dict[str, list[PartitionId]] = {member: [] for member in members}
    for topic in sorted(partitions):
        subscribers = sorted(member for member, topics in members.items() if topic in topics)
        start = 0
        for number, member in enumerate(subscribers):
            size, remainder = divmod(len(partitions[topic]), len(subscribers))
            end = start + size + (number < remainder)
            plan[member] += [(topic, partition) for partition in partitions[topic][start:end]]
            start = end
    return plan


def assign_round_robin(
    members: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> dict[str, list[PartitionId]]:
    """Return the partitions of each member; the subscribers of a topic receive its partitions in turn."""
    plan: dict[str, list[PartitionId]] = {member: [] for member in members}
    turns = cycle(sorted(members))
    for topic in sorted(partitions):
        if not any(topic in topics for topics in members.values()):
            continue
        for partition in partitions[topic]:
            member = next(member for member in turns if topic in members[member])
            plan[member].append((topic, partition))
    return plan


ASSIGNORS: Final[dict[str, Assignor]] = {"range": assign_range, "roundrobin": assign_round_robin}
"""The assignors, by the names that JoinGroup requests contain."""


def decode_subscription(metadata: bytes) -> list[str]:
    """Return the topics to which a member has subscribed; ignore fields that later versions have added."""
    subscription, _ = compiler.decode(Subscription, 0, metadata)
    return subscription.topics


def encode_assignment(partitions: Iterable[PartitionId]) -> bytes:
    """Return the encoded bytes of a member's assignment."""
    assigned = [AssignedTopic(topic=topic, partitions=ids) for topic, ids in by_topic(partitions).items()]
    return compiler.encode(Assignment(topics=assigned), 0)


def decode_assignment(data: bytes) -> list[PartitionId]:
    """Return the partitions in an assignment's bytes, which may be empty; ignore fields of later versions."""
    if not data:
        return []
    assignment, _ = compiler.decode(Assignment, 0, data)
    return [(topic.topic, partition) for topic in assignment.topics for partition in topic.partitions]
