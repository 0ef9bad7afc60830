"""ListOffsets (2), in the guide the Offset API: the first and last offset of a partition, or one by time.

Version 0 lists the start offsets of segments, newest first; later versions return one offset.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema import Int8, Int16, Int32, Int64, MessageSpec, String, Structure, wire


class ListOffsetsPartition(Structure, kw_only=True):
    """A partition and a time in ms; -1 is its end, -2 its start."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    current_leader_epoch: Annotated[Int32, wire("4+", ignorable=True)] = -1
    timestamp: Annotated[Int64, wire(guide="Time")]
    max_num_offsets: Annotated[Int32, wire("0", guide="MaxNumberOfOffsets")] = 1


class ListOffsetsTopic(Structure, kw_only=True):
    """A topic."""

    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[ListOffsetsPartition], wire(guide="")]


class ListOffsetsRequest(Structure, kw_only=True):
    """List offsets by time."""

    spec: ClassVar = MessageSpec.of(
        "ListOffsets", 2, "request", versions="0-11", flexible="6+", guide="OffsetRequest"
    )

    replica_id: Int32
    isolation_level: Annotated[Int8, wire("2+")] = 0
    topics: Annotated[list[ListOffsetsTopic], wire(guide="")]
    timeout_ms: Annotated[Int32, wire("10+", ignorable=True)] = 0


class ListOffsetsPartitionResponse(Structure, kw_only=True):
    """The offset, or in version 0 several, newest first."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    error_code: Int16
    old_style_offsets: Annotated[list[Int64], wire("0", guide="[Offset]")] = []
    timestamp: Annotated[Int64, wire("1+")] = -1
    offset: Annotated[Int64, wire("1+")] = -1
    leader_epoch: Annotated[Int32, wire("4+")] = -1


class ListOffsetsTopicResponse(Structure, kw_only=True):
    """The offsets of a topic."""

    name: Annotated[String, wire(guide="TopicName")]
    partitions: Annotated[list[ListOffsetsPartitionResponse], wire(guide="[PartitionOffsets]")]


class ListOffsetsResponse(Structure, kw_only=True):
    """The offsets."""

    spec: ClassVar = MessageSpec.of(
        "ListOffsets", 2, "response", versions="0-11", flexible="6+", guide="OffsetResponse"
    )

    throttle_time_ms: Annotated[Int32, wire("2+", ignorable=True)] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], wire(guide="")]
