"""The state that the brokers of one cluster share: nodes, topics, leaders, groups and the lock."""

from __future__ import annotations

import re
import uuid
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from tests.support.wire_broker._append import Rules, Sequences
from tests.support.wire_broker._configs import checked, configs_of
from tests.support.wire_broker._errors import ApiError
from tests.support.wire_broker._group import Changes, Group
from tests.support.wire_broker._log import Log
from tests.support.wire_broker._releases import Release

_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]+\Z")

_NO_LIMIT: Final = str((1 << 63) - 1)
_OLD_DEFAULTS: Final = {
    "max.message.bytes": "1000012",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": _NO_LIMIT,
}
"""The settings that old releases do not have, but the records are checked by."""


class Settings(NamedTuple):
    """Settings of the brokers; sizes in bytes, times in milliseconds.

    Examples:
        >>> from cloudevents_kafka.protocol import Client
        >>> from wire_broker import Settings, WireBroker
        >>> with WireBroker(settings=Settings(partitions=3)) as broker:
        ...     with Client(broker.bootstrap_servers) as client:
        ...         client.partitions("orders")
        [0, 1, 2]
    """

    partitions: int = 1
    auto_create: bool = True
    elects_leaders_at_once: bool = True
    """False: the Metadata request that creates a topic is answered with 5, as by real brokers."""
    max_request_bytes: int = 100 * 1024 * 1024
    max_message_bytes: int | None = None
    """The limit of a batch, by default that of the release: 1,000,012, from 3.9 on 1,048,588."""
    segment_bytes: int = 1 << 30
    session_timeouts: tuple[int, int] = (6_000, 1_800_000)
    """The least and the greatest."""
    rebalance_delay: int = 0
    """How long an empty group waits for more members before its first generation."""


class Node(NamedTuple):
    """A broker of the cluster.

    Examples:
        >>> from wire_broker import WireBroker
        >>> with WireBroker(brokers=2) as broker:
        ...     [node.id for node in broker.nodes]
        [1, 2]
    """

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
    """A topic: its id, its partitions by number, and its settings."""

    name: str
    id: uuid.UUID
    partitions: list[Partition]
    own_settings: Mapping[str, str]
    """The settings that the topic was created with."""
    defaults: Mapping[str, str]
    release: tuple[int, int]

    def setting(self, name: str) -> str:
        """Return the value of a setting."""
        return self.own_settings.get(name, self.defaults[name])

    @property
    def rules(self) -> Rules:
        """The rules for its records."""
        return Rules(
            max_bytes=int(self.setting("max.message.bytes")),
            needs_keys="compact" in self.setting("cleanup.policy"),
            appends_time=self.setting("message.timestamp.type") == "LogAppendTime",
            max_ahead=int(self.setting("message.timestamp.after.max.ms")),
            release=self.release,
        )


class Cluster:
    """The state behind all nodes; hold ``changes``, its lock, to read or write it."""

    def __init__(self, settings: Settings, release: Release) -> None:
        self.settings: Final = settings
        self._release: Final = release
        self.configs: Final = configs_of(release.name)
        """The settings that topics have, by name."""
        defaults = {name: config.default for name, config in self.configs.items()}
        self._defaults: Final = {
            **_OLD_DEFAULTS,
            **defaults,
            "segment.bytes": str(settings.segment_bytes),
        }
        if settings.max_message_bytes is not None:
            self._defaults["max.message.bytes"] = str(settings.max_message_bytes)
        self.changes: Final = Changes()
        self.id: Final = uuid.uuid4().hex[:22]
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, Topic] = {}
        self._groups: Final[dict[str, Group]] = {}
        self.committed_offsets: Final[defaultdict[tuple[bool, str], CommittedOffsets]] = defaultdict(dict)
        """Offsets by store and group; the store of API version 0, which is ZooKeeper, is True."""
        self._coordinators: dict[str, int] = {}
        self._producers = 0

    def new_topic(
        self, name: str, leaders: Sequence[int], settings: Mapping[str, str | None] | None = None
    ) -> Topic:
        """Return a topic that is not in the cluster yet; raise `ApiError` if it cannot be created."""
        self.check_topic_name(name)
        if name in self.topics:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS)
        if name.replace(".", "_") in {one.replace(".", "_") for one in self.topics}:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        own = checked(self.configs, settings or {}, self._release.number)
        topic = Topic(name, uuid.uuid4(), [], own, self._defaults, self._release.number)
        segment_bytes = int(topic.setting("segment.bytes"))
        topic.partitions.extend(Partition(leader, segment_bytes) for leader in leaders)
        return topic

    def leaders(self, count: int | None = None) -> list[int]:
        """Return the leaders of a number of partitions: all nodes in turn."""
        nodes = sorted(self.nodes)
        return [nodes[i % len(nodes)] for i in range(self.settings.partitions if count is None else count)]

    def create_topic(self, name: str, partitions: int | None = None) -> Topic:
        """Create and return a topic, led by all nodes in turn; raise `ApiError` if it cannot be created."""
        return self.add_topic(self.new_topic(name, self.leaders(partitions)))

    def add_topic(self, topic: Topic) -> Topic:
        """Add a topic to the cluster, and return it."""
        self.topics[topic.name] = topic
        self.changes.notify_all()
        return topic

    def add_partitions(self, name: str, count: int) -> None:
        """Add partitions to a topic, so that it has ``count``."""
        topic = self.topics[name]
        segment_bytes = int(topic.setting("segment.bytes"))
        leaders = self.leaders(count)[len(topic.partitions) :]
        topic.partitions.extend(Partition(leader, segment_bytes) for leader in leaders)

    def check_topic_name(self, name: str) -> None:
        """Raise `ApiError` if a name is illegal."""
        longest = 255 if self._release.number < (0, 10) else 249
        if len(name) > longest or not _TOPIC_NAME.match(name):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)

    def described_topic(self, name: str) -> Topic:
        """Return a topic by its name; raise `ApiError` if the name is illegal, or unknown.

        Before KRaft an unknown topic has the default settings.
        """
        self.check_topic_name(name)
        if name in self.topics:
            return self.topics[name]
        if self._release.number < (3, 9):
            return self.new_topic(name, [])
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def broker_settings(self, node: int) -> dict[str, int | bool]:
        """Return the settings of a node by Kafka's names."""
        ours = self.settings
        return {
            "auto.create.topics.enable": ours.auto_create,
            "broker.id": node,
            "group.initial.rebalance.delay.ms": ours.rebalance_delay,
            "group.max.session.timeout.ms": ours.session_timeouts[1],
            "group.min.session.timeout.ms": ours.session_timeouts[0],
            "log.segment.bytes": ours.segment_bytes,
            "message.max.bytes": int(self._defaults["max.message.bytes"]),
            "num.partitions": ours.partitions,
            "socket.request.max.bytes": ours.max_request_bytes,
        }

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

    @property
    def existing_groups(self) -> dict[str, Group]:
        """The groups that had a member or committed an offset, in their present state."""
        committed = {
            name for (in_zookeeper, name), rows in self.committed_offsets.items() if rows and not in_zookeeper
        }
        names = [name for name, group in self._groups.items() if group.type is not None]
        return {name: self.group(name) for name in dict.fromkeys([*names, *sorted(committed)])}

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
