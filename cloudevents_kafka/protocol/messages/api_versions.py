"""ApiVersions (18): the versions of the requests that a broker supports (KIP-35).

For an unsupported version, a broker responds in version 0 with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import (
    Boolean,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    String,
    Structure,
    wire,
)


class ApiVersionsRequest(Structure, kw_only=True):
    """List the versions; from 3 on with the client's name and version (KIP-511)."""

    spec: ClassVar = MessageSpec.of("ApiVersions", 18, "request", versions="0-4", flexible="3+")

    client_software_name: Annotated[String, wire("3+", ignorable=True)] = ""
    client_software_version: Annotated[String, wire("3+", ignorable=True)] = ""


class ApiVersion(Structure, kw_only=True):
    """An API and the versions that the broker supports."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Structure, kw_only=True):
    """A feature that the broker supports."""

    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Structure, kw_only=True):
    """A feature that the cluster uses."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Structure, kw_only=True):
    """The versions of all APIs. Its header never has tagged fields, so that any client can decode it."""

    spec: ClassVar = MessageSpec.of("ApiVersions", 18, "response", versions="0-4", flexible="3+")

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
