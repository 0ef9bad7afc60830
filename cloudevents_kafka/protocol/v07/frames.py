"""Frames of Kafka 0.7: a length, then a request with its type in front, or a response.

There is no correlation id: answers come in the order of the requests, and only the
request tells what kind of answer it is.
"""

from __future__ import annotations

from typing import Final, TypeVar

from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unsupported
from cloudevents_kafka.protocol.frames import add_size, decode_size
from cloudevents_kafka.protocol.schema import Structure, spec_of
from cloudevents_kafka.protocol.v07._messages import REQUESTS, FetchResponse, RequestHeader, RequestType

_LENGTH_SIZE: Final = 4
_S = TypeVar("_S", bound=Structure)


def encode_request(request: Structure) -> bytes:
    """Encode a request's frame, its length in front; `Unencodable`."""
    header = RequestHeader(request_type=spec_of(type(request)).key)
    return add_size(compiler.encode(header, 0) + compiler.encode(request, 0))


def decode_request(data: bytes) -> Structure:
    """Decode a request's frame without its length; `Unsupported`, `Malformed`, `Truncated`."""
    header, at = compiler.decode(RequestHeader, 0, data)
    assert isinstance(header, RequestHeader)
    structure = REQUESTS.get(header.request_type)
    if structure is None:
        known = ", ".join(f"{type.value} {type.name}" for type in RequestType)
        raise Unsupported(f"request type {header.request_type}: Kafka 0.7 has {known}")
    return _whole(structure, data, at)


def encode_response(response: Structure) -> bytes:
    """Encode a response's frame, its length in front; `Unencodable`."""
    return add_size(compiler.encode(response, 0))


def decode_response(structure: type[_S], data: bytes) -> _S:
    """Decode a response's frame without its length; `Malformed`, `Truncated`."""
    return _whole(structure, data, 0)


def split(responses: bytes) -> list[FetchResponse]:
    """Part what follows the error code of a multi-fetch response; `Malformed`, `Truncated`."""
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


def joined(responses: list[FetchResponse]) -> bytes:
    """Put the parts of a multi-fetch response together."""
    return b"".join(map(encode_response, responses))


def _whole(structure: type[_S], data: bytes, at: int) -> _S:
    message, end = compiler.decode(structure, 0, data, at)
    if end != len(data):
        raise Malformed(f"{len(data) - end} bytes are left over", at=end, path=structure.__name__)
    assert isinstance(message, structure)
    return message
