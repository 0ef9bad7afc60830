"""The APIs of groups: FindCoordinator, JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

import time
import uuid
from typing import Final

import msgspec

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import groups as messages
from cloudevents_kafka.protocol.messages.offsets import OffsetCommitRequest
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._errors import ApiError, CloseConnection, error_in, no_transactions
from tests.support.wire_broker._group import Group, JoinParameters, Member, State

_ID_FIRST: Final = 4
"""The version of JoinGroup from which new members receive an id first, and join with it (KIP-394)."""

_NAMES_PROTOCOL: Final = 5
"""The version of SyncGroup from which members name their protocol (KIP-559)."""
_TRANSACTIONAL_ID: Final = 1
"""The type of a key of FindCoordinator."""


def check_coordinator(call: Call, group_id: str) -> None:
    """Raise `ApiError` if another node coordinates the group."""
    call.check()
    if call.cluster.coordinator(group_id).id != call.node.id:
        raise ApiError(ErrorCode.NOT_COORDINATOR)


def check_group(call: Call, group_id: str) -> None:
    """Raise `ApiError` if another node coordinates the group, from 3.9 on also if the id is empty."""
    check_coordinator(call, group_id)
    if not group_id and call.release.number >= (3, 9):
        raise ApiError(ErrorCode.INVALID_GROUP_ID)


def find_coordinator(
    call: Call, request: messages.FindCoordinatorRequest
) -> messages.FindCoordinatorResponse:
    """Return the coordinator of a group; a transactional id is refused, as there are no transactions."""
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
        if key_type == _TRANSACTIONAL_ID:
            raise no_transactions()
        if key_type != 0:
            if call.release.number < (3, 9):
                raise CloseConnection(f"the type of a key must be 0 or 1, got {key_type}")
            raise ApiError(ErrorCode.INVALID_REQUEST)
        row.node_id, row.host, row.port = call.cluster.coordinator(key)
    return row


def join_group(call: Call, request: messages.JoinGroupRequest) -> messages.JoinGroupResponse:
    """Return the response once the generation begins; an error repeats the member's id."""
    response = messages.JoinGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_name=None if call.version >= 7 else "",
        leader="",
        member_id=request.member_id,
        members=[],
    )
    if call.release.number < (3, 9):  # the generation of an error
        response.generation_id = 0
    with error_in(response):
        group, member = _join(call, request)
        response.generation_id, response.leader = group.generation, group.leader
        response.member_id, response.protocol_type = member.id, member.parameters.type
        response.protocol_name = group.protocol
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


def _join(call: Call, request: messages.JoinGroupRequest) -> tuple[Group, Member]:
    """Return the group in its next generation, and the member."""
    check_coordinator(call, request.group_id)
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    least, greatest = call.cluster.settings.session_timeouts
    if not least <= request.session_timeout_ms <= greatest:
        raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
    group = call.cluster.group(request.group_id)
    session = request.session_timeout_ms / 1000
    parameters = JoinParameters(
        member_id=request.member_id,
        instance=request.group_instance_id,
        session_timeout=session,
        # S4-B3: "the session timeout was also used" in version 0
        rebalance_timeout=max(0, request.rebalance_timeout_ms) / 1000 if call.version else session,
        type=request.protocol_type,
        protocols={protocol.name: protocol.metadata for protocol in request.protocols},
        client_id=call.client_id or "",
    )
    _check_protocols(call, group, parameters)
    member = group.add_or_update(_with_member_id(call, group, parameters))
    if group.state is State.PREPARING_REBALANCE:
        group.wait_for_generation(member)
    return group, member


def _check_protocols(call: Call, group: Group, parameters: JoinParameters) -> None:
    if not parameters.protocols and not group.members and call.release.number < (1, 1):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, generation_id=-1)
    if (not parameters.protocols or not parameters.type) and call.release.number >= (1, 1):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    others = [member.parameters for member in group.members.values()]
    # S4-B4: "all members in the group support the same protocol type"
    if any(other.type != parameters.type for other in others):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if others and not any(all(name in o.protocols for o in others) for name in parameters.protocols):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _with_member_id(call: Call, group: Group, parameters: JoinParameters) -> JoinParameters:
    """Return the parameters with an id; a static member replaces the last one of its instance."""
    if parameters.member_id:
        if parameters.member_id not in group.pending_ids:
            _member(group, parameters.member_id, parameters.instance)
        return parameters
    prefix = parameters.client_id if parameters.instance is None else parameters.instance
    new = parameters._replace(member_id=f"{prefix}-{uuid.uuid4()}")
    former = group.static_member(parameters.instance)
    if former is not None:  # KIP-345: a restarted static member replaces itself
        group.remove(former.id)
    elif call.version >= _ID_FIRST and parameters.instance is None:
        group.pending_ids[new.member_id] = time.monotonic() + parameters.session_timeout
        raise ApiError(ErrorCode.MEMBER_ID_REQUIRED, member_id=new.member_id)
    return new


