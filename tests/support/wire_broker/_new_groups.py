"""The messages by which groups of the new protocol (KIP-848) are refused; the request is not read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.schema import Int8, Int16, Int32, MessageSpec, String, Structure, wire

_NULL: Final = -1


class ConsumerGroupHeartbeatRequest(Structure, kw_only=True):
    """A request whose fields are not read."""

    spec: ClassVar = MessageSpec.of("0-1", ApiKey.CONSUMER_GROUP_HEARTBEAT)


class ConsumerGroupHeartbeatResponse(Structure, kw_only=True):
    """An error; the assignment, a structure, is null."""

    spec: ClassVar = MessageSpec.of("0-1", ApiKey.CONSUMER_GROUP_HEARTBEAT, flexible="0+")

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: Annotated[String | None, wire(nullable="0+")]
    member_id: Annotated[String | None, wire(nullable="0+")] = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Int8 = _NULL
