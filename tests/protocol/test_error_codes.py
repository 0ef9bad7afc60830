"""Error codes have the guide's numbers, and whether to try again."""

from __future__ import annotations

from cloudevents_kafka.protocol.error_codes import CODES, GUIDE_NAMES

# The guide's table, in its order.
GUIDE = """
NoError 0
Unknown -1
OffsetOutOfRange 1
InvalidMessage 2
UnknownTopicOrPartition 3
InvalidMessageSize 4
LeaderNotAvailable 5
NotLeaderForPartition 6
RequestTimedOut 7
BrokerNotAvailable 8
Unused 9
MessageSizeTooLarge 10
StaleControllerEpochCode 11
OffsetMetadataTooLargeCode 12
OffsetsLoadInProgressCode 14
ConsumerCoordinatorNotAvailableCode 15
NotCoordinatorForConsumerCode 16
"""


def test_guide():
    """The guide's names are kept under its numbers; each number has a name of today as well."""
    rows = [line.split() for line in GUIDE.split("\n") if line]
    assert {int(code): name for name, code in rows} == GUIDE_NAMES
    assert GUIDE_NAMES.keys() <= CODES.keys()


def test_table():
    """Codes run without a gap from -1 on; names are unlike each other, and meanings say something."""
    assert list(CODES) == list(range(-1, len(CODES) - 1))
    assert all(code == row.code for code, row in CODES.items())
    assert len({row.name for row in CODES.values()}) == len(CODES)
    assert all(len(row.meaning) > 5 for row in CODES.values())


def test_retriable():
    """A client that follows a cluster's changes tries these again, and these not."""
    assert all(CODES[code].retriable for code in (3, 5, 6, 7, 9, 14, 15, 16))
    assert not any(CODES[code].retriable for code in (0, 1, 4, 10, 12, 22, 25, 27))
