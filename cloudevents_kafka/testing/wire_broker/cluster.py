"""What the brokers of one cluster share: nodes, topics, leaders, and the lock over all of it."""

from __future__ import annotations

import re
import threading
import time
import uuid
import zlib
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing.wire_broker.committed_offsets import Positions
from cloudevents_kafka.testing.wire_broker.coordinator import Groups
from cloudevents_kafka.testing.wire_broker.errors import Hangup, Refused
from cloudevents_kafka.testing.wire_broker.log import Log
from cloudevents_kafka.testing.wire_broker.sequences import Sequences

_LEGAL: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}\Z")


class Settings(NamedTuple):
    """How the brokers are set up; sizes in bytes, times in milliseconds."""

    partitions: int = 1
    auto_create: bool = True
    elects_at_once: bool = True
    """False: metadata that makes a topic says 5, no leader yet, the first time, as real brokers do."""
    max_request_bytes: int = 100 * 1024 * 1024
    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1 << 30
    session_timeouts: tuple[int, int] = (6_000, 1_800_000)
    rebalance_delay: int = 0
    """How long an empty group waits for more members before its first generation."""


class Node(NamedTuple):
    """A broker, as metadata names it."""

    id: int
    host: str
    port: int


class Partition:
    """A partition: its log, and who leads it since which epoch."""

    def __init__(self, leader: int, segment_bytes: int) -> None:
        """Begin with an empty log."""
        self.leader = leader
        self.epoch = 0
        self.log = Log(segment_bytes)
        self.sequences = Sequences()


class Topic:
    """A topic: its id, and its partitions by number."""

    def __init__(self, name: str, leaders: list[int], segment_bytes: int) -> None:
        """Make as many partitions as there are leaders given."""
        self.name: Final = name
        self.id: Final = uuid.uuid4()
        self.partitions: Final = [Partition(leader, segment_bytes) for leader in leaders]


class Cluster:
    """The state that all nodes serve; whoever looks at it holds ``changed``."""

    def __init__(self, settings: Settings) -> None:
        """Begin without nodes and topics."""
        self.settings: Final = settings
        self.changed: Final = threading.Condition()
        self.id: Final = uuid.uuid4().hex[:22]
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, Topic] = {}
        self.groups: Final = Groups(self, settings.session_timeouts, settings.rebalance_delay)
        self.positions: Final = Positions()
        self.closed = False
        self._coordinators: dict[str, int] = {}
        self._producers = 0

    def close(self) -> None:
        """Let everybody who waits give up."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def wait(self, until: float) -> None:
        """Wait for a change, at most until then (`time.monotonic`); `Hangup` when all is closed."""
        if not self.closed:
            self.changed.wait(max(0.0, until - time.monotonic()))
        if self.closed:
            raise Hangup

    def create(self, name: str, partitions: int | None = None) -> Topic:
        """Make a topic, its leaders in turn over all nodes; `Refused` for an illegal name."""
        self.check_name(name)
        nodes = sorted(self.nodes)
        count = self.settings.partitions if partitions is None else partitions
        leaders = [nodes[i % len(nodes)] for i in range(count)]
        topic = self.topics[name] = Topic(name, leaders, self.settings.segment_bytes)
        self.changed.notify_all()
        return topic

    @staticmethod
    def check_name(name: str) -> None:
        """Raise `Refused` for a name that no topic may have."""
        if not _LEGAL.match(name):
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION)

    def topic(self, name: str, *, create: bool) -> Topic:
        """Find a topic, or make it; `Refused`."""
        found = self.topics.get(name)
        if found is not None:
            return found
        self.check_name(name)
        if not create:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.create(name)

    def topic_of(self, id: uuid.UUID) -> Topic:
        """Find a topic by its id; `Refused`."""
        for topic in self.topics.values():
            if topic.id == id:
                return topic
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)

    def partition(self, name: str, number: int) -> Partition:
        """Find a partition, whoever leads it; `Refused`."""
        topic = self.topics.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic.partitions[number]

    def led(self, node: int, name: str, number: int, epoch: int = -1) -> Partition:
        """Find a partition that a node must lead, in the epoch that the client knows; `Refused`."""
        partition = self.partition(name, number)
        if partition.leader != node:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if epoch not in {-1, partition.epoch}:
            raise Refused(
                ErrorCode.FENCED_LEADER_EPOCH if epoch < partition.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        return partition

    def move_leader(self, name: str, number: int, to: int) -> None:
        """Let another node lead a partition, in a new epoch; -1 leaves it without a leader."""
        partition = self.partition(name, number)
        partition.leader = to
        partition.epoch += 1
        self.changed.notify_all()

    def coordinator(self, group: str) -> Node:
        """Find the node that keeps a group."""
        nodes = sorted(self.nodes)
        chosen = nodes[zlib.crc32(group.encode()) % len(nodes)]
        return self.nodes[self._coordinators.get(group, chosen)]

    def move_coordinator(self, group: str, to: int) -> None:
        """Let another node keep a group."""
        self._coordinators[group] = to

    def next_producer(self) -> int:
        """Give out a producer id."""
        self._producers += 1
        return self._producers
