"""Client: the way in. Addresses and security once; producers, consumers and single questions from it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from cloudevents_kafka.protocol.client.batches import TopicAndPartition
from cloudevents_kafka.protocol.client.capture import Trace, as_trace
from cloudevents_kafka.protocol.client.cluster import Broker, Cluster, Settings
from cloudevents_kafka.protocol.client.connection import Address
from cloudevents_kafka.protocol.client.consumer import Consumer
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.fetcher import FetchPolicy, Reset
from cloudevents_kafka.protocol.client.group import GroupPolicy
from cloudevents_kafka.protocol.client.offsets import GroupOffsets, offset_at
from cloudevents_kafka.protocol.client.partitioners import Partitioner, by_key
from cloudevents_kafka.protocol.client.producer import Producer
from cloudevents_kafka.protocol.client.security import Sasl, Security, check_credentials
from cloudevents_kafka.protocol.client.sender import Policy
from cloudevents_kafka.protocol.errors import BrokerError
from cloudevents_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from cloudevents_kafka.protocol.messages.metadata import MetadataResponse
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.schema import Versions

_TIMEOUT: Final = 30.0
_DEFAULT_PORT: Final = 9092


class Client:
    """Talks to a cluster of brokers, from 0.8 to today's, in pure Python over blocking sockets.

    ``bootstrap`` is ``"host:port"`` or several of them, separated by commas or in a
    list; the first may be dead. ``timeout`` bounds each call in seconds. ``tls`` is a
    context, or True for the default one; ``sasl`` is `Plain` or `Scram`.
    ``ask_versions=False`` is for brokers of 0.8 and 0.9, which cannot be asked what they
    speak; left True, such a broker closes one connection before it is known for one.
    ``trace`` takes every frame: a function, an open text file or a file's path.

    A client is for one thread. Producers and consumers have connections of their own,
    and must be closed by themselves.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "cloudevents-kafka",
        timeout: float = _TIMEOUT,
        tls: ssl.SSLContext | bool = False,
        sasl: Sasl | None = None,
        ask_versions: bool = True,
        largest_answer: int = 100 * 1024 * 1024,
        trace: Trace | str | Path | IO[str] | None = None,
    ) -> None:
        """Connect to nothing yet; ValueError for an address or credentials that cannot be."""
        context = (ssl.create_default_context() if tls else None) if isinstance(tls, bool) else tls
        if sasl is not None:
            check_credentials(sasl)
        self._bootstrap: Final = addresses(bootstrap)
        self._timeout: Final = timeout
        self._settings: Final = Settings(
            client_id, Security(context, sasl), largest_answer, as_trace(trace), ask_versions
        )
        self._cluster: Final = self._new_cluster()

    # --- questions -----------------------------------------------------------------------

    def metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Return the brokers, and these topics or all of them."""
        deadline = Deadline(self._timeout)
        return self._cluster.retrying("metadata", lambda: self._cluster.metadata(topics, deadline), deadline)

    def partitions(self, topic: str) -> list[int]:
        """Return a topic's partitions; a topic that brokers make by themselves is made."""
        return self._cluster.partitions(topic, Deadline(self._timeout))

    def api_versions(self) -> Mapping[int, Versions]:
        """Return which versions of which requests some broker takes, by API key."""
        return self._any_broker().versions

    def offset_at(self, topic: str, partition: int, time: int) -> int | None:
        """Return the first offset not before a time in ms, or of `LATEST` or `EARLIEST`; None if none."""
        return offset_at(self._cluster, (topic, partition), time, Deadline(self._timeout))

    def committed(self, group: str, places: Sequence[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        """Return a group's offsets, by topic and partition; those that have one."""
        return GroupOffsets(self._cluster, group).committed(list(places), Deadline(self._timeout))

    def commit(self, group: str, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Set a group's offsets; `BrokerError` while it has members."""
        GroupOffsets(self._cluster, group).commit(offsets, Deadline(self._timeout))

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic and wait until it has leaders; `BrokerError` where that is refused."""
        deadline = Deadline(self._timeout)
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=int(self._timeout * 1000))

        def ask() -> None:
            self._any_broker().version(CreateTopicsRequest)  # brokers before 0.10.1 have no controller to ask
            self._cluster.metadata([], deadline)
            broker = self._cluster.broker(self._cluster.controller_id, deadline)
            answer = broker.request(request, deadline)
            assert isinstance(answer, CreateTopicsResponse)
            for made in answer.topics:
                if made.error_code:
                    raise BrokerError(made.error_code, f"topic {name}", made.error_message)

        self._cluster.retrying(f"making topic {name}", ask, deadline)
        self._cluster.partitions(name, deadline)

    # --- producers and consumers -----------------------------------------------------------

    def producer(
        self,
        *,
        acks: int = -1,
        compression: str = "none",
        partitioner: Partitioner | None = None,
        linger: float = 0.005,
        batch_records: int = 10_000,
        batch_bytes: int = 1_000_000,
        queue_records: int = 100_000,
        delivery_timeout: float = 120.0,
        idempotent: bool | None = None,
    ) -> Producer:
        """Return a producer; close it in the end.

        A partition's records are sent together when there are ``batch_records`` of them, or
        ``batch_bytes``, or the first has waited for ``linger`` seconds. ``acks`` is 0 (nobody
        answers), 1 (the leader has written) or -1 (all replicas in sync have). Keys are
        hashed as by the Java client unless a ``partitioner`` says otherwise. ``idempotent``
        keeps repeats from being written twice; by default where ``acks`` is -1 and the
        broker can.
        """
        if acks not in {-1, 0, 1}:
            raise ValueError(f"acks={acks}: 0, 1 or -1")
        policy = Policy(
            acks=acks,
            codec=_codec(compression),
            partitioner=partitioner or by_key(),
            batch_records=batch_records,
            batch_bytes=batch_bytes,
            request_timeout=min(self._timeout, delivery_timeout),
            idempotent=idempotent,
        )
        return Producer(
            self._new_cluster(),
            policy,
            linger=linger,
            queue_records=queue_records,
            delivery_timeout=delivery_timeout,
        )

    def consumer(
        self,
        *,
        group: str | None = None,
        reset: Reset = "latest",
        auto_commit: float | None = 5.0,
        assignors: Sequence[str] = ("range", "roundrobin"),
        session_timeout: float = 10.0,
        rebalance_timeout: float = 60.0,
        heartbeat_interval: float = 3.0,
        min_bytes: int = 1,
        max_wait: float = 0.5,
        max_bytes: int = 50 * 1024 * 1024,
        partition_bytes: int = 1024 * 1024,
        committed_only: bool = True,
        check_crc: bool = True,
    ) -> Consumer:
        """Return a consumer; subscribe it to topics or assign partitions, and close it in the end.

        ``reset`` says where to begin without a committed offset, or with one that is out of
        range. ``auto_commit`` is the time between commits of what was given, in seconds, None
        for commits by hand; it needs a ``group``. A fetch waits up to ``max_wait`` seconds for
        ``min_bytes``, and takes ``partition_bytes`` of each partition, more where a message
        is larger, up to ``max_bytes``. ``committed_only`` leaves out what lies in
        transactions that are open or aborted.
        """
        fetching = FetchPolicy(
            min_bytes=min_bytes,
            max_wait=max_wait,
            max_bytes=max_bytes,
            partition_bytes=partition_bytes,
            committed_only=committed_only,
            check_crc=check_crc,
            reset=reset,
            request_timeout=self._timeout,
        )
        joining = (
            None
            if group is None
            else GroupPolicy(
                group=group,
                assignors=tuple(assignors),
                session_timeout=session_timeout,
                rebalance_timeout=rebalance_timeout,
                heartbeat_interval=heartbeat_interval,
                request_timeout=self._timeout,
            )
        )
        return Consumer(self._new_cluster, fetching, joining, auto_commit=auto_commit)

    # --- ends ------------------------------------------------------------------------------

    def close(self) -> None:
        """Close this client's own connections."""
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _any_broker(self) -> Broker:
        return self._cluster.any_broker(Deadline(self._timeout))

    def _new_cluster(self) -> Cluster:
        return Cluster(self._bootstrap, self._settings)


def addresses(bootstrap: str | Sequence[str]) -> list[Address]:
    """Read ``host:port``, ``[v6]:port`` or ``host``, one or several; ValueError where it is none."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    found = [_address(part.strip()) for part in parts if part.strip()]
    if not found:
        raise ValueError("no bootstrap address was given; write host:port")
    return found


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(_DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{text!r} is no address; write host:port")
    return Address(host, int(port))


def _codec(name: str) -> Codec:
    try:
        return Codec[name.upper()]
    except KeyError:
        known = ", ".join(codec.name.lower() for codec in Codec)
        raise ValueError(f"compression={name!r}: one of {known}") from None
