"""Broker errors: code, name, whether to try again, and what it means.

The names are those of today's brokers. The 0.8 guide calls some otherwise; `GUIDE_NAMES`
has its words. Codes that are not here are kept as numbers.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ErrorCode(NamedTuple):
    """One row of the table; ``retriable`` says that the same request may well succeed later."""

    code: int
    name: str
    retriable: bool
    meaning: str


_ROWS: Final = (
    ErrorCode(
        -1,
        "UNKNOWN_SERVER_ERROR",
        False,
        "the broker met an error that it has no code for; its log says more",
    ),
    ErrorCode(0, "NONE", False, "no error"),
    ErrorCode(1, "OFFSET_OUT_OF_RANGE", False, "the offset lies outside what the partition holds"),
    ErrorCode(2, "CORRUPT_MESSAGE", True, "a message does not fit its checksum, or its size is wrong"),
    ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", True, "this broker has no such topic or partition"),
    ErrorCode(4, "INVALID_FETCH_SIZE", False, "the size asked for is negative"),
    ErrorCode(
        5,
        "LEADER_NOT_AVAILABLE",
        True,
        "the partition has no leader for now: an election is going on, or the topic is new",
    ),
    ErrorCode(
        6,
        "NOT_LEADER_OR_FOLLOWER",
        True,
        "this broker does not lead the partition; the client's metadata is old",
    ),
    ErrorCode(7, "REQUEST_TIMED_OUT", True, "replicas did not acknowledge in the time that the request gave"),
    ErrorCode(8, "BROKER_NOT_AVAILABLE", False, "a broker is away; meant for brokers among themselves"),
    ErrorCode(
        9, "REPLICA_NOT_AVAILABLE", True, "a replica is down; in metadata with a leader, no reason to stop"
    ),
    ErrorCode(
        10, "MESSAGE_TOO_LARGE", False, "a message is larger than the broker takes (message.max.bytes)"
    ),
    ErrorCode(11, "STALE_CONTROLLER_EPOCH", False, "the controller has moved; among brokers"),
    ErrorCode(
        12,
        "OFFSET_METADATA_TOO_LARGE",
        False,
        "the text committed with an offset is too long (offset.metadata.max.bytes)",
    ),
    ErrorCode(13, "NETWORK_EXCEPTION", True, "the broker was disconnected before it could answer"),
    ErrorCode(
        14, "COORDINATOR_LOAD_IN_PROGRESS", True, "the coordinator is still loading the group's offsets"
    ),
    ErrorCode(
        15,
        "COORDINATOR_NOT_AVAILABLE",
        True,
        "there is no coordinator yet: its topic is being made, or has no leader",
    ),
    ErrorCode(16, "NOT_COORDINATOR", True, "this broker does not coordinate the group"),
    ErrorCode(
        17,
        "INVALID_TOPIC_EXCEPTION",
        False,
        "the topic's name is not allowed, or is that of an internal topic",
    ),
    ErrorCode(
        18, "RECORD_LIST_TOO_LARGE", False, "the batch is larger than a segment of the log (segment.bytes)"
    ),
    ErrorCode(
        19, "NOT_ENOUGH_REPLICAS", True, "fewer replicas are in sync than min.insync.replicas asks for"
    ),
    ErrorCode(
        20,
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        True,
        "written, but by fewer replicas than min.insync.replicas asks for",
    ),
    ErrorCode(21, "INVALID_REQUIRED_ACKS", False, "acks must be 0, 1 or -1"),
    ErrorCode(22, "ILLEGAL_GENERATION", False, "the group has moved on to another generation: rejoin"),
    ErrorCode(
        23,
        "INCONSISTENT_GROUP_PROTOCOL",
        False,
        "no protocol is common to all members, or the type differs from the group's",
    ),
    ErrorCode(24, "INVALID_GROUP_ID", False, "the group's name is empty or not allowed"),
    ErrorCode(
        25,
        "UNKNOWN_MEMBER_ID",
        False,
        "the group does not know this member, perhaps after its session ran out: rejoin as a new one",
    ),
    ErrorCode(
        26,
        "INVALID_SESSION_TIMEOUT",
        False,
        "the session timeout is outside what the broker allows (group.min/max.session.timeout.ms)",
    ),
    ErrorCode(27, "REBALANCE_IN_PROGRESS", False, "the group is rebalancing: rejoin"),
    ErrorCode(28, "INVALID_COMMIT_OFFSET_SIZE", False, "the commit is larger than a message may be"),
    ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", False, "the client may not use this topic"),
    ErrorCode(30, "GROUP_AUTHORIZATION_FAILED", False, "the client may not use this group"),
    ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", False, "the client may not do this in the cluster"),
    ErrorCode(
        32, "INVALID_TIMESTAMP", False, "a timestamp is too far from the broker's time, or not allowed"
    ),
    ErrorCode(33, "UNSUPPORTED_SASL_MECHANISM", False, "the listener does not offer this SASL mechanism"),
    ErrorCode(
        34, "ILLEGAL_SASL_STATE", False, "a request came that is not allowed at this point of authentication"
    ),
    ErrorCode(35, "UNSUPPORTED_VERSION", False, "the broker does not know this version of the request"),
    ErrorCode(36, "TOPIC_ALREADY_EXISTS", False, "a topic of this name exists"),
    ErrorCode(
        37, "INVALID_PARTITIONS", False, "the number of partitions is less than one, or less than there are"
    ),
    ErrorCode(
        38,
        "INVALID_REPLICATION_FACTOR",
        False,
        "the replication factor is less than one, or more than there are brokers",
    ),
    ErrorCode(39, "INVALID_REPLICA_ASSIGNMENT", False, "the assignment of replicas is not possible"),
    ErrorCode(40, "INVALID_CONFIG", False, "a setting is not known, or its value not allowed"),
    ErrorCode(41, "NOT_CONTROLLER", True, "this broker is not the controller"),
    ErrorCode(42, "INVALID_REQUEST", False, "the request contradicts itself, or does not fit its version"),
    ErrorCode(43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", False, "the topic's message format is too old for this"),
    ErrorCode(44, "POLICY_VIOLATION", False, "a policy of the cluster forbids this"),
    ErrorCode(
        45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, "a batch of this producer is missing before this one"
    ),
    ErrorCode(46, "DUPLICATE_SEQUENCE_NUMBER", False, "this batch has been written before"),
    ErrorCode(47, "INVALID_PRODUCER_EPOCH", False, "a newer producer has taken over this transactional id"),
    ErrorCode(48, "INVALID_TXN_STATE", False, "the transaction is not in a state for this"),
    ErrorCode(
        49, "INVALID_PRODUCER_ID_MAPPING", False, "the producer id is not the one of this transactional id"
    ),
    ErrorCode(
        50,
        "INVALID_TRANSACTION_TIMEOUT",
        False,
        "the transaction's timeout is larger than the broker allows (transaction.max.timeout.ms)",
    ),
    ErrorCode(51, "CONCURRENT_TRANSACTIONS", True, "the transaction before is still being completed"),
    ErrorCode(52, "TRANSACTION_COORDINATOR_FENCED", False, "this transaction coordinator has been replaced"),
    ErrorCode(
        53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "the client may not use this transactional id"
    ),
    ErrorCode(54, "SECURITY_DISABLED", False, "the broker has no security features switched on"),
    ErrorCode(55, "OPERATION_NOT_ATTEMPTED", False, "not tried, as another part of the request failed first"),
    ErrorCode(56, "KAFKA_STORAGE_ERROR", True, "the broker's disk failed"),
    ErrorCode(57, "LOG_DIR_NOT_FOUND", False, "the broker has no such log folder"),
    ErrorCode(58, "SASL_AUTHENTICATION_FAILED", False, "the credentials were refused"),
    ErrorCode(
        59, "UNKNOWN_PRODUCER_ID", False, "the broker has forgotten this producer: its records have expired"
    ),
    ErrorCode(60, "REASSIGNMENT_IN_PROGRESS", False, "partitions are being reassigned"),
    ErrorCode(61, "DELEGATION_TOKEN_AUTH_DISABLED", False, "delegation tokens are switched off"),
    ErrorCode(62, "DELEGATION_TOKEN_NOT_FOUND", False, "the broker has no such delegation token"),
    ErrorCode(63, "DELEGATION_TOKEN_OWNER_MISMATCH", False, "the delegation token belongs to another"),
    ErrorCode(
        64,
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        False,
        "delegation tokens cannot be asked for over this connection",
    ),
    ErrorCode(
        65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", False, "the client may not use this delegation token"
    ),
    ErrorCode(66, "DELEGATION_TOKEN_EXPIRED", False, "the delegation token has expired"),
    ErrorCode(67, "INVALID_PRINCIPAL_TYPE", False, "the kind of principal is not known"),
    ErrorCode(68, "NON_EMPTY_GROUP", False, "the group still has members"),
    ErrorCode(69, "GROUP_ID_NOT_FOUND", False, "there is no such group"),
    ErrorCode(70, "FETCH_SESSION_ID_NOT_FOUND", True, "the broker has forgotten this fetch session"),
    ErrorCode(71, "INVALID_FETCH_SESSION_EPOCH", True, "the fetch session is at another epoch"),
    ErrorCode(
        72, "LISTENER_NOT_FOUND", True, "the leader has no listener of the name that this one came in by"
    ),
    ErrorCode(73, "TOPIC_DELETION_DISABLED", False, "topics cannot be deleted here"),
    ErrorCode(74, "FENCED_LEADER_EPOCH", True, "the leader epoch is older than the broker's"),
    ErrorCode(75, "UNKNOWN_LEADER_EPOCH", True, "the leader epoch is newer than the broker's"),
    ErrorCode(
        76, "UNSUPPORTED_COMPRESSION_TYPE", False, "this version of the request cannot carry this compression"
    ),
    ErrorCode(77, "STALE_BROKER_EPOCH", False, "the broker has registered anew since"),
    ErrorCode(78, "OFFSET_NOT_AVAILABLE", True, "the new leader does not know the end of the log yet"),
    ErrorCode(79, "MEMBER_ID_REQUIRED", False, "join again with the member id that this answer holds"),
    ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", True, "the preferred leader is not there"),
    ErrorCode(81, "GROUP_MAX_SIZE_REACHED", False, "the group is full (group.max.size)"),
    ErrorCode(82, "FENCED_INSTANCE_ID", False, "another member has taken over this group instance id"),
    ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", True, "no replica can be elected"),
    ErrorCode(84, "ELECTION_NOT_NEEDED", True, "the partition has the leader that was asked for"),
    ErrorCode(85, "NO_REASSIGNMENT_IN_PROGRESS", False, "no reassignment is going on"),
    ErrorCode(
        86, "GROUP_SUBSCRIBED_TO_TOPIC", False, "the group reads this topic, so its offsets cannot be deleted"
    ),
    ErrorCode(87, "INVALID_RECORD", False, "a record fails the broker's checks"),
    ErrorCode(88, "UNSTABLE_OFFSET_COMMIT", True, "an offset of an open transaction is not decided yet"),
    ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", True, "a quota is used up for now"),
    ErrorCode(90, "PRODUCER_FENCED", False, "a newer producer has taken over this transactional id"),
    ErrorCode(91, "RESOURCE_NOT_FOUND", False, "there is no such resource"),
    ErrorCode(92, "DUPLICATE_RESOURCE", False, "a resource was named twice"),
    ErrorCode(93, "UNACCEPTABLE_CREDENTIAL", False, "the credential does not meet the rules"),
    ErrorCode(94, "INCONSISTENT_VOTER_SET", False, "the set of voters differs; among controllers"),
    ErrorCode(95, "INVALID_UPDATE_VERSION", False, "the version to update from is not the current one"),
    ErrorCode(96, "FEATURE_UPDATE_FAILED", False, "a feature could not be updated"),
    ErrorCode(
        97, "PRINCIPAL_DESERIALIZATION_FAILURE", False, "a forwarded principal cannot be read; among brokers"
    ),
    ErrorCode(98, "SNAPSHOT_NOT_FOUND", False, "there is no such snapshot; among controllers"),
    ErrorCode(
        99, "POSITION_OUT_OF_RANGE", False, "the position lies outside the snapshot; among controllers"
    ),
    ErrorCode(100, "UNKNOWN_TOPIC_ID", True, "this broker has no topic of this id"),
    ErrorCode(101, "DUPLICATE_BROKER_REGISTRATION", False, "a broker of this id is registered"),
    ErrorCode(102, "BROKER_ID_NOT_REGISTERED", False, "no broker of this id is registered"),
    ErrorCode(103, "INCONSISTENT_TOPIC_ID", True, "the topic's id differs from the broker's"),
    ErrorCode(104, "INCONSISTENT_CLUSTER_ID", False, "the cluster's id differs from the broker's"),
    ErrorCode(105, "TRANSACTIONAL_ID_NOT_FOUND", False, "there is no such transactional id"),
    ErrorCode(106, "FETCH_SESSION_TOPIC_ID_ERROR", True, "the fetch session mixes topic names and ids"),
    ErrorCode(107, "INELIGIBLE_REPLICA", False, "the replica cannot join the in-sync ones"),
    ErrorCode(108, "NEW_LEADER_ELECTED", False, "the leader changed while the request ran"),
    ErrorCode(109, "OFFSET_MOVED_TO_TIERED_STORAGE", False, "the offset lies in tiered storage"),
    ErrorCode(110, "FENCED_MEMBER_EPOCH", False, "the member's epoch is old: rejoin"),
    ErrorCode(111, "UNRELEASED_INSTANCE_ID", False, "another member holds this group instance id"),
    ErrorCode(112, "UNSUPPORTED_ASSIGNOR", False, "the broker does not know this assignor"),
    ErrorCode(113, "STALE_MEMBER_EPOCH", False, "the member's epoch is not the current one"),
    ErrorCode(114, "MISMATCHED_ENDPOINT_TYPE", False, "the request was meant for another kind of endpoint"),
    ErrorCode(115, "UNSUPPORTED_ENDPOINT_TYPE", False, "this kind of endpoint is not known"),
    ErrorCode(116, "UNKNOWN_CONTROLLER_ID", False, "there is no controller of this id"),
    ErrorCode(117, "UNKNOWN_SUBSCRIPTION_ID", False, "the broker does not know this subscription to metrics"),
    ErrorCode(118, "TELEMETRY_TOO_LARGE", False, "the metrics sent are too large"),
    ErrorCode(119, "INVALID_REGISTRATION", False, "the controller refuses the broker's registration"),
    ErrorCode(120, "TRANSACTION_ABORTABLE", False, "the transaction failed; abort it and try again"),
    ErrorCode(121, "INVALID_RECORD_STATE", False, "the record of a share group is not in a state for this"),
    ErrorCode(122, "SHARE_SESSION_NOT_FOUND", True, "the broker has forgotten this share session"),
    ErrorCode(123, "INVALID_SHARE_SESSION_EPOCH", True, "the share session is at another epoch"),
    ErrorCode(124, "FENCED_STATE_EPOCH", False, "the share coordinator's epoch is old"),
    ErrorCode(125, "INVALID_VOTER_KEY", False, "the voter's key is not the expected one; among controllers"),
    ErrorCode(126, "DUPLICATE_VOTER", False, "the voter is there already; among controllers"),
    ErrorCode(127, "VOTER_NOT_FOUND", False, "there is no such voter; among controllers"),
    ErrorCode(
        128, "INVALID_REGULAR_EXPRESSION", False, "the regular expression of a subscription cannot be read"
    ),
    ErrorCode(
        129,
        "REBOOTSTRAP_REQUIRED",
        False,
        "the client's metadata is too old: start again from the bootstrap addresses",
    ),
    ErrorCode(130, "STREAMS_INVALID_TOPOLOGY", False, "the topology of the streams group is not valid"),
    ErrorCode(131, "STREAMS_INVALID_TOPOLOGY_EPOCH", False, "the epoch of the topology is not valid"),
    ErrorCode(132, "STREAMS_TOPOLOGY_FENCED", False, "the epoch of the topology is old"),
    ErrorCode(133, "SHARE_SESSION_LIMIT_REACHED", True, "the broker has no room for another share session"),
)

CODES: Final = {row.code: row for row in _ROWS}
"""The rows by their code."""

GUIDE_NAMES: Final = {
    -1: "Unknown",
    0: "NoError",
    1: "OffsetOutOfRange",
    2: "InvalidMessage",
    3: "UnknownTopicOrPartition",
    4: "InvalidMessageSize",
    5: "LeaderNotAvailable",
    6: "NotLeaderForPartition",
    7: "RequestTimedOut",
    8: "BrokerNotAvailable",
    9: "Unused",
    10: "MessageSizeTooLarge",
    11: "StaleControllerEpochCode",
    12: "OffsetMetadataTooLargeCode",
    14: "OffsetsLoadInProgressCode",
    15: "ConsumerCoordinatorNotAvailableCode",
    16: "NotCoordinatorForConsumerCode",
}
"""What the guide to the 0.8 protocol calls them; it leaves 13 out."""
