"""Frames, which consist of a size, a header and a message.

Kafka's 0.8 protocol guide describes frames in "Common Request and Response Structure". The version of the
message determines the version of the header: flexible versions of a message have a flexible header. The
response to ApiVersions never has a flexible header, because the client does not know the broker's versions
yet (KIP-511).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, TypeVar

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol.api_keys import ApiKey, api_name
from cloudevents_kafka.protocol.codec import compiler, interpreter
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsResponse, RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.schema import Structure, spec_of

__all__ = ["Request", "decode_request", "decode_response", "encode_request", "encode_response"]

MAX_SIZE: Final = 100 * 1024 * 1024
"""The default limit for a frame's size in bytes, as in brokers (socket.request.max.bytes, S0-N4)."""

MAX_MEMORY: Final = interpreter.MEMORY
"""The default limit for the memory that a message's elements take; see `decode_response`."""

_S = TypeVar("_S", bound=Structure)
_SIZE: Final = struct.Struct(">i")


class Request(NamedTuple):
    """A decoded request: its header and message.

    Examples:
        >>> from cloudevents_kafka.protocol import frames
        >>> from cloudevents_kafka.protocol.messages.topics import MetadataRequest
        >>> frame = frames.encode_request(MetadataRequest(topics=[]), 0, client_id="mail")
        >>> request = frames.decode_request(frame[4:])
        >>> request.header.client_id
        'mail'
    """

    header: RequestHeader
    message: Structure


def encode_request(
    message: Structure, version: int, *, correlation_id: int = 0, client_id: str | None = None
) -> bytes:
    """Return the frame of a request, including the frame's size; raise `Unencodable` or `Unsupported`.

    Examples:
        >>> from cloudevents_kafka.protocol import frames
        >>> from cloudevents_kafka.protocol.messages.topics import MetadataRequest
        >>> frames.encode_request(MetadataRequest(topics=[]), 0, correlation_id=7).hex()
        '0000000e0003000000000007ffff00000000'
    """
    spec = spec_of(type(message))
    header = RequestHeader(
        request_api_key=spec.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return add_size(
        compiler.encode(header, request_header(spec.key, version)) + compiler.encode(message, version)
    )


def decode_request(data: bytes) -> Request:
    """Return the request that a broker would decode; ``data`` is the request's frame without the size.

    Raises `Unsupported` if `APIS` does not contain the API or the version. Raises `Malformed` or `Truncated`
    for wrong bytes.

    Examples:
        >>> from cloudevents_kafka.protocol import frames
        >>> type(frames.decode_request(bytes.fromhex("00120000000000070000")).message).__name__
        'ApiVersionsRequest'
    """
    if len(data) < 4:  # key and version, int16 each
        raise Truncated(4 - len(data), at=0)
    key, version = struct.unpack_from(">hh", data)
    api = APIS.get(key)
    if api is None or version not in api.versions:
        raise Unsupported(unsupported(key, version))
    header, at = compiler.decode(RequestHeader, request_header(key, version), data)
    return Request(header, decode_body(api.request, version, data, at))


def encode_response(message: Structure, version: int, *, correlation_id: int) -> bytes:
    """Return the frame of a response, including the frame's size; raise `Unencodable` or `Unsupported`.

    Examples:
        >>> from cloudevents_kafka.protocol import frames
        >>> from cloudevents_kafka.protocol.messages.groups import HeartbeatResponse
        >>> frames.encode_response(HeartbeatResponse(error_code=27), 0, correlation_id=7).hex()
        '0000000600000007001b'
    """
    header = ResponseHeader(correlation_id=correlation_id)
    header_version = response_header(type(message), version)
    return add_size(compiler.encode(header, header_version) + compiler.encode(message, version))


def decode_response(
    structure: type[Structure], version: int, data: bytes, *, memory: int = MAX_MEMORY
) -> tuple[int, Structure]:
    """Return the correlation id and message of a response; ``data`` is the response's frame without the size.

    ``memory`` is the maximum memory, in bytes, for the decoded array elements of the message. The text and
    the bytes in array elements do not count. Raises `Unsupported`, `Malformed` and `Truncated`.

    Examples:
        >>> from cloudevents_kafka.protocol import frames
        >>> from cloudevents_kafka.protocol.messages.groups import HeartbeatResponse
        >>> frames.decode_response(HeartbeatResponse, 0, bytes.fromhex("00000007001b"))
        (7, HeartbeatResponse(unknown_tags=(), throttle_time_ms=0, error_code=27))
    """
    header, at = compiler.decode(ResponseHeader, response_header(structure, version), data)
    return header.correlation_id, decode_body(structure, version, data, at, memory=memory)


def add_size(data: bytes) -> bytes:
    """Return the size of data as an int32, followed by the data."""
    return _SIZE.pack(len(data)) + data


def decode_size(prefix: bytes, *, max_size: int = MAX_SIZE) -> int:
    """Return the size of a frame from its first 4 bytes.

    Raises `Malformed` for a size below 0 or above ``max_size``, and `Truncated` for fewer than 4 bytes.
    """
    if len(prefix) < _SIZE.size:
        raise Truncated(_SIZE.size - len(prefix), at=0)
    (size,) = _SIZE.unpack_from(prefix)  # S0-F1: "the size of the subsequent request or response"
    if not 0 <= size <= max_size:
        raise Malformed(f"a frame must have 0 to {max_size:,} bytes, got {size:,}", at=0)
    return int(size)


def unsupported(key: int, version: int) -> str:
    """Return the text of the error for an API or a version that `APIS` does not contain."""
    api = APIS.get(key)
    if api is None:
        return f"{api_name(key)} (API key {key}) is not supported"
    return f"{api.name} (API key {key}) must have a version in {api.versions}, got {version}"


def trailing_bytes(count: int) -> str:
    """Return the text of the error for bytes after the end of a message."""
    return f"{pluralize(count, 'byte follows', 'bytes follow')} the last field"


def request_header(key: int, version: int) -> int:
    """Return the version of a request's header."""
    if version == 0 and key == ApiKey.CONTROLLED_SHUTDOWN:
        return 0  # without a client id
    api = APIS.get(key)
    return 2 if api is not None and version in spec_of(api.request).flexible else 1


def response_header(structure: type[Structure], version: int) -> int:
    """Return the version of a response's header."""
    # KIP-511: any client can decode the header of ApiVersions
    return 1 if version in spec_of(structure).flexible and structure is not ApiVersionsResponse else 0


def decode_body(
    structure: type[_S], version: int, data: bytes, at: int = 0, *, memory: int = MAX_MEMORY
) -> _S:
    """Return the message that begins at index ``at``; raise `Malformed` if bytes follow the message."""
    message, end = compiler.decode(structure, version, data, at, memory=memory)
    if end != len(data):
        raise Malformed(trailing_bytes(len(data) - end), at=end, path=structure.__name__)
    return message
