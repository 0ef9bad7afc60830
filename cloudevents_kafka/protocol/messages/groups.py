"""The APIs of consumer groups.

Members send FindCoordinator (10), JoinGroup (11), SyncGroup (14), Heartbeat (12) and LeaveGroup (13).
Tools send DescribeGroups (15) and ListGroups (16).

`Subscription` and `Assignment` are the metadata that consumers exchange through the coordinator, which does
not read this metadata. Each `Subscription` and `Assignment` starts with its version, an int16. All consumers
support version 0; later versions add incremental rebalancing.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.schema import (
    Boolean,
    Bytes,
    Int8,
    Int16,
    Int32,
    MessageSpec,
    String,
    Structure,
    wire,
)


class FindCoordinatorRequest(Structure, kw_only=True):
    """Find the coordinator of a group (key type 0) or of a transactional id (key type 1).

    From version 4 on, a request may ask for the coordinators of several keys.
    """

    spec: ClassVar = MessageSpec.of(
        "0-6", ApiKey.FIND_COORDINATOR, flexible="3+", guide="ConsumerMetadataRequest"
    )

    key: Annotated[String, wire("0-3", guide="ConsumerGroup")] = ""
    key_type: Annotated[Int8, wire("1+")] = 0
    coordinator_keys: Annotated[list[String], wire("4+")] = []


class Coordinator(Structure, kw_only=True):
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: Annotated[String | None, wire(nullable="4+", ignorable=True)]


class FindCoordinatorResponse(Structure, kw_only=True):
    """The coordinator's id and address; after an error, id and port are -1, and the host is ""."""

    spec: ClassVar = MessageSpec.of(
        "0-6", ApiKey.FIND_COORDINATOR, flexible="3+", guide="ConsumerMetadataResponse"
    )

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Annotated[Int16, wire("0-3")] = 0
    error_message: Annotated[String | None, wire("1-3", nullable="1-3", ignorable=True)] = ""
    # S0-A19: "On a successful … response"
    node_id: Annotated[Int32, wire("0-3", guide="CoordinatorId", optional="0")] = 0
    host: Annotated[String, wire("0-3", guide="CoordinatorHost", optional="0")] = ""
    port: Annotated[Int32, wire("0-3", guide="CoordinatorPort", optional="0")] = 0
    coordinators: Annotated[list[Coordinator], wire("4+")] = []


class JoinGroupRequestProtocol(Structure, kw_only=True):
    name: Annotated[String, wire(guide="ProtocolName")]
    metadata: Annotated[Bytes, wire(guide="ProtocolMetadata")]


class JoinGroupRequest(Structure, kw_only=True):
    """Join a group; the member id is "" at first, and later the id from the response."""

    spec: ClassVar = MessageSpec.of("0-9", ApiKey.JOIN_GROUP, flexible="6+")

    group_id: String
    session_timeout_ms: Annotated[Int32, wire(guide="SessionTimeout")]
    # S4-R2: "supported in 0.10.1.0 and greater"
    rebalance_timeout_ms: Annotated[Int32, wire("1+", ignorable=True, guide="RebalanceTimeout")] = -1
    member_id: String  # S4-B1: at first "the memberId will be empty"
    group_instance_id: Annotated[String | None, wire("5+", nullable="5+")] = None
    protocol_type: String  # S4-B4: "all members … support the same protocol type"
    protocols: Annotated[list[JoinGroupRequestProtocol], wire(guide="GroupProtocols")]
    reason: Annotated[String | None, wire("8+", nullable="8+", ignorable=True)] = None


class JoinGroupResponseMember(Structure, kw_only=True):
    """A member of the group, as the group's leader receives it."""

    member_id: String
    group_instance_id: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    metadata: Annotated[Bytes, wire(guide="MemberMetadata")]


class JoinGroupResponse(Structure, kw_only=True):
    """The group generation that the member has joined; only the group's leader receives the members."""

    spec: ClassVar = MessageSpec.of("0-9", ApiKey.JOIN_GROUP, flexible="6+")

    throttle_time_ms: Annotated[Int32, wire("2+", ignorable=True)] = 0
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, wire("7+", nullable="7+", ignorable=True)] = None
    protocol_name: Annotated[String | None, wire(nullable="7+", guide="GroupProtocol")]
    leader: Annotated[String, wire(guide="LeaderId")]
    skip_assignment: Annotated[Boolean, wire("9+")] = False
    member_id: String
    members: list[JoinGroupResponseMember]


class SyncGroupRequestAssignment(Structure, kw_only=True):
    member_id: String
    assignment: Bytes


