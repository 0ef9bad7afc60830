"""The state that the brokers of one cluster share: nodes, topics, leaders, groups and the lock."""

from __future__ import annotations

import re
import uuid
import zlib
from collections import defaultdict
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing.wire_broker._append import Sequences
from cloudevents_kafka.testing.wire_broker._errors import ApiError
from cloudevents_kafka.testing.wire_broker._group import Changes, Group
from cloudevents_kafka.testing.wire_broker._log import Log

_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}\Z")


class Settings(NamedTuple):
    """Settings of the brokers; sizes in bytes, times in milliseconds."""

    partitions: int = 1
    auto_create: bool = True
    elects_leaders_at_once: bool = True
    """False: the Metadata request that creates a topic is answered with 5, as by real brokers."""
    max_request_bytes: int = 100 * 1024 * 1024
    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1 << 30
    session_timeouts: tuple[int, int] = (6_000, 1_800_000)
    """The least and the greatest."""
    rebalance_delay: int = 0
    """How long an empty group waits for more members before its first generation."""


class Node(NamedTuple):
    """A broker of the cluster."""

    id: int
    host: str
    port: int


class CommittedOffset(NamedTuple):
    """An offset that a group committed."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""


CommittedOffsets = dict[tuple[str, int], CommittedOffset]
"""A group's offsets by topic and partition."""


class Partition:
    """A partition: its log, its leader and the leader's epoch."""

    def __init__(self, leader: int, segment_bytes: int) -> None:
        self.leader = leader
        self.epoch = 0
        self.log = Log(segment_bytes)
        self.sequences = Sequences()


class Topic(NamedTuple):
    """A topic: its id, and its partitions by number."""

    name: str
    id: uuid.UUID
    partitions: list[Partition]


class Cluster:
    """The state behind all nodes; hold ``changes``, its lock, to read or write it."""

    def __init__(self, settings: Settings) -> None:
        self.settings: Final = settings
        self.changes: Final = Changes()
        self.id: Final = uuid.uuid4().hex[:22]
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, Topic] = {}
        self._groups: Final[dict[str, Group]] = {}
        self.committed_offsets: Final[defaultdict[tuple[bool, str], CommittedOffsets]] = defaultdict(dict)
        """Offsets by store and group; the store of API version 0, which is ZooKeeper, is True."""
        self._coordinators: dict[str, int] = {}
        self._producers = 0

    def create_topic(self, name: str, partitions: int | None = None) -> Topic:
        """Create and return a topic, led by all nodes in turn; raise `ApiError` if the name is illegal."""
        self.check_topic_name(name)
        nodes = sorted(self.nodes)
        count = self.settings.partitions if partitions is None else partitions
        leaders = (nodes[i % len(nodes)] for i in range(count))
        rows = [Partition(leader, self.settings.segment_bytes) for leader in leaders]
        topic = self.topics[name] = Topic(name, uuid.uuid4(), rows)
        self.changes.notify_all()
        return topic

    @staticmethod
    def check_topic_name(name: str) -> None:
        """Raise `ApiError` if a name is illegal."""
        if not _TOPIC_NAME.match(name):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)

    def topic_by_id(self, id: uuid.UUID) -> Topic:
        """Return the topic with an id; raise `ApiError` if the id is unknown."""
        for topic in self.topics.values():
            if topic.id == id:
                return topic
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)

    def partition(self, name: str, number: int) -> Partition:
        """Return a partition of any leader; raise `ApiError` if it does not exist."""
        topic = self.topics.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic.partitions[number]

    def led_partition(self, node: int, name: str, number: int, epoch: int = -1) -> Partition:
        """Return a partition; raise `ApiError` if a node does not lead it, in the epoch of the client."""
        partition = self.partition(name, number)
        if partition.leader != node:  # S0-N6
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if epoch not in {-1, partition.epoch}:  # KIP-320: the client's metadata is older or newer
            raise ApiError(
                ErrorCode.FENCED_LEADER_EPOCH if epoch < partition.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        return partition

    def move_leader(self, name: str, number: int, to: int) -> None:
        """Make another node the leader of a partition, in a new epoch; -1 leaves it without a leader."""
        partition = self.partition(name, number)
        partition.leader = to
        partition.epoch += 1
        self.changes.notify_all()

    def group(self, id: str) -> Group:
        """Return a group in its present state; a group that nobody joined is empty."""
        group = self._groups.setdefault(id, Group(self.changes, self.settings.rebalance_delay / 1000))
        group.tick()
        return group

    def coordinator(self, group: str) -> Node:
        """Return the node that coordinates a group."""
        nodes = sorted(self.nodes)
        default = nodes[zlib.crc32(group.encode()) % len(nodes)]
        return self.nodes[self._coordinators.get(group, default)]

    def move_coordinator(self, group: str, to: int) -> None:
        """Make another node the coordinator of a group."""
        self._coordinators[group] = to

    def next_producer_id(self) -> int:
        """Return a new producer id."""
        self._producers += 1
        return self._producers
