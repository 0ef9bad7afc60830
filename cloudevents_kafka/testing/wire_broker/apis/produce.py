"""Produce, and the ids of idempotent producers."""

from __future__ import annotations

import time

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from cloudevents_kafka.testing.wire_broker.append import sent_in_batch, sent_in_set
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.cluster import Partition
from cloudevents_kafka.testing.wire_broker.errors import Hangup, Refused, outcome


def produce(call: Call, asked: ProduceRequest) -> ProduceResponse | None:
    """Append; with acks 0 there is no answer, and an error ends the connection."""
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_row(call, asked, topic, data) for data in topic.partition_data],
            )
            for topic in asked.topic_data
        ]
    )
    call.cluster.changed.notify_all()
    rows = [row for topic in response.responses for row in topic.partition_responses]
    if asked.acks == 0:
        if any(row.error_code for row in rows):
            raise Hangup("a produce request without acks met an error")
        return None
    if asked.acks > 1 and call.dialect.many_acks:
        _await_replicas(call, asked.timeout_ms, rows)
    return response


def _row(
    call: Call, asked: ProduceRequest, topic: TopicProduceData, data: PartitionProduceData
) -> PartitionProduceResponse:
    try:
        partition = call.led(call.name(topic.name, topic.topic_id), data.index)
        _check_acks(call, asked.acks)
        offset = _append(call, partition, data.records or b"")
    except Refused as refused:
        return PartitionProduceResponse(index=data.index, error_code=refused.code, base_offset=-1)
    return PartitionProduceResponse(
        index=data.index, error_code=ErrorCode.NONE, base_offset=offset, log_start_offset=partition.log.start
    )


def _check_acks(call: Call, acks: int) -> None:
    if acks not in {-1, 0, 1} and not call.dialect.many_acks:
        raise Refused(ErrorCode.INVALID_REQUIRED_ACKS)


def _append(call: Call, partition: Partition, records: bytes) -> int:
    """Append records; return the first one's offset, -1 if there are none."""
    most = call.cluster.settings.max_message_bytes
    if call.version < 3:
        messages = sent_in_set(records, most, call.dialect.magic)
        return partition.log.append(messages, partition.epoch) if messages else -1
    batch, sent = sent_in_batch(records, most)
    before = partition.sequences.appended_before(batch)
    if before is not None:
        return before
    offset = partition.log.append([sent], partition.epoch)
    partition.sequences.note(batch, offset)
    return offset


def _await_replicas(call: Call, timeout_ms: int, rows: list[PartitionProduceResponse]) -> None:
    """Wait for replicas that there are none of; the offsets are told all the same."""
    until = time.monotonic() + max(0, timeout_ms) / 1000
    while time.monotonic() < until:
        call.cluster.wait(until)
    for row in rows:
        row.error_code = row.error_code or ErrorCode.REQUEST_TIMED_OUT


def init_producer_id(call: Call, asked: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give out an id, or the next epoch of one; there are no transactions here."""
    code = outcome(call.check)
    if asked.transactional_id is not None:
        code = code or ErrorCode.INVALID_REQUEST
    if code:
        return InitProducerIdResponse(throttle_time_ms=0, error_code=code, producer_epoch=-1)
    if asked.producer_id >= 0 and asked.producer_epoch < 0x7FFF:
        id, epoch = asked.producer_id, asked.producer_epoch + 1
    else:
        id, epoch = call.cluster.next_producer(), 0
    return InitProducerIdResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=id, producer_epoch=epoch
    )
