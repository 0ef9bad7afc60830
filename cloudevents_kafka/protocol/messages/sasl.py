"""SaslHandshake (17) and SaslAuthenticate (36): choose a mechanism, carry its messages.

KIP-43, KIP-152.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import Bytes, Int16, Int64, MessageSpec, String, Structure, wire


class SaslHandshakeRequest(Structure, kw_only=True):
    """Choose a mechanism. After version 0 its messages go bare, after version 1 in SaslAuthenticate."""

    spec: ClassVar = MessageSpec.of("SaslHandshake", 17, "request", versions="0-1", flexible="none")

    mechanism: String


class SaslHandshakeResponse(Structure, kw_only=True):
    """Whether the mechanism is on offer, and which ones are."""

    spec: ClassVar = MessageSpec.of("SaslHandshake", 17, "response", versions="0-1", flexible="none")

    error_code: Int16
    mechanisms: list[String]


class SaslAuthenticateRequest(Structure, kw_only=True):
    """Carry one message of the mechanism."""

    spec: ClassVar = MessageSpec.of("SaslAuthenticate", 36, "request", versions="0-2", flexible="2+")

    auth_bytes: Bytes


class SaslAuthenticateResponse(Structure, kw_only=True):
    """Carry the answer to it."""

    spec: ClassVar = MessageSpec.of("SaslAuthenticate", 36, "response", versions="0-2", flexible="2+")

    error_code: Int16
    error_message: Annotated[String | None, wire(nullable="0+")]
    auth_bytes: Bytes
    session_lifetime_ms: Annotated[Int64, wire("1+", ignorable=True)] = 0
