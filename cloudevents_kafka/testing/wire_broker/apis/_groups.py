"""The APIs of groups: FindCoordinator, JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from typing import Final

import msgspec

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import groups as messages
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._errors import ApiError, error_in
from cloudevents_kafka.testing.wire_broker._group import JoinParameters

_ID_FIRST: Final = 4
"""The version of JoinGroup from which new members receive an id first, and join with it (KIP-394)."""


def check_coordinator(call: Call, group_id: str) -> None:
    """Raise `ApiError` unless this node coordinates the group."""
    call.check()
    if call.cluster.coordinator(group_id).id != call.node.id:
        raise ApiError(ErrorCode.NOT_COORDINATOR)


def find_coordinator(
    call: Call, request: messages.FindCoordinatorRequest
) -> messages.FindCoordinatorResponse:
    """Return the coordinator of a group; transactional ids have no coordinator here."""
    if call.version >= 4:
        coordinators = [_coordinator(call, key, request.key_type) for key in request.coordinator_keys]
        return messages.FindCoordinatorResponse(coordinators=coordinators)
    found = _coordinator(call, request.key, request.key_type)
    return msgspec.convert(found, messages.FindCoordinatorResponse, from_attributes=True)


def _coordinator(call: Call, key: str, key_type: int) -> messages.Coordinator:
    row = messages.Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=ErrorCode.NONE, error_message=None
    )
    with error_in(row):
        call.check()
        if key_type != 0:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        row.node_id, row.host, row.port = call.cluster.coordinator(key)
    return row


def join_group(call: Call, request: messages.JoinGroupRequest) -> messages.JoinGroupResponse:
    """Return the response once the generation begins; an error repeats the member's id."""
    session = request.session_timeout_ms / 1000
    parameters = JoinParameters(
        member_id=request.member_id,
        client_id=call.client_id or "",
        instance=request.group_instance_id,
        session_timeout=session,
        rebalance_timeout=max(0, request.rebalance_timeout_ms) / 1000 if call.version else session,
        type=request.protocol_type,
        protocols={protocol.name: protocol.metadata for protocol in request.protocols},
    )
    response = messages.JoinGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_name=None if call.version >= 7 else "",
        leader="",
        member_id=request.member_id,
        members=[],
    )
    with error_in(response):
        check_coordinator(call, request.group_id)
        group, member = call.cluster.groups.join(
            request.group_id, parameters, id_first=call.version >= _ID_FIRST
        )
        response.generation_id, response.leader, response.member_id = (
            group.generation,
            group.leader,
            member.id,
        )
        response.protocol_type, response.protocol_name = member.parameters.type, group.protocol
        if group.leader == member.id:
            response.members = [
                messages.JoinGroupResponseMember(
                    member_id=one.id,
                    group_instance_id=one.parameters.instance,
                    metadata=one.parameters.protocols[group.protocol or ""],
                )
                for one in group.members.values()
            ]
    return response


def sync_group(call: Call, request: messages.SyncGroupRequest) -> messages.SyncGroupResponse:
    """Return the member's assignment once the leader has sent them."""
    response = messages.SyncGroupResponse(error_code=ErrorCode.NONE, assignment=b"")
    with error_in(response):
        check_coordinator(call, request.group_id)
        group = call.cluster.groups.sync(
            request.group_id,
            (request.member_id, request.group_instance_id),
            request.generation_id,
            (request.protocol_type, request.protocol_name),
            {one.member_id: one.assignment for one in request.assignments},
        )
        response.protocol_type, response.protocol_name = group.type, group.protocol
        response.assignment = group.members[request.member_id].assignment
    return response


def heartbeat(call: Call, request: messages.HeartbeatRequest) -> messages.HeartbeatResponse:
    """Record that the member is alive, and return the response."""
    response = messages.HeartbeatResponse(error_code=ErrorCode.NONE)
    with error_in(response):
        check_coordinator(call, request.group_id)
        member = request.member_id, request.group_instance_id
        call.cluster.groups.heartbeat(request.group_id, member, request.generation_id)
    return response


def leave_group(call: Call, request: messages.LeaveGroupRequest) -> messages.LeaveGroupResponse:
    """Remove one member, from version 3 on several, and return the response."""
    response = messages.LeaveGroupResponse(error_code=ErrorCode.NONE)
    with error_in(response):
        check_coordinator(call, request.group_id)
        if call.version < 3:
            call.cluster.groups.leave(request.group_id, request.member_id, None)
        response.members = [_leave(call, request.group_id, member) for member in request.members]
    return response


def _leave(call: Call, group_id: str, member: messages.MemberIdentity) -> messages.MemberResponse:
    id, instance = member.member_id, member.group_instance_id
    row = messages.MemberResponse(member_id=id, group_instance_id=instance, error_code=ErrorCode.NONE)
    with error_in(row):
        call.cluster.groups.leave(group_id, id, instance)
    return row
