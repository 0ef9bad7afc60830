"""`Cluster`: the brokers, topics and leaders that a client knows, and one connection to each broker.

Metadata is stored until a connection fails or a broker answers that the metadata is stale (Kafka's 0.8
protocol guide, "Partitioning and bootstrapping"). Metadata older than ``metadata_max_age`` is requested
again, because a topic may have new partitions. If a request can be answered by any broker, and the first
broker does not respond soon, the client sends the request to a second broker, too.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._broker import connect
from cloudevents_kafka.protocol.client._connection import Connection, first_answer
from cloudevents_kafka.protocol.client._opening import Opening
from cloudevents_kafka.protocol.client._retry import FIRST_PAUSE, MAX_PAUSE, Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.client._socket import AuthenticationFailed, no_response
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
from cloudevents_kafka.protocol.schema import Structure

_Result = TypeVar("_Result")


CREATION_VERSION: Final = 4
"""The first version of Metadata that can request a topic without creating it."""
_CONNECTED_SOON: Final = 0.05  # seconds: most brokers are connected by then
_PATIENCE: Final = 0.5  # seconds without a response, after which another broker is asked, too
_CONNECT_PATIENCE: Final = 2.0  # seconds for a connection; with a broker of 0.9, at least 0.5 are needed


class Cluster:
    """The brokers, topics and leaders of a cluster; only `abort` may be called from another thread."""

    def __init__(self, bootstrap: Sequence[Address], settings: ConnectionSettings) -> None:
        self._bootstrap: Final = tuple(bootstrap)
        self._settings: Final = settings
        self._connections: dict[Address, Connection] = {}
        self._opening: dict[Address, Opening] = {}
        self._addresses: dict[int, Address] = {}
        self._topics: dict[str, messages.MetadataResponseTopic] = {}
        self._next_refresh = Deadline(None)
        self._aborted: Final = threading.Event()
        self.controller_id = -1

    def broker(self, node_id: int, deadline: Deadline) -> Connection:
        """Return the connection to a broker; raise `Disconnected` if the broker is not in the metadata."""
        return self._connect(self._address(node_id, deadline), deadline)

    def broker_at(self, address: Address, deadline: Deadline) -> Connection:
        """Return the connection to the broker at an address; the address may be missing from the metadata."""
        return self._connect(address, deadline)

    def open_broker(self, node_id: int, deadline: Deadline) -> Connection | None:
        """Return the connection to a broker, or None while a thread opens the connection.

        Raises the error of the thread if the thread has failed. Raises `Disconnected` if the broker has
        closed the connection since the last call; the caller then requests metadata again.
        """
        self._check_open()
        address = self._address(node_id, deadline)
        broker = self._connections.get(address)
        if broker is not None and not broker.closed:
            if not broker.ended():
                return broker
            broker.close()
            # The connection was idle, or a request with acks 0 failed: another broker may be the leader now.
            raise Disconnected(f"{address}: the broker has closed the connection")
        is_new = address not in self._opening
        if is_new:
            self._opening[address] = Opening(address, self._settings, deadline)
        if not self._opening[address].done(_CONNECTED_SOON if is_new else 0):
            return None
        self._connections[address] = self._opening.pop(address).result()
        return self._connections[address]

    @property
    def is_opening(self) -> bool:
        """Whether a thread is opening a connection."""
        return bool(self._opening)

    def _address(self, node_id: int, deadline: Deadline) -> Address:
        if node_id not in self._addresses:
            self.fetch_metadata(sorted(self._topics), deadline)
        if (address := self._addresses.get(node_id)) is None:
            raise Disconnected(f"the cluster has no broker with the id {node_id}")
        return address

    def any_broker(self, deadline: Deadline, without: Collection[Address] = ()) -> Connection:
        """Return an open or new connection to any reachable broker that is not in ``without``."""
        self._check_open()
        connected = [one for one in map(self._usable, list(self._connections)) if one is not None]
        # Only a request shows that a broker has stopped, so the broker that answered last comes first.
        connected.sort(key=lambda broker: -broker.answered_at)
        for broker in connected:
            if broker.address not in without and not broker.silence() and broker.throttle.expired():
                return broker
        others = list(self._addresses.values())
        random.shuffle(others)  # so that clients spread over the brokers
        addresses = [one for one in dict.fromkeys((*self._bootstrap, *others)) if one not in without]
        # Brokers that do not answer now are last.
        addresses.sort(key=lambda one: one in self._connections or one in self._opening)
        return self._first_reached(addresses, deadline)

    def _first_reached(self, addresses: list[Address], deadline: Deadline) -> Connection:
        """Return a connection to one of the addresses, which are tried in rounds with growing timeouts."""
        failures: dict[Address, str] = {}
        patience = _CONNECT_PATIENCE
        while addresses:
            silent = []
            for number, address in enumerate(addresses):
                # S0-N7: an address may be dead, and swallow packets: leave time for other addresses.
                others, remaining = len(addresses) - 1, deadline.remaining()
                share = remaining and remaining / (len(addresses) - number)
                limit = Deadline(Deadline(share).at_most(patience) if others else share)
                try:
                    return self._connect(address, limit)
                except AuthenticationFailed:
                    raise  # the other brokers would refuse too, and might lock the user out
                except (ClientError, Malformed) as error:
                    failures[address] = str(error)
                    if isinstance(error, DeadlineExceeded) and not deadline.expired():
                        silent.append(address)
            addresses, patience = silent, 2 * patience
        kind = DeadlineExceeded if deadline.expired() else Disconnected
        texts = "; ".join(failures.values()) or "the address list is empty"
        raise kind(f"no broker can be reached: {texts}")

    def ask(self, question: Callable[[Connection], Structure], deadline: Deadline) -> Any:
        """Return any broker's response to a request; if a broker does not respond soon, ask other brokers."""
        asked: dict[Connection, int] = {}
        while True:
            limit = Deadline(deadline.at_most(_CONNECT_PATIENCE)) if asked else deadline
            try:
                broker = self.any_broker(limit, [one.address for one in asked])
                asked[broker] = broker.send(question(broker), deadline)
            except (Disconnected, DeadlineExceeded):
                if not asked:
                    raise
            if (answer := first_answer(asked, Deadline(deadline.at_most(_PATIENCE)))) is not None:
                return answer
            if deadline.expired():
                for broker in asked:
                    broker.close()
                silent = ", ".join(str(broker.address) for broker in asked)
                raise DeadlineExceeded(no_response(silent, deadline))

    def _connect(self, address: Address, deadline: Deadline) -> Connection:
        self._check_open()
        if (broker := self._usable(address)) is None:
            self._connections[address] = broker = connect(address, self._settings, deadline)
        return broker

    def _usable(self, address: Address) -> Connection | None:
        """Return the open connection to an address, or None if there is no open connection."""
        broker = self._connections.get(address)
        if broker is not None and broker.ended():
            broker.close()
            return None
        return broker

    def fetch_metadata(
        self, topics: Sequence[str] | None, deadline: Deadline, *, create: bool = False
    ) -> messages.MetadataResponse:
        """Request the metadata of topics (None means all) from any broker; store and return the metadata.

        With ``create``, a broker with auto.create.topics.enable creates missing topics. Consumers do not set
        ``create``, because the topic that a consumer reads may have been deleted. A broker before 0.11
        creates missing topics even without ``create``.
        """
        named = None if topics is None else [messages.MetadataRequestTopic(name=name) for name in topics]

        def question(broker: Connection) -> messages.MetadataRequest:
            version = broker.version(messages.MetadataRequest)
            if named is None and version == 0:
                # S0-A1: "If empty the request will yield metadata for all topics"
                return messages.MetadataRequest(topics=[])
            creates = create or version < CREATION_VERSION
            return messages.MetadataRequest(topics=named, allow_auto_topic_creation=creates)

        response: messages.MetadataResponse = self.ask(question, deadline)
        if response.brokers:  # 0.8.2 lists no broker while it creates a topic
            self._addresses = {b.node_id: Address(b.host, b.port) for b in response.brokers}
        if not self._topics:
            self._next_refresh = Deadline(self._settings.metadata_max_age)
        self._topics |= {t.name: t for t in response.topics if t.name is not None}
        self.controller_id = response.controller_id
        return response

    def invalidate(self, topic: str | None = None) -> None:
        """Discard the metadata of a topic, or of all topics."""
        if topic is None:
            self._topics.clear()
        else:
            self._topics.pop(topic, None)

    def partitions(self, topic: str, deadline: Deadline, *, create: bool = False) -> list[int]:
        """Return a topic's partitions; wait while a new topic has no leaders."""
        return self.retry(
            f"the partitions of {topic}",
            lambda: self.current_partitions(topic, deadline, create=create),
            deadline,
        )

    def current_partitions(
        self, topic: str, deadline: Deadline, *, with_leader: bool = False, create: bool = False
    ) -> list[int]:
        """Return a topic's partitions, or only the partitions that have a leader.

        Raises `BrokerError` if the topic has no partitions now.
        """
        found = self._topic(topic, deadline, create=create).partitions
        return sorted(part.partition_index for part in found if part.leader_id >= 0 or not with_leader)

    def leader(self, topic: str, partition: int, deadline: Deadline, *, create: bool = False) -> int:
        """Return the id of a partition's leader; raise `BrokerError` if the partition has no leader now."""
        metadata = self._topic(topic, deadline, create=create)
        for part in metadata.partitions:
            if part.partition_index == partition:
                if part.leader_id >= 0:  # S0-A4: during an election "this id will be -1"
                    return part.leader_id
                raise BrokerError(part.error_code or ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}[{partition}]")
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{topic}[{partition}]",
            hint=f"the topic has the partitions {_range(metadata)}",
        )

    def _topic(self, topic: str, deadline: Deadline, *, create: bool) -> messages.MetadataResponseTopic:
        metadata = self._topics.get(topic)
        if metadata is None or metadata.error_code or not metadata.partitions:
            self.fetch_metadata([topic], deadline, create=create)
            metadata = self._topics.get(topic)
        elif self._next_refresh.expired():
            with suppress(ProtocolError):
                self._refresh(deadline)
            metadata = self._topics.get(topic)
        subject = f"topic {topic}"  # logs may mask a name that looks like the name of a secret
        if metadata is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject)
        # Brokers that have just started answer with error code 38 for any topic.
        if metadata.error_code == ErrorCode.INVALID_REPLICATION_FACTOR:
            raise BrokerError(
                ErrorCode.LEADER_NOT_AVAILABLE,
                subject,
                hint="too few brokers have registered to create the topic (38)",
            )
        if metadata.error_code:
            raise BrokerError(metadata.error_code, subject)
        if not metadata.partitions:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, subject)
        return metadata

    def known_partitions(self, topics: Sequence[str], deadline: Deadline) -> dict[str, list[int]]:
        """Return each topic's partitions ([] for a missing topic); request missing or old metadata first."""
        if self._next_refresh.expired():
            self._refresh(deadline)
        missing = [
            topic for topic in topics if topic not in self._topics or not self._topics[topic].partitions
        ]
        if missing:
            self.fetch_metadata(missing, deadline)
        found = {topic: self._topics[topic].partitions for topic in topics if topic in self._topics}
        return {topic: sorted(part.partition_index for part in found.get(topic, ())) for topic in topics}

    def _refresh(self, deadline: Deadline) -> None:
        """Request the metadata of all topics again; if a topic has an error, keep its old metadata."""
        self._next_refresh = Deadline(self._settings.metadata_max_age)
        former = dict(self._topics)
        self.fetch_metadata(sorted(former), deadline)
        self._topics |= {name: one for name, one in former.items() if self._topics[name].error_code}

    def retry(
        self, action: str, attempt: Callable[[], _Result], deadline: Deadline, *, unknown_errors: bool = False
    ) -> _Result:
        """Call a function until it succeeds, and return its result.

        After a retriable error, metadata is requested again, and the function is called again after a pause,
        until the deadline. The pauses between calls grow. An error that is not retriable is raised at once.
        UNKNOWN_SERVER_ERROR is retriable if ``unknown_errors`` is true.
        """
        pause, last = FIRST_PAUSE, None
        while True:
            try:
                return attempt()
            except ProtocolError as error:
                if not is_retriable(error, unknown_errors=unknown_errors):
                    raise
                if isinstance(error, DeadlineExceeded) and deadline.expired():
                    if last is None:
                        raise
                    raise DeadlineExceeded(f"{error}; the last error: {last}") from last
                self.invalidate()  # S0-N8: a socket error or a broker's answer shows stale metadata
                last = error
            self.sleep(deadline.at_most(pause))
            try:
                deadline.check(action)
            except DeadlineExceeded as expired:
                raise DeadlineExceeded(f"{expired}; the last error: {last}") from last
            pause = min(2 * pause, MAX_PAUSE)

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds; raise `ClientError` if `abort` was called."""
        self._aborted.wait(seconds)
        self._check_open()

    def abort(self) -> None:
        """Make the current calls of other threads fail now, and make all later calls fail."""
        self._aborted.set()
        for broker in list(self._connections.values()):
            broker.abort()
        for opening in list(self._opening.values()):
            opening.abort()

    def _check_open(self) -> None:
        if self._aborted.is_set():
            raise ClientError(
                "the connections were closed during the call; the brokers may have processed the request"
            )

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
