"""The brokers and consumer groups of Kafka 0.7, as ZooKeeper stores them; this module needs kazoo.

::

    client = zookeeper.connect("127.0.0.1:2181")
    cluster = zookeeper.watch_cluster(client, on_change=print)
    cluster.current.destinations("orders")

Each member of a group computes the assignment itself (`Group.assignment`), and computes the assignment again
when the cluster or the group changes. All functions raise `Disconnected` if ZooKeeper does not answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

import msgspec

from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.protocol.errors import ClientError, Disconnected, Malformed, Unsupported
from cloudevents_kafka.protocol.v07 import _znodes as znodes
from cloudevents_kafka.protocol.v07._znodes import Broker, BrokerPartition
from cloudevents_kafka.protocol.v07.partitions import Cluster, Group

__all__ = ["Consumer", "connect", "watch_cluster", "watch_group"]

TIMEOUT: Final = 10.0
"""The seconds to wait until another session's node expires; Kafka 0.7's session timeout is 6 s."""

_T = TypeVar("_T")


class NodeExists(ClientError):
    """An ephemeral node of another session exists, and did not expire within the timeout."""


def connect(hosts: str, *, timeout: float = 10.0) -> Any:
    """Return a started ``KazooClient``, which the caller must stop and close.

    ``hosts`` is text such as "host:port,host:port"; ``timeout`` is the session timeout in seconds. Raises
    `Unsupported` if kazoo is not installed, and `Disconnected` if none of the hosts answers.

    Examples:
        >>> from cloudevents_kafka.protocol.v07 import zookeeper
        >>> client = zookeeper.connect("localhost:2181")
        >>> client.connected
        True
        >>> client.stop()
        >>> client.close()
    """
    try:
        from kazoo.client import KazooClient
    except ImportError as error:
        raise Unsupported(f"ZooKeeper needs kazoo: {pip_install('protocol')}") from error
    client = KazooClient(hosts, timeout=timeout)
    with _errors():
        client.start(timeout)
    return client


class Watcher(Generic[_T]):
    """A value that ``read`` computes from nodes in ZooKeeper, and computes again when these nodes change.

    ``read`` is called with the watcher, and reads nodes with `children` and `value`; these nodes are watched.
    ``on_change`` is called with each new value that differs from the last value. The calls are made on
    kazoo's thread, one after another; a notification waits until the current call ends. After a lost session,
    all nodes are read again.
    """

    def __init__(
        self, client: Any, read: Callable[[Watcher[_T]], _T], on_change: Callable[[_T], None] | None = None
    ) -> None:
        """Read the nodes, and watch these nodes; ``client`` must be a started ``KazooClient``."""
        self._client: Final = client
        self._read: Final = read
        self._on_change: Final = on_change
        self._lock: Final = threading.RLock()
        self._open = True
        with self._lock, _errors():
            self.current = read(self)
        client.add_listener(self._on_state)

    def close(self) -> None:
        """Stop watching."""
        self._open = False
        self._client.remove_listener(self._on_state)

    def children(self, path: str) -> list[str]:
        """Return the sorted names of a node's children, or [] if the node does not exist (yet)."""
        from kazoo.exceptions import NoNodeError

        while True:
            try:
                return sorted(self._client.get_children(path, watch=self._on_event))
            except NoNodeError:
                if self._client.exists(path, watch=self._on_event) is None:
                    return []

    def value(self, path: str) -> bytes | None:
        """Return a node's value, or None if the node no longer exists.

        If the node is deleted later, ZooKeeper reports this through the watch on the children of the node's
        parent.
        """
        return _value(self._client, path, self._on_event)

    def _on_event(self, _: object) -> None:
        self._refresh()

    def _on_state(self, state: object) -> None:
        # Watches end with their session. A listener must not wait for ZooKeeper, so use another thread.
        if state == "CONNECTED":
            self._client.handler.spawn(self._refresh)

    def _refresh(self) -> None:
        # Without a connection, the value stays; `_on_state` reads again once the connection is back.
        with self._lock, suppress(Disconnected):
            if not self._open:
                return
            before = self.current
            with _errors():
                self.current = self._read(self)
            if self.current != before and self._on_change is not None:
                self._on_change(self.current)


