"""Requests, parsed as the emulated release parses them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest, RequestHeader
from cloudevents_kafka.protocol.messages.offsets import OffsetCommitRequestBeta
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.testing.wire_broker._errors import NoResponse
from cloudevents_kafka.testing.wire_broker._releases import Release

_START: Final = struct.Struct(">hhi")  # API key, API version, correlation id


@dataclass(eq=False, repr=False)
class ParsedRequest:
    """A request: the fields of its header, the version it was read in, and the message."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Structure
    supported: bool = True
    """False for an ApiVersions request of a version that the release does not have."""


def read_request(release: Release, frame: bytes) -> ParsedRequest:
    """Return a parsed request.

    `ProtocolError` if the release closes the connection, `NoResponse` if it stays silent.
    """
    try:
        return _read_request(release, frame)
    except ProtocolError as error:
        if release.drops_unreadable:
            raise NoResponse(str(error)) from error
        raise


def _read_request(release: Release, frame: bytes) -> ParsedRequest:
    if len(frame) < _START.size:
        raise Truncated(_START.size - len(frame), at=0)
    key, version, correlation_id = _START.unpack_from(frame)
    supported = release.versions.get(key)
    if supported is None:
        raise Unsupported(f"API key {key}, version {version}: the broker {release.name} has no such API")
    if version not in supported:
        if key == ApiKey.API_VERSIONS:
            return _unsupported_api_versions(supported.last, correlation_id, frame)
        if version < supported.last or key not in release.clamped_apis:
            raise Unsupported(
                f"{APIS[key].name}, version {version}: the broker {release.name} accepts {supported}"
            )
        version = supported.last
    return _read_body(release, key, version, frame)


def _unsupported_api_versions(version: int, correlation_id: int, frame: bytes) -> ParsedRequest:
    header, _ = compiler.decode(RequestHeader, frames.request_header(ApiKey.API_VERSIONS, version), frame)
    assert isinstance(header, RequestHeader)
    client_id = header.client_id
    return ParsedRequest(
        ApiKey.API_VERSIONS, 0, correlation_id, client_id, ApiVersionsRequest(), supported=False
    )


def _read_body(release: Release, key: int, version: int, frame: bytes) -> ParsedRequest:
    header, at = compiler.decode(RequestHeader, frames.request_header(key, version), frame)
    assert isinstance(header, RequestHeader)
    beta = release.beta_offset_commit and (key, version) == (ApiKey.OFFSET_COMMIT, 0)
    message, end = compiler.decode(OffsetCommitRequestBeta if beta else APIS[key].request, version, frame, at)
    if end != len(frame) and not release.ignores_trailing_bytes:
        raise Malformed(f"{len(frame) - end} bytes are left over", at=end, path=APIS[key].name)
    return ParsedRequest(key, version, header.correlation_id, header.client_id, message)
