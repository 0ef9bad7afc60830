"""DescribeConfigs (32): the settings of topics and brokers (KIP-133)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.schema import (
    Boolean,
    Int8,
    Int16,
    Int32,
    MessageSpec,
    String,
    Structure,
    wire,
)


class DescribeConfigsResource(Structure, kw_only=True):
    """A topic (type 2) or a broker (type 4), and the settings to describe; null means all settings."""

    resource_type: Int8
    resource_name: String
    configuration_keys: Annotated[list[String] | None, wire(nullable="0+")]


class DescribeConfigsRequest(Structure, kw_only=True):
    """Describe settings."""

    spec: ClassVar = MessageSpec.of("0-4", ApiKey.DESCRIBE_CONFIGS, flexible="4+")

    resources: list[DescribeConfigsResource]
    include_synonyms: Annotated[Boolean, wire("1+")] = False
    include_documentation: Annotated[Boolean, wire("3+")] = False


class DescribeConfigsSynonym(Structure, kw_only=True):
    """A setting whose value applies if the described setting is not set."""

    name: Annotated[String, wire("1+")]
    value: Annotated[String | None, wire("1+", nullable="0+")]
    source: Annotated[Int8, wire("1+")]


class DescribeConfigsResourceResult(Structure, kw_only=True):
    name: String
    value: Annotated[String | None, wire(nullable="0+")]
    read_only: Boolean
    is_default: Annotated[Boolean, wire("0")] = False
    config_source: Annotated[Int8, wire("1+", ignorable=True)] = -1
    is_sensitive: Boolean
    synonyms: Annotated[list[DescribeConfigsSynonym], wire("1+", ignorable=True)] = []
    config_type: Annotated[Int8, wire("3+", ignorable=True)] = 0
    documentation: Annotated[String | None, wire("3+", nullable="0+", ignorable=True)] = ""


class DescribeConfigsResult(Structure, kw_only=True):
    error_code: Int16
    error_message: Annotated[String | None, wire(nullable="0+")]
    resource_type: Int8
    resource_name: String
    configs: list[DescribeConfigsResourceResult]


class DescribeConfigsResponse(Structure, kw_only=True):
    """The settings, each with its value and the source of this value."""

    spec: ClassVar = MessageSpec.of("0-4", ApiKey.DESCRIBE_CONFIGS, flexible="4+")

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult]