def sync_group(call: Call, request: messages.SyncGroupRequest) -> messages.SyncGroupResponse:
    """Return the member's assignment once the leader has sent them."""
    response = messages.SyncGroupResponse(error_code=ErrorCode.NONE, assignment=b"")
    with error_in(response):
        type, name = request.protocol_type, request.protocol_name
        if call.version >= _NAMES_PROTOCOL and (type is None or name is None):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        group, member = _present_member(call, request)
        _check_state(group, request.generation_id)
        if type not in {None, group.type} or name not in {None, group.protocol}:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is State.COMPLETING_REBALANCE and group.leader == member.id:
            group.assign({one.member_id: one.assignment for one in request.assignments})
        group.wait_for_leader(member)
        response.protocol_type, response.protocol_name = group.type, group.protocol
        response.assignment = group.members[request.member_id].assignment
    return response


def heartbeat(call: Call, request: messages.HeartbeatRequest) -> messages.HeartbeatResponse:
    """Record that the member is alive, and return the response."""
    response = messages.HeartbeatResponse(error_code=ErrorCode.NONE)
    with error_in(response):
        group, _ = _present_member(call, request)
        if group.state is State.COMPLETING_REBALANCE and call.release.number < (3, 9):
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        _check_state(group, request.generation_id)
    return response


def leave_group(call: Call, request: messages.LeaveGroupRequest) -> messages.LeaveGroupResponse:
    """Remove one member, from version 3 on several, and return the response."""
    response = messages.LeaveGroupResponse(error_code=ErrorCode.NONE)
    with error_in(response):
        check_group(call, request.group_id)
        if call.version < 3:
            _remove(call, request.group_id, request.member_id, None)
        response.members = [_leave(call, request.group_id, member) for member in request.members]
    return response


def _leave(call: Call, group_id: str, member: messages.MemberIdentity) -> messages.MemberResponse:
    id, instance = member.member_id, member.group_instance_id
    row = messages.MemberResponse(member_id=id, group_instance_id=instance, error_code=ErrorCode.NONE)
    with error_in(row):
        _remove(call, group_id, id, instance)
    return row


def _remove(call: Call, group_id: str, member_id: str, instance: str | None) -> None:
    """Remove a member at once; a static member may leave by its instance id alone."""
    group = call.cluster.group(group_id)
    static = group.static_member(instance)
    if static is not None and not member_id:
        member_id = static.id
    if group.pending_ids.pop(member_id, None) is None:
        group.remove(_member(group, member_id, instance).id)
    group.tick()
    call.cluster.changes.notify_all()


def check_commit(call: Call, request: OffsetCommitRequest) -> None:
    """Raise `ApiError` if the sender may not commit: all clients may if the group is empty."""
    check_coordinator(call, request.group_id)
    generation = request.generation_id_or_member_epoch
    if generation < 0 and not call.cluster.group(request.group_id).members:
        return
    if call.release.number < (0, 10) and not call.cluster.group(request.group_id).members:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    group, _ = _present_member(call, request)
    if generation != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is State.COMPLETING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)


def _present_member(
    call: Call, request: messages.SyncGroupRequest | messages.HeartbeatRequest | OffsetCommitRequest
) -> tuple[Group, Member]:
    """Return the group and the member that sent a request, which shows that it is alive."""
    check_group(call, request.group_id)
    group = call.cluster.group(request.group_id)
    member = _member(group, request.member_id, request.group_instance_id)
    member.last_heartbeat = time.monotonic()
    return group, member


def _member(group: Group, member_id: str, instance: str | None) -> Member:
    static = group.static_member(instance)
    if static is not None and static.id != member_id:
        raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
    if member_id not in group.members:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return group.members[member_id]


def _check_state(group: Group, generation: int) -> None:
    """Raise `ApiError` if a rebalance is in progress, or the generation is another one."""
    # S4-B6: "indicating that the member needs to rejoin", then "ILLEGAL_GENERATION errors"
    if group.state is State.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    if generation != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
