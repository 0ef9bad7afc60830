"""The handlers of requests by API key, in modules named as those of `protocol.messages`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.testing.wire_broker.apis._connection import api_versions, authenticate, handshake
from cloudevents_kafka.testing.wire_broker.apis._fetch import fetch
from cloudevents_kafka.testing.wire_broker.apis._groups import (
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from cloudevents_kafka.testing.wire_broker.apis._offsets import list_offsets, offset_commit, offset_fetch
from cloudevents_kafka.testing.wire_broker.apis._produce import init_producer_id, produce
from cloudevents_kafka.testing.wire_broker.apis._topics import create_topics, metadata

Handler = Callable[[Any, Any], Structure | None]

HANDLERS: Final[Mapping[int, Handler]] = {
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    8: offset_commit,
    9: offset_fetch,
    10: find_coordinator,
    11: join_group,
    12: heartbeat,
    13: leave_group,
    14: sync_group,
    17: handshake,
    18: api_versions,
    19: create_topics,
    22: init_producer_id,
    36: authenticate,
}
"""Functions of a call and its message, called with the cluster's lock held; None sends nothing."""
