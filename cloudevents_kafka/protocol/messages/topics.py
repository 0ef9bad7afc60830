"""Metadata (3) and CreateTopics (19): the brokers, topics and partition leaders of a cluster.

Every broker answers Metadata (Kafka's 0.8 protocol guide, "Metadata API"); only the controller creates topics
(KIP-4).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.api_keys import ApiKey
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


class MetadataRequestTopic(Structure, kw_only=True):
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    name: Annotated[String | None, wire(nullable="10+", guide="TopicName")]


class MetadataRequest(Structure, kw_only=True):
    """Describe topics.

    In version 0, [] means all topics; from version 1 on, null means all topics, and [] means no topics.
    """

    spec: ClassVar = MessageSpec.of("0-13", ApiKey.METADATA, flexible="9+")

    # S0-A1: "If empty … all topics"
    topics: Annotated[list[MetadataRequestTopic] | None, wire(nullable="1+", guide="")]
    allow_auto_topic_creation: Annotated[Boolean, wire("4+")] = True
    include_cluster_authorized_operations: Annotated[Boolean, wire("8-10")] = False
    include_topic_authorized_operations: Annotated[Boolean, wire("8+")] = False


class MetadataResponseBroker(Structure, kw_only=True):
    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[String | None, wire("1+", nullable="1+", ignorable=True)] = None


class MetadataResponsePartition(Structure, kw_only=True):
    """A partition: its leader (-1 if it has no leader), its replicas, and its in-sync replicas."""

    error_code: Annotated[Int16, wire(guide="PartitionErrorCode")]
    partition_index: Annotated[Int32, wire(guide="PartitionId")]
    leader_id: Annotated[Int32, wire(guide="Leader")]  # S0-A4: "If no leader exists … -1"
    leader_epoch: Annotated[Int32, wire("7+", ignorable=True)] = -1
    replica_nodes: Annotated[list[Int32], wire(guide="Replicas")]
    isr_nodes: Annotated[list[Int32], wire(guide="Isr")]
    offline_replicas: Annotated[list[Int32], wire("5+", ignorable=True)] = []


class MetadataResponseTopic(Structure, kw_only=True):
    error_code: Annotated[Int16, wire(guide="TopicErrorCode")]
    name: Annotated[String | None, wire(nullable="12+", guide="TopicName")]
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    is_internal: Annotated[Boolean, wire("1+", ignorable=True)] = False
    partitions: Annotated[list[MetadataResponsePartition], wire(guide="[PartitionMetadata]")]
    topic_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


class MetadataResponse(Structure, kw_only=True):
    """The brokers and topics of the cluster."""

    spec: ClassVar = MessageSpec.of("0-13", ApiKey.METADATA, flexible="9+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    brokers: Annotated[list[MetadataResponseBroker], wire(guide="[Broker]")]
    cluster_id: Annotated[String | None, wire("2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[Int32, wire("1+", ignorable=True)] = -1
    topics: Annotated[list[MetadataResponseTopic], wire(guide="[TopicMetadata]")]
    cluster_authorized_operations: Annotated[Int32, wire("8-10")] = -2147483648
    error_code: Annotated[Int16, wire("13+", ignorable=True)] = 0


class CreatableReplicaAssignment(Structure, kw_only=True):
    """The brokers that store a new partition, if the client chooses these brokers."""

    partition_index: Int32
    broker_ids: list[Int32]


class CreatableTopicConfig(Structure, kw_only=True):
    name: String
    value: Annotated[String | None, wire(nullable="0+")]


class CreatableTopic(Structure, kw_only=True):
    """A topic to create; -1 as number of partitions or replicas means the broker's default."""

    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


class CreateTopicsRequest(Structure, kw_only=True):
    """Create topics, or only validate the request."""

    spec: ClassVar = MessageSpec.of("0-7", ApiKey.CREATE_TOPICS, flexible="5+")

    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Annotated[Boolean, wire("1+")] = False


class CreatableTopicConfigs(Structure, kw_only=True):
    name: String
    value: Annotated[String | None, wire(nullable="5+")]
    read_only: Boolean
    config_source: Annotated[Int8, wire(ignorable=True)] = -1
    is_sensitive: Boolean


class CreatableTopicResult(Structure, kw_only=True):
    name: String
    topic_id: Annotated[UuidField, wire("7+", ignorable=True)] = NO_UUID
    error_code: Int16
    error_message: Annotated[String | None, wire("1+", nullable="0+", ignorable=True)] = ""
    topic_config_error_code: Annotated[Int16, wire("5+", tag=0, tagged="5+", ignorable=True)] = 0
    num_partitions: Annotated[Int32, wire("5+", ignorable=True)] = -1
    replication_factor: Annotated[Int16, wire("5+", ignorable=True)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, wire("5+", nullable="5+", ignorable=True)] = []


class CreateTopicsResponse(Structure, kw_only=True):
    """The result of creating each topic."""

    spec: ClassVar = MessageSpec.of("0-7", ApiKey.CREATE_TOPICS, flexible="5+")

    throttle_time_ms: Annotated[Int32, wire("2+", ignorable=True)] = 0
    topics: list[CreatableTopicResult]
