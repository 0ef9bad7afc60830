"""OffsetCommit (8): commit a group's offsets, at its coordinator.

Version 0 has two layouts. The guide prints one with a timestamp, which only 0.8.2-beta has
(`OffsetCommitRequestBeta`); all releases have the timestamp in version 1 only (KAFKA-1841). A release decodes
the guide's layout with the timestamp -1 as null metadata.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    String,
    Structure,
    UuidField,
    wire,
)


class OffsetCommitRequestPartition(Structure, kw_only=True):
    """An offset to commit, with the client's metadata."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    committed_offset: Annotated[Int64, wire(guide="Offset")]
    committed_leader_epoch: Annotated[Int32, wire("6+", ignorable=True)] = -1
    commit_timestamp: Annotated[Int64, wire("1", guide="TimeStamp")] = -1
    committed_metadata: Annotated[String | None, wire(nullable="0+", guide="Metadata")]


class OffsetCommitRequestTopic(Structure, kw_only=True):
    """The offsets in a topic."""

    name: Annotated[String, wire("0-9", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partitions: Annotated[list[OffsetCommitRequestPartition], wire(guide="")]


class OffsetCommitRequest(Structure, kw_only=True):
    """Commit offsets. Generation -1 and member "" is a client outside the group protocol."""

    spec: ClassVar = MessageSpec.of("OffsetCommit", 8, "request", versions="0-10", flexible="8+")

    group_id: Annotated[String, wire(guide="ConsumerGroup")]
    generation_id_or_member_epoch: Annotated[Int32, wire("1+", ignorable=True)] = -1
    member_id: Annotated[String, wire("1+", ignorable=True)] = ""
    group_instance_id: Annotated[String | None, wire("7+", nullable="7+")] = None
    retention_time_ms: Annotated[Int64, wire("2-4", ignorable=True)] = -1
    topics: Annotated[list[OffsetCommitRequestTopic], wire(guide="")]


class OffsetCommitRequestBetaPartition(Structure, kw_only=True):
    """An offset to commit in the guide's layout, with its timestamp, -1 for now."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    committed_offset: Annotated[Int64, wire(guide="Offset")]
    commit_timestamp: Annotated[Int64, wire(guide="TimeStamp")] = -1
    committed_metadata: Annotated[String | None, wire(nullable="0+", guide="Metadata")]


class OffsetCommitRequestBetaTopic(Structure, kw_only=True):
    """The offsets in a topic."""

    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[OffsetCommitRequestBetaPartition], wire(guide="")]


class OffsetCommitRequestBeta(Structure, kw_only=True):
    """Commit offsets in the guide's layout of version 0, for 0.8.2-beta only."""

    spec: ClassVar = MessageSpec.of("OffsetCommit", 8, "request", versions="0", guide="OffsetCommitRequest")

    group_id: Annotated[String, wire(guide="ConsumerGroup")]
    topics: Annotated[list[OffsetCommitRequestBetaTopic], wire(guide="")]


class OffsetCommitResponsePartition(Structure, kw_only=True):
    """The result for a partition."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    error_code: Int16


class OffsetCommitResponseTopic(Structure, kw_only=True):
    """The results for a topic."""

    name: Annotated[String, wire("0-9", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partitions: Annotated[list[OffsetCommitResponsePartition], wire(guide="")]


class OffsetCommitResponse(Structure, kw_only=True):
    """The results of the commit."""

    spec: ClassVar = MessageSpec.of("OffsetCommit", 8, "response", versions="0-10", flexible="8+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    topics: Annotated[list[OffsetCommitResponseTopic], wire(guide="")]
