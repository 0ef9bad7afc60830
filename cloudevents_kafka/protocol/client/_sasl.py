"""SASL over a connection: the handshake, then the mechanism's messages (KIP-43, KIP-152)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TypeAlias

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client import _api_versions as api_versions
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._deadline import Deadline
from cloudevents_kafka.protocol.client._scram import ScramClient
from cloudevents_kafka.protocol.client._security import AuthenticationFailed, Plain, Sasl
from cloudevents_kafka.protocol.errors import BrokerError, Disconnected
from cloudevents_kafka.protocol.messages.connection import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from cloudevents_kafka.protocol.schema import Versions

Exchange: TypeAlias = Callable[[bytes], bytes]
"""Sends one message of a mechanism and returns the broker's answer."""


def log_in(connection: Connection, sasl: Sasl, versions: Mapping[int, Versions], deadline: Deadline) -> None:
    """Log in; `AuthenticationFailed` if the broker refuses."""
    version = api_versions.choose_version(SaslHandshakeRequest, versions)
    mechanism = "PLAIN" if isinstance(sasl, Plain) else sasl.mechanism
    response = connection.request(SaslHandshakeRequest(mechanism=mechanism), version, deadline)
    assert isinstance(response, SaslHandshakeResponse)
    if response.error_code:
        offered = ", ".join(response.mechanisms) or "none"
        raise BrokerError(response.error_code, f"{connection.address}: {mechanism}", f"it offers {offered}")
    if version == 0:
        authenticate(sasl, _raw_exchange(connection, deadline))
    else:
        authenticate(sasl, _request_exchange(connection, versions, deadline))


def authenticate(sasl: Sasl, exchange: Exchange) -> None:
    """Exchange the messages of a mechanism; `AuthenticationFailed` for a wrong answer."""
    if isinstance(sasl, Plain):
        exchange(b"\0".join([b"", sasl.user.encode(), sasl.password.encode()]))
        return
    client = ScramClient(sasl, secrets.token_urlsafe(24))
    final = client.final(exchange(client.first()))
    client.verify(exchange(final))


def _raw_exchange(connection: Connection, deadline: Deadline) -> Exchange:
    """Return an exchange of bare messages, as after SaslHandshake 0."""

    def exchange(message: bytes) -> bytes:
        connection.write(frames.add_size(message), deadline, secret=True)
        try:
            return connection.read(deadline, secret=True)
        except Disconnected as error:
            raise AuthenticationFailed(f"{connection.address}: refused; {error}") from error

    return exchange


def _request_exchange(
    connection: Connection, versions: Mapping[int, Versions], deadline: Deadline
) -> Exchange:
    """Return an exchange by SaslAuthenticate requests."""
    version = api_versions.choose_version(SaslAuthenticateRequest, versions)

    def exchange(message: bytes) -> bytes:
        request = SaslAuthenticateRequest(auth_bytes=message)
        correlation_id = connection.send(request, version, deadline, secret=True)
        response = connection.receive(correlation_id, deadline, secret=True)
        assert isinstance(response, SaslAuthenticateResponse)
        if response.error_code:
            reason = response.error_message or BrokerError(response.error_code).meaning
            raise AuthenticationFailed(f"{connection.address}: {reason}")
        return response.auth_bytes

    return exchange
