"""What members of groups ask of their coordinator."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.coordinator import MemberIdRequired
from cloudevents_kafka.testing.wire_broker.errors import Refused, outcome
from cloudevents_kafka.testing.wire_broker.group import Joining

_ID_FIRST: Final = 4
"""From this version on newcomers are given an id first, and join with it (KIP-394)."""


def check_coordinator(call: Call, group_id: str) -> None:
    """Raise `Refused` unless this node keeps the group."""
    call.check()
    if call.cluster.coordinator(group_id).id != call.node.id:
        raise Refused(ErrorCode.NOT_COORDINATOR)


def join_group(call: Call, asked: JoinGroupRequest) -> JoinGroupResponse:
    """Answer when the generation begins; errors echo the member's id."""
    session = asked.session_timeout_ms / 1000
    said = Joining(
        member_id=asked.member_id,
        client_id=call.client_id or "",
        instance=asked.group_instance_id,
        session=session,
        rebalance=max(0, asked.rebalance_timeout_ms) / 1000 if call.version else session,
        type=asked.protocol_type,
        protocols={protocol.name: protocol.metadata for protocol in asked.protocols},
    )
    try:
        check_coordinator(call, asked.group_id)
        joined = call.cluster.groups.join(asked.group_id, said, id_first=call.version >= _ID_FIRST)
    except Refused as refused:
        new = refused.member_id if isinstance(refused, MemberIdRequired) else asked.member_id
        return _not_joined(refused.code, new, call.version)
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=joined.generation,
        protocol_type=joined.type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.id,
                group_instance_id=member.said.instance,
                metadata=member.said.protocols[joined.protocol],
            )
            for member in joined.members
        ],
    )


def _not_joined(code: int, member_id: str, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if version >= 7 else "",
        leader="",
        member_id=member_id,
        members=[],
    )


def sync_group(call: Call, asked: SyncGroupRequest) -> SyncGroupResponse:
    """Answer when the leader has handed out the assignments."""
    try:
        check_coordinator(call, asked.group_id)
        group = call.cluster.groups.sync(
            asked.group_id,
            (asked.member_id, asked.group_instance_id),
            asked.generation_id,
            (asked.protocol_type, asked.protocol_name),
            {one.member_id: one.assignment for one in asked.assignments},
        )
    except Refused as refused:
        return SyncGroupResponse(error_code=refused.code, assignment=b"")
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.type,
        protocol_name=group.protocol,
        assignment=group.members[asked.member_id].assignment,
    )


def heartbeat(call: Call, asked: HeartbeatRequest) -> HeartbeatResponse:
    """Note that the member is alive."""

    def beat() -> None:
        check_coordinator(call, asked.group_id)
        member = asked.member_id, asked.group_instance_id
        call.cluster.groups.heartbeat(asked.group_id, member, asked.generation_id)

    return HeartbeatResponse(error_code=outcome(beat))


def leave_group(call: Call, asked: LeaveGroupRequest) -> LeaveGroupResponse:
    """Let one member go, from version 3 on several."""
    code = outcome(lambda: check_coordinator(call, asked.group_id))
    if code:
        return LeaveGroupResponse(error_code=code)
    if call.version < 3:
        return LeaveGroupResponse(error_code=_left(call, asked.group_id, asked.member_id, None))
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=[_one_left(call, asked.group_id, member) for member in asked.members],
    )


def _one_left(call: Call, group_id: str, member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=_left(call, group_id, member.member_id, member.group_instance_id),
    )


def _left(call: Call, group_id: str, member_id: str, instance: str | None) -> int:
    return outcome(lambda: call.cluster.groups.leave(group_id, member_id, instance))
