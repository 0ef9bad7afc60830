"""The Produce and InitProducerId APIs."""

from __future__ import annotations

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import produce as messages
from cloudevents_kafka.testing.wire_broker._append import parse_message_set, parse_record_batch
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._cluster import Partition
from cloudevents_kafka.testing.wire_broker._errors import ApiError, CloseConnection, error_in


def produce(call: Call, request: messages.ProduceRequest) -> messages.ProduceResponse | None:
    """Append the records and return the response.

    With acks 0 the client gets no response, and an error closes the connection.
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
    if request.acks == 0:  # S0-A6: "the server will not send any response"
        if any(row.error_code for row in rows):
            raise CloseConnection("a produce request without acks met an error")
        return None
    if request.acks > 1 and call.release.accepts_any_acks:
        call.cluster.changes.sleep(max(0, request.timeout_ms) / 1000)  # S0-A6: "block waiting", in vain
        for row in rows:
            row.error_code = row.error_code or ErrorCode.REQUEST_TIMED_OUT
    return response


def _row(
    call: Call,
    request: messages.ProduceRequest,
    topic: messages.TopicProduceData,
    data: messages.PartitionProduceData,
) -> messages.PartitionProduceResponse:
    row = messages.PartitionProduceResponse(index=data.index, error_code=ErrorCode.NONE, base_offset=-1)
    with error_in(row):
        partition = call.led_partition(call.topic_name(topic.name, topic.topic_id), data.index)
        if request.acks not in {-1, 0, 1} and not call.release.accepts_any_acks:
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
        row.base_offset = _append(call, partition, data.records or b"")
        row.log_start_offset = partition.log.start
    return row


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


def init_producer_id(call: Call, request: messages.InitProducerIdRequest) -> messages.InitProducerIdResponse:
    """Return a new producer id, or the next epoch of one; transactional ids are refused."""
    response = messages.InitProducerIdResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_epoch=-1
    )
    with error_in(response):
        call.check()
        if request.transactional_id is not None:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if request.producer_id >= 0 and request.producer_epoch < 0x7FFF:
            response.producer_id, response.producer_epoch = request.producer_id, request.producer_epoch + 1
        else:
            response.producer_id, response.producer_epoch = call.cluster.next_producer_id(), 0
    return response
