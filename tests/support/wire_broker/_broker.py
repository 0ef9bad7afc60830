"""`WireBroker`: answers Kafka's protocol from threads of the test's process."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final, Self

from cloudevents_kafka.protocol.records import Record
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._cluster import Cluster, CommittedOffsets, Node, Settings
from tests.support.wire_broker._connection import Connection, ServerState
from tests.support.wire_broker._group import Group
from tests.support.wire_broker._listener import ClientSocket, Listener
from tests.support.wire_broker._releases import RELEASES, Release
from tests.support.wire_broker.faults import Faults

_HOST: Final = "127.0.0.1"


class WireBroker:
    """A Kafka broker, or a small cluster of them, for tests: in memory, on 127.0.0.1.

    It answers as the broker of ``release``, one of `RELEASES`, also to odd requests::

        with WireBroker("0.10", brokers=2) as broker:
            client = connect(broker.bootstrap_servers)
            broker.faults.add(faults.drop_after(), api=ApiKey.PRODUCE)

    It stores nothing on disk and replicates nothing, and the settings of topics that only a disk needs
    are checked, but have no effect. What it does not have it refuses for good:

    * Transactions: a transactional id is answered with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and what
      is wrong, so that producers end at once instead of trying until their timeout.
    * Groups of the new protocol (KIP-848): a heartbeat is answered with UNSUPPORTED_VERSION, as by a real
      broker that has only classic groups; consumers with ``group.protocol=consumer`` end with an error.
      librdkafka sends none to 3.9, whose version of it is too old, and waits for ever, as with a real 3.9.
    * Share groups and other APIs that `Release.versions` does not list: ApiVersions does not list them
      either, and a request ends the connection; `connection_errors` names the API.
    * Sessions of Fetch (KIP-227): each response is complete, as of a broker without room for sessions.

    With ``users`` (passwords by name) clients must log in by PLAIN or SCRAM; with ``tls`` they
    must use TLS. `calls` returns the requests that it understood; `connection_errors` has the
    reasons for connections that it closed. Methods that look into a topic raise `ApiError` if
    the topic does not exist.

    Examples:
        >>> from cloudevents_kafka.protocol import Client
        >>> from cloudevents_kafka.protocol.api_keys import ApiKey
        >>> from wire_broker import WireBroker, faults
        >>> with WireBroker("0.10", brokers=2) as broker:
        ...     fault = broker.faults.add(faults.drop_after(), api=ApiKey.METADATA)
        ...     with Client(broker.bootstrap_servers) as client:
        ...         client.partitions("orders")  # is tried again
        [0]
    """

    def __init__(
        self,
        release: str | Release = "4.3",
        *,
        brokers: int = 1,
        settings: Settings | None = None,
        users: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Prepare the cluster; raise `ValueError` if ``release`` is unknown. `start` or ``with`` listens."""
        if brokers < 1:
            raise ValueError(f"brokers must be at least 1, got {brokers}")
        if isinstance(release, str):
            if release not in RELEASES:
                raise ValueError(f"release must be one of {', '.join(RELEASES)}, got {release!r}")
            release = RELEASES[release]
        self._cluster: Final = Cluster(settings or Settings(), release)
        self._state: Final = ServerState(self._cluster, release, users or {})
        self._count: Final = brokers
        self._tls: Final = tls
        self._listeners: dict[int, Listener] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, each broker on a port of its own; broker ids count from 1."""
        for id in range(1, self._count + 1):
            listener = Listener(partial(self._serve, id), name=f"WireBroker {id}", tls=self._tls)
            self._listeners[id] = listener
            self._cluster.nodes[id] = Node(id, _HOST, listener.port)

    def stop(self) -> None:
        """Close all connections and end all threads; a second call does nothing."""
        self._cluster.changes.close()
        while self._listeners:
            self._listeners.popitem()[1].stop()

    def _serve(self, id: int, client: ClientSocket) -> None:
        Connection(self._state, self._cluster.nodes[id], client).serve()

    @property
    def nodes(self) -> list[Node]:
        """The brokers: id, host and port."""
        return list(self._cluster.nodes.values())

    @property
    def bootstrap_servers(self) -> str:
        """The addresses, as ``host:port,host:port``."""
        return ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    @property
    def faults(self) -> Faults:
        """The planned faults."""
        return self._state.faults

    @property
    def connection_errors(self) -> list[str]:
        """Why connections were closed or requests not answered, except by a fault."""
        return list(self._state.connection_errors)

    def calls(self, api: int | None = None) -> list[Call]:
        """Return the last 10,000 requests, oldest first; ``api`` selects those of one API key."""
        return [call for call in list(self._state.calls) if api in {None, call.key}]

    def close_connections(self) -> None:
        """Close all connections, and keep listening."""
        for listener in self._listeners.values():
            listener.close_connections()

    @contextmanager
    def _changing(self) -> Iterator[Cluster]:
        with self._cluster.changes:
            yield self._cluster
            self._cluster.changes.notify_all()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic; the brokers lead its partitions in turn."""
        with self._changing() as cluster:
            cluster.create_topic(name, partitions)

    def add_partitions(self, topic: str, count: int) -> None:
        """Add partitions to a topic, so that it has ``count``."""
        with self._changing() as cluster:
            cluster.add_partitions(topic, count)

    def topic_id(self, name: str) -> uuid.UUID:
        """Return a topic's id; raise `KeyError` if the topic does not exist."""
        with self._changing() as cluster:
            return cluster.topics[name].id

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make another broker the leader of a partition; -1 leaves it without a leader."""
        with self._changing() as cluster:
            cluster.move_leader(topic, partition, to)

    def move_coordinator(self, group: str, to: int) -> None:
        """Make another broker the coordinator of a group."""
        with self._changing() as cluster:
            cluster.move_coordinator(group, to)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset."""
        with self._changing() as cluster:
            cluster.partition(topic, partition).log.delete_before(before)

    def rebalance(self, group: str) -> None:
        """Make all members of a group join again."""
        with self._changing() as cluster:
            if cluster.group(group).members:
                cluster.group(group).rebalance()

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """Return the records of a partition."""
        with self._changing() as cluster:
            return list(cluster.partition(topic, partition).log.records())

    def group(self, group: str) -> Group:
        """Return a group; it keeps changing while you look at it."""
        with self._changing() as cluster:
            return cluster.group(group)

    def committed_offsets(self, group: str) -> CommittedOffsets:
        """Return a group's committed offsets, by topic and partition."""
        with self._changing() as cluster:
            return dict(cluster.committed_offsets[False, group])
