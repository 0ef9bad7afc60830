"""WireBroker: Kafka's protocol, answered by threads of the test's own process."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from cloudevents_kafka.protocol.records import Record
from cloudevents_kafka.testing.wire_broker.broker_versions import Dialect, dialect_of
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.cluster import Cluster, Node, Settings
from cloudevents_kafka.testing.wire_broker.committed_offsets import Position
from cloudevents_kafka.testing.wire_broker.connection import Desk, Session
from cloudevents_kafka.testing.wire_broker.faults import Faults
from cloudevents_kafka.testing.wire_broker.group import Group
from cloudevents_kafka.testing.wire_broker.listener import Connection, Listener

_HOST: Final = "127.0.0.1"


class WireBroker:
    """A Kafka broker, or a small cluster of them, for tests: all in memory, all on 127.0.0.1.

    It keeps nothing, replicates nothing and knows no transactions; what it does, it does as
    the broker does that it ``plays``, one of `dialects.DIALECTS`::

        with WireBroker(plays="0.10", brokers=2) as broker:
            client = connect(broker.bootstrap_servers)
            broker.faults.add(faults.drop_after(), api=0)

    ``users`` (password by name) makes clients log in by PLAIN or SCRAM, ``tls`` makes them
    speak TLS. `calls` has all requests that were understood, `notes` why connections were
    closed on others. What looks into a topic raises `Refused` where there is none.
    """

    def __init__(
        self,
        plays: str | Dialect = "4.3",
        *,
        brokers: int = 1,
        settings: Settings | None = None,
        users: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Prepare; ValueError for a broker that cannot be played. `start`, or ``with``, listens."""
        if brokers < 1:
            raise ValueError(f"a cluster of {brokers} brokers; it has one at least")
        self._cluster: Final = Cluster(settings or Settings())
        self._desk: Final = Desk(self._cluster, dialect_of(plays), users or {})
        self._count: Final = brokers
        self._tls: Final = tls
        self._listeners: dict[int, Listener] = {}

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def start(self) -> None:
        """Listen, one port for each broker; their ids count from 1."""
        for id in range(1, self._count + 1):
            listener = Listener(self._serve(id), name=f"WireBroker {id}", tls=self._tls)
            self._listeners[id] = listener
            self._cluster.nodes[id] = Node(id, _HOST, listener.port)

    def stop(self) -> None:
        """Close all connections and end all threads; a second time does nothing."""
        self._cluster.close()
        while self._listeners:
            self._listeners.popitem()[1].stop()

    def _serve(self, id: int) -> Callable[[Connection], None]:
        return lambda connection: Session(self._desk, self._cluster.nodes[id], connection).serve()

    @property
    def nodes(self) -> list[Node]:
        """The brokers: id, host and port."""
        return list(self._cluster.nodes.values())

    @property
    def bootstrap_servers(self) -> str:
        """The addresses, as clients want them."""
        return ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self._desk.faults

    @property
    def notes(self) -> list[str]:
        """Why connections were closed, or requests not answered, other than by a fault."""
        return list(self._desk.notes)

    def calls(self, api: int | None = None) -> list[Call]:
        """Return the requests seen so far, those of one API or all, oldest first; the last 10,000."""
        return [call for call in list(self._desk.calls) if api in {None, call.key}]

    def hang_up(self) -> None:
        """Close all connections, and go on listening."""
        for listener in self._listeners.values():
            listener.hang_up()

    @contextmanager
    def _changing(self) -> Iterator[Cluster]:
        with self._cluster.changed:
            yield self._cluster
            self._cluster.changed.notify_all()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic; partitions are led by the brokers in turn."""
        with self._changing() as cluster:
            cluster.create(name, partitions)

    def topic_id(self, name: str) -> uuid.UUID:
        """Return a topic's id; KeyError if there is no such topic."""
        with self._changing() as cluster:
            return cluster.topics[name].id

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Let another broker lead a partition; -1 leaves it without a leader."""
        with self._changing() as cluster:
            cluster.move_leader(topic, partition, to)

    def move_coordinator(self, group: str, to: int) -> None:
        """Let another broker keep a group."""
        with self._changing() as cluster:
            cluster.move_coordinator(group, to)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Forget the records before an offset."""
        with self._changing() as cluster:
            cluster.partition(topic, partition).log.delete_before(before)

    def rebalance(self, group: str) -> None:
        """Have the members of a group join again."""
        with self._changing() as cluster:
            cluster.groups.rebalance(group)

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """Return what a partition holds."""
        with self._changing() as cluster:
            return list(cluster.partition(topic, partition).log.records())

    def group(self, group: str) -> Group:
        """Return a group, to look at: it changes while one looks."""
        with self._changing() as cluster:
            return cluster.groups.find(group)

    def positions(self, group: str) -> dict[tuple[str, int], Position]:
        """Return what a group has committed, by topic and partition."""
        with self._changing() as cluster:
            return dict(cluster.positions.of(group))
