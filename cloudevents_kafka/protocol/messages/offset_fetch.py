"""OffsetFetch (9): fetch a group's committed offsets, at its coordinator.

Version 0 fetches the offsets that version 0 committed, which are in ZooKeeper.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    Boolean,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    String,
    Structure,
    UuidField,
    wire,
)


class OffsetFetchRequestTopic(Structure, kw_only=True):
    """A topic."""

    name: Annotated[String, wire(guide="TopicName")]
    partition_indexes: Annotated[list[Int32], wire(guide="[Partition]")]


class OffsetFetchRequestTopics(Structure, kw_only=True):
    """A topic of one of several groups."""

    name: Annotated[String, wire("8-9", ignorable=True)] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partition_indexes: list[Int32]


class OffsetFetchRequestGroup(Structure, kw_only=True):
    """A group; null topics are all topics."""

    group_id: String
    member_id: Annotated[String | None, wire("9+", nullable="9+", ignorable=True)] = None
    member_epoch: Annotated[Int32, wire("9+", ignorable=True)] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, wire(nullable="8+")]


class OffsetFetchRequest(Structure, kw_only=True):
    """Fetch the offsets of a group, from version 8 on of several."""

    spec: ClassVar = MessageSpec.of("OffsetFetch", 9, "request", versions="0-10", flexible="6+")

    group_id: Annotated[String, wire("0-7", guide="ConsumerGroup")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, wire("0-7", nullable="2-7", guide="")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], wire("8+")] = []
    require_stable: Annotated[Boolean, wire("7+")] = False


class OffsetFetchResponsePartition(Structure, kw_only=True):
    """A committed offset; -1 without one, which is not an error."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    committed_offset: Annotated[Int64, wire(guide="Offset")]
    committed_leader_epoch: Annotated[Int32, wire("5-7", ignorable=True)] = -1
    metadata: Annotated[String | None, wire(nullable="0-7")]
    error_code: Int16


class OffsetFetchResponseTopic(Structure, kw_only=True):
    """The offsets in a topic."""

    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[OffsetFetchResponsePartition], wire(guide="")]


class OffsetFetchResponsePartitions(Structure, kw_only=True):
    """A committed offset of one of several groups."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, wire(ignorable=True)] = -1
    metadata: Annotated[String | None, wire(nullable="8+")]
    error_code: Int16


class OffsetFetchResponseTopics(Structure, kw_only=True):
    """The offsets of one of several groups in a topic."""

    name: Annotated[String, wire("8-9", ignorable=True)] = ""
    topic_id: Annotated[UuidField, wire("10+", ignorable=True)] = NO_UUID
    partitions: list[OffsetFetchResponsePartitions]


class OffsetFetchResponseGroup(Structure, kw_only=True):
    """The offsets of one of several groups."""

    group_id: String
    topics: list[OffsetFetchResponseTopics]
    error_code: Int16 = 0


class OffsetFetchResponse(Structure, kw_only=True):
    """The committed offsets."""

    spec: ClassVar = MessageSpec.of("OffsetFetch", 9, "response", versions="0-10", flexible="6+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], wire("0-7", guide="")] = []
    error_code: Annotated[Int16, wire("2-7", ignorable=True)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], wire("8+")] = []
