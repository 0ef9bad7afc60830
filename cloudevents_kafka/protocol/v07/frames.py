"""Frames of Kafka 0.7: a length, then either a request type and a request, or a response.

Frames have no correlation id: responses are in the order of the requests, and a request determines the type
of its response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable, Unsupported
from cloudevents_kafka.protocol.frames import add_size, decode_body, decode_size
from cloudevents_kafka.protocol.schema import Structure, spec_of
from cloudevents_kafka.protocol.v07.messages import (
    REQUESTS,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    RequestHeader,
    RequestType,
)

_LENGTH_SIZE: Final = 4
_S = TypeVar("_S", bound=Structure)


def encode_request(request: Structure) -> bytes:
    """Return the frame of a request, including the frame's length.

    Raises `Unencodable` if a value does not fit its field, or if a topic is not ASCII. The broker checks
    whether a topic is a valid folder name; `Connection` checks this, too.
    """
    for topic in _topics(request):
        if not topic.isascii():
            raise Unencodable(not_ascii(topic))
    header = RequestHeader(request_type=spec_of(type(request)).key)
    return add_size(compiler.encode(header, 0) + compiler.encode(request, 0))


def decode_request(data: bytes) -> Structure:
    """Return a decoded request; ``data`` is the request's frame without the length.

    Raises `Unsupported`, `Malformed` or `Truncated`. A topic that is not ASCII is malformed.
    """
    header, at = compiler.decode(RequestHeader, 0, data)
    structure = REQUESTS.get(header.request_type)
    if structure is None:
        raise Unsupported(unknown_request_type(header.request_type))
    request = decode_body(structure, 0, data, at)
    for topic in _topics(request):
        if not topic.isascii():
            raise Malformed(not_ascii(topic), at=data.index(topic.encode()), path=structure.__name__)
    return request


def _topics(request: Structure) -> Iterator[str]:
    """Yield the topics of a request, or of the requests in a multi request."""
    match request:
        case MultiFetchRequest(fetches=parts) | MultiProduceRequest(produces=parts):
            yield from (part.topic for part in parts)
        case ProduceRequest(topic=topic) | FetchRequest(topic=topic) | OffsetsRequest(topic=topic):
            yield topic


def not_ascii(topic: str) -> str:
    """Return the text of the error for a topic that is not ASCII."""
    return f"a topic of Kafka 0.7 must be ASCII, got {topic!r}"  # S2-H3


def unknown_request_type(type: int) -> str:
    """Return the text of the error for an unknown request type."""
    known = ", ".join(f"{known.value} {known.name}" for known in RequestType)
    return f"the request type must be one of {known}, got {type}"


def encode_response(response: Structure) -> bytes:
    """Return the frame of a response, including the frame's length; raise `Unencodable`."""
    return add_size(compiler.encode(response, 0))


def decode_response(structure: type[_S], data: bytes) -> _S:
    """Return a decoded response; ``data`` is the response's frame without the length.

    Raises `Malformed` or `Truncated`.
    """
    return decode_body(structure, 0, data)


def split_responses(responses: bytes) -> list[FetchResponse]:
    """Return the parts of a multi-fetch response; raise `Malformed` or `Truncated`."""
    found: list[FetchResponse] = []
    at = 0
    while at < len(responses):
        start = at + _LENGTH_SIZE
        end = start + decode_size(responses[at:start])
        if end > len(responses):
            raise Truncated(end - len(responses), at=at, path=f"responses[{len(found)}]")
        found.append(decode_response(FetchResponse, responses[start:end]))
        at = end
    return found


def join_responses(responses: list[FetchResponse]) -> bytes:
    """Return the ``responses`` field of a multi-fetch response."""
    return b"".join(map(encode_response, responses))
