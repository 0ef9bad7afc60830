"""The requests and responses of Kafka 0.7, which has no versions: each is declared as version 0.

A request is REQUEST_LENGTH, REQUEST_TYPE and one of these. That puts TOPIC and PARTITION,
which the wiki draws as a part of the header, into the message, and what is left of the
header is the same for single and multi requests. A multi request is then its COUNT, an int16,
and that many single ones. A response is RESPONSE_LENGTH and one of these.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar, Final, TypeAlias

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
"""As the time of an `OffsetsRequest`: the end of the log, and the starts of its segments."""
EARLIEST: Final = -2
"""As the time of an `OffsetsRequest`: the start of the log."""
ANY_PARTITION: Final = -1
"""As the partition of a `ProduceRequest`: the broker picks one at random."""


class RequestType(IntEnum):
    """REQUEST_TYPE, by the wiki's names."""

    PRODUCE = 0
    FETCH = 1
    MULTIFETCH = 2
    MULTIPRODUCE = 3
    OFFSETS = 4


def _request(type: RequestType) -> MessageSpec:
    return MessageSpec.of(type.name.title(), type, "request", versions="0")


def _response(type: RequestType) -> MessageSpec:
    return MessageSpec.of(type.name.title(), type, "response", versions="0")


class RequestHeader(Structure, kw_only=True):
    """What kind of request follows."""

    spec: ClassVar = MessageSpec.of("RequestHeader", -1, "header", versions="0")

    request_type: Int16


class ProduceRequest(Structure, kw_only=True):
    """Append a message set to a partition; never answered, and a bad one ends the connection."""

    spec: ClassVar = _request(RequestType.PRODUCE)

    topic: String
    partition: Int32
    messages: Bytes


class FetchRequest(Structure, kw_only=True):
    """Ask for ``max_size`` bytes of the log from a byte position on."""

    spec: ClassVar = _request(RequestType.FETCH)

    topic: String
    partition: Int32
    offset: Int64
    max_size: Int32


class MultiFetchRequest(Structure, kw_only=True):
    """Several fetches in one."""

    spec: ClassVar = _request(RequestType.MULTIFETCH)

    fetches: Annotated[list[FetchRequest], wire(short=True)]


class MultiProduceRequest(Structure, kw_only=True):
    """Several produce requests in one; never answered."""

    spec: ClassVar = _request(RequestType.MULTIPRODUCE)

    produces: Annotated[list[ProduceRequest], wire(short=True)]


class OffsetsRequest(Structure, kw_only=True):
    """Ask for the starts of segments last written to before a time: ms since 1970, LATEST, EARLIEST."""

    spec: ClassVar = _request(RequestType.OFFSETS)

    topic: String
    partition: Int32
    time: Int64
    max_number: Int32


class FetchResponse(Structure, kw_only=True):
    """Bytes of the log as they are, up to the end of the frame: the last message may be cut."""

    spec: ClassVar = _response(RequestType.FETCH)

    error_code: Int16
    messages: Rest = b""


class MultiFetchResponse(Structure, kw_only=True):
    """One `FetchResponse` for each part asked for, each with its own length and error.

    `frames.split` parts them, `frames.joined` puts them together.
    """

    spec: ClassVar = _response(RequestType.MULTIFETCH)

    error_code: Int16
    responses: Rest = b""


class OffsetsResponse(Structure, kw_only=True):
    """Offsets, the highest first; none where there is an error."""

    spec: ClassVar = _response(RequestType.OFFSETS)

    error_code: Int16
    offsets: Annotated[list[Int64], wire(optional="0")] = []


Request: TypeAlias = ProduceRequest | FetchRequest | MultiFetchRequest | MultiProduceRequest | OffsetsRequest
Response: TypeAlias = FetchResponse | MultiFetchResponse | OffsetsResponse

REQUESTS: Final[dict[int, type[Structure]]] = {
    spec_of(structure).key: structure
    for structure in (ProduceRequest, FetchRequest, MultiFetchRequest, MultiProduceRequest, OffsetsRequest)
}
"""The requests, by REQUEST_TYPE."""

RESPONSES: Final[dict[int, type[Structure]]] = {
    spec_of(structure).key: structure for structure in (FetchResponse, MultiFetchResponse, OffsetsResponse)
}
"""The responses, by the REQUEST_TYPE that they answer; the two kinds of produce have none."""
