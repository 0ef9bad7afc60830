"""Heartbeat (12): stay a member of a group, and hear that it rebalances."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema.message import MessageSpec, Structure, wire
from cloudevents_kafka.protocol.schema.types import Int16, Int32, String


class HeartbeatRequest(Structure, kw_only=True):
    """Tell that this member is alive."""

    spec: ClassVar = MessageSpec.of("Heartbeat", 12, "request", versions="0-4", flexible="4+")

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, wire("3+", nullable="3+")] = None


class HeartbeatResponse(Structure, kw_only=True):
    """Whether all is well; 27 calls for joining again."""

    spec: ClassVar = MessageSpec.of("Heartbeat", 12, "response", versions="0-4", flexible="4+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Int16
