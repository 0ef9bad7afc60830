"""`throttle_of`: returns the time for which a broker asks the client to send nothing.

A client that exceeds its quota receives its response at once, and must then wait (KIP-219). During the wait,
the broker does not read from the connection. The client waits, too, because a proxy may rely on this wait. In
earlier versions of requests, the broker itself waits before it responds.
"""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.client._retry import MAX_SECONDS
from cloudevents_kafka.protocol.schema import Structure, spec_of

_FIRST_VERSIONS: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.INIT_PRODUCER_ID: 1,
}
"""The first version of each API's request for which the client itself, not the broker, must wait."""


def throttle_of(response: Structure, version: int) -> float:
    """Return the seconds to wait before the next request on the connection."""
    first = _FIRST_VERSIONS.get(spec_of(type(response)).key)
    if first is None or version < first:
        return 0.0
    return min(max(0, getattr(response, "throttle_time_ms", 0)) / 1000, MAX_SECONDS)
