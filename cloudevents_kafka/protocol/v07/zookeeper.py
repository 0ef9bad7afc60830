"""The brokers and consumer groups of Kafka 0.7 in ZooKeeper; needs kazoo.

::

    client = zookeeper.connect("127.0.0.1:2181")
    cluster = zookeeper.watch_cluster(client, on_change=print)
    cluster.current.destinations("orders")

Each member of a group computes the assignment itself (`Group.assignment`), and computes it again when the
cluster or the group changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.v07 import _session as session
from cloudevents_kafka.protocol.v07 import _znodes as znodes
from cloudevents_kafka.protocol.v07._session import TIMEOUT, NodeExists, Watcher, announce, connect, create
from cloudevents_kafka.protocol.v07._znodes import Broker
from cloudevents_kafka.protocol.v07.partitions import BrokerPartition, all_partitions, assign, destinations

__all__ = [
    "Broker",
    "Cluster",
    "Consumer",
    "Group",
    "NodeExists",
    "Watcher",
    "announce_broker",
    "announce_topic",
    "connect",
    "watch_cluster",
    "watch_group",
]

_T = TypeVar("_T")


class Cluster(NamedTuple):
    """The live brokers by id, and the number of partitions of each topic by broker.

    ``problems`` describes the nodes that are malformed and left out.
    """

    brokers: Mapping[int, Broker]
    topics: Mapping[str, Mapping[int, int]]
    problems: tuple[str, ...] = ()

    def partitions(self, topic: str) -> list[BrokerPartition]:
        """Return the partitions of a topic, sorted."""
        return all_partitions(self.topics.get(topic, {}))

    def destinations(self, topic: str) -> list[BrokerPartition]:
        """Return the partitions to send to, sorted; partition 0 of each broker for a new topic."""
        return destinations(self.topics.get(topic, {}), self.brokers)


class Group(NamedTuple):
    """The consumers of a group, with their number of streams by topic."""

    consumers: Mapping[str, Mapping[str, int]]
    problems: tuple[str, ...] = ()

    def assignment(self, topic: str, cluster: Cluster) -> dict[str, list[BrokerPartition]]:
        """Return the partitions of each stream ("consumer-0", "consumer-1", ...)."""
        streams = [
            f"{consumer}-{number}"
            for consumer, topics in self.consumers.items()
            for number in range(topics.get(topic, 0))
        ]
        return assign(cluster.partitions(topic), streams)


def watch_cluster(
    client: Any, topics: Sequence[str] | None = None, on_change: Callable[[Cluster], None] | None = None
) -> Watcher[Cluster]:
    """Return a watcher of the brokers and of ``topics``, by default all."""

    def read(watcher: Watcher[Cluster]) -> Cluster:
        problems: list[str] = []
        brokers = _children(watcher, znodes.BROKERS, Broker.parse, problems)
        found: dict[str, dict[int, int]] = {}
        for topic in watcher.children(znodes.TOPICS) if topics is None else topics:
            found[topic] = _counts(watcher, topic, problems)
        return Cluster(brokers, found, tuple(problems))

    return Watcher(client, read, on_change)


def watch_group(client: Any, group: str, on_change: Callable[[Group], None] | None = None) -> Watcher[Group]:
    """Return a watcher of the consumers of a group."""

    def read(watcher: Watcher[Group]) -> Group:
        problems: list[str] = []
        found: dict[str, dict[str, int]] = {}
        for consumer in watcher.children(znodes.group_path(group)):
            path = znodes.group_path(group, consumer)
            if (value := watcher.value(path)) is not None:
                with _collect(problems):
                    found[consumer] = znodes.parse_topics(value, path)
        return Group(found, tuple(problems))

    return Watcher(client, read, on_change)


def announce_broker(client: Any, broker: Broker, *, timeout: float = TIMEOUT) -> None:
    """Register a broker, as it does when it starts; raise `NodeExists` or `Disconnected`."""
    path = znodes.broker_path(broker.id)
    announce(client, path, broker.encode(), creator=broker.creator, timeout=timeout)


def announce_topic(
    client: Any, topic: str, broker: Broker, partitions: int, *, timeout: float = TIMEOUT
) -> None:
    """Register a broker's partitions of a topic, as it does with the topic's first message."""
    path = znodes.topic_path(topic, broker.id)
    announce(client, path, str(partitions).encode(), creator=broker.creator, timeout=timeout)


class Consumer:
    """A member of a group, by its nodes in ZooKeeper, which end with the client's session.

    ``streams`` is its number of streams by topic. Its methods raise `NodeExists` and `Disconnected`.
    """

    def __init__(
        self, client: Any, group: str, id: str, streams: Mapping[str, int], *, timeout: float = TIMEOUT
    ) -> None:
        """Join the group: create the consumer's node."""
        self._client: Final = client
        self.group: Final = group
        self.id: Final = id
        self._paths: Final = [znodes.group_path(group, id)]
        value = znodes.encode_topics(streams)
        announce(client, self._paths[0], value, creator=id, timeout=timeout)

    def claim(
        self, topic: str, partition: BrokerPartition, stream: int = 0, *, timeout: float = TIMEOUT
    ) -> None:
        """Become the owner of a partition, once the last owner has released it."""
        path = znodes.owner_path(self.group, topic, partition)
        value = f"{self.id}-{stream}".encode()
        announce(self._client, path, value, creator=self.id, timeout=timeout)
        self._paths.append(path)

    def release(self, topic: str, partition: BrokerPartition) -> None:
        """Release a partition; do nothing if it is not claimed."""
        path = znodes.owner_path(self.group, topic, partition)
        if path in self._paths:
            self._paths.remove(path)
            self._delete(path)

    def leave(self) -> None:
        """Leave the group and release all partitions; do nothing if called again."""
        while self._paths:
            self._delete(self._paths.pop())

    def offset(self, topic: str, partition: BrokerPartition) -> int | None:
        """Return the committed offset of the group, None without one; raise `Malformed`."""
        from kazoo.exceptions import NoNodeError

        path = znodes.offset_path(self.group, topic, partition)
        with session.errors():
            try:
                value = self._client.get(path)[0]
            except NoNodeError:
                return None
        return znodes.parse_number(value, path)

    def commit(self, topic: str, partition: BrokerPartition, offset: int) -> None:
        """Commit an offset for the group."""
        path, value = znodes.offset_path(self.group, topic, partition), str(offset).encode()
        if not create(self._client, path, value, creator=self.id):
            with session.errors():
                self._client.set(path, value)

    def _delete(self, path: str) -> None:
        from kazoo.exceptions import NoNodeError

        with session.errors(), suppress(NoNodeError):
            self._client.delete(path)


def _counts(watcher: Watcher[Any], topic: str, problems: list[str]) -> dict[int, int]:
    def count(broker: int, value: bytes) -> int:
        return znodes.parse_count(value, znodes.topic_path(topic, broker))

    return _children(watcher, znodes.topic_path(topic), count, problems)


def _children(
    watcher: Watcher[Any], path: str, parse: Callable[[int, bytes], _T], problems: list[str]
) -> dict[int, _T]:
    """Return the values of a node's children, by their names, which are numbers."""
    found: dict[int, _T] = {}
    for name in watcher.children(path):
        with _collect(problems):
            number = znodes.parse_number(name, path)
            if (value := watcher.value(f"{path}/{name}")) is not None:
                found[number] = parse(number, value)
    return found


@contextmanager
def _collect(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except Malformed as error:
        problems.append(str(error))