def watch_cluster(
    client: Any, topics: Sequence[str] | None = None, on_change: Callable[[Cluster], None] | None = None
) -> Watcher[Cluster]:
    """Return a watcher of the brokers and of ``topics``, by default all topics.

    Examples:
        >>> from cloudevents_kafka.protocol.v07 import zookeeper
        >>> client = zookeeper.connect("localhost:2181")
        >>> zookeeper.announce(client, "/brokers/ids/1", b"b:10.0.0.1:9092", "b")  # as a broker does
        >>> cluster = zookeeper.watch_cluster(client)
        >>> cluster.current.brokers
        {1: Broker(id=1, creator='b', host='10.0.0.1', port=9092)}
        >>> cluster.close()
        >>> client.stop()
        >>> client.close()
    """

    def read(watcher: Watcher[Cluster]) -> Cluster:
        problems: list[str] = []
        brokers = _read_children(watcher, znodes.BROKERS, _parse_broker, problems)
        names = watcher.children(znodes.TOPICS) if topics is None else topics
        counts = {
            name: dict(_read_children(watcher, znodes.topic_path(name), _parse_count, problems))
            for name in names
        }
        return Cluster({broker.id: broker for broker in brokers}, counts, tuple(problems))

    return Watcher(client, read, on_change)


def watch_group(client: Any, group: str, on_change: Callable[[Group], None] | None = None) -> Watcher[Group]:
    """Return a watcher of the consumers of a group.

    Examples:
        >>> from cloudevents_kafka.protocol.v07 import zookeeper
        >>> client = zookeeper.connect("localhost:2181")
        >>> consumer = zookeeper.Consumer(client, "billing", "billing-1", {"orders": 2})
        >>> group = zookeeper.watch_group(client, "billing")
        >>> group.current.consumers
        {'billing-1': {'orders': 2}}
        >>> group.close()
        >>> client.stop()
        >>> client.close()
    """

    def read(watcher: Watcher[Group]) -> Group:
        problems: list[str] = []
        consumers = _read_children(watcher, znodes.group_path(group), _parse_consumer, problems)
        return Group(dict(consumers), tuple(problems))

    return Watcher(client, read, on_change)


def _read_children(
    watcher: Watcher[Any], parent: str, parse: Callable[[str, bytes, str], _T], problems: list[str]
) -> list[_T]:
    """Call ``parse`` with the name, value and path of each child of a node, and return the results."""
    found = []
    for name in watcher.children(parent):
        path = f"{parent}/{name}"
        if (value := watcher.value(path)) is not None:
            try:
                found.append(parse(name, value, path))
            except Malformed as error:
                problems.append(str(error))
    return found


def _parse_broker(name: str, value: bytes, path: str) -> Broker:
    return Broker.parse(znodes.parse_number(name, path), value)


def _parse_count(name: str, value: bytes, path: str) -> tuple[int, int]:
    return znodes.parse_number(name, path), znodes.parse_number(value, path, limit=znodes.MAX_COUNT)


def _parse_consumer(name: str, value: bytes, path: str) -> tuple[str, dict[str, int]]:
    return name, znodes.parse_topics(value, path)


