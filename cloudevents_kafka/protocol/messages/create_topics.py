"""CreateTopics (19): create topics, at the controller (KIP-4)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    Boolean,
    Int8,
    Int16,
    Int32,
    MessageSpec,
    String,
    Structure,
    UuidField,
    wire,
)


class CreatableReplicaAssignment(Structure, kw_only=True):
    """The brokers of a partition, if assigned manually."""

    partition_index: Int32
    broker_ids: list[Int32]


class CreatableTopicConfig(Structure, kw_only=True):
    """A setting of a topic."""

    name: String
    value: Annotated[String | None, wire(nullable="0+")]


class CreatableTopic(Structure, kw_only=True):
    """A topic to create; -1 partitions or replicas use the broker's default."""

    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


class CreateTopicsRequest(Structure, kw_only=True):
    """Create topics, or only validate the request."""

    spec: ClassVar = MessageSpec.of("CreateTopics", 19, "request", versions="0-7", flexible="5+")

    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Annotated[Boolean, wire("1+")] = False


class CreatableTopicConfigs(Structure, kw_only=True):
    """A setting of the new topic."""

    name: String
    value: Annotated[String | None, wire(nullable="5+")]
    read_only: Boolean
    config_source: Annotated[Int8, wire(ignorable=True)] = -1
    is_sensitive: Boolean


class CreatableTopicResult(Structure, kw_only=True):
    """The result for a topic."""

    name: String
    topic_id: Annotated[UuidField, wire("7+", ignorable=True)] = NO_UUID
    error_code: Int16
    error_message: Annotated[String | None, wire("1+", nullable="0+", ignorable=True)] = ""
    topic_config_error_code: Annotated[Int16, wire("5+", tag=0, tagged="5+", ignorable=True)] = 0
    num_partitions: Annotated[Int32, wire("5+", ignorable=True)] = -1
    replication_factor: Annotated[Int16, wire("5+", ignorable=True)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, wire("5+", nullable="5+", ignorable=True)] = []


class CreateTopicsResponse(Structure, kw_only=True):
    """The results for the topics."""

    spec: ClassVar = MessageSpec.of("CreateTopics", 19, "response", versions="0-7", flexible="5+")

    throttle_time_ms: Annotated[Int32, wire("2+", ignorable=True)] = 0
    topics: list[CreatableTopicResult]
