"""Chooses the versions of requests; some brokers list the versions that they accept, and others do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.errors import Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of

CLIENT_VERSIONS: Final[dict[int, Versions]] = {
    ApiKey.PRODUCE: Versions(0, 12),  # 13 names topics by id
    ApiKey.FETCH: Versions(0, 12),  # 13 names topics by id
    ApiKey.LIST_OFFSETS: Versions(0, 7),  # 8 asks about tiered storage
    ApiKey.METADATA: Versions(0, 12),
    ApiKey.OFFSET_COMMIT: Versions(1, 9),  # 0 (for ZooKeeper) has two layouts; 10 names topics by id
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
"""The request versions that this client uses, by API key; `messages` declares more versions than these."""

_0, _1 = Versions(0, 0), Versions(1, 1)

FIRST_VERSIONS: Final[dict[int, Versions]] = {ApiKey.API_VERSIONS: _0, ApiKey.METADATA: _0}
"""The versions that the client uses until it knows the broker's versions.

A broker that does not list its versions decodes version 0 of these requests, or drops the request.
"""

VERSIONS_0_8: Final[dict[int, Versions]] = {
    ApiKey.PRODUCE: _0,
    ApiKey.FETCH: _0,
    ApiKey.LIST_OFFSETS: _0,
    ApiKey.METADATA: _0,
    ApiKey.OFFSET_COMMIT: _1,
    ApiKey.OFFSET_FETCH: _1,
    ApiKey.FIND_COORDINATOR: _0,
}
"""The versions of requests whose layout is the same in Kafka 0.8.2 and 0.9; groups of 0.8.2 have no members.
"""

VERSIONS_0_9: Final[dict[int, Versions]] = VERSIONS_0_8 | dict.fromkeys(
    (ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP), _0
)
"""The versions in `VERSIONS_0_8`, and those of the requests that group members send to Kafka 0.9."""


def choose_version(request: type[Structure], accepted: Mapping[int, Versions]) -> int:
    """Return the highest common version of client and broker; raise `Unsupported` if there is none.

    The client never tries a lower version than the highest common version. Brokers of Kafka 4.x list the
    versions 0 to 2 of Produce, but close the connection after a request of one of these versions
    (KAFKA-18659).
    """
    key = spec_of(request).key
    ours, theirs = CLIENT_VERSIONS[key], accepted.get(key)
    common = ours.common(theirs or Versions(0, -1))
    if common.first > common.last:
        raise Unsupported(
            f"{APIS[key].name}: the broker accepts {theirs or 'no version'}, this client uses {ours}"
        )
    return common.last
