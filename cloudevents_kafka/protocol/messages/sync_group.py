"""SyncGroup (14): hand out, as the leader, what each member is to read; get one's own part."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema.message import MessageSpec, Structure, wire
from cloudevents_kafka.protocol.schema.types import Bytes, Int16, Int32, String


class SyncGroupRequestAssignment(Structure, kw_only=True):
    """What one member is to read."""

    member_id: String
    assignment: Bytes


class SyncGroupRequest(Structure, kw_only=True):
    """Hand out the assignments; all but the leader send none."""

    spec: ClassVar = MessageSpec.of("SyncGroup", 14, "request", versions="0-5", flexible="4+")

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, wire("3+", nullable="3+")] = None
    protocol_type: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    protocol_name: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    assignments: list[SyncGroupRequestAssignment]


class SyncGroupResponse(Structure, kw_only=True):
    """What this member is to read."""

    spec: ClassVar = MessageSpec.of("SyncGroup", 14, "response", versions="0-5", flexible="4+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Int16
    protocol_type: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    protocol_name: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    assignment: Bytes
