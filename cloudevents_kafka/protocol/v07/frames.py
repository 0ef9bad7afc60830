"""Frames of Kafka 0.7: a length, then a request type and a request, or a response.

Frames have no correlation id: responses are in the order of the requests, and their type follows from
the request.
"""

from __future__ import annotations

from typing import Final, TypeVar

from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Truncated, Unsupported
from cloudevents_kafka.protocol.frames import add_size, decode_body, decode_size
from cloudevents_kafka.protocol.schema import Structure, spec_of
from cloudevents_kafka.protocol.v07._messages import REQUESTS, FetchResponse, RequestHeader, RequestType

_LENGTH_SIZE: Final = 4
_S = TypeVar("_S", bound=Structure)


def encode_request(request: Structure) -> bytes:
    """Return the frame of a request, with its length; raise `Unencodable`."""
    header = RequestHeader(request_type=spec_of(type(request)).key)
    return add_size(compiler.encode(header, 0) + compiler.encode(request, 0))


def decode_request(data: bytes) -> Structure:
    """Return the request of a frame without its length; raise `Unsupported`, `Malformed` or `Truncated`."""
    header, at = compiler.decode(RequestHeader, 0, data)
    structure = REQUESTS.get(header.request_type)
    if structure is None:
        raise Unsupported(unknown_request_type(header.request_type))
    return decode_body(structure, 0, data, at)


def unknown_request_type(type: int) -> str:
    """Return the text of the error for an unknown request type."""
    known = ", ".join(f"{known.value} {known.name}" for known in RequestType)
    return f"the request type must be one of {known}, got {type}"


def encode_response(response: Structure) -> bytes:
    """Return the frame of a response, with its length; raise `Unencodable`."""
    return add_size(compiler.encode(response, 0))


def decode_response(structure: type[_S], data: bytes) -> _S:
    """Return the response of a frame without its length; raise `Malformed` or `Truncated`."""
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
