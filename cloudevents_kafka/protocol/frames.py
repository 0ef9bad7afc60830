"""Frames: a size, a header, a message (guide, "Common Request and Response Structure").

Which header goes with a message follows from the message's version: flexible ones
have a flexible header. One exception: the answer to ApiVersions never has one, as its
reader cannot know yet what the broker speaks.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.headers import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.schema import Structure, spec_of

MAX_SIZE: Final = 100 * 1024 * 1024
"""The largest frame that is read unless told otherwise: what brokers take by default."""

_SIZE: Final = struct.Struct(">i")
_API_VERSIONS: Final = 18
_CONTROLLED_SHUTDOWN: Final = 7  # its version 0 has a header without client id


class Request(NamedTuple):
    """A request that was read: its header, and the message."""

    header: RequestHeader
    message: Structure


def encode(message: Structure, version: int) -> bytes:
    """Encode a message without header and size; `Unencodable`, `Unsupported`."""
    return compiler.encode(message, version)


def decode(structure: type[Structure], version: int, data: bytes) -> Structure:
    """Decode a message without header and size, to its last byte; `Malformed`, `Truncated`."""
    return _whole(structure, version, data, 0)


def decode_prefix(structure: type[Structure], version: int, data: bytes) -> tuple[Structure, int]:
    """Decode a message that more may follow; return it and the position after it."""
    return compiler.decode(structure, version, data)


def encode_request(
    message: Structure, version: int, *, correlation_id: int = 0, client_id: str | None = None
) -> bytes:
    """Encode a request's frame, its size in front."""
    about = spec_of(type(message))
    header = RequestHeader(
        request_api_key=about.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return add_size(
        compiler.encode(header, request_header(about.key, version)) + compiler.encode(message, version)
    )


def decode_request(data: bytes) -> Request:
    """Decode a request's frame without its size: what a broker does.

    `Unsupported` for an API or version that is not declared here, `Malformed`,
    `Truncated`.
    """
    key, version = _asked(data)
    api = APIS.get(key)
    if api is None or version not in api.versions:
        name = "no declared API" if api is None else f"{api.name} with the versions {api.versions}"
        raise Unsupported(f"API key {key}, version {version}: {name}")
    header, at = compiler.decode(RequestHeader, request_header(key, version), data)
    assert isinstance(header, RequestHeader)
    return Request(header, _whole(api.request, version, data, at))


def encode_response(message: Structure, version: int, *, correlation_id: int) -> bytes:
    """Encode a response's frame, its size in front."""
    header = ResponseHeader(correlation_id=correlation_id)
    kind = response_header(type(message), version)
    return add_size(compiler.encode(header, kind) + compiler.encode(message, version))


def decode_response(structure: type[Structure], version: int, data: bytes) -> tuple[int, Structure]:
    """Decode a response's frame without its size; return the correlation id and the message."""
    header, at = compiler.decode(ResponseHeader, response_header(structure, version), data)
    assert isinstance(header, ResponseHeader)
    return header.correlation_id, _whole(structure, version, data, at)


def add_size(data: bytes) -> bytes:
    """Put the size in front."""
    return _SIZE.pack(len(data)) + data


def decode_size(prefix: bytes, *, max_size: int = MAX_SIZE) -> int:
    """Read a frame's size, four bytes; `Malformed` where it is negative or more than ``max_size``."""
    if len(prefix) < _SIZE.size:
        raise Truncated(_SIZE.size - len(prefix), at=0)
    (size,) = _SIZE.unpack_from(prefix)
    if not 0 <= size <= max_size:
        raise Malformed(f"a frame of {size:,} bytes; it may have 0 to {max_size:,}", at=0)
    found: int = size
    return found


def request_header(key: int, version: int) -> int:
    """Return the version of the header that a request has."""
    if key == _CONTROLLED_SHUTDOWN and version == 0:
        return 0
    api = APIS.get(key)
    return 2 if api is not None and version in spec_of(api.request).flexible else 1


def response_header(structure: type[Structure], version: int) -> int:
    """Return the version of the header that a response has."""
    about = spec_of(structure)
    return 1 if version in about.flexible and about.key != _API_VERSIONS else 0


def _asked(data: bytes) -> tuple[int, int]:
    if len(data) < 4:  # key and version, int16 each
        raise Truncated(4 - len(data), at=0)
    key, version = struct.unpack_from(">hh", data)
    return key, version


def _whole(structure: type[Structure], version: int, data: bytes, at: int) -> Structure:
    message, end = compiler.decode(structure, version, data, at)
    if end != len(data):
        raise Malformed(f"{len(data) - end} bytes are left over", at=end, path=structure.__name__)
    return message
