"""The error codes of Kafka 0.7, whose numbers have other meanings than those of `protocol.error_codes`."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import BrokerErrorCode
from cloudevents_kafka.protocol.errors import BrokerError


class ErrorCode(BrokerErrorCode):
    """The error codes of Kafka 0.7."""

    UNKNOWN = (
        -1,
        False,
        "the broker failed, perhaps because the topic is not a valid folder name; see its log",
    )
    NO_ERROR = 0, False, "no error; an unknown topic is an empty one"
    OFFSET_OUT_OF_RANGE = 1, False, "the log does not have the offset"
    INVALID_MESSAGE = 2, False, "a message does not match its checksum"
    WRONG_PARTITION = 3, False, "the broker has fewer partitions of the topic; partitions count from 0"
    INVALID_FETCH_SIZE = 4, False, "the requested size is too small or negative"


class PartitionError(BrokerError):
    """An error code in the response of a broker of Kafka 0.7.

    ``offset`` is None if the request had no offset.
    """

    def __init__(self, code: int, topic: str, partition: int, offset: int | None = None) -> None:
        """Create the error of a code; `ErrorCode` has its name and meaning."""
        self.topic: Final = topic
        self.partition: Final = partition
        self.offset: Final = offset
        subject = f"{topic}[{partition}]" if offset is None else f"{topic}[{partition}]@{offset}"
        super().__init__(code, subject, codes=ErrorCode)
