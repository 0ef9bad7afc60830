"""Requests, parsed as the emulated release parses them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest, RequestHeader
from cloudevents_kafka.protocol.messages.offsets import OffsetCommitRequestBeta
from cloudevents_kafka.protocol.schema import Structure
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
    """Return a parsed request; raise `ProtocolError` if the release cannot read it."""
    if len(frame) < _START.size:
        raise Truncated(_START.size - len(frame), at=0)
    key, version, _ = _START.unpack_from(frame)
    accepted = release.versions.get(key)
    if accepted is None:
        raise Unsupported(f"API key {key}, version {version}: the broker {release.name} has no such API")
    is_accepted = version in accepted
    if not is_accepted:
        is_clamped = version > accepted.last and key in release.clamped_apis
        if key != ApiKey.API_VERSIONS and not is_clamped:
            name = APIS[key].name
            raise Unsupported(f"{name}, version {version}: the broker {release.name} accepts {accepted}")
        version = accepted.last
    header, at = compiler.decode(RequestHeader, frames.request_header(key, version), frame)
    if key == ApiKey.API_VERSIONS and not is_accepted:
        return ParsedRequest(
            key, 0, header.correlation_id, header.client_id, ApiVersionsRequest(), supported=False
        )
    beta = release.beta_offset_commit and (key, version) == (ApiKey.OFFSET_COMMIT, 0)
    message, end = compiler.decode(OffsetCommitRequestBeta if beta else APIS[key].request, version, frame, at)
    if end != len(frame) and not release.ignores_trailing_bytes:
        raise Malformed(f"{len(frame) - end} bytes are left over", at=end, path=APIS[key].name)
    return ParsedRequest(key, version, header.correlation_id, header.client_id, message)
