"""The version of each request, negotiated with each broker.

Brokers from 0.10 on list their versions (ApiVersions, KIP-35). Older brokers must not be probed:
they answer an unknown version in an older layout, or not at all. To ApiVersions 0.8 closes the
connection; 0.9 drops the request and answers the next one. These brokers are sent only the versions
that both releases have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, Malformed, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of

CLIENT_VERSIONS: Final[dict[int, Versions]] = {
    ApiKey.PRODUCE: Versions(0, 12),  # 13 names topics by id
    ApiKey.FETCH: Versions(0, 12),  # 13 names topics by id
    ApiKey.LIST_OFFSETS: Versions(0, 7),  # 8 asks about tiered storage
    ApiKey.METADATA: Versions(0, 12),
    ApiKey.OFFSET_COMMIT: Versions(
        1, 9
    ),  # 0 is stored in ZooKeeper, and has two layouts; 10 names topics by id
    ApiKey.OFFSET_FETCH: Versions(1, 7),  # 8 asks about several groups
    ApiKey.FIND_COORDINATOR: Versions(0, 3),  # 4 asks for several coordinators
    ApiKey.JOIN_GROUP: Versions(0, 9),
    ApiKey.HEARTBEAT: Versions(0, 4),
    ApiKey.LEAVE_GROUP: Versions(0, 2),  # 3 removes several members
    ApiKey.SYNC_GROUP: Versions(0, 5),
    ApiKey.SASL_HANDSHAKE: Versions(0, 1),
    ApiKey.API_VERSIONS: Versions(0, 3),
    ApiKey.CREATE_TOPICS: Versions(0, 6),
    ApiKey.INIT_PRODUCER_ID: Versions(0, 4),
    ApiKey.SASL_AUTHENTICATE: Versions(0, 2),
}
"""The versions that the client uses, by API key: fewer than are declared in `messages`."""

VERSIONS_0_8: Final[dict[int, Versions]] = {
    ApiKey.PRODUCE: Versions(0, 0),
    ApiKey.FETCH: Versions(0, 0),
    ApiKey.LIST_OFFSETS: Versions(0, 0),
    ApiKey.METADATA: Versions(0, 0),
    ApiKey.OFFSET_COMMIT: Versions(1, 1),
    ApiKey.OFFSET_FETCH: Versions(1, 1),
    ApiKey.FIND_COORDINATOR: Versions(0, 0),
}
"""The versions that have the same layout in 0.8.2 and 0.9; groups of 0.8.2 have no members."""

VERSIONS_0_9: Final[dict[int, Versions]] = VERSIONS_0_8 | dict.fromkeys(
    (ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP), Versions(0, 0)
)
"""The same versions, and those of group members."""

_SILENCE: Final = 0.5
"""Seconds without a response after which the broker may be a 0.9."""


def fetch_api_versions(
    connection: Connection, deadline: Deadline, *, uses_sasl: bool = False
) -> Mapping[int, Versions]:
    """Return the versions that a broker accepts, by API key.

    `VERSIONS_0_9`, with the connection closed, if the broker drops the request; `Disconnected` if it
    closes the connection, as 0.8 does. With ``uses_sasl`` no other request is allowed before the
    login, and the broker cannot be a 0.9: PLAIN and SCRAM came with 0.10.
    """
    correlation_id = connection.send(ApiVersionsRequest(), 0, deadline)
    try:
        if not uses_sasl and _drops_request(connection, deadline):
            return VERSIONS_0_9
        response: ApiVersionsResponse = connection.receive(correlation_id, deadline)
    except DeadlineExceeded:
        connection.close()
        raise
    if response.error_code:
        connection.close()
        raise BrokerError(response.error_code, f"{connection.address}: ApiVersions")
    return {api.api_key: Versions(api.min_version, api.max_version) for api in response.api_keys}


def probe(connection: Connection, deadline: Deadline) -> None:
    """Send a request that all brokers answer; `Disconnected` if the other end is not a broker."""
    # Without a topic, Metadata 0 asks about all topics.
    request = MetadataRequest(topics=[MetadataRequestTopic(name="")])
    connection.request(request, 0, deadline)


def _drops_request(connection: Connection, deadline: Deadline) -> bool:
    """Return whether a broker answers the next request first, and so drops this one."""
    if connection.readable(deadline.at_most(_SILENCE)):
        return False
    try:
        probe(connection, deadline)
    except (Malformed, Truncated):  # an answer out of turn
        return True
    return False


def choose_version(request: type[Structure], accepted: Mapping[int, Versions]) -> int:
    """Return the highest version that client and broker have; `Unsupported`.

    Lower versions are never tried: brokers of 4.x list Produce 0 to 2, and close the connection on
    them (KAFKA-18659).
    """
    key = spec_of(request).key
    ours, theirs = CLIENT_VERSIONS[key], accepted.get(key)
    common = ours.common(theirs or Versions(0, -1))
    if common.first > common.last:
        raise Unsupported(
            f"{APIS[key].name}: the broker accepts {theirs or 'no version'}, this client uses {ours}"
        )
    return common.last
