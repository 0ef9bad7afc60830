"""`Cluster`: the brokers, topics and leaders that a client has learned, one connection to each broker.

Metadata is requested once, and kept until a connection fails or a broker answers that it is stale
(guide, "Partitioning and bootstrapping"); nothing is polled. Any bootstrap address may be dead.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from cloudevents_kafka.protocol.client._broker import connect
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._opening import Opening
from cloudevents_kafka.protocol.client._retry import FIRST_PAUSE, MAX_PAUSE, Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.client._socket import Address, AuthenticationFailed
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    DeadlineExceeded,
    Disconnected,
    Malformed,
    ProtocolError,
)
from cloudevents_kafka.protocol.messages import topics as messages

_Result = TypeVar("_Result")


_CONNECTED_SOON: Final = 0.05  # seconds: most brokers are connected by then


class Cluster:
    """Brokers, topics and leaders; for one thread, except `abort`."""

    def __init__(self, bootstrap: Sequence[Address], settings: ConnectionSettings) -> None:
        self._bootstrap: Final = tuple(bootstrap)
        self._settings: Final = settings
        self._connections: dict[Address, Connection] = {}
        self._opening: dict[Address, Opening] = {}
        self._addresses: dict[int, Address] = {}
        self._topics: dict[str, messages.MetadataResponseTopic] = {}
        self._aborted: Final = threading.Event()
        self.controller_id = -1

    def broker(self, node_id: int, deadline: Deadline) -> Connection:
        """Return the connection to a broker; raise `Disconnected` if the metadata does not have it."""
        return self._connect(self._address(node_id, deadline), deadline)

    def open_broker(self, node_id: int, deadline: Deadline) -> Connection | None:
        """Return the connection to a broker; None while a thread opens it. Raises the error of the thread."""
        address = self._address(node_id, deadline)
        broker = self._connections.get(address)
        if broker is not None and not broker.closed:
            return broker
        self._check_open()
        is_new = address not in self._opening
        if is_new:
            self._opening[address] = Opening(address, self._settings, deadline)
        if not self._opening[address].done(_CONNECTED_SOON if is_new else 0):
            return None
        self._connections[address] = self._opening.pop(address).result()
        return self._connections[address]

    @property
    def is_opening(self) -> bool:
        """Whether a thread opens a connection."""
        return bool(self._opening)

    def _address(self, node_id: int, deadline: Deadline) -> Address:
        if node_id not in self._addresses:
            self.fetch_metadata(sorted(self._topics), deadline)
        if (address := self._addresses.get(node_id)) is None:
            raise Disconnected(f"the cluster has no broker with the id {node_id}")
        return address

    def any_broker(self, deadline: Deadline) -> Connection:
        """Return an open connection, or one to the first broker that can be reached."""
        self._check_open()
        connected = [broker for broker in self._connections.values() if not broker.closed]
        # One that has stopped to answer is not noticed before it is asked: ask the one that answered last.
        connected.sort(key=lambda broker: -broker.answered_at)
        if (broker := next((one for one in connected if not one.silence()), None)) is not None:
            return broker
        failures: list[str] = []
        others = list(self._addresses.values())
        random.shuffle(others)  # so that clients spread over the brokers
        addresses = list(dict.fromkeys((*self._bootstrap, *others)))
        # Last those that do not answer now.
        addresses.sort(key=lambda one: one in self._connections or one in self._opening)
        for number, address in enumerate(addresses):
            remaining = deadline.remaining()
            # S0-N7: an address may be dead, and swallow packets: leave time for the others.
            share = None if remaining is None else remaining / (len(addresses) - number)
            try:
                return self._connect(address, Deadline(share))
            except AuthenticationFailed:
                raise  # the other brokers would refuse too, and might lock the user out
            except (ClientError, Malformed) as error:
                failures.append(str(error))
        kind = DeadlineExceeded if deadline.expired() else Disconnected
        raise kind(f"no broker can be reached: {'; '.join(failures) or 'the address list is empty'}")

    def _connect(self, address: Address, deadline: Deadline) -> Connection:
        self._check_open()
        broker = self._connections.get(address)
        if broker is None or broker.closed:
            self._connections[address] = broker = connect(address, self._settings, deadline)
        return broker

    def fetch_metadata(self, topics: Sequence[str] | None, deadline: Deadline) -> messages.MetadataResponse:
        """Request the metadata of topics (None: all) from any broker, keep it and return it."""
        broker = self.any_broker(deadline)
        named = None if topics is None else [messages.MetadataRequestTopic(name=name) for name in topics]
        if named is None and broker.version(messages.MetadataRequest) == 0:
            named = []  # S0-A1: "If empty the request will yield metadata for all topics"
        request = messages.MetadataRequest(topics=named)
        response: messages.MetadataResponse = broker.request(request, deadline)
        if response.brokers:  # 0.8.2 lists no broker while it creates a topic
            self._addresses = {b.node_id: Address(b.host, b.port) for b in response.brokers}
        self._topics |= {t.name: t for t in response.topics if t.name is not None}
        self.controller_id = response.controller_id
        return response

    def invalidate(self) -> None:
        self._topics.clear()

    def partitions(self, topic: str, deadline: Deadline) -> list[int]:
        """Return a topic's partitions; wait while a new topic has no leaders."""
        return self.retry(
            f"the partitions of {topic}", lambda: self.current_partitions(topic, deadline), deadline
        )

    def current_partitions(self, topic: str, deadline: Deadline) -> list[int]:
        """Return a topic's partitions; raise `BrokerError` if it has none now."""
        return sorted(part.partition_index for part in self._topic(topic, deadline).partitions)

    def leader(self, topic: str, partition: int, deadline: Deadline) -> int:
        """Return the id of a partition's leader; raise `BrokerError` if it has none now."""
        metadata = self._topic(topic, deadline)
        for part in metadata.partitions:
            if part.partition_index == partition:
                if part.leader_id >= 0:  # S0-A4: during an election "this id will be -1"
                    return part.leader_id
                raise BrokerError(part.error_code or ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}[{partition}]")
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{topic}[{partition}]",
            f"the topic has the partitions {_range(metadata)}",
        )

    def _topic(self, topic: str, deadline: Deadline) -> messages.MetadataResponseTopic:
        metadata = self._topics.get(topic)
        if metadata is None or metadata.error_code or not metadata.partitions:
            self.fetch_metadata([topic], deadline)
            metadata = self._topics.get(topic)
        if metadata is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic)
        # Brokers that have just started answer 38 for any topic.
        if metadata.error_code == ErrorCode.INVALID_REPLICATION_FACTOR:
            raise BrokerError(
                ErrorCode.LEADER_NOT_AVAILABLE, topic, "too few brokers have registered to create it (38)"
            )
        if metadata.error_code:
            raise BrokerError(metadata.error_code, topic)
        if not metadata.partitions:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, topic)
        return metadata

    def retry(
        self, action: str, attempt: Callable[[], _Result], deadline: Deadline, *, unknown_errors: bool = False
    ) -> _Result:
        """Call a function until it succeeds, and return its result.

        Pauses grow, and metadata is requested again, until the deadline. An error that is not
        retriable is raised at once; UNKNOWN_SERVER_ERROR is retriable if ``unknown_errors``.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                return attempt()
            except ProtocolError as error:
                if not is_retriable(error, unknown_errors=unknown_errors):
                    raise
                if isinstance(error, DeadlineExceeded) and deadline.expired():
                    raise
                self.invalidate()  # S0-N8: metadata is kept until a socket or a broker says it is stale
                last = error
            self._sleep(deadline.at_most(pause))
            try:
                deadline.check(action)
            except DeadlineExceeded as expired:
                raise DeadlineExceeded(f"{expired}; the last error: {last}") from last
            pause = min(2 * pause, MAX_PAUSE)

    def _sleep(self, seconds: float) -> None:
        self._aborted.wait(seconds)
        self._check_open()

    def abort(self) -> None:
        """Make calls of other threads fail now, and all later calls."""
        self._aborted.set()
        for broker in list(self._connections.values()):
            broker.abort()
        for opening in list(self._opening.values()):
            opening.abort()

    def _check_open(self) -> None:
        if self._aborted.is_set():
            raise ClientError("closed during the call; the brokers may have processed the request")

    def clone(self) -> Cluster:
        """Return a cluster with the same addresses and separate connections."""
        addresses = dict.fromkeys((*self._addresses.values(), *self._bootstrap))
        return Cluster(list(addresses), self._settings)

    def close(self) -> None:
        for broker in self._connections.values():
            broker.close()
        for opening in self._opening.values():
            opening.close()
        self._connections.clear()
        self._opening.clear()


def _range(topic: messages.MetadataResponseTopic) -> str:
    numbers = sorted(part.partition_index for part in topic.partitions)
    return f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
