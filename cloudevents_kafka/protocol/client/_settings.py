"""The credentials and settings of a client's connections, producers and consumers."""

from __future__ import annotations

import ssl
from typing import Literal, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.client._capture import Trace
from cloudevents_kafka.protocol.client._partitioners import Partitioner
from cloudevents_kafka.protocol.records import Codec


class Plain(NamedTuple):
    """SASL PLAIN, which sends user and password unencrypted: use TLS."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Plain(user={self.user!r})"


class Scram(NamedTuple):
    """SASL SCRAM: client and broker each prove that they know the password, without sending it."""

    user: str
    password: str
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-256"

    def __repr__(self) -> str:
        return f"Scram(user={self.user!r}, mechanism={self.mechanism!r})"


Sasl: TypeAlias = Plain | Scram


def check_credentials(sasl: Sasl) -> None:
    """Raise ValueError, without the password in it, if a message cannot carry the credentials."""
    if not sasl.user or not _is_text(sasl.user):
        raise ValueError(f"the user must be non-empty text without NUL and surrogates, got {sasl.user!r}")
    if not _is_text(sasl.password):
        raise ValueError("the password must be text without NUL and surrogates")


def _is_text(text: str) -> bool:
    return "\0" not in text and text == text.encode(errors="replace").decode()


OffsetReset: TypeAlias = Literal["earliest", "latest", "error"]
"""Where to begin without a valid offset."""


class ConnectionSettings(NamedTuple):
    """How to connect; see `Client`."""

    client_id: str | None = "cloudevents-kafka"
    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None
    max_response_bytes: int = 100 * 1024 * 1024
    max_response_memory: int = 128 * 1024 * 1024
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
    max_unpacked_bytes: int
    request_timeout: float