class SyncGroupRequest(Structure, kw_only=True):
    """Send the assignments of all members; only the group's leader sends assignments."""

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.SYNC_GROUP, flexible="4+")

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, wire("3+", nullable="3+")] = None
    protocol_type: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    protocol_name: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    assignments: list[SyncGroupRequestAssignment]


class SyncGroupResponse(Structure, kw_only=True):
    """The partitions that are assigned to the member that sent the request."""

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.SYNC_GROUP, flexible="4+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Int16
    protocol_type: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    protocol_name: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    assignment: Bytes


class HeartbeatRequest(Structure, kw_only=True):
    """Keep the membership of a group alive."""

    spec: ClassVar = MessageSpec.of("0-4", ApiKey.HEARTBEAT, flexible="4+")

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, wire("3+", nullable="3+")] = None


class HeartbeatResponse(Structure, kw_only=True):
    """The result of a heartbeat; REBALANCE_IN_PROGRESS requires the member to rejoin."""

    spec: ClassVar = MessageSpec.of("0-4", ApiKey.HEARTBEAT, flexible="4+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Int16


class MemberIdentity(Structure, kw_only=True):
    """A member that leaves the group."""

    member_id: String
    group_instance_id: Annotated[String | None, wire(nullable="3+")] = None
    reason: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None


class LeaveGroupRequest(Structure, kw_only=True):
    """Remove one member from a group; from version 3 on, a request may remove several members."""

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.LEAVE_GROUP, flexible="4+")

    group_id: String
    member_id: Annotated[String, wire("0-2")] = ""
    members: Annotated[list[MemberIdentity], wire("3+")] = []


class MemberResponse(Structure, kw_only=True):
    member_id: String
    group_instance_id: Annotated[String | None, wire(nullable="3+")]
    error_code: Int16


class LeaveGroupResponse(Structure, kw_only=True):
    """The result of leaving the group."""

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.LEAVE_GROUP, flexible="4+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Int16
    members: Annotated[list[MemberResponse], wire("3+")] = []


class DescribeGroupsRequest(Structure, kw_only=True):
    """Describe groups; the request must be sent to the coordinator of these groups."""

    spec: ClassVar = MessageSpec.of("0-6", ApiKey.DESCRIBE_GROUPS, flexible="5+")

    groups: list[String]
    include_authorized_operations: Annotated[Boolean, wire("3+")] = False


class DescribedGroupMember(Structure, kw_only=True):
    member_id: String
    group_instance_id: Annotated[String | None, wire("4+", nullable="4+", ignorable=True)] = None
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribedGroup(Structure, kw_only=True):
    """A group: its state, protocol type, chosen protocol and members."""

    error_code: Int16
    error_message: Annotated[String | None, wire("6+", nullable="6+")] = None
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: list[DescribedGroupMember]
    authorized_operations: Annotated[Int32, wire("3+")] = -2147483648


class DescribeGroupsResponse(Structure, kw_only=True):
    """The described groups, each with its own result."""

    spec: ClassVar = MessageSpec.of("0-6", ApiKey.DESCRIBE_GROUPS, flexible="5+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    groups: list[DescribedGroup]


class ListGroupsRequest(Structure, kw_only=True):
    """List the groups that a broker coordinates; an empty filter selects all groups."""

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.LIST_GROUPS, flexible="3+")

    states_filter: Annotated[list[String], wire("4+")] = []
    types_filter: Annotated[list[String], wire("5+")] = []


class ListedGroup(Structure, kw_only=True):
    group_id: String
    protocol_type: String
    group_state: Annotated[String, wire("4+", ignorable=True)] = ""
    group_type: Annotated[String, wire("5+", ignorable=True)] = ""


class ListGroupsResponse(Structure, kw_only=True):
    """The groups that the broker coordinates."""

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.LIST_GROUPS, flexible="3+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Int16
    groups: list[ListedGroup]


class Subscription(Structure, kw_only=True):
    """The topics to which a member subscribes."""

    spec: ClassVar = MessageSpec.of("0")

    version: Int16 = 0
    topics: list[String]
    user_data: Annotated[Bytes | None, wire(nullable="0+")] = None


class AssignedTopic(Structure, kw_only=True):
    topic: String
    partitions: list[Int32]


class Assignment(Structure, kw_only=True):
    """The partitions that are assigned to a member."""

    spec: ClassVar = MessageSpec.of("0")

    version: Int16 = 0
    topics: list[AssignedTopic]
    user_data: Annotated[Bytes | None, wire(nullable="0+")] = None
