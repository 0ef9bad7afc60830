"""Kafka's error codes: the number, name and meaning of each code, and whether the client may retry.

The names are taken from Kafka 4.4. `v07.ErrorCode` contains the error codes of Kafka 0.7. In Kafka 0.7, the
numbers of error codes have other meanings than in later versions.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

__all__ = ["ErrorCode"]


class BrokerErrorCode(IntEnum):
    """The base class of a protocol's error codes.

    ``retriable`` says whether the same request may succeed later; ``message`` is the meaning of the code.
    """

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool, message: str) -> Self:  # noqa: FBT001  # of a row
        """Create a member of the enumeration from one line of the class body."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    @classmethod
    def find(cls, code: int) -> Self | None:
        """Return the member with this number, or None if the number is unknown."""
        return next((member for member in cls if member == code), None)


class ErrorCode(BrokerErrorCode):
    """The error codes of Kafka 0.8 and later.

    Examples:
        >>> from cloudevents_kafka.protocol.error_codes import ErrorCode
        >>> ErrorCode.NOT_LEADER_OR_FOLLOWER.value, ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
        (6, True)
    """

    UNKNOWN_SERVER_ERROR = -1, False, "the broker failed for a reason that has no code; see the broker's log"
    NONE = 0, False, "no error"
    OFFSET_OUT_OF_RANGE = 1, False, "the partition does not have the offset"
    CORRUPT_MESSAGE = 2, True, "a message does not match its checksum, or its size is wrong"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "the broker does not have the topic or partition"
    INVALID_FETCH_SIZE = 4, False, "the requested size is negative"
    LEADER_NOT_AVAILABLE = 5, True, "the new partition has no leader yet, or an election is in progress"
    NOT_LEADER_OR_FOLLOWER = 6, True, "the broker does not lead the partition; the client's metadata is stale"
    REQUEST_TIMED_OUT = 7, True, "the replicas did not acknowledge within the timeout of the request"
    BROKER_NOT_AVAILABLE = 8, False, "a broker is not available; only brokers use this code"
    REPLICA_NOT_AVAILABLE = 9, True, "a replica is not available; ignore this if the metadata names a leader"
    MESSAGE_TOO_LARGE = 10, False, "a message is larger than the broker accepts (message.max.bytes)"
    STALE_CONTROLLER_EPOCH = 11, False, "the controller has moved; only brokers use this code"
    OFFSET_METADATA_TOO_LARGE = 12, False, "the metadata of an offset is too long (offset.metadata.max.bytes)"
    NETWORK_EXCEPTION = 13, True, "the broker disconnected before it answered"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "the coordinator is loading the group's offsets"
    COORDINATOR_NOT_AVAILABLE = 15, True, "the coordinator is missing: its topic is new or has no leader"
    NOT_COORDINATOR = 16, True, "the broker does not coordinate the group"
    INVALID_TOPIC_EXCEPTION = 17, False, "the topic's name is not allowed, or is internal"
    RECORD_LIST_TOO_LARGE = 18, False, "the batch is larger than a segment of the log (segment.bytes)"
    NOT_ENOUGH_REPLICAS = 19, True, "fewer replicas are in sync than min.insync.replicas requires"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "fewer replicas than min.insync.replicas have the records"
    INVALID_REQUIRED_ACKS = 21, False, "acks must be 0, 1 or -1"
    ILLEGAL_GENERATION = 22, False, "the group is in another generation; rejoin it"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "the group does not use the member's protocol or protocol type"
    INVALID_GROUP_ID = 24, False, "the group id is empty or not allowed"
    UNKNOWN_MEMBER_ID = 25, False, "the group does not have this member; its session may have expired; rejoin"
    INVALID_SESSION_TIMEOUT = 26, False, "the session timeout is outside group.min/max.session.timeout.ms"
    REBALANCE_IN_PROGRESS = 27, False, "the group is rebalancing; rejoin it"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "the commit is larger than a message may be"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "the client is not authorized for the topic"
    GROUP_AUTHORIZATION_FAILED = 30, False, "the client is not authorized for the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "the client is not authorized for this operation on the cluster"
    INVALID_TIMESTAMP = 32, False, "a timestamp is too far from the broker's time, or is not allowed"
    UNSUPPORTED_SASL_MECHANISM = 33, False, "the listener does not offer the SASL mechanism"
    ILLEGAL_SASL_STATE = 34, False, "the request is not allowed at this point of the authentication"
    UNSUPPORTED_VERSION = 35, False, "the broker does not support the version of the request"
    TOPIC_ALREADY_EXISTS = 36, False, "a topic with this name exists"
    INVALID_PARTITIONS = 37, False, "the number of partitions is less than 1 or than the current number"
    INVALID_REPLICATION_FACTOR = 38, False, "the replication factor must be from 1 to the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "the assignment of replicas is not possible"
    INVALID_CONFIG = 40, False, "a setting is unknown, or its value is not allowed"
    NOT_CONTROLLER = 41, True, "the broker is not the controller"
    INVALID_REQUEST = 42, False, "the request contradicts itself, or is not valid in its version"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "the message format of the topic is too old for the request"
    POLICY_VIOLATION = 44, False, "a policy of the cluster forbids the request"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "an earlier batch of the producer is missing"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "the batch was written before"
    INVALID_PRODUCER_EPOCH = 47, False, "a newer producer uses the transactional id"
    INVALID_TXN_STATE = 48, False, "the state of the transaction does not allow the request"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "the producer id does not belong to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "the timeout exceeds transaction.max.timeout.ms"
    CONCURRENT_TRANSACTIONS = 51, True, "the previous transaction is not complete yet"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "the transaction coordinator was replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "the client is not authorized for the transactional id"
    SECURITY_DISABLED = 54, False, "security features are disabled on the broker"
    OPERATION_NOT_ATTEMPTED = 55, False, "another part of the request failed, so this part was skipped"
    KAFKA_STORAGE_ERROR = 56, True, "the broker's disk failed"
    LOG_DIR_NOT_FOUND = 57, False, "the broker does not have the log directory"
    SASL_AUTHENTICATION_FAILED = 58, False, "the broker refused the credentials"
    UNKNOWN_PRODUCER_ID = 59, False, "the broker no longer has the producer id; its records have expired"
    REASSIGNMENT_IN_PROGRESS = 60, False, "a reassignment of partitions is in progress"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "delegation tokens are disabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "the broker does not have the delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "the delegation token belongs to another principal"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "this connection cannot request tokens"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "the client is not authorized for the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, False, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, False, "the type of the principal is unknown"
    NON_EMPTY_GROUP = 68, False, "the group has members"
    GROUP_ID_NOT_FOUND = 69, False, "the group does not exist"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "the broker no longer has the fetch session"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "the fetch session is at another epoch"
    LISTENER_NOT_FOUND = 72, True, "the leader does not have the listener that received the request"
    TOPIC_DELETION_DISABLED = 73, False, "the deletion of topics is disabled"
    FENCED_LEADER_EPOCH = 74, True, "the leader epoch is older than the broker's"
    UNKNOWN_LEADER_EPOCH = 75, True, "the leader epoch is newer than the broker's"
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "the request's version does not support the codec"
    STALE_BROKER_EPOCH = 77, False, "the broker's epoch is stale: the broker has registered again"
    OFFSET_NOT_AVAILABLE = 78, True, "the new leader does not have the high watermark yet"
    MEMBER_ID_REQUIRED = 79, False, "join again with the member id of this response"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "the preferred leader is not available"
    GROUP_MAX_SIZE_REACHED = 81, False, "the group is full (group.max.size)"
    FENCED_INSTANCE_ID = 82, False, "another member uses the group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "none of the replicas can be elected"
    ELECTION_NOT_NEEDED = 84, True, "the requested leader leads the partition already"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "a reassignment is not in progress"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "offsets of a subscribed topic cannot be deleted"
    INVALID_RECORD = 87, False, "a record fails the broker's validation"
    UNSTABLE_OFFSET_COMMIT = 88, True, "the offset belongs to an open transaction"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "the quota is exhausted for now"
    PRODUCER_FENCED = 90, False, "a newer producer uses the transactional id"
    RESOURCE_NOT_FOUND = 91, False, "the resource does not exist"
    DUPLICATE_RESOURCE = 92, False, "the request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, False, "the credential does not meet the requirements"
    INCONSISTENT_VOTER_SET = 94, False, "sets of voters are not the same; only controllers use this code"
    INVALID_UPDATE_VERSION = 95, False, "the version to update from is not the current version"
    FEATURE_UPDATE_FAILED = 96, False, "the feature could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "the forwarded principal cannot be decoded"
    SNAPSHOT_NOT_FOUND = 98, False, "the snapshot does not exist; only controllers use this code"
    POSITION_OUT_OF_RANGE = 99, False, "the position is outside the snapshot; only controllers use this code"
    UNKNOWN_TOPIC_ID = 100, True, "the broker does not have the topic id"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "a broker with this id is registered"
    BROKER_ID_NOT_REGISTERED = 102, False, "a broker with this id is not registered"
    INCONSISTENT_TOPIC_ID = 103, True, "the topic id differs from the broker's"
    INCONSISTENT_CLUSTER_ID = 104, False, "the cluster id differs from the broker's"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "the transactional id does not exist"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "the fetch session mixes topic names and topic ids"
    INELIGIBLE_REPLICA = 107, False, "the replica cannot join the replicas in sync"
    NEW_LEADER_ELECTED = 108, False, "the leader changed while the request was in progress"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "the offset is in tiered storage"
    FENCED_MEMBER_EPOCH = 110, False, "the epoch of the member is stale; rejoin the group"
    UNRELEASED_INSTANCE_ID = 111, False, "another member uses the group instance id"
    UNSUPPORTED_ASSIGNOR = 112, False, "the broker does not support the assignor"
    STALE_MEMBER_EPOCH = 113, False, "the epoch of the member is not the current epoch"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "the request is for another type of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "the type of endpoint is unknown"
    UNKNOWN_CONTROLLER_ID = 116, False, "the controller id is unknown"
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "the broker does not have the subscription to metrics"
    TELEMETRY_TOO_LARGE = 118, False, "the metrics are too large"
    INVALID_REGISTRATION = 119, False, "the controller refuses the broker's registration"
    TRANSACTION_ABORTABLE = 120, False, "the transaction failed; abort it and try again"
    INVALID_RECORD_STATE = 121, False, "the state of the share group's record does not allow the request"
    SHARE_SESSION_NOT_FOUND = 122, True, "the broker no longer has the share session"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "the share session is at another epoch"
    FENCED_STATE_EPOCH = 124, False, "the epoch of the share coordinator is stale"
    INVALID_VOTER_KEY = 125, False, "the voter has an unexpected key; only controllers use this code"
    DUPLICATE_VOTER = 126, False, "the voter is in the set already; only controllers use this code"
    VOTER_NOT_FOUND = 127, False, "the voter does not exist; only controllers use this code"
    INVALID_REGULAR_EXPRESSION = 128, False, "the regular expression of the subscription is not valid"
    REBOOTSTRAP_REQUIRED = 129, False, "the metadata is too old; use the bootstrap addresses"
    STREAMS_INVALID_TOPOLOGY = 130, False, "the topology of the streams group is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "the epoch of the topology is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, False, "the epoch of the topology is stale"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "the broker has reached its limit of share sessions"
    GROUP_DELETION_FAILED = 134, False, "the group could not be deleted"
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, False, "the description of the topology was not stored"
    CONTROLLER_ID_NOT_REGISTERED = (
        136,
        False,
        "the controller is not registered; only controllers use this code",
    )
