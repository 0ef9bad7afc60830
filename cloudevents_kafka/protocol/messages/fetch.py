"""Fetch (1): fetch message sets or record batches from partition leaders, which wait for new records.

The source is Kafka's 0.8 protocol guide, "Fetch API".
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.messages.produce import LeaderIdAndEpoch, NodeEndpoint
from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    Records,
    String,
    Structure,
    UuidField,
    wire,
)


class ReplicaState(Structure, kw_only=True):
    """The broker that fetches as a replica; a client sends the id -1."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Structure, kw_only=True):
    """A partition to fetch, with the first offset and a limit on the size."""

    partition: Int32
    current_leader_epoch: Annotated[Int32, wire("9+", ignorable=True)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, wire("12+")] = -1
    log_start_offset: Annotated[Int64, wire("5+", ignorable=True)] = -1
    partition_max_bytes: Annotated[Int32, wire(guide="MaxBytes")]
    replica_directory_id: Annotated[UuidField, wire("17+", tag=0, tagged="17+", ignorable=True)] = NO_UUID
    high_watermark: Annotated[Int64, wire("18+", tag=1, tagged="18+", ignorable=True)] = 9223372036854775807


class FetchTopic(Structure, kw_only=True):
    topic: Annotated[String, wire("0-12", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("13+", ignorable=True)] = NO_UUID
    partitions: Annotated[list[FetchPartition], wire(guide="")]


class ForgottenTopic(Structure, kw_only=True):
    """Partitions to remove from a fetch session (KIP-227)."""

    topic: Annotated[String, wire("7-12", ignorable=True)] = ""
    topic_id: Annotated[UuidField, wire("13+", ignorable=True)] = NO_UUID
    partitions: list[Int32]


class FetchRequest(Structure, kw_only=True):
    """Fetch records; the broker waits up to ``max_wait_ms`` for at least ``min_bytes`` bytes.

    Session epoch -1 means a fetch without a session.
    """

    spec: ClassVar = MessageSpec.of("0-18", ApiKey.FETCH, flexible="12+")

    cluster_id: Annotated[String | None, wire("12+", nullable="12+", tag=0, tagged="12+", ignorable=True)] = (
        None
    )
    replica_id: Annotated[Int32, wire("0-14")] = -1  # S0-A9: clients "should always specify this as -1"
    replica_state: Annotated[ReplicaState, wire("15+", tag=1, tagged="15+")] = field(
        default_factory=ReplicaState
    )
    max_wait_ms: Annotated[Int32, wire(guide="MaxWaitTime")]
    min_bytes: Int32
    max_bytes: Annotated[Int32, wire("3+", ignorable=True)] = 2147483647
    isolation_level: Annotated[Int8, wire("4+", ignorable=True)] = 0
    session_id: Annotated[Int32, wire("7+", ignorable=True)] = 0
    session_epoch: Annotated[Int32, wire("7+", ignorable=True)] = -1
    topics: Annotated[list[FetchTopic], wire(guide="")]
    forgotten_topics_data: Annotated[list[ForgottenTopic], wire("7+")] = []
    rack_id: Annotated[String, wire("11+", ignorable=True)] = ""


class EpochEndOffset(Structure, kw_only=True):
    """The end of a leader epoch, for a client that has read records which were truncated later."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class SnapshotId(Structure, kw_only=True):
    """A snapshot that a controller must fetch instead of records."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Structure, kw_only=True):
    """An aborted transaction: its records, from ``first_offset`` to the abort marker, are invalid."""

    producer_id: Int64
    first_offset: Int64


class PartitionData(Structure, kw_only=True):
    """The records of a partition; their bytes may end within a message."""

    partition_index: Annotated[Int32, wire(guide="Partition")]
    error_code: Int16
    high_watermark: Annotated[Int64, wire(guide="HighwaterMarkOffset")]
    last_stable_offset: Annotated[Int64, wire("4+", ignorable=True)] = -1
    log_start_offset: Annotated[Int64, wire("5+", ignorable=True)] = -1
    diverging_epoch: Annotated[EpochEndOffset, wire("12+", tag=0, tagged="12+")] = field(
        default_factory=EpochEndOffset
    )
    current_leader: Annotated[LeaderIdAndEpoch, wire("12+", tag=1, tagged="12+")] = field(
        default_factory=LeaderIdAndEpoch
    )
    snapshot_id: Annotated[SnapshotId, wire("12+", tag=2, tagged="12+")] = field(default_factory=SnapshotId)
    aborted_transactions: Annotated[
        list[AbortedTransaction] | None, wire("4+", nullable="4+", ignorable=True)
    ] = []
    preferred_read_replica: Annotated[Int32, wire("11+")] = -1
    records: Annotated[Records | None, wire(nullable="0+", guide="MessageSetSize MessageSet")]


class FetchableTopicResponse(Structure, kw_only=True):
    topic: Annotated[String, wire("0-12", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("13+", ignorable=True)] = NO_UUID
    partitions: Annotated[list[PartitionData], wire(guide="")]


class FetchResponse(Structure, kw_only=True):
    """The records and high watermarks of the fetched partitions."""

    spec: ClassVar = MessageSpec.of("0-18", ApiKey.FETCH, flexible="12+")

    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    error_code: Annotated[Int16, wire("7+", ignorable=True)] = 0
    session_id: Annotated[Int32, wire("7+")] = 0
    responses: Annotated[list[FetchableTopicResponse], wire(guide="")]
    node_endpoints: Annotated[list[NodeEndpoint], wire("16+", tag=0, tagged="16+")] = []
