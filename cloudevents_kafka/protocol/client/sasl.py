"""SASL over a connection: the handshake, then the mechanism's messages (KIP-43, KIP-152)."""

from __future__ import annotations

from collections.abc import Mapping

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client import api_versions
from cloudevents_kafka.protocol.client.connection import Connection
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.client.security import (
    AuthenticationFailed,
    Sasl,
    authenticate,
    mechanism_of,
)
from cloudevents_kafka.protocol.errors import BrokerError, Disconnected
from cloudevents_kafka.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from cloudevents_kafka.protocol.schema import Versions


def log_in(connection: Connection, sasl: Sasl, versions: Mapping[int, Versions], deadline: Deadline) -> None:
    """Log in; `AuthenticationFailed` where the broker refuses."""
    version = api_versions.choose(SaslHandshakeRequest, versions)
    mechanism = mechanism_of(sasl)
    answer = connection.request(SaslHandshakeRequest(mechanism=mechanism), version, deadline)
    assert isinstance(answer, SaslHandshakeResponse)
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "none"
        raise BrokerError(answer.error_code, f"{connection.address}: {mechanism}", f"it offers {offered}")
    if version == 0:
        _bare(connection, sasl, deadline)
    else:
        _wrapped(connection, sasl, versions, deadline)


def _bare(connection: Connection, sasl: Sasl, deadline: Deadline) -> None:
    """After handshake version 0 the mechanism's messages are frames by themselves."""

    def exchange(message: bytes) -> bytes:
        connection.write(frames.add_size(message), deadline, secret=True)
        try:
            return connection.read(deadline, secret=True)
        except Disconnected as error:
            raise AuthenticationFailed(f"{connection.address}: refused; {error}") from error

    authenticate(sasl, exchange)


def _wrapped(
    connection: Connection, sasl: Sasl, versions: Mapping[int, Versions], deadline: Deadline
) -> None:
    version = api_versions.choose(SaslAuthenticateRequest, versions)

    def exchange(message: bytes) -> bytes:
        request = SaslAuthenticateRequest(auth_bytes=message)
        asked = connection.send(request, version, deadline, secret=True)
        answer = connection.receive(asked, deadline, secret=True)
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code:
            said = answer.error_message or BrokerError(answer.error_code).meaning
            raise AuthenticationFailed(f"{connection.address}: {said}")
        return answer.auth_bytes

    authenticate(sasl, exchange)
