"""LeaveGroup (13): leave a group at once, rather than by silence."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema.message import MessageSpec, Structure, wire
from cloudevents_kafka.protocol.schema.types import Int16, Int32, String


class MemberIdentity(Structure, kw_only=True):
    """A member that leaves."""

    member_id: String
    group_instance_id: Annotated[String | None, wire(nullable="3+")] = None
    reason: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None


class LeaveGroupRequest(Structure, kw_only=True):
    """Leave: one member, from version 3 on several."""

    spec: ClassVar = MessageSpec.of("LeaveGroup", 13, "request", versions="0-5", flexible="4+")

    group_id: String
    member_id: Annotated[String, wire("0-2")] = ""
    members: Annotated[list[MemberIdentity], wire("3+")] = []


class MemberResponse(Structure, kw_only=True):
    """Whether one of several members could leave."""

    member_id: String
    group_instance_id: Annotated[String | None, wire(nullable="3+")]
    error_code: Int16


class LeaveGroupResponse(Structure, kw_only=True):
    """Whether the member could leave."""

    spec: ClassVar = MessageSpec.of("LeaveGroup", 13, "response", versions="0-5", flexible="4+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Int16
    members: Annotated[list[MemberResponse], wire("3+")] = []
