"""Error codes of Kafka 0.7, whose numbers mean other things than those of `protocol.error_codes`."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError

_ROWS: Final = (
    ErrorCode(
        -1,
        "UNKNOWN",
        False,
        "the broker failed, maybe as the topic is no name of a folder; its log says more",
    ),
    ErrorCode(0, "NO_ERROR", False, "no error; an unknown topic is none either, it has no bytes"),
    ErrorCode(1, "OFFSET_OUT_OF_RANGE", False, "the log does not reach to the offset, or no longer has it"),
    ErrorCode(2, "INVALID_MESSAGE", False, "a message does not fit its checksum"),
    ErrorCode(3, "WRONG_PARTITION", False, "this broker has fewer partitions of the topic, counted from 0"),
    ErrorCode(4, "INVALID_FETCH_SIZE", False, "the size asked for is too small or negative"),
)

CODES: Final = {row.code: row for row in _ROWS}
"""The errors of 0.7 by their number."""


class PartitionError(BrokerError):
    """A broker's answer with an error code, with what it was asked about.

    ``offset`` is None where the request had none.
    """

    def __init__(self, code: int, topic: str, partition: int, offset: int | None = None) -> None:
        """Look the code up in 0.7's table."""
        self.topic: Final = topic
        self.partition: Final = partition
        self.offset: Final = offset
        place = f"{topic}-{partition}" if offset is None else f"{topic}-{partition} at offset {offset}"
        super().__init__(code, place, codes=CODES)
