"""The settings of a client's connections, producers and consumers; `Client` describes them."""

from __future__ import annotations

import ssl
from typing import Literal, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.client._capture import Trace
from cloudevents_kafka.protocol.client._partitioners import Partitioner
from cloudevents_kafka.protocol.client._security import Sasl
from cloudevents_kafka.protocol.records import Codec

OffsetReset: TypeAlias = Literal["earliest", "latest", "error"]
"""Where to begin without a valid offset."""


class ConnectionSettings(NamedTuple):
    """How to connect; see `Client`."""

    client_id: str | None = "cloudevents-kafka"
    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None
    max_response_bytes: int = 100 * 1024 * 1024
    trace: Trace | None = None
    request_api_versions: bool = True


class ProducerSettings(NamedTuple):
    """How to send records; see `Client.producer`."""

    acks: int
    codec: Codec
    partitioner: Partitioner
    linger: float
    batch_records: int
    batch_bytes: int
    queue_records: int
    delivery_timeout: float
    request_timeout: float
    idempotent: bool | None


class ConsumerSettings(NamedTuple):
    """How to read records, and to join a group; see `Client.consumer`."""

    reset: OffsetReset
    auto_commit: float | None
    assignors: tuple[str, ...]
    session_timeout: float
    rebalance_timeout: float
    heartbeat_interval: float
    min_bytes: int
    max_wait: float
    max_bytes: int
    partition_bytes: int
    committed_only: bool
    check_crc: bool
    request_timeout: float
