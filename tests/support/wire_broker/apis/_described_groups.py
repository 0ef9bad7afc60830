"""The APIs of tools that look at groups: DescribeGroups, ListGroups."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import groups as messages
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._errors import ApiError, error_in
from tests.support.wire_broker._group import Group, Member, State
from tests.support.wire_broker.apis._groups import check_coordinator

_DEAD: Final = "Dead"
_TYPE: Final = "classic"
_OPERATIONS: Final = 328
"""The bits of what a client may do with a group: read, delete, describe; later describe and alter configs."""
_OPERATIONS_4_3: Final = 3400


def describe_groups(call: Call, request: messages.DescribeGroupsRequest) -> messages.DescribeGroupsResponse:
    """Return the groups and their members; an unknown group is dead, from version 6 on an error."""
    ids = list(dict.fromkeys(request.groups)) if call.release.number < (3, 9) else request.groups
    return messages.DescribeGroupsResponse(
        groups=[_described(call, id, permissions=request.include_authorized_operations) for id in ids]
    )


def existing_groups(call: Call) -> dict[str, Group]:
    """Return the groups that exist; in 0.9 a group of offsets alone does not."""
    groups = call.cluster.existing_groups
    if call.release.number < (0, 10):
        return {id: group for id, group in groups.items() if group.type is not None}
    return groups


def _described(call: Call, id: str, *, permissions: bool) -> messages.DescribedGroup:
    row = messages.DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=id,
        group_state="",
        protocol_type="",
        protocol_data="",
        members=[],
    )
    with error_in(row):
        check_coordinator(call, id)
        group = existing_groups(call).get(id)
        row.group_state = _state(call, group)
        if group is None and call.version >= 6:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, error_message=f"Group {id} not found.")
        if group is not None:
            is_stable = group.state is State.STABLE
            row.protocol_type = group.type or ""
            row.protocol_data = (is_stable and group.protocol) or ""
            row.members = [_member(member, group if is_stable else None) for member in group.members.values()]
        if permissions:
            row.authorized_operations = _OPERATIONS_4_3 if call.release.name == "4.3" else _OPERATIONS
    return row


def _member(member: Member, stable: Group | None) -> messages.DescribedGroupMember:
    """Return a member, with its metadata and assignment if the group is stable."""
    return messages.DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.parameters.instance,
        client_id=member.parameters.client_id,
        client_host="/127.0.0.1",
        member_metadata=b"" if stable is None else member.parameters.protocols[stable.protocol or ""],
        member_assignment=b"" if stable is None else member.assignment,
    )


def list_groups(call: Call, request: messages.ListGroupsRequest) -> messages.ListGroupsResponse:
    """Return the groups that this node coordinates and the filters select, in any case of letters."""
    response = messages.ListGroupsResponse(error_code=ErrorCode.NONE, groups=[])
    with error_in(response):
        call.check()
        states, types = _lower(request.states_filter), _lower(request.types_filter)
        for id, group in existing_groups(call).items():
            state = _state(call, group)
            is_here = call.cluster.coordinator(id).id == call.node.id
            if is_here and (not states or state.lower() in states) and (not types or _TYPE in types):
                row = messages.ListedGroup(
                    group_id=id, protocol_type=group.type or "", group_state=state, group_type=_TYPE
                )
                response.groups.append(row)
    return response


def _lower(names: list[str]) -> set[str]:
    return {name.lower() for name in names}


def _state(call: Call, group: Group | None) -> str:
    if group is None:
        return _DEAD
    if group.state is State.COMPLETING_REBALANCE and call.release.number < (1, 1):
        return "AwaitingSync"
    return group.state.name.title().replace("_", "")
