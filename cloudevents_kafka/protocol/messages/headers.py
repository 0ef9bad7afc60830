"""The headers of requests and responses (guide, "Common Request and Response Structure")."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import Int16, Int32, MessageSpec, String, Structure, wire


class RequestHeader(Structure, kw_only=True):
    """API key, version, correlation id and client id."""

    spec: ClassVar = MessageSpec.of(
        "RequestHeader", -1, "header", versions="0-2", flexible="2+", guide="RequestMessage"
    )

    request_api_key: Annotated[Int16, wire(guide="ApiKey")]
    request_api_version: Annotated[Int16, wire(guide="ApiVersion")]
    correlation_id: Int32
    client_id: Annotated[String | None, wire("1+", nullable="1+", ignorable=True, flexible="none")] = ""


class ResponseHeader(Structure, kw_only=True):
    """The correlation id of the request."""

    spec: ClassVar = MessageSpec.of(
        "ResponseHeader", -1, "header", versions="0-1", flexible="1+", guide="Response"
    )

    correlation_id: Int32
