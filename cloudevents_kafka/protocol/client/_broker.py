"""`connect`: opens a connection to a broker, requests the broker's API versions, and logs in.

Brokers from 0.10 on list the API versions that they accept (ApiVersions, KIP-35). With brokers before 0.10,
the client must not try one API version after another, because these brokers answer an unknown version in an
older layout, or not at all. After an ApiVersions request, a broker of 0.8 closes the connection; a broker of
0.9 drops the request, and answers the next request. To brokers of 0.8 and 0.9, the client sends only the
versions in `VERSIONS_0_8` and `VERSIONS_0_9`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._api_versions import VERSIONS_0_8, VERSIONS_0_9
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._sasl import forms, log_in
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.client._socket import AuthenticationFailed
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    DeadlineExceeded,
    Disconnected,
    Malformed,
    Truncated,
)
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.schema import Versions

_SILENCE: Final = 0.5
"""If a broker does not respond within this number of seconds, the broker may be of version 0.9."""

Opened: TypeAlias = Callable[[Connection], object]
"""A function that is called with each connection after it is opened and before it is used."""


def connect(
    address: Address, settings: ConnectionSettings, deadline: Deadline, opened: Opened = lambda _: None
) -> Connection:
    """Return a connection that is logged in; its ``versions`` are the versions that the broker accepts."""
    connections: list[Connection] = []

    def open() -> Connection:
        connection = Connection(address, deadline, settings)
        connections.append(connection)
        opened(connection)
        return connection

    connected = None
    try:
        connected = _log_in(open, settings, deadline)
        return connected
    finally:  # also if the deadline ends before the first request
        for connection in connections:
            if connection is not connected:
                connection.close()


def _log_in(open: Callable[[], Connection], settings: ConnectionSettings, deadline: Deadline) -> Connection:
    connection = _negotiate(open, settings, deadline)
    if settings.sasl is None:
        return connection
    *others, last = forms(settings.sasl)
    for sasl in others:
        with suppress(AuthenticationFailed):
            log_in(connection, sasl, deadline)
            return connection
        connection = _negotiate(open, settings, deadline)
    log_in(connection, last, deadline)
    return connection


def _negotiate(
    open: Callable[[], Connection], settings: ConnectionSettings, deadline: Deadline
) -> Connection:
    connection = open()
    if not settings.request_api_versions:
        connection.versions = VERSIONS_0_9
        return connection
    uses_sasl = settings.sasl is not None
    try:
        fetch_api_versions(connection, deadline, uses_sasl=uses_sasl)
    except Disconnected:  # 0.8 closes each connection, a later broker only one, while it stops or restarts
        connection = open()
        try:
            fetch_api_versions(connection, deadline, uses_sasl=uses_sasl)
        except Disconnected:
            connection.versions = VERSIONS_0_8
    if connection.closed:
        versions = connection.versions
        connection = open()
        _probe(connection, deadline)
        connection.versions = versions
    return connection


def fetch_api_versions(connection: Connection, deadline: Deadline, *, uses_sasl: bool = False) -> None:
    """Request the API versions that the broker accepts, and set the ``versions`` of the connection.

    If the broker drops the ApiVersions request, the function sets ``versions`` to `VERSIONS_0_9`, and the
    connection is closed. Raises `Disconnected` if the broker closes the connection, as brokers of 0.8 do. If
    ``uses_sasl`` is true, the function does not check whether the broker drops the ApiVersions request.
    Brokers of 0.9 do not support the client's SASL mechanisms, and no other request is allowed before the
    login.
    """
    correlation_id = connection.send(ApiVersionsRequest(), deadline)
    try:
        if not uses_sasl and _drops_request(connection, deadline):
            connection.versions = VERSIONS_0_9
            return
        response: ApiVersionsResponse = connection.receive(correlation_id, deadline)
    except DeadlineExceeded:
        connection.close()
        raise
    if response.error_code:
        connection.close()
        raise BrokerError(response.error_code, f"{connection.address}: ApiVersions")
    connection.versions = {
        api.api_key: Versions(api.min_version, api.max_version) for api in response.api_keys
    }


def _drops_request(connection: Connection, deadline: Deadline) -> bool:
    """Return whether the broker has dropped the ApiVersions request, but has answered a later request."""
    if connection.readable(deadline.at_most(_SILENCE)):
        return False
    try:
        _probe(connection, deadline)
    except (Malformed, Truncated):  # the response belongs to the later request
        return True
    return False


def _probe(connection: Connection, deadline: Deadline) -> None:
    """Send a request that any broker answers; raise `Disconnected` if the peer is not a broker."""
    # Without a topic, Metadata 0 asks about all topics.
    connection.request(MetadataRequest(topics=[MetadataRequestTopic(name="")]), deadline)
