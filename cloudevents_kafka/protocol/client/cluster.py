"""The cluster as a client knows it: brokers, leaders, one connection to each broker it needs.

Metadata is asked for once and kept until a socket fails or a broker says that it does
not hold what it was asked for (guide, "Partitioning and bootstrapping"); there is no
polling. Any of the bootstrap addresses may be dead.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from cloudevents_kafka.protocol.client import api_versions
from cloudevents_kafka.protocol.client.capture import Trace
from cloudevents_kafka.protocol.client.connection import Address, Connection
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.sasl import log_in
from cloudevents_kafka.protocol.client.security import AuthenticationFailed, Security
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    DeadlineExceeded,
    Disconnected,
    Malformed,
    ProtocolError,
)
from cloudevents_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from cloudevents_kafka.protocol.schema import Structure, Versions

_Result = TypeVar("_Result")

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_STALE_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""The errors that mean that the client's metadata may be stale."""


class Settings(NamedTuple):
    """What all connections of a client share."""

    client_id: str | None = "cloudevents-kafka"
    security: Security = Security()
    most: int = 100 * 1024 * 1024
    trace: Trace | None = None
    ask_versions: bool = True
    """Whether to ask brokers for their versions; brokers of 0.8 and 0.9 need not be asked."""


class Broker(NamedTuple):
    """A connection, and what is spoken over it."""

    connection: Connection
    versions: Mapping[int, Versions]

    def request(self, message: Structure, deadline: Deadline, *, most: int | None = None) -> Structure:
        """Send a request in the best version, and return its answer."""
        return self.connection.request(message, self.version(type(message), most=most), deadline)

    def version(self, structure: type[Structure], *, most: int | None = None) -> int:
        """Return the best version of a request; `Unsupported` if there is none."""
        return api_versions.choose_version(structure, self.versions, most=most)


class Cluster:
    """Brokers, topics and leaders; not for several threads at once."""

    def __init__(self, bootstrap: Sequence[Address], settings: Settings) -> None:
        """Take the addresses to begin with; nothing is connected yet."""
        self._bootstrap: Final = tuple(bootstrap)
        self._settings: Final = settings
        self._open: dict[Address, Broker] = {}
        self._addresses: dict[int, Address] = {}
        self._topics: dict[str, MetadataResponseTopic] = {}
        self._ended: Final = threading.Event()
        self.controller_id = -1

    # --- brokers -------------------------------------------------------------------------

    def broker_at(self, address: Address, deadline: Deadline) -> Broker:
        """Return the connection to an address, made if there is none."""
        self._check_going()
        known = self._open.get(address)
        if known is not None and not known.connection.closed:
            return known
        self._open[address] = broker = connect(address, self._settings, deadline)
        return broker

    def broker(self, node_id: int, deadline: Deadline) -> Broker:
        """Return the connection to a broker; `Disconnected` where metadata has no such broker."""
        if node_id not in self._addresses:
            self.refresh((), deadline)
        if (address := self._addresses.get(node_id)) is None:
            raise Disconnected(f"no broker of the id {node_id} is known")
        return self.broker_at(address, deadline)

    def any_broker(self, deadline: Deadline) -> Broker:
        """Return a connection to some broker: one that is open, else the first that can be reached."""
        self._check_going()
        for broker in self._open.values():
            if not broker.connection.closed:
                return broker
        failures: list[str] = []
        known = list(self._addresses.values())
        random.shuffle(known)  # not all clients to the same broker
        addresses = list(dict.fromkeys((*self._bootstrap, *known)))
        for number, address in enumerate(addresses):
            share = deadline.left()
            # A dead address may swallow packets; leave time for the others.
            some = Deadline(None if share is None else share / (len(addresses) - number))
            try:
                return self.broker_at(address, some)
            except AuthenticationFailed:
                raise  # the others would say the same, and might lock the user out
            except (ClientError, Malformed) as error:
                failures.append(str(error))
        tried = "; ".join(failures) or "no address was given"
        kind = DeadlineExceeded if deadline.over() else Disconnected
        raise kind(f"no broker can be reached: {tried}")

    # --- metadata ------------------------------------------------------------------------

    def metadata(self, topics: Sequence[str] | None, deadline: Deadline) -> MetadataResponse:
        """Ask any broker about topics, or about all of them; keep what it says."""
        broker = self.any_broker(deadline)
        version = broker.version(MetadataRequest)
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        asked = MetadataRequest(topics=[] if named is None and version == 0 else named)
        answer = broker.connection.request(asked, version, deadline)
        assert isinstance(answer, MetadataResponse)
        if answer.brokers:  # 0.8.2 names none while it makes a topic
            self._addresses = {b.node_id: Address(b.host, b.port) for b in answer.brokers}
        self._topics |= {t.name: t for t in answer.topics if t.name is not None}
        self.controller_id = answer.controller_id
        return answer

    def refresh(self, topics: Sequence[str], deadline: Deadline) -> None:
        """Ask again, about these topics and those known."""
        self.metadata(sorted({*topics, *self._topics}), deadline)

    def forget(self) -> None:
        """Take what is known of topics for old: it will be asked for again."""
        self._topics.clear()

    def partitions(self, topic: str, deadline: Deadline) -> list[int]:
        """Return a topic's partitions; waits while a new topic has no leaders."""
        return self.retrying(
            f"the partitions of {topic}", lambda: self.partitions_now(topic, deadline), deadline
        )

    def partitions_now(self, topic: str, deadline: Deadline) -> list[int]:
        """Return a topic's partitions; `BrokerError` where there are none now."""
        return sorted(part.partition_index for part in self._topic(topic, deadline).partitions)

    def leader(self, topic: str, partition: int, deadline: Deadline) -> int:
        """Return the id of a partition's leader; `BrokerError` where it has none now."""
        found = self._topic(topic, deadline)
        for part in found.partitions:
            if part.partition_index == partition:
                if part.leader_id >= 0:
                    return part.leader_id
                raise BrokerError(part.error_code or ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}[{partition}]")
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{topic}[{partition}]",
            f"the topic has the partitions {_span(found)}",
        )

    def _topic(self, topic: str, deadline: Deadline) -> MetadataResponseTopic:
        known = self._topics.get(topic)
        if known is None or known.error_code or not known.partitions:
            self.metadata([topic], deadline)
            known = self._topics.get(topic)
        if known is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic)
        # Brokers that have just started answer so for any topic.
        if known.error_code == ErrorCode.INVALID_REPLICATION_FACTOR:
            raise BrokerError(
                ErrorCode.LEADER_NOT_AVAILABLE, topic, "it knows too few brokers to make it (38)"
            )
        if known.error_code:
            raise BrokerError(known.error_code, topic)
        if not known.partitions:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, topic)
        return known

    # --- trying again --------------------------------------------------------------------

    def retrying(
        self, doing: str, attempt: Callable[[], _Result], deadline: Deadline, *, untold: bool = False
    ) -> _Result:
        """Try until it succeeds, with pauses that grow, metadata asked for anew, until the deadline.

        Errors that no new try can mend are raised at once; at the deadline, the last one is.
        Those that a broker tells no reason for are tried again if ``untold``.
        """
        for pause in _pauses():
            try:
                return attempt()
            except ProtocolError as error:
                if not (worth_another_try(error) or (untold and is_untold(error))) or deadline.over():
                    raise
                self.forget()
                last = error
            self.rest(deadline.at_most(pause))
            try:
                deadline.check(doing)
            except DeadlineExceeded as over:
                raise DeadlineExceeded(f"{over}; the last try: {last}") from last
        raise AssertionError("pauses do not end")

    def rest(self, seconds: float) -> None:
        """Sleep; a ClientError as soon as another thread has called `end`."""
        self._ended.wait(seconds)
        self._check_going()

    def end(self) -> None:
        """Let whatever goes on in another thread fail at once, and all that is begun later."""
        self._ended.set()
        for broker in list(self._open.values()):
            broker.connection.abort()

    def another(self) -> Cluster:
        """Return a cluster of the same addresses, with connections of its own."""
        return Cluster(list(dict.fromkeys((*self._addresses.values(), *self._bootstrap))), self._settings)

    def _check_going(self) -> None:
        if self._ended.is_set():
            raise ClientError("closed while it was going on; what was asked for may still have been done")

    def close(self) -> None:
        """Close all connections."""
        for broker in self._open.values():
            broker.connection.close()
        self._open.clear()


