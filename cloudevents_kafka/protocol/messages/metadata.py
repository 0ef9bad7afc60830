"""Metadata (3): the brokers, and the leader of each partition.

Every broker answers it. Guide, "Metadata API".
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    Boolean,
    Int16,
    Int32,
    MessageSpec,
    String,
    Structure,
    UuidField,
    wire,
)


class MetadataRequestTopic(Structure, kw_only=True):
    """A topic."""

    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    name: Annotated[String | None, wire(nullable="10+", guide="TopicName")]


class MetadataRequest(Structure, kw_only=True):
    """Describe topics; in version 0, [] is all topics; from 1 on, null is all and [] none."""

    spec: ClassVar = MessageSpec.of("Metadata", 3, "request", versions="0-13", flexible="9+")

    topics: Annotated[list[MetadataRequestTopic] | None, wire(nullable="1+", guide="")]
    allow_auto_topic_creation: Annotated[Boolean, wire("4+")] = True
    include_cluster_authorized_operations: Annotated[Boolean, wire("8-10")] = False
    include_topic_authorized_operations: Annotated[Boolean, wire("8+")] = False


class MetadataResponseBroker(Structure, kw_only=True):
    """A broker and its address for clients."""

    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[String | None, wire("1+", nullable="1+", ignorable=True)] = None


class MetadataResponsePartition(Structure, kw_only=True):
    """A partition: leader (-1 without one), replicas, and replicas in sync."""

    error_code: Annotated[Int16, wire(guide="PartitionErrorCode")]
    partition_index: Annotated[Int32, wire(guide="PartitionId")]
    leader_id: Annotated[Int32, wire(guide="Leader")]
    leader_epoch: Annotated[Int32, wire("7+", ignorable=True)] = -1
    replica_nodes: Annotated[list[Int32], wire(guide="Replicas")]
    isr_nodes: Annotated[list[Int32], wire(guide="Isr")]
    offline_replicas: Annotated[list[Int32], wire("5+", ignorable=True)] = []


class MetadataResponseTopic(Structure, kw_only=True):
    """A topic and its partitions."""

    error_code: Annotated[Int16, wire(guide="TopicErrorCode")]
    name: Annotated[String | None, wire(nullable="12+", guide="TopicName")]
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    is_internal: Annotated[Boolean, wire("1+", ignorable=True)] = False
    partitions: Annotated[list[MetadataResponsePartition], wire(guide="[PartitionMetadata]")]
    topic_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


class MetadataResponse(Structure, kw_only=True):
    """The brokers and topics of the cluster."""

    spec: ClassVar = MessageSpec.of("Metadata", 3, "response", versions="0-13", flexible="9+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    brokers: Annotated[list[MetadataResponseBroker], wire(guide="[Broker]")]
    cluster_id: Annotated[String | None, wire("2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[Int32, wire("1+", ignorable=True)] = -1
    topics: Annotated[list[MetadataResponseTopic], wire(guide="[TopicMetadata]")]
    cluster_authorized_operations: Annotated[Int32, wire("8-10")] = -2147483648
    error_code: Annotated[Int16, wire("13+", ignorable=True)] = 0
