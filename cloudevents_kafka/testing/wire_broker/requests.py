"""Requests, read as the broker that is played would read them."""

from __future__ import annotations

import struct
from typing import NamedTuple

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.api_versions import ApiVersionsRequest
from cloudevents_kafka.protocol.messages.headers import RequestHeader
from cloudevents_kafka.protocol.messages.offset_commit import OffsetCommitRequestBeta
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.testing.wire_broker.broker_versions import Dialect
from cloudevents_kafka.testing.wire_broker.errors import Muted

_API_VERSIONS = 18
_START = struct.Struct(">hhi")


class Asked(NamedTuple):
    """A request: what its header says, the version that it was read in, and the message."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Structure
    known: bool = True
    """False for an ApiVersions of a version that the broker does not have."""


def read(dialect: Dialect, frame: bytes) -> Asked:
    """Read a request; `ProtocolError` if the broker would close the connection, else `Muted`."""
    try:
        return _read(dialect, frame)
    except ProtocolError as error:
        if dialect.mute:
            raise Muted(str(error)) from error
        raise


def _read(dialect: Dialect, frame: bytes) -> Asked:
    if len(frame) < _START.size:
        raise Truncated(_START.size - len(frame), at=0)
    key, version, correlation_id = _START.unpack_from(frame)
    taken = dialect.versions.get(key)
    if taken is None:
        raise Unsupported(f"API key {key}, version {version}: the broker {dialect.name} has no such API")
    if version not in taken:
        if key == _API_VERSIONS:
            kind = frames.request_header(key, taken.last)
            header, _ = compiler.read(RequestHeader, kind, frame)
            assert isinstance(header, RequestHeader)
            return Asked(key, 0, correlation_id, header.client_id, ApiVersionsRequest(), known=False)
        if version < taken.last or key not in dialect.clamped:
            raise Unsupported(f"{APIS[key].name}, version {version}: the broker {dialect.name} takes {taken}")
        version = taken.last
    return _whole(dialect, key, version, frame)


def _whole(dialect: Dialect, key: int, version: int, frame: bytes) -> Asked:
    header, at = compiler.read(RequestHeader, frames.request_header(key, version), frame)
    assert isinstance(header, RequestHeader)
    beta = dialect.beta_commits and (key, version) == (8, 0)
    message, end = compiler.read(OffsetCommitRequestBeta if beta else APIS[key].request, version, frame, at)
    if end != len(frame) and not dialect.ignores_rest:
        raise Malformed(f"{len(frame) - end} bytes are left over", at=end, path=APIS[key].name)
    return Asked(key, version, header.correlation_id, header.client_id, message)
