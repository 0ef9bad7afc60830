"""The Produce and InitProducerId APIs."""

from __future__ import annotations

import time

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import produce as messages
from cloudevents_kafka.testing.wire_broker._append import parse_message_set, parse_record_batch
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._cluster import Partition
from cloudevents_kafka.testing.wire_broker._errors import ApiError, CloseConnection, error_code_of


def produce(call: Call, request: messages.ProduceRequest) -> messages.ProduceResponse | None:
    """Append the records and return the response.

    With acks 0 there is no response, and an error closes the connection.
    """
    response = messages.ProduceResponse(
        responses=[
            messages.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_row(call, request, topic, data) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )
    call.cluster.changes.notify_all()
    rows = [row for topic in response.responses for row in topic.partition_responses]
    if request.acks == 0:
        if any(row.error_code for row in rows):
            raise CloseConnection("a produce request without acks met an error")
        return None
    if request.acks > 1 and call.release.accepts_any_acks:
        _await_replicas(call, request.timeout_ms, rows)
    return response


def _row(
    call: Call,
    request: messages.ProduceRequest,
    topic: messages.TopicProduceData,
    data: messages.PartitionProduceData,
) -> messages.PartitionProduceResponse:
    try:
        partition = call.led_partition(call.topic_name(topic.name, topic.topic_id), data.index)
        _check_acks(call, request.acks)
        offset = _append(call, partition, data.records or b"")
    except ApiError as error:
        return messages.PartitionProduceResponse(index=data.index, error_code=error.code, base_offset=-1)
    return messages.PartitionProduceResponse(
        index=data.index, error_code=ErrorCode.NONE, base_offset=offset, log_start_offset=partition.log.start
    )


def _check_acks(call: Call, acks: int) -> None:
    if acks not in {-1, 0, 1} and not call.release.accepts_any_acks:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)


def _append(call: Call, partition: Partition, records: bytes) -> int:
    """Append records; return the first offset, -1 without records."""
    max_bytes = call.cluster.settings.max_message_bytes
    if call.version < 3:
        messages = parse_message_set(records, max_bytes, call.release.magic)
        return partition.log.append(messages, partition.epoch) if messages else -1
    batch, sent = parse_record_batch(records, max_bytes)
    duplicate = partition.sequences.offset_of_duplicate(batch)
    if duplicate is not None:
        return duplicate
    offset = partition.log.append([sent], partition.epoch)
    partition.sequences.add(batch, offset)
    return offset


def _await_replicas(call: Call, timeout_ms: int, rows: list[messages.PartitionProduceResponse]) -> None:
    """Wait in vain for more replicas; the rows keep their offsets."""
    end = time.monotonic() + max(0, timeout_ms) / 1000
    while time.monotonic() < end:
        call.cluster.changes.wait_until(end)
    for row in rows:
        row.error_code = row.error_code or ErrorCode.REQUEST_TIMED_OUT


def init_producer_id(call: Call, request: messages.InitProducerIdRequest) -> messages.InitProducerIdResponse:
    """Return a new producer id, or the next epoch of one; transactional ids are refused."""
    code = error_code_of(call.check)
    if request.transactional_id is not None:
        code = code or ErrorCode.INVALID_REQUEST
    if code:
        return messages.InitProducerIdResponse(throttle_time_ms=0, error_code=code, producer_epoch=-1)
    if request.producer_id >= 0 and request.producer_epoch < 0x7FFF:
        id, epoch = request.producer_id, request.producer_epoch + 1
    else:
        id, epoch = call.cluster.next_producer_id(), 0
    return messages.InitProducerIdResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=id, producer_epoch=epoch
    )
