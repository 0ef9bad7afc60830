"""A connected broker: TLS, the login, and the versions that both sides have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cloudevents_kafka.protocol.client import _api_versions as api_versions
from cloudevents_kafka.protocol.client._capture import Trace
from cloudevents_kafka.protocol.client._connection import Address, Connection
from cloudevents_kafka.protocol.client._deadline import Deadline
from cloudevents_kafka.protocol.client._sasl import log_in
from cloudevents_kafka.protocol.client._security import Security
from cloudevents_kafka.protocol.errors import Disconnected, ProtocolError
from cloudevents_kafka.protocol.schema import Structure, Versions


class ConnectionSettings(NamedTuple):
    """The settings that all connections of a client share."""

    client_id: str | None = "cloudevents-kafka"
    security: Security = Security()
    max_response_bytes: int = 100 * 1024 * 1024
    trace: Trace | None = None
    request_api_versions: bool = True
    """Whether to request the versions of brokers; False is for 0.8 and 0.9."""


class BrokerConnection(NamedTuple):
    """A connection, and the versions that the broker accepts."""

    connection: Connection
    versions: Mapping[int, Versions]

    def request(self, message: Structure, deadline: Deadline, *, max_version: int | None = None) -> Structure:
        """Send a request in the highest common version, and return the response."""
        version = self.version(type(message), max_version=max_version)
        return self.connection.request(message, version, deadline)

    def version(self, request: type[Structure], *, max_version: int | None = None) -> int:
        """Return the highest common version of a request; `Unsupported`."""
        return api_versions.choose_version(request, self.versions, max_version=max_version)


def connect(address: Address, settings: ConnectionSettings, deadline: Deadline) -> BrokerConnection:
    """Return a connection that is logged in, with the broker's versions."""
    connection, versions = _negotiate(address, settings, deadline)
    if settings.security.sasl is not None:
        try:
            log_in(connection, settings.security.sasl, versions, deadline)
        except ProtocolError:
            connection.close()
            raise
    return BrokerConnection(connection, versions)


def _negotiate(
    address: Address, settings: ConnectionSettings, deadline: Deadline
) -> tuple[Connection, Mapping[int, Versions]]:
    connection = _open(address, settings, deadline)
    if not settings.request_api_versions:
        return connection, api_versions.VERSIONS_0_9
    uses_sasl = settings.security.sasl is not None
    try:
        versions = api_versions.fetch_api_versions(connection, deadline, uses_sasl=uses_sasl)
    except Disconnected:  # 0.8 closes each time; others once, while they stop or restart
        connection = _open(address, settings, deadline)
        try:
            versions = api_versions.fetch_api_versions(connection, deadline, uses_sasl=uses_sasl)
        except Disconnected:
            versions = api_versions.VERSIONS_0_8
    if connection.closed:
        connection = _open(address, settings, deadline)
        api_versions.probe(connection, deadline)
    return connection, versions


def _open(address: Address, settings: ConnectionSettings, deadline: Deadline) -> Connection:
    return Connection(
        address,
        deadline,
        client_id=settings.client_id,
        security=settings.security,
        max_response_bytes=settings.max_response_bytes,
        trace=settings.trace,
    )
