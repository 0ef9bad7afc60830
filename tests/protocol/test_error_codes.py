"""The error codes have Kafka's numbers, names and retriability."""

from __future__ import annotations

from cloudevents_kafka.protocol.error_codes import ErrorCode
from tests.support.cases import each

# The guide's table, in its order, with today's names.
GUIDE = """
NoError 0 NONE
Unknown -1 UNKNOWN_SERVER_ERROR
OffsetOutOfRange 1 OFFSET_OUT_OF_RANGE
InvalidMessage 2 CORRUPT_MESSAGE
UnknownTopicOrPartition 3 UNKNOWN_TOPIC_OR_PARTITION
InvalidMessageSize 4 INVALID_FETCH_SIZE
LeaderNotAvailable 5 LEADER_NOT_AVAILABLE
NotLeaderForPartition 6 NOT_LEADER_OR_FOLLOWER
RequestTimedOut 7 REQUEST_TIMED_OUT
BrokerNotAvailable 8 BROKER_NOT_AVAILABLE
Unused 9 REPLICA_NOT_AVAILABLE
MessageSizeTooLarge 10 MESSAGE_TOO_LARGE
StaleControllerEpochCode 11 STALE_CONTROLLER_EPOCH
OffsetMetadataTooLargeCode 12 OFFSET_METADATA_TOO_LARGE
OffsetsLoadInProgressCode 14 COORDINATOR_LOAD_IN_PROGRESS
ConsumerCoordinatorNotAvailableCode 15 COORDINATOR_NOT_AVAILABLE
NotCoordinatorForConsumerCode 16 NOT_COORDINATOR
"""


def test_guide():
    """Each number of the guide has its meaning under today's name."""
    rows = [line.split() for line in GUIDE.strip().split("\n")]
    assert {name: int(number) for _, number, name in rows} == {
        code.name: code.value for code in ErrorCode if code <= ErrorCode.NOT_COORDINATOR and code != 13
    }


def test_numbers():
    """Numbers run from -1 without a gap, so that no row is missing or repeated; each has a message."""
    assert list(ErrorCode) == list(range(-1, len(ErrorCode) - 1))
    assert all(len(code.message) > 5 for code in ErrorCode)


def test_retriable():
    """A client that follows the cluster's changes retries these codes, and not those."""
    assert all(ErrorCode.find(code).retriable for code in (3, 5, 6, 7, 9, 14, 15, 16))
    assert not any(ErrorCode.find(code).retriable for code in (0, 1, 4, 10, 12, 22, 25, 27))


@each("code", [-2, 9999, 32767])
def test_unknown(code):
    """An unknown number has no member."""
    assert ErrorCode.find(code) is None