def connect(address: Address, settings: Settings, deadline: Deadline) -> Broker:
    """Open a connection, log in, and learn what the broker speaks."""
    connection = _connection(address, settings, deadline)
    if not settings.ask_versions:
        return Broker(_ready(connection, settings, api_versions.OLD, deadline), api_versions.OLD)
    logs_in = settings.security.sasl is not None
    try:
        versions = api_versions.ask(connection, deadline, logs_in=logs_in)
    except Disconnected:  # 0.8 hangs up each time; others once, as they stop or restart
        connection = _connection(address, settings, deadline)
        try:
            versions = api_versions.ask(connection, deadline, logs_in=logs_in)
        except Disconnected:
            versions = api_versions.OLDEST
    if connection.closed:
        connection = _connection(address, settings, deadline)
        api_versions.greet(connection, deadline)
    return Broker(_ready(connection, settings, versions, deadline), versions)


def _connection(address: Address, settings: Settings, deadline: Deadline) -> Connection:
    return Connection(
        address,
        deadline,
        client_id=settings.client_id,
        security=settings.security,
        most=settings.most,
        trace=settings.trace,
    )


def _ready(
    connection: Connection, settings: Settings, versions: Mapping[int, Versions], deadline: Deadline
) -> Connection:
    if settings.security.sasl is not None:
        try:
            log_in(connection, settings.security.sasl, versions, deadline)
        except ProtocolError:
            connection.close()
            raise
    return connection


def worth_another_try(error: ProtocolError) -> bool:
    """Tell whether an error may be gone after a while, with fresh metadata."""
    if isinstance(error, BrokerError):
        return error.retriable
    return isinstance(error, Disconnected)


def is_untold(error: ProtocolError) -> bool:
    """Tell whether a broker gave no reason, as 0.8 does while a partition is made or changes hands."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_SERVER_ERROR


def is_outdated(code: int) -> bool:
    """Tell whether an error code says that metadata is old."""
    return code in _STALE_METADATA


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _span(topic: MetadataResponseTopic) -> str:
    numbers = sorted(part.partition_index for part in topic.partitions)
    return f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
