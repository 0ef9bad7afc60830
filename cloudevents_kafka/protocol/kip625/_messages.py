"""MetadataResponse with variable-length integers, in the KIP's alternative A: types depend on the version.

Versions 0 to 9 are Kafka's. Version 10 encodes the seven integers of a partition as unsigned varints,
version 11 as zigzag varints. Both are private to this module: the KIP is under discussion, Kafka's version
10 differs, and brokers do not support them.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from cloudevents_kafka.protocol.messages.topics import MetadataResponseBroker
from cloudevents_kafka.protocol.schema import Boolean, Int16, Int32, MessageSpec, String, Structure, wire

FIXED: Final = 9
UNSIGNED: Final = 10
ZIGZAG: Final = 11

_SPEC: Final = MessageSpec.of("PrivateMetadata", -1, "data", versions="0-11", flexible="9+")

_TYPE16: Final = {"0-9": "int16", "10": "unsigned_varint16", "11+": "varint16"}
_TYPE32: Final = {"0-9": "int32", "10": "unsigned_varint32", "11+": "varint32"}


class PartitionByType(Structure, kw_only=True):
    """A partition, whose fields' types depend on the version."""

    error_code: Annotated[Int16, wire(type=_TYPE16)]
    partition_index: Annotated[Int32, wire(type=_TYPE32)]
    leader_id: Annotated[Int32, wire(type=_TYPE32)]
    leader_epoch: Annotated[Int32, wire("7+", ignorable=True, type=_TYPE32)] = -1
    replica_nodes: Annotated[list[Int32], wire(type=_TYPE32)]
    isr_nodes: Annotated[list[Int32], wire(type=_TYPE32)]
    offline_replicas: Annotated[list[Int32], wire("5+", ignorable=True, type=_TYPE32)] = []


class TopicByType(Structure, kw_only=True):
    """A topic and its partitions."""

    error_code: Int16
    name: String
    is_internal: Annotated[Boolean, wire("1+", ignorable=True)] = False
    partitions: list[PartitionByType]
    topic_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


class MetadataByType(Structure, kw_only=True):
    """The brokers and topics of a cluster."""

    spec: ClassVar = _SPEC

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    brokers: list[MetadataResponseBroker]
    cluster_id: Annotated[String | None, wire("2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[Int32, wire("1+", ignorable=True)] = -1
    topics: list[TopicByType]
    cluster_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648
