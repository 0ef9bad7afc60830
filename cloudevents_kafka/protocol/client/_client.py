"""`Client`: stores the addresses and credentials for a cluster, and creates producers and consumers."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from cloudevents_kafka.primitives.closing import Closing
from cloudevents_kafka.protocol.client._address import parse_addresses
from cloudevents_kafka.protocol.client._capture import Trace, to_trace
from cloudevents_kafka.protocol.client._cluster import CREATION_VERSION, Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._consumer import Consumer
from cloudevents_kafka.protocol.client._message import Offsets, PartitionId
from cloudevents_kafka.protocol.client._offsets import GroupOffsets, offset_at
from cloudevents_kafka.protocol.client._partitioners import Partitioner, by_key
from cloudevents_kafka.protocol.client._producer import Producer
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._settings import (
    ConnectionSettings,
    ConsumerSettings,
    OffsetReset,
    ProducerSettings,
    Sasl,
    check_credentials,
)
from cloudevents_kafka.protocol.errors import BrokerError, Unsupported
from cloudevents_kafka.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    MetadataRequest,
    MetadataResponse,
)
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.schema import Versions

_TIMEOUT: Final = 30.0


class Client(Closing):
    """A client for clusters of Kafka 0.8 to 4.3, in pure Python with blocking sockets.

    ``bootstrap`` is ``"host:port"``, or several addresses in a list or separated by commas; one address that
    can be reached is enough. ``timeout`` is the maximum time of each call, in seconds. ``tls`` is an SSL
    context, or True for the default context. ``sasl`` is `Plain`, `Scram` or `OAuthBearer`.
    ``request_api_versions=False`` is for brokers of 0.8 and 0.9, which cannot list their API versions. If
    ``request_api_versions`` is True, a broker of 0.8 closes the first connections, and the client connects
    again. ``max_response_bytes`` limits the size of a response. ``max_response_memory`` is the maximum
    memory, in bytes, for the decoded array elements of a response; the text and the bytes in these elements
    do not count. ``metadata_max_age`` is the time in seconds after which producers and groups look for new
    partitions of their topics. ``trace`` is a function, an open text file, or the path of a file. Each sent
    or received frame is passed to ``trace``, except the frames of SASL.

    Only one thread may use a client. Producers and consumers open their own connections, and must be closed
    separately.

    Examples:
        >>> from cloudevents_kafka.protocol import Client
        >>> with Client("localhost:9092") as client, client.producer() as producer:
        ...     producer.produce("orders", b"17", key=b"customer-4")
        ...     producer.flush()
        ...     client.partitions("orders")
        0
        [0]
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "cloudevents-kafka",
        timeout: float = _TIMEOUT,
        tls: ssl.SSLContext | bool = False,
        sasl: Sasl | None = None,
        request_api_versions: bool = True,
        max_response_bytes: int = 100 * 1024 * 1024,
        max_response_memory: int = 128 * 1024 * 1024,
        metadata_max_age: float = 300.0,
        trace: Trace | str | Path | IO[str] | None = None,
    ) -> None:
        """Check the arguments, without connecting; raise ValueError for invalid addresses or credentials."""
        context = (ssl.create_default_context() if tls else None) if isinstance(tls, bool) else tls
        if sasl is not None:
            check_credentials(sasl)
        self._bootstrap: Final = parse_addresses(bootstrap)
        self._timeout: Final = timeout
        self._settings: Final = ConnectionSettings(
            client_id,
            context,
            sasl,
            max_response_bytes,
            max_response_memory,
            to_trace(trace),
            request_api_versions,
            metadata_max_age,
        )
        self._cluster: Final = self._new_cluster()

    def metadata(self, topics: Sequence[str] | None = None, *, create: bool = True) -> MetadataResponse:
        """Return the brokers of the cluster and the metadata of ``topics``, or of all topics.

        A broker with auto.create.topics.enable creates missing topics, unless ``create`` is False. Brokers
        before 0.11 always create missing topics. With a broker before 0.11, `Unsupported` is raised if
        ``topics`` is passed and ``create`` is False.

        Examples:
            >>> with Client("localhost:9092") as client:
            ...     [topic.partitions[0].partition_index for topic in client.metadata(["orders"]).topics]
            [0]
        """
        deadline = Deadline(self._timeout)
        if topics and not create and self._any_broker().version(MetadataRequest) < CREATION_VERSION:
            raise Unsupported("brokers before 0.11 create missing topics of a request; request all topics")
        return self._cluster.retry(
            "metadata", lambda: self._cluster.fetch_metadata(topics, deadline, create=create), deadline
        )

    def partitions(self, topic: str) -> list[int]:
        """Return a topic's partitions; brokers with auto.create.topics.enable create a missing topic."""
        return self._cluster.partitions(topic, Deadline(self._timeout), create=True)

    def api_versions(self) -> Mapping[int, Versions]:
        """Return a dict that maps each API key to the versions that a broker accepts."""
        return self._any_broker().versions

    def offset_at(self, topic: str, partition: int, time: int, *, committed_only: bool = True) -> int | None:
        """Return the offset of the first record that is not older than ``time``.

        ``time`` is in ms since the epoch, or is `LATEST` or `EARLIEST`. The result is None if all records are
        older than ``time``. With ``committed_only``, records from the first open transaction of the partition
        on are ignored. Without ``committed_only``, `LATEST` is the offset after the last record.

        Examples:
            >>> from datetime import datetime, timezone
            >>> noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
            >>> with Client("localhost:9092") as client:
            ...     client.offset_at("orders", 0, int(noon.timestamp() * 1000))
            0
        """
        deadline = Deadline(self._timeout)
        return offset_at(self._cluster, (topic, partition), time, deadline, committed_only=committed_only)

    def committed(
        self, group: str, partitions: Sequence[PartitionId], *, committed_only: bool = True
    ) -> Offsets:
        """Return a group's committed offsets; the result omits partitions without a committed offset.

        With ``committed_only``, the call waits for the end of each open transaction that commits an offset of
        the group for one of ``partitions``.
        """
        offsets = GroupOffsets(self._cluster, group, committed_only=committed_only)
        return offsets.committed(partitions, Deadline(self._timeout))

    def commit(self, group: str, offsets: Mapping[PartitionId, int]) -> None:
        """Commit offsets for a group; raise `BrokerError` if the group has members."""
        group_offsets = GroupOffsets(self._cluster, group, committed_only=False)
        group_offsets.commit(offsets, Deadline(self._timeout))

    def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, and wait until its partitions have leaders.

        Raises `BrokerError` if the broker refuses to create the topic.
        """
        deadline = Deadline(self._timeout)
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=int(self._timeout * 1000))

        def attempt() -> None:
            self._any_broker().version(CreateTopicsRequest)  # metadata before 0.10.1 has no controller
            self._cluster.fetch_metadata([], deadline)
            broker = self._cluster.broker(self._cluster.controller_id, deadline)
            response: CreateTopicsResponse = broker.request(request, deadline)
            for result in response.topics:
                if result.error_code:
                    raise BrokerError(result.error_code, f"topic {name}", result.error_message)

        self._cluster.retry(f"creating topic {name}", attempt, deadline)
        self._cluster.partitions(name, deadline)

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
        """Return a producer, which must be closed.

        Records are sent when ``batch_records`` records or ``batch_bytes`` bytes are queued, or when the first
        queued record has waited ``linger`` seconds. ``acks`` says when a broker responds: never (0), after
        the leader has appended the records (1), or after all in-sync replicas have appended the records (-1).
        ``compression`` is "none", "gzip", "snappy", "lz4" or "zstd". Keys are hashed as in the Java client,
        unless a ``partitioner`` is passed. If a producer is ``idempotent``, brokers append a repeated batch
        only once. By default, a producer is idempotent if ``acks`` is -1 and the broker supports idempotence.
        """
        if acks not in {-1, 0, 1}:
            raise ValueError(f"acks must be 0, 1 or -1, got {acks}")
        settings = ProducerSettings(
            acks=acks,
            codec=_codec(compression),
            partitioner=partitioner or by_key(),
            linger=linger,
            batch_records=batch_records,
            batch_bytes=batch_bytes,
            queue_records=queue_records,
            delivery_timeout=delivery_timeout,
            request_timeout=min(self._timeout, delivery_timeout),
            idempotent=idempotent,
        )
        return Producer(self._new_cluster(), settings)

    def consumer(
        self,
        *,
        group: str | None = None,
        reset: OffsetReset = "latest",
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
        max_unpacked_bytes: int = 128 * 1024 * 1024,
    ) -> Consumer:
        """Return a consumer, which must be closed; subscribe it to topics, or assign partitions to it.

        ``reset`` says where the consumer begins to read if a partition has no committed offset, or if an
        offset is out of range. ``auto_commit`` is the time in seconds between commits of the returned
        records' offsets, or None if you commit offsets yourself. A consumer without a ``group`` does not
        commit. A fetch waits up to ``max_wait`` seconds for ``min_bytes`` bytes, and returns up to
        ``partition_bytes`` bytes of each partition. If one message is larger than ``partition_bytes``, the
        fetch returns up to ``max_bytes`` bytes. ``committed_only`` hides the records of aborted transactions,
        and all records from a partition's first open transaction on. If there is an open transaction, a
        consumer with ``reset="latest"`` begins at this transaction. If a transaction commits an offset for
        the group, the consumer uses this offset when the transaction has ended. ``max_unpacked_bytes`` limits
        the decompressed size of a batch. A consumer keeps the last fetch responses, one decompressed batch,
        and up to 2,500 decoded records in memory. A consumer does not create topics, but a broker before 0.11
        creates a missing topic when a consumer reads it.
        """
        settings = ConsumerSettings(
            reset=reset,
            auto_commit=auto_commit,
            assignors=tuple(assignors),
            session_timeout=session_timeout,
            rebalance_timeout=rebalance_timeout,
            heartbeat_interval=heartbeat_interval,
            min_bytes=min_bytes,
            max_wait=max_wait,
            max_bytes=max_bytes,
            partition_bytes=partition_bytes,
            committed_only=committed_only,
            check_crc=check_crc,
            max_unpacked_bytes=max_unpacked_bytes,
            request_timeout=self._timeout,
        )
        return Consumer(self._new_cluster, settings, group)

    def close(self) -> None:
        """Close the client's connections, but not the connections of its producers and consumers."""
        self._cluster.close()

    def _any_broker(self) -> Connection:
        return self._cluster.any_broker(Deadline(self._timeout))

    def _new_cluster(self) -> Cluster:
        return Cluster(self._bootstrap, self._settings)


def _codec(name: str) -> Codec:
    try:
        return Codec[name.upper()]
    except KeyError:
        known = ", ".join(codec.name.lower() for codec in Codec)
        raise ValueError(f"compression must be one of {known}, got {name!r}") from None
