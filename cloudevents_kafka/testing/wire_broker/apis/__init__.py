"""The handlers of requests by API key, in modules named as those of `protocol.messages`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cloudevents_kafka.protocol.api_keys import ApiKey
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
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.HEARTBEAT: heartbeat,
    ApiKey.LEAVE_GROUP: leave_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.SASL_HANDSHAKE: handshake,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.SASL_AUTHENTICATE: authenticate,
}
"""Functions of a call and its message, called with the cluster's lock held; None sends nothing."""
