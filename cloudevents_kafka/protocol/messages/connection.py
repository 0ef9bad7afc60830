"""The headers, and the APIs of a connection: ApiVersions (18), SaslHandshake (17), SaslAuthenticate (36).

The sources are Kafka's 0.8 protocol guide, "Common Request and Response Structure", and KIP-35, KIP-43 and
KIP-152. If a client sends ApiVersions in a version that the broker does not support, the broker responds in
version 0 with the error UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.schema import (
    Boolean,
    Bytes,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    String,
    Structure,
    wire,
)


class RequestHeader(Structure, kw_only=True):
    """The header of a request: API key, version, correlation id and client id."""

    spec: ClassVar = MessageSpec.of("0-2", flexible="2+", guide="RequestMessage")

    request_api_key: Annotated[Int16, wire(guide="ApiKey")]
    request_api_version: Annotated[Int16, wire(guide="ApiVersion")]
    correlation_id: Int32
    client_id: Annotated[String | None, wire("1+", nullable="1+", ignorable=True, flexible="none")] = ""


class ResponseHeader(Structure, kw_only=True):
    """The header of a response: the correlation id of the request."""

    spec: ClassVar = MessageSpec.of("0-1", flexible="1+", guide="Response")

    correlation_id: Int32


class ApiVersionsRequest(Structure, kw_only=True):
    """List the broker's API versions; from version 3 on, the request names the client software (KIP-511).

    From version 5 on, the request contains the cluster id and node id that the client expects; a broker with
    another cluster id or node id answers with REBOOTSTRAP_REQUIRED (KIP-1242).
    """

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.API_VERSIONS, flexible="3+")

    client_software_name: Annotated[String, wire("3+", ignorable=True)] = ""
    client_software_version: Annotated[String, wire("3+", ignorable=True)] = ""
    cluster_id: Annotated[String | None, wire("5+", nullable="5+", ignorable=True)] = None
    node_id: Annotated[Int32, wire("5+", ignorable=True)] = -1


class ApiVersion(Structure, kw_only=True):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Structure, kw_only=True):
    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Structure, kw_only=True):
    """A feature that the cluster uses."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Structure, kw_only=True):
    """The API versions that the broker accepts; any client can decode the header, which has no tags."""

    spec: ClassVar = MessageSpec.of("0-5", ApiKey.API_VERSIONS, flexible="3+")

    error_code: Int16
    api_keys: list[ApiVersion]
    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    supported_features: Annotated[
        list[SupportedFeatureKey], wire("3+", tag=0, tagged="3+", ignorable=True)
    ] = []
    finalized_features_epoch: Annotated[Int64, wire("3+", tag=1, tagged="3+", ignorable=True)] = -1
    finalized_features: Annotated[
        list[FinalizedFeatureKey], wire("3+", tag=2, tagged="3+", ignorable=True)
    ] = []
    zk_migration_ready: Annotated[Boolean, wire("3+", tag=3, tagged="3+", ignorable=True)] = False


class SaslHandshakeRequest(Structure, kw_only=True):
    """Choose a SASL mechanism; the messages of this mechanism follow.

    After a SaslHandshake request of version 0, the messages of the mechanism have no headers. After a
    SaslHandshake request of version 1, the messages of the mechanism are sent in SaslAuthenticate requests.
    """

    spec: ClassVar = MessageSpec.of("0-1", ApiKey.SASL_HANDSHAKE)

    mechanism: String


class SaslHandshakeResponse(Structure, kw_only=True):
    """Whether the broker accepts the chosen SASL mechanism, and the mechanisms that the broker supports."""

    spec: ClassVar = MessageSpec.of("0-1", ApiKey.SASL_HANDSHAKE)

    error_code: Int16
    mechanisms: list[String]


class SaslAuthenticateRequest(Structure, kw_only=True):
    """A message from the client, in the format of the mechanism."""

    spec: ClassVar = MessageSpec.of("0-2", ApiKey.SASL_AUTHENTICATE, flexible="2+")

    auth_bytes: Bytes


class SaslAuthenticateResponse(Structure, kw_only=True):
    """The broker's answer, in the format of the mechanism."""

    spec: ClassVar = MessageSpec.of("0-2", ApiKey.SASL_AUTHENTICATE, flexible="2+")

    error_code: Int16
    error_message: Annotated[String | None, wire(nullable="0+")]
    auth_bytes: Bytes
    session_lifetime_ms: Annotated[Int64, wire("1+", ignorable=True)] = 0
