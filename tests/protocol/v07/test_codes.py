"""The errors of 0.7 have the wiki's numbers."""

from __future__ import annotations

from cloudevents_kafka.protocol.v07.error_codes import CODES, PartitionError


def test_codes():
    """There are six, from -1 on, each with a name and some words that an error repeats."""
    assert {code: row.name for code, row in CODES.items()} == {
        -1: "UNKNOWN",
        0: "NO_ERROR",
        1: "OFFSET_OUT_OF_RANGE",
        2: "INVALID_MESSAGE",
        3: "WRONG_PARTITION",
        4: "INVALID_FETCH_SIZE",
    }
    for code, row in CODES.items():
        assert row.code == code
        assert all(text in str(PartitionError(code, "t", 0)) for text in (row.name, row.meaning))
