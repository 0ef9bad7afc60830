"""The APIs of groups: FindCoordinator, JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import groups as messages
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._coordinator import MemberIdRequired
from cloudevents_kafka.testing.wire_broker._errors import ApiError, error_code_of
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
    return messages.FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(call: Call, key: str, key_type: int) -> messages.Coordinator:
    code = error_code_of(call.check) or (0 if key_type == 0 else ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if code:
        return messages.Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=code, error_message=None
        )
    id, host, port = call.cluster.coordinator(key)
    return messages.Coordinator(
        key=key, node_id=id, host=host, port=port, error_code=ErrorCode.NONE, error_message=None
    )


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
    try:
        check_coordinator(call, request.group_id)
        joined = call.cluster.groups.join(request.group_id, parameters, id_first=call.version >= _ID_FIRST)
    except ApiError as error:
        new = error.member_id if isinstance(error, MemberIdRequired) else request.member_id
        protocol = None if call.version >= 7 else ""
        return messages.JoinGroupResponse(
            error_code=error.code, protocol_name=protocol, leader="", member_id=new, members=[]
        )
    return messages.JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=joined.generation,
        protocol_type=joined.type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        member_id=joined.member_id,
        members=[
            messages.JoinGroupResponseMember(
                member_id=member.id,
                group_instance_id=member.parameters.instance,
                metadata=member.parameters.protocols[joined.protocol],
            )
            for member in joined.members
        ],
    )


def sync_group(call: Call, request: messages.SyncGroupRequest) -> messages.SyncGroupResponse:
    """Return the member's assignment once the leader has sent them."""
    try:
        check_coordinator(call, request.group_id)
        group = call.cluster.groups.sync(
            request.group_id,
            (request.member_id, request.group_instance_id),
            request.generation_id,
            (request.protocol_type, request.protocol_name),
            {one.member_id: one.assignment for one in request.assignments},
        )
    except ApiError as error:
        return messages.SyncGroupResponse(error_code=error.code, assignment=b"")
    return messages.SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.type,
        protocol_name=group.protocol,
        assignment=group.members[request.member_id].assignment,
    )


def heartbeat(call: Call, request: messages.HeartbeatRequest) -> messages.HeartbeatResponse:
    """Record that the member is alive, and return the response."""

    def record() -> None:
        check_coordinator(call, request.group_id)
        member = request.member_id, request.group_instance_id
        call.cluster.groups.heartbeat(request.group_id, member, request.generation_id)

    return messages.HeartbeatResponse(error_code=error_code_of(record))


def leave_group(call: Call, request: messages.LeaveGroupRequest) -> messages.LeaveGroupResponse:
    """Remove one member, from version 3 on several, and return the response."""

    def remove(member_id: str, instance: str | None) -> int:
        return error_code_of(lambda: call.cluster.groups.leave(request.group_id, member_id, instance))

    code = error_code_of(lambda: check_coordinator(call, request.group_id))
    if code or call.version < 3:
        return messages.LeaveGroupResponse(error_code=code or remove(request.member_id, None))
    members = [
        messages.MemberResponse(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=remove(member.member_id, member.group_instance_id),
        )
        for member in request.members
    ]
    return messages.LeaveGroupResponse(error_code=ErrorCode.NONE, members=members)
