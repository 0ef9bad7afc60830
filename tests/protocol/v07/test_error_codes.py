"""The error codes of Kafka 0.7 have the wiki's numbers."""

from __future__ import annotations

from cloudevents_kafka.protocol.v07 import ErrorCode, PartitionError


def test_codes():
    """There are six codes, from -1 on; the text of an error has the name and message of its code."""
    assert {code.value: code.name for code in ErrorCode} == {
        -1: "UNKNOWN",
        0: "NO_ERROR",
        1: "OFFSET_OUT_OF_RANGE",
        2: "INVALID_MESSAGE",
        3: "WRONG_PARTITION",
        4: "INVALID_FETCH_SIZE",
    }
    for code in ErrorCode:
        assert str(PartitionError(code, "t", 0)) == f"t[0]: {code.name} ({code}): {code.message}"
