"""ListOffsets (2), OffsetCommit (8) and OffsetFetch (9): the offsets of partitions and of groups.

ListOffsets is the Offset API of Kafka's 0.8 protocol guide. ListOffsets returns the first or last offset of a
partition, or the offset for a timestamp. Version 0 of ListOffsets returns the start offsets of segments,
newest first; later versions return one offset.

Clients commit offsets to the coordinator, and fetch offsets from the coordinator. In version 0 of
OffsetCommit and OffsetFetch, ZooKeeper stores the offsets. Version 0 of OffsetCommit has two layouts. The
guide prints a layout with a timestamp; only 0.8.2-beta uses this layout (`OffsetCommitRequestBeta`). In all
releases, only version 1 of OffsetCommit has the timestamp (KAFKA-1841). If a broker of a released version
receives the guide's layout with the timestamp -1, the broker decodes the timestamp as null metadata.
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
    Int64,
    MessageSpec,
    String,
    Structure,
    UuidField,
    wire,
)


class ListOffsetsPartition(Structure, kw_only=True):
    """A partition and a time in ms; -1 stands for the partition's end, -2 for its start."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    current_leader_epoch: Annotated[Int32, wire("4+", ignorable=True)] = -1
    timestamp: Annotated[Int64, wire(guide="Time")]  # S0-A13: "-1 to receive the latest offsets"
    max_num_offsets: Annotated[Int32, wire("0", guide="MaxNumberOfOffsets")] = 1


class ListOffsetsTopic(Structure, kw_only=True):
    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[ListOffsetsPartition], wire(guide="")]


class ListOffsetsRequest(Structure, kw_only=True):
    """List the offsets of partitions by time."""

    spec: ClassVar = MessageSpec.of("0-11", ApiKey.LIST_OFFSETS, flexible="6+", guide="OffsetRequest")

    replica_id: Int32
    isolation_level: Annotated[Int8, wire("2+")] = 0
    topics: Annotated[list[ListOffsetsTopic], wire(guide="")]
    timeout_ms: Annotated[Int32, wire("10+", ignorable=True)] = 0


class ListOffsetsPartitionResponse(Structure, kw_only=True):
    """The offset of a partition, or in version 0 several offsets, newest first."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    error_code: Int16
    old_style_offsets: Annotated[list[Int64], wire("0", guide="[Offset]")] = []
    timestamp: Annotated[Int64, wire("1+")] = -1
    offset: Annotated[Int64, wire("1+")] = -1
    leader_epoch: Annotated[Int32, wire("4+")] = -1


class ListOffsetsTopicResponse(Structure, kw_only=True):
    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[ListOffsetsPartitionResponse], wire(guide="[PartitionOffsets]")]


class ListOffsetsResponse(Structure, kw_only=True):
    """The requested offsets of the partitions."""

    spec: ClassVar = MessageSpec.of("0-11", ApiKey.LIST_OFFSETS, flexible="6+", guide="OffsetResponse")

    throttle_time_ms: Annotated[Int32, wire("2+", ignorable=True)] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], wire(guide="")]


class OffsetCommitRequestPartition(Structure, kw_only=True):
    """An offset to commit, with the client's metadata."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    committed_offset: Annotated[Int64, wire(guide="Offset")]
    committed_leader_epoch: Annotated[Int32, wire("6+", ignorable=True)] = -1
    commit_timestamp: Annotated[Int64, wire("1", guide="TimeStamp")] = -1
    committed_metadata: Annotated[String | None, wire(nullable="0+", guide="Metadata")]


