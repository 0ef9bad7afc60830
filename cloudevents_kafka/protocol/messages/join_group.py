"""JoinGroup (11): become a member of a group, or come back into it when it rebalances."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema.message import MessageSpec, Structure, wire
from cloudevents_kafka.protocol.schema.types import Boolean, Bytes, Int16, Int32, String


class JoinGroupRequestProtocol(Structure, kw_only=True):
    """A protocol that the member supports, and what it says in it."""

    name: Annotated[String, wire(guide="ProtocolName")]
    metadata: Annotated[Bytes, wire(guide="ProtocolMetadata")]


class JoinGroupRequest(Structure, kw_only=True):
    """Join. The member id is empty at first, and from then on the one that was given."""

    spec: ClassVar = MessageSpec.of("JoinGroup", 11, "request", versions="0-9", flexible="6+")

    group_id: String
    session_timeout_ms: Annotated[Int32, wire(guide="SessionTimeout")]
    rebalance_timeout_ms: Annotated[Int32, wire("1+", ignorable=True, guide="RebalanceTimeout")] = -1
    member_id: String
    group_instance_id: Annotated[String | None, wire("5+", nullable="5+")] = None
    protocol_type: String
    protocols: Annotated[list[JoinGroupRequestProtocol], wire(guide="GroupProtocols")]
    reason: Annotated[String | None, wire("8+", nullable="8+", ignorable=True)] = None


class JoinGroupResponseMember(Structure, kw_only=True):
    """A member, as its leader gets to know it."""

    member_id: String
    group_instance_id: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    metadata: Annotated[Bytes, wire(guide="MemberMetadata")]


class JoinGroupResponse(Structure, kw_only=True):
    """The generation that was joined; only the leader is told the members."""

    spec: ClassVar = MessageSpec.of("JoinGroup", 11, "response", versions="0-9", flexible="6+")

    throttle_time_ms: Annotated[Int32, wire("2+", ignorable=True)] = 0
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, wire("7+", nullable="7+", ignorable=True)] = None
    protocol_name: Annotated[String | None, wire(nullable="7+", guide="GroupProtocol")]
    leader: Annotated[String, wire(guide="LeaderId")]
    skip_assignment: Annotated[Boolean, wire("9+")] = False
    member_id: String
    members: list[JoinGroupResponseMember]
