"""Produce (0) and InitProducerId (22): append message sets or record batches at partition leaders.

The source is Kafka's 0.8 protocol guide, "Produce API". Versions 0 to 2 carry message sets, and later
versions carry record batches (KIP-98). Brokers from 4.0 on refuse the versions 0 to 2, but still list these
versions (KAFKA-18659). InitProducerId returns the id of an idempotent or transactional producer (KIP-98).

`MessageSetEntry` is the layout of message sets (guide, "Message sets"); its versions are the values of the
magic byte. A message set does not state its number of messages, and may end within a message. The module
`records` encodes and decodes message sets.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    Boolean,
    Bytes,
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


class PartitionProduceData(Structure, kw_only=True):
    index: Annotated[Int32, wire(guide="Partition")]
    records: Annotated[Records | None, wire(nullable="0+", guide="MessageSetSize MessageSet")]


class TopicProduceData(Structure, kw_only=True):
    name: Annotated[String, wire("0-12", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("13+", ignorable=True)] = NO_UUID
    partition_data: Annotated[list[PartitionProduceData], wire(guide="")]


class ProduceRequest(Structure, kw_only=True):
    """Append records.

    With ``acks`` 0, the broker does not respond. With ``acks`` 1, the broker responds after the leader has
    appended the records. With ``acks`` -1, the broker responds after all in-sync replicas have appended the
    records.
    """

    spec: ClassVar = MessageSpec.of("0-13", ApiKey.PRODUCE, flexible="9+")

    transactional_id: Annotated[String | None, wire("3+", nullable="3+")] = None
    acks: Annotated[Int16, wire(guide="RequiredAcks")]  # S0-A6: "the server will not send any response"
    timeout_ms: Annotated[Int32, wire(guide="Timeout")]
    topic_data: Annotated[list[TopicProduceData], wire(guide="")]


class BatchIndexAndErrorMessage(Structure, kw_only=True):
    """A record that the broker refused, identified by its index in the batch."""

    batch_index: Int32
    batch_index_error_message: Annotated[String | None, wire(nullable="8+")] = None


class LeaderIdAndEpoch(Structure, kw_only=True):
    """The current leader of a partition, if another broker leads the partition."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Structure, kw_only=True):
    """The result for a partition: the offset of the first record, or an error."""

    index: Annotated[Int32, wire(guide="Partition")]
    error_code: Int16
    base_offset: Annotated[Int64, wire(guide="Offset")]  # S0-A8: "assigned to the first message"
    log_append_time_ms: Annotated[Int64, wire("2+", ignorable=True)] = -1
    log_start_offset: Annotated[Int64, wire("5+", ignorable=True)] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], wire("8+", ignorable=True)] = []
    error_message: Annotated[String | None, wire("8+", nullable="8+", ignorable=True)] = None
    current_leader: Annotated[LeaderIdAndEpoch, wire("10+", tag=0, tagged="10+")] = field(
        default_factory=LeaderIdAndEpoch
    )


class TopicProduceResponse(Structure, kw_only=True):
    name: Annotated[String, wire("0-12", ignorable=True, guide="TopicName")] = ""
    topic_id: Annotated[UuidField, wire("13+", ignorable=True)] = NO_UUID
    partition_responses: Annotated[list[PartitionProduceResponse], wire(guide="")]


class NodeEndpoint(Structure, kw_only=True):
    """The address of a broker that is the ``current_leader`` of a partition."""

    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[String | None, wire(nullable="0+")] = None


class ProduceResponse(Structure, kw_only=True):
    """The results for the partitions; the response may list the topics in any order."""

    spec: ClassVar = MessageSpec.of("0-13", ApiKey.PRODUCE, flexible="9+")

    responses: Annotated[list[TopicProduceResponse], wire(guide="")]
    throttle_time_ms: Annotated[Int32, wire("1+", ignorable=True)] = 0
    node_endpoints: Annotated[list[NodeEndpoint], wire("10+", tag=0, tagged="10+")] = []


class InitProducerIdRequest(Structure, kw_only=True):
    """Request a producer id; for an idempotent producer, the transactional id is null."""

    spec: ClassVar = MessageSpec.of("0-6", ApiKey.INIT_PRODUCER_ID, flexible="2+")

    transactional_id: Annotated[String | None, wire(nullable="0+")]
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, wire("3+")] = -1
    producer_epoch: Annotated[Int16, wire("3+")] = -1
    enable2_pc: Annotated[Boolean, wire("6+")] = False
    keep_prepared_txn: Annotated[Boolean, wire("6+")] = False


class InitProducerIdResponse(Structure, kw_only=True):
    """The producer id and its epoch."""

    spec: ClassVar = MessageSpec.of("0-6", ApiKey.INIT_PRODUCER_ID, flexible="2+")

    throttle_time_ms: Annotated[Int32, wire(ignorable=True)]
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Annotated[Int64, wire("6+")] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, wire("6+")] = -1


class MessageOfSet(Structure, kw_only=True):
    """A message of a message set.

    ``crc`` covers all fields that follow it; the lowest two bits of ``attributes`` are the codec.
    """

    crc: Int32
    magic_byte: Int8  # S0-M2: "a version id"
    attributes: Int8
    timestamp: Annotated[Int64, wire("1+")] = -1
    key: Annotated[Bytes | None, wire(nullable="0+")]
    value: Annotated[Bytes | None, wire(nullable="0+")]


class MessageSetEntry(Structure, kw_only=True):
    """The offset of a message, the size of the message in bytes, and the message."""

    spec: ClassVar = MessageSpec.of("0-1", guide="MessageSet")

    offset: Int64  # S0-M5: a producer "can fill in any value here"
    message_size: Int32
    content: Annotated[MessageOfSet, wire(guide="Message")]
