"""A connected broker: TLS, the login, and the versions that both sides have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cloudevents_kafka.protocol.client import _api_versions as api_versions
from cloudevents_kafka.protocol.client._connection import Address, Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._sasl import log_in
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.errors import Disconnected, ProtocolError
from cloudevents_kafka.protocol.schema import Structure, Versions


class BrokerConnection(NamedTuple):
    """A connection, and the versions that the broker accepts."""

    connection: Connection
    versions: Mapping[int, Versions]

    def request(self, message: Structure, deadline: Deadline) -> Any:
        """Send a request in the highest common version, and return the response to it."""
        return self.connection.request(message, self.version(type(message)), deadline)

    def version(self, request: type[Structure]) -> int:
        """Return the highest common version of a request; `Unsupported`."""
        return api_versions.choose_version(request, self.versions)


def connect(address: Address, settings: ConnectionSettings, deadline: Deadline) -> BrokerConnection:
    """Return a connection that is logged in, with the broker's versions."""
    connection, versions = _negotiate(address, settings, deadline)
    if settings.sasl is not None:
        try:
            log_in(connection, settings.sasl, versions, deadline)
        except ProtocolError:
            connection.close()
            raise
    return BrokerConnection(connection, versions)


def _negotiate(
    address: Address, settings: ConnectionSettings, deadline: Deadline
) -> tuple[Connection, Mapping[int, Versions]]:
    connection = Connection(address, deadline, settings)
    if not settings.request_api_versions:
        return connection, api_versions.VERSIONS_0_9
    uses_sasl = settings.sasl is not None
    try:
        versions = api_versions.fetch_api_versions(connection, deadline, uses_sasl=uses_sasl)
    except Disconnected:  # 0.8 closes each time; others once, while they stop or restart
        connection = Connection(address, deadline, settings)
        try:
            versions = api_versions.fetch_api_versions(connection, deadline, uses_sasl=uses_sasl)
        except Disconnected:
            versions = api_versions.VERSIONS_0_8
    if connection.closed:
        connection = Connection(address, deadline, settings)
        api_versions.probe(connection, deadline)
    return connection, versions