def announce(client: Any, path: str, value: bytes, creator: str, *, timeout: float = TIMEOUT) -> None:
    """Create an ephemeral node and its missing parents; set the value if this session already owns the node.

    ``creator`` is the value of the parent nodes that are created. Raises `NodeExists` if another session
    still owns the node after ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    with _errors():
        while not _create(client, path, value, creator, ephemeral=True):
            # S2-Z6: the node of a crashed process "might show up for a few seconds"
            gone = threading.Event()
            stat = client.exists(path, watch=lambda _, gone=gone: gone.set())
            if stat is None:
                continue
            if stat.ephemeralOwner == client.client_id[0]:
                client.set(path, value)
                return
            if not gone.wait(max(0.0, deadline - time.monotonic())):
                raise NodeExists(
                    f"{path} must not exist, but session 0x{stat.ephemeralOwner:x} owns it after "
                    f"{timeout:g} s; wait for the session to expire, or use another id"
                )


class Consumer:
    """A member of a group, represented by its nodes in ZooKeeper.

    The member leaves the group when the client's session ends.

    ``streams`` maps each topic to the consumer's number of streams. The constructor and `claim` raise
    `NodeExists`.

    Examples:
        >>> from cloudevents_kafka.protocol.v07 import zookeeper
        >>> from cloudevents_kafka.protocol.v07.partitions import BrokerPartition
        >>> client = zookeeper.connect("localhost:2181")
        >>> consumer = zookeeper.Consumer(client, "billing", "billing-1", {"orders": 1})
        >>> partition = BrokerPartition(broker=1, partition=0)
        >>> consumer.claim("orders", partition)
        >>> consumer.commit("orders", partition, 77)
        >>> consumer.offset("orders", partition)
        77
        >>> client.stop()
        >>> client.close()
    """

    def __init__(
        self, client: Any, group: str, id: str, streams: Mapping[str, int], *, timeout: float = TIMEOUT
    ) -> None:
        """Join the group by creating the consumer's node."""
        self._client: Final = client
        self.group: Final = group
        self.id: Final = id
        path = znodes.consumer_path(group, id)
        announce(client, path, msgspec.json.encode(dict(streams)), id, timeout=timeout)

    def claim(
        self, topic: str, partition: BrokerPartition, stream: int = 0, *, timeout: float = TIMEOUT
    ) -> None:
        """Become the owner of a partition after the previous owner has released it."""
        path = znodes.partition_path(self.group, "owners", topic, partition)
        announce(self._client, path, f"{self.id}-{stream}".encode(), self.id, timeout=timeout)

    def release(self, topic: str, partition: BrokerPartition) -> None:
        """Release a partition; do nothing if another session owns the partition."""
        path = znodes.partition_path(self.group, "owners", topic, partition)
        with _errors():
            stat = self._client.exists(path)
            if stat is not None and stat.ephemeralOwner == self._client.client_id[0]:
                self._client.delete(path)

    def offset(self, topic: str, partition: BrokerPartition) -> int | None:
        """Return the committed offset of the group, or None; raise `Malformed` if it is not a number."""
        path = znodes.partition_path(self.group, "offsets", topic, partition)
        with _errors():
            value = _value(self._client, path)
        return None if value is None else znodes.parse_number(value, path)

    def commit(self, topic: str, partition: BrokerPartition, offset: int) -> None:
        """Commit an offset for the group."""
        path = znodes.partition_path(self.group, "offsets", topic, partition)
        with _errors():
            if not _create(self._client, path, str(offset).encode(), self.id):
                self._client.set(path, str(offset).encode())


def _create(client: Any, path: str, value: bytes, creator: str, *, ephemeral: bool = False) -> bool:
    """Create a node and its missing parents; return whether the node is new."""
    from kazoo.exceptions import NodeExistsError, NoNodeError

    while True:
        try:
            client.create(path, value, ephemeral=ephemeral)
        except NodeExistsError:
            return False
        except NoNodeError:
            for parent in znodes.parents(path):
                with suppress(NodeExistsError):  # S2-Z1: the value is "the ID of the node's creator"
                    client.create(parent, creator.encode())
        else:
            return True


def _value(client: Any, path: str, watch: Callable[[object], None] | None = None) -> bytes | None:
    """Return a node's value, or None if the node does not exist."""
    from kazoo.exceptions import NoNodeError

    try:
        value: bytes = client.get(path, watch=watch)[0]
    except NoNodeError:
        return None
    return value


@contextmanager
def _errors() -> Iterator[None]:
    """Yield for a `with` block; raise `Disconnected` in place of kazoo's errors."""
    from kazoo.exceptions import KazooException
    from kazoo.handlers.threading import KazooTimeoutError

    try:
        yield
    except (KazooException, KazooTimeoutError) as error:
        raise Disconnected(f"ZooKeeper: {type(error).__name__} {error}".rstrip()) from error