class OffsetCommitRequestTopic(Structure, kw_only=True):
    name: Annotated[String, wire("0-9", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partitions: Annotated[list[OffsetCommitRequestPartition], wire(guide="")]


class OffsetCommitRequest(Structure, kw_only=True):
    """Commit offsets.

    A client that is not a member of the group sends generation -1 and member id "".
    """

    spec: ClassVar = MessageSpec.of("0-10", ApiKey.OFFSET_COMMIT, flexible="8+")

    group_id: Annotated[String, wire(guide="ConsumerGroup")]
    generation_id_or_member_epoch: Annotated[Int32, wire("1+", ignorable=True)] = -1
    member_id: Annotated[String, wire("1+", ignorable=True)] = ""
    group_instance_id: Annotated[String | None, wire("7+", nullable="7+")] = None
    retention_time_ms: Annotated[Int64, wire("2-4", ignorable=True)] = -1
    topics: Annotated[list[OffsetCommitRequestTopic], wire(guide="")]


class OffsetCommitRequestBetaPartition(Structure, kw_only=True):
    """An offset to commit in the 0.8 guide's layout, with a timestamp; -1 means now."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    committed_offset: Annotated[Int64, wire(guide="Offset")]
    commit_timestamp: Annotated[Int64, wire(guide="TimeStamp")] = -1  # S0-A15: -1 is "the receive time"
    committed_metadata: Annotated[String | None, wire(nullable="0+", guide="Metadata")]


class OffsetCommitRequestBetaTopic(Structure, kw_only=True):
    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[OffsetCommitRequestBetaPartition], wire(guide="")]


class OffsetCommitRequestBeta(Structure, kw_only=True):
    """Commit offsets in the 0.8 guide's layout of version 0; only 0.8.2-beta uses this layout."""

    spec: ClassVar = MessageSpec.of("0", ApiKey.OFFSET_COMMIT, guide="OffsetCommitRequest")

    group_id: Annotated[String, wire(guide="ConsumerGroup")]
    topics: Annotated[list[OffsetCommitRequestBetaTopic], wire(guide="")]


class OffsetCommitResponsePartition(Structure, kw_only=True):
    partition_index: Annotated[Int32, wire(guide="Partition")]
    error_code: Int16


class OffsetCommitResponseTopic(Structure, kw_only=True):
    name: Annotated[String, wire("0-9", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partitions: Annotated[list[OffsetCommitResponsePartition], wire(guide="")]


class OffsetCommitResponse(Structure, kw_only=True):
    """The result of an offset commit for each partition."""

    spec: ClassVar = MessageSpec.of("0-10", ApiKey.OFFSET_COMMIT, flexible="8+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    topics: Annotated[list[OffsetCommitResponseTopic], wire(guide="")]


class OffsetFetchRequestTopic(Structure, kw_only=True):
    name: Annotated[String, wire(guide="TopicName")]
    partition_indexes: Annotated[list[Int32], wire(guide="[Partition]")]


class OffsetFetchRequestTopics(Structure, kw_only=True):
    name: Annotated[String, wire("8-9", ignorable=True)] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partition_indexes: list[Int32]


class OffsetFetchRequestGroup(Structure, kw_only=True):
    """A group, and the topics whose offsets are requested; null means all topics."""

    group_id: String
    member_id: Annotated[String | None, wire("9+", nullable="9+", ignorable=True)] = None
    member_epoch: Annotated[Int32, wire("9+", ignorable=True)] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, wire(nullable="8+")]


class OffsetFetchRequest(Structure, kw_only=True):
    """Fetch the committed offsets of a group, or from version 8 on, of several groups."""

    spec: ClassVar = MessageSpec.of("0-10", ApiKey.OFFSET_FETCH, flexible="6+")

    group_id: Annotated[String, wire("0-7", guide="ConsumerGroup")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, wire("0-7", nullable="2-7", guide="")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], wire("8+")] = []
    require_stable: Annotated[Boolean, wire("7+")] = False


class OffsetFetchResponsePartition(Structure, kw_only=True):
    """A committed offset; -1 means that no offset is committed, which is not an error."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    # S0-A18: without a committed offset, the broker "sets the offset field to -1"
    committed_offset: Annotated[Int64, wire(guide="Offset")]
    committed_leader_epoch: Annotated[Int32, wire("5-7", ignorable=True)] = -1
    metadata: Annotated[String | None, wire(nullable="0-7")]
    error_code: Int16


class OffsetFetchResponseTopic(Structure, kw_only=True):
    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[OffsetFetchResponsePartition], wire(guide="")]


class OffsetFetchResponsePartitions(Structure, kw_only=True):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, wire(ignorable=True)] = -1
    metadata: Annotated[String | None, wire(nullable="8+")]
    error_code: Int16


class OffsetFetchResponseTopics(Structure, kw_only=True):
    name: Annotated[String, wire("8-9", ignorable=True)] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partitions: list[OffsetFetchResponsePartitions]


class OffsetFetchResponseGroup(Structure, kw_only=True):
    group_id: String
    topics: list[OffsetFetchResponseTopics]
    error_code: Int16 = 0


class OffsetFetchResponse(Structure, kw_only=True):
    """The committed offsets of one or several groups."""

    spec: ClassVar = MessageSpec.of("0-10", ApiKey.OFFSET_FETCH, flexible="6+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], wire("0-7", guide="")] = []
    error_code: Annotated[Int16, wire("2-7", ignorable=True)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], wire("8+")] = []
