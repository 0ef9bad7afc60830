"""The cluster and the consumer groups of Kafka 0.7, as ZooKeeper has them; needs kazoo.

::

    client = zookeeper.connect("127.0.0.1:2181")
    cluster = zookeeper.watch_cluster(client, changed=print)
    cluster.now.destinations("orders")

Whoever is in a group shares the partitions by the same sums (`partitions.assign`), so a consumer
does them again whenever the cluster or the group changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.v07 import _session as session
from cloudevents_kafka.protocol.v07 import _znodes as znodes
from cloudevents_kafka.protocol.v07._session import PATIENCE, NodeExists, announce, connect, create
from cloudevents_kafka.protocol.v07._watcher import Watcher
from cloudevents_kafka.protocol.v07._znodes import Broker
from cloudevents_kafka.protocol.v07.partitions import BrokerPartition, assign, destinations, places

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
    """The brokers that are up, and how many partitions each of them has of a topic.

    ``problems`` are nodes that could not be read, and are left out.
    """

    brokers: Mapping[int, Broker]
    topics: Mapping[str, Mapping[int, int]]
    problems: tuple[str, ...] = ()

    def places(self, topic: str) -> list[BrokerPartition]:
        """Give the places to read a topic from, in order."""
        return places(self.topics.get(topic, {}))

    def destinations(self, topic: str) -> list[BrokerPartition]:
        """Give the places to send a topic to, in order; a new one's are partition 0 of all brokers."""
        return destinations(self.topics.get(topic, {}), self.brokers)


class Group(NamedTuple):
    """The consumers of a group, with the number of streams that each has of a topic."""

    consumers: Mapping[str, Mapping[str, int]]
    problems: tuple[str, ...] = ()

    def assignment(self, topic: str, cluster: Cluster) -> dict[str, list[BrokerPartition]]:
        """Share a topic among the group: places by stream, "consumer-0", "consumer-1", ..."""
        streams = [
            f"{consumer}-{number}"
            for consumer, topics in self.consumers.items()
            for number in range(topics.get(topic, 0))
        ]
        return assign(cluster.places(topic), streams)


def watch_cluster(
    client: Any, topics: Sequence[str] | None = None, changed: Callable[[Cluster], None] | None = None
) -> Watcher[Cluster]:
    """Keep an eye on the brokers and on some topics, by default on all; see `Watcher`."""

    def read(live: Watcher[Cluster]) -> Cluster:
        problems: list[str] = []
        brokers = _numbered(live, znodes.BROKERS, Broker.parse, problems)
        found: dict[str, dict[int, int]] = {}
        for topic in live.children(znodes.TOPICS) if topics is None else topics:
            found[topic] = _counts(live, topic, problems)
        return Cluster(brokers, found, tuple(problems))

    return Watcher(client, read, changed)


def watch_group(client: Any, group: str, changed: Callable[[Group], None] | None = None) -> Watcher[Group]:
    """Keep an eye on the consumers of a group; see `Watcher`."""

    def read(live: Watcher[Group]) -> Group:
        problems: list[str] = []
        found: dict[str, dict[str, int]] = {}
        for consumer in live.children(znodes.group_path(group)):
            path = znodes.group_path(group, consumer)
            if (value := live.value(path)) is not None:
                with _noted(problems):
                    found[consumer] = znodes.parse_topics(value, path)
        return Group(found, tuple(problems))

    return Watcher(client, read, changed)


def announce_broker(client: Any, broker: Broker, *, patience: float = PATIENCE) -> None:
    """Put a broker's address up, as it does when it starts; `NodeExists`, `Disconnected`."""
    path = znodes.broker_path(broker.id)
    announce(client, path, broker.encode(), creator=broker.creator, patience=patience)


def announce_topic(
    client: Any, topic: str, broker: Broker, partitions: int, *, patience: float = PATIENCE
) -> None:
    """Put a broker's partitions of a topic up, as it does with the topic's first message."""
    path = znodes.topic_path(topic, broker.id)
    announce(client, path, str(partitions).encode(), creator=broker.creator, patience=patience)


class Consumer:
    """A member of a group, by the nodes that it has in ZooKeeper; they go with the client's session.

    ``streams`` says how many streams it reads of each topic. Raises `NodeExists`, `Disconnected`.
    """

    def __init__(
        self, client: Any, group: str, id: str, streams: Mapping[str, int], *, patience: float = PATIENCE
    ) -> None:
        """Join: make the group's skeleton, where it is not there, and the consumer's own node."""
        self._client: Final = client
        self.group: Final = group
        self.id: Final = id
        self._own: Final = [znodes.group_path(group, id)]
        value = znodes.encode_topics(streams)
        announce(client, self._own[0], value, creator=id, patience=patience)

    def claim(
        self, topic: str, place: BrokerPartition, stream: int = 0, *, patience: float = PATIENCE
    ) -> None:
        """Become the one reader of a place, once the one before has let go; `NodeExists`."""
        path = znodes.owner_path(self.group, topic, place)
        value = f"{self.id}-{stream}".encode()
        announce(self._client, path, value, creator=self.id, patience=patience)
        self._own.append(path)

    def release(self, topic: str, place: BrokerPartition) -> None:
        """Let go of a place; nothing happens if it is not claimed."""
        path = znodes.owner_path(self.group, topic, place)
        if path in self._own:
            self._own.remove(path)
            self._delete(path)

    def leave(self) -> None:
        """Leave the group, and let go of all places; a second time does nothing."""
        while self._own:
            self._delete(self._own.pop())

    def offset(self, topic: str, place: BrokerPartition) -> int | None:
        """Give the offset that the group goes on from, None if there is none; `Malformed`."""
        from kazoo.exceptions import NoNodeError

        path = znodes.offset_path(self.group, topic, place)
        with session.errors():
            try:
                value = self._client.get(path)[0]
            except NoNodeError:
                return None
        return znodes.parse_number(value, path)

    def commit(self, topic: str, place: BrokerPartition, offset: int) -> None:
        """Store the offset that the group goes on from."""
        path, value = znodes.offset_path(self.group, topic, place), str(offset).encode()
        if not create(self._client, path, value, creator=self.id):
            with session.errors():
                self._client.set(path, value)

    def _delete(self, path: str) -> None:
        from kazoo.exceptions import NoNodeError

        with session.errors(), suppress(NoNodeError):
            self._client.delete(path)


def _counts(live: Watcher[Any], topic: str, problems: list[str]) -> dict[int, int]:
    def count(broker: int, value: bytes) -> int:
        return znodes.parse_count(value, znodes.topic_path(topic, broker))

    return _numbered(live, znodes.topic_path(topic), count, problems)


def _numbered(
    live: Watcher[Any], path: str, parse: Callable[[int, bytes], _T], problems: list[str]
) -> dict[int, _T]:
    """Read the values below a node, by the numbers that name them."""
    found: dict[int, _T] = {}
    for name in live.children(path):
        with _noted(problems):
            number = znodes.parse_number(name, path)
            if (value := live.value(f"{path}/{name}")) is not None:
                found[number] = parse(number, value)
    return found


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except Malformed as error:
        problems.append(str(error))
