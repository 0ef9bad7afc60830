"""The requests, responses and error codes of Kafka 0.7.

Messages of Kafka 0.7 have no versions; in this module, all messages have version 0. A request frame consists
of REQUEST_LENGTH, REQUEST_TYPE and a request. In Kafka's wiki, TOPIC and PARTITION are parts of the header;
in this module, they are fields of the request, so that single and multi requests have the same header. A
multi request consists of an int16 COUNT and COUNT single requests. A response frame consists of
RESPONSE_LENGTH and a response.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar, Final

from cloudevents_kafka.protocol.error_codes import BrokerErrorCode
from cloudevents_kafka.protocol.errors import BrokerError
from cloudevents_kafka.protocol.schema import (
    Bytes,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    Rest,
    String,
    Structure,
    spec_of,
    wire,
)

LATEST: Final = -1
"""The time in an `OffsetsRequest` that requests the end of the log and the starts of its segments.

Examples:
    >>> from cloudevents_kafka.protocol import v07
    >>> with v07.Connection("localhost", 9070) as connection:
    ...     connection.produce("orders", 0, [b"17"])
    ...     connection.offsets("orders", 0, v07.LATEST, 1)
    [12]
"""
EARLIEST: Final = -2
"""The time in an `OffsetsRequest` that requests the start of the log.

Examples:
    >>> from cloudevents_kafka.protocol import v07
    >>> with v07.Connection("localhost", 9070) as connection:
    ...     connection.produce("orders", 0, [b"17"])
    ...     connection.offsets("orders", 0, v07.EARLIEST, 1)
    [0]
"""
ANY_PARTITION: Final = -1
"""The partition in a `ProduceRequest` that lets the broker choose a partition at random."""


class RequestType(IntEnum):
    """The values of REQUEST_TYPE, with their names from Kafka's wiki."""

    PRODUCE = 0
    FETCH = 1
    MULTIFETCH = 2
    MULTIPRODUCE = 3
    OFFSETS = 4


class RequestHeader(Structure, kw_only=True):
    """The type of the request that follows."""

    spec: ClassVar = MessageSpec.of("0")

    request_type: Int16


class ProduceRequest(Structure, kw_only=True):
    """Append a message set to a partition.

    The broker does not respond. If the broker refuses the message set, the broker closes the connection.
    """

    spec: ClassVar = MessageSpec.of("0", RequestType.PRODUCE)

    topic: String
    partition: Int32
    messages: Bytes


class FetchRequest(Structure, kw_only=True):
    """Fetch up to ``max_size`` bytes of the log from a byte offset.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> from cloudevents_kafka.protocol.v07 import frames
        >>> request = v07.FetchRequest(topic="orders", partition=0, offset=7, max_size=1000)
        >>> frames.encode_request(request).hex()
        '0000001a000100066f7264657273000000000000000000000007000003e8'
    """

    spec: ClassVar = MessageSpec.of("0", RequestType.FETCH)

    topic: String
    partition: Int32
    offset: Int64
    max_size: Int32


class MultiFetchRequest(Structure, kw_only=True):
    """Several fetches in one request."""

    spec: ClassVar = MessageSpec.of("0", RequestType.MULTIFETCH)

    fetches: Annotated[list[FetchRequest], wire(short=True)]


class MultiProduceRequest(Structure, kw_only=True):
    """Several produce requests in one request. The broker does not respond."""

    spec: ClassVar = MessageSpec.of("0", RequestType.MULTIPRODUCE)

    produces: Annotated[list[ProduceRequest], wire(short=True)]


class OffsetsRequest(Structure, kw_only=True):
    """List the start offsets of the segments whose last write was before ``time``.

    ``time`` is in ms since 1970, or LATEST or EARLIEST.
    """

    spec: ClassVar = MessageSpec.of("0", RequestType.OFFSETS)

    topic: String
    partition: Int32
    time: Int64
    max_number: Int32


class FetchResponse(Structure, kw_only=True):
    """Bytes of the log, which extend to the end of the frame; the last message may be partial."""

    spec: ClassVar = MessageSpec.of("0", RequestType.FETCH)

    error_code: Int16
    messages: Rest = b""


class MultiFetchResponse(Structure, kw_only=True):
    """A `FetchResponse` for each fetch; each `FetchResponse` has its own length and error code.

    See `frames.split_responses` and `frames.join_responses`.
    """

    spec: ClassVar = MessageSpec.of("0", RequestType.MULTIFETCH)

    error_code: Int16
    responses: Rest = b""


class OffsetsResponse(Structure, kw_only=True):
    """The requested offsets, highest first; after an error, the list is empty."""

    spec: ClassVar = MessageSpec.of("0", RequestType.OFFSETS)

    error_code: Int16
    offsets: Annotated[list[Int64], wire(optional="0")] = []


REQUESTS: Final[dict[int, type[Structure]]] = {
    spec_of(structure).key: structure
    for structure in (ProduceRequest, FetchRequest, MultiFetchRequest, MultiProduceRequest, OffsetsRequest)
}
"""The requests, by REQUEST_TYPE."""

RESPONSES: Final[dict[int, type[Structure]]] = {
    spec_of(structure).key: structure for structure in (FetchResponse, MultiFetchResponse, OffsetsResponse)
}
"""The responses, by REQUEST_TYPE; the broker does not respond to the two produce requests."""


class ErrorCode(BrokerErrorCode):
    """The error codes of Kafka 0.7.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> v07.ErrorCode(1)
        <ErrorCode.OFFSET_OUT_OF_RANGE: 1>
    """

    UNKNOWN = (
        -1,
        False,
        "the broker failed, perhaps because the topic is not a valid folder name; see the broker's log",
    )
    NO_ERROR = 0, False, "no error; an unknown topic counts as an empty topic"
    OFFSET_OUT_OF_RANGE = 1, False, "the log does not have the offset"
    INVALID_MESSAGE = 2, False, "a message does not match its checksum"
    WRONG_PARTITION = 3, False, "the broker does not have this partition; partition numbers start at 0"
    INVALID_FETCH_SIZE = 4, False, "the requested size is too small or negative"


class PartitionError(BrokerError):
    """An error code in the response of a broker of Kafka 0.7.

    ``offset`` is None if the request contained no offset.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> print(v07.PartitionError(1, "orders", 0, offset=7))
        orders[0]@7: OFFSET_OUT_OF_RANGE (1): the log does not have the offset
    """

    def __init__(self, code: int, topic: str, partition: int, offset: int | None = None) -> None:
        """Create the error for a code; `ErrorCode` contains the code's name and meaning."""
        self.topic: Final = topic
        self.partition: Final = partition
        self.offset: Final = offset
        subject = f"{topic}[{partition}]" if offset is None else f"{topic}[{partition}]@{offset}"
        super().__init__(code, subject, codes=ErrorCode)
