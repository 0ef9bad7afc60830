"""SaslHandshake (17) and SaslAuthenticate (36): choose a SASL mechanism and carry its messages.

KIP-43, KIP-152.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import Bytes, Int16, Int64, MessageSpec, String, Structure, wire


class SaslHandshakeRequest(Structure, kw_only=True):
    """Choose a mechanism. Its messages follow without frames (version 0) or in SaslAuthenticate (1)."""

    spec: ClassVar = MessageSpec.of("SaslHandshake", 17, "request", versions="0-1", flexible="none")

    mechanism: String


class SaslHandshakeResponse(Structure, kw_only=True):
    """The result, and the supported mechanisms."""

    spec: ClassVar = MessageSpec.of("SaslHandshake", 17, "response", versions="0-1", flexible="none")

    error_code: Int16
    mechanisms: list[String]


class SaslAuthenticateRequest(Structure, kw_only=True):
    """A message of the mechanism."""

    spec: ClassVar = MessageSpec.of("SaslAuthenticate", 36, "request", versions="0-2", flexible="2+")

    auth_bytes: Bytes


class SaslAuthenticateResponse(Structure, kw_only=True):
    """The response of the mechanism."""

    spec: ClassVar = MessageSpec.of("SaslAuthenticate", 36, "response", versions="0-2", flexible="2+")

    error_code: Int16
    error_message: Annotated[String | None, wire(nullable="0+")]
    auth_bytes: Bytes
    session_lifetime_ms: Annotated[Int64, wire("1+", ignorable=True)] = 0
