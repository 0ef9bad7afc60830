"""The credentials and settings of a client's connections, producers and consumers."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol.client._capture import Trace
from cloudevents_kafka.protocol.client._partitioners import Partitioner
from cloudevents_kafka.protocol.records import Codec


class Plain(NamedTuple):
    """SASL PLAIN, which sends user and password unencrypted: use TLS.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, Plain
        >>> client = Client("localhost:9092", tls=True, sasl=Plain("shop", "secret"))
    """

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Plain(user={self.user!r})"


class Scram(NamedTuple):
    """SASL SCRAM: client and broker each prove that they know the password, without sending it.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, Scram
        >>> client = Client("localhost:9092", tls=True, sasl=Scram("shop", "secret", "SCRAM-SHA-512"))
    """

    user: str
    password: str
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-256"

    def __repr__(self) -> str:
        return f"Scram(user={self.user!r}, mechanism={self.mechanism!r})"


class OAuthBearer(NamedTuple):
    """SASL OAUTHBEARER, which sends a token unencrypted: use TLS.

    ``token`` is the token, or a function that returns a token; the function is called at each login, because
    a session may last longer than a token. ``extensions`` are names and values for the broker (KIP-342); a
    name consists of letters only.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, OAuthBearer
        >>> login = OAuthBearer(lambda: "token", {"logicalCluster": "lkc-12345"})
        >>> client = Client("kafka.example.com:9092", tls=True, sasl=login)  # it connects at the first call
        >>> client.close()
    """

    token: str | Callable[[], str]
    extensions: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        return "OAuthBearer(…)"


Sasl: TypeAlias = Plain | Scram | OAuthBearer

# RFC 7628 3.1: key = 1*(ALPHA), value = *(VCHAR / SP / HTAB / CR / LF)
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]*")
_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 2.1: b64token


def check_credentials(sasl: Sasl) -> None:
    """Raise ValueError for credentials that SASL cannot transmit; the error omits password and token."""
    if isinstance(sasl, OAuthBearer):
        if isinstance(sasl.token, str):
            check_token(sasl.token)
        for name, value in sasl.extensions.items():
            if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
                raise ValueError(f"extension {name!r} must have a name of letters, and a value of ASCII")
        return
    if not sasl.user or not _is_text(sasl.user):
        raise ValueError(f"the user must be non-empty text without NUL and surrogates, got {sasl.user!r}")
    if not _is_text(sasl.password):
        raise ValueError("the password must be text without NUL and surrogates")


def check_token(token: str) -> None:
    """Raise ValueError if a text is not a bearer token (RFC 6750 2.1); the error omits the text."""
    if not _BEARER.fullmatch(token):
        raise ValueError(
            f"the token must have letters, digits and ._~+/-= only, got {pluralize(len(token), 'character')}"
        )


def _is_text(text: str) -> bool:
    return "\0" not in text and text == text.encode(errors="replace").decode()


OffsetReset: TypeAlias = Literal["earliest", "latest", "error"]
"""Where a consumer begins to read if it has no valid offset."""


class ConnectionSettings(NamedTuple):
    """The settings of a client's connections; see `Client`."""

    client_id: str | None = "cloudevents-kafka"
    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None
    max_response_bytes: int = 100 * 1024 * 1024
    max_response_memory: int = 128 * 1024 * 1024
    trace: Trace | None = None
    request_api_versions: bool = True
    metadata_max_age: float = 300.0


class ProducerSettings(NamedTuple):
    """The settings of a producer; see `Client.producer`."""

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
    """The settings of a consumer and of its membership in a group; see `Client.consumer`."""

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
