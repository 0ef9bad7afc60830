"""The version of each request, negotiated with each broker.

Brokers from 0.10 on list their versions (ApiVersions, KIP-35). Older brokers must not be probed:
they answer an unknown version in an older layout, or not at all. To ApiVersions 0.8 closes the
connection; 0.9 drops the request and answers the next one. These brokers are sent only the versions
that both releases have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.api_keys import API_NAMES
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, Malformed, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of

_CLIENT: Final = {
    "Produce": "0-12",  # 13 names topics by id
    "Fetch": "0-12",  # 13 names topics by id
    "ListOffsets": "0-7",  # 8 asks about tiered storage
    "Metadata": "0-12",
    "OffsetCommit": "1-9",  # 0 is stored in ZooKeeper, and has two layouts; 10 names topics by id
    "OffsetFetch": "1-7",  # 8 asks about several groups
    "FindCoordinator": "0-3",  # 4 asks for several coordinators
    "JoinGroup": "0-9",
    "Heartbeat": "0-4",
    "LeaveGroup": "0-2",  # 3 removes several members
    "SyncGroup": "0-5",
    "SaslHandshake": "0-1",
    "ApiVersions": "0-3",
    "CreateTopics": "0-6",
    "InitProducerId": "0-4",
    "SaslAuthenticate": "0-2",
}
_OLD = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
)
_OLD_GROUPS = ("JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup")

CLIENT_VERSIONS: Final = {API_NAMES.index(name): Versions.parse(text) for name, text in _CLIENT.items()}
"""The versions that the client uses, by API key: fewer than are declared in `messages`."""

VERSIONS_0_8: Final = {
    API_NAMES.index(name): Versions(1, 1) if name.startswith("Offset") else Versions(0, 0) for name in _OLD
}
"""The versions that have the same layout in 0.8.2 and 0.9; groups of 0.8.2 have no members."""

VERSIONS_0_9: Final = VERSIONS_0_8 | {API_NAMES.index(name): Versions(0, 0) for name in _OLD_GROUPS}
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
