"""The Produce and InitProducerId APIs."""

from __future__ import annotations

import time
import uuid
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import produce as messages
from tests.support.wire_broker._append import (
    Rules,
    check_records,
    parse_message_set,
    parse_record_batch,
)
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._cluster import Partition
from tests.support.wire_broker._errors import ApiError, CloseConnection, error_in, no_transactions

_ZSTD: Final = 7
"""The version of Produce from which records may be compressed by zstd (KIP-110)."""


def produce(call: Call, request: messages.ProduceRequest) -> messages.ProduceResponse | None:
    """Append the records and return the response.

    With acks 0 the client gets no response, and an error closes the connection.
    """
    response = messages.ProduceResponse(
        responses=[
            messages.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_row(call, request, topic, data) for data in rows],
            )
            for topic, rows in _distinct(request)
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


def _distinct(
    request: messages.ProduceRequest,
) -> list[tuple[messages.TopicProduceData, list[messages.PartitionProduceData]]]:
    """Return the topics with their partitions; of a partition that is there twice the last."""
    topics = {(topic.name, topic.topic_id): topic for topic in request.topic_data}
    rows: dict[tuple[str, uuid.UUID], dict[int, messages.PartitionProduceData]] = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            rows.setdefault((topic.name, topic.topic_id), {})[data.index] = data
    return [(topics[key], list(found.values())) for key, found in rows.items()]


def _row(
    call: Call,
    request: messages.ProduceRequest,
    topic: messages.TopicProduceData,
    data: messages.PartitionProduceData,
) -> messages.PartitionProduceResponse:
    row = messages.PartitionProduceResponse(index=data.index, error_code=ErrorCode.NONE, base_offset=-1)
    with error_in(row):
        name = call.topic_name(topic.name, topic.topic_id)
        partition = call.led_partition(name, data.index)
        if request.acks not in {-1, 0, 1} and not call.release.accepts_any_acks:
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
        _append(call, call.cluster.topics[name].rules, partition, data.records or b"", row)
    return row


def _append(
    call: Call, rules: Rules, partition: Partition, records: bytes, row: messages.PartitionProduceResponse
) -> None:
    """Append records, and write the first offset into the row; it is -1 without records."""
    now = int(time.time() * 1000)
    if call.version < 3:
        sent = parse_message_set(records, rules, call.release.magic)
        row.base_offset = partition.log.append(sent, partition.epoch, now) if sent else -1
        return
    batch, one = parse_record_batch(records, rules, zstd=call.version >= _ZSTD)
    try:
        check_records(batch, rules)
    except ApiError as error:
        if call.release.number >= (3, 9) or error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
            row.log_start_offset = partition.log.start
        elif error.code == ErrorCode.INVALID_RECORD:  # which is a code since 2.4
            raise ApiError(ErrorCode.CORRUPT_MESSAGE) from error
        raise
    row.log_start_offset = partition.log.start
    duplicate = partition.sequences.offset_of_duplicate(batch, rules.release)
    if duplicate is not None:
        row.base_offset = duplicate
        return
    row.base_offset = partition.log.append([one], partition.epoch, now)
    row.log_append_time_ms = now if rules.appends_time else -1
    partition.sequences.add(batch, row.base_offset)


def init_producer_id(call: Call, request: messages.InitProducerIdRequest) -> messages.InitProducerIdResponse:
    """Return a new producer id; transactional ids are refused."""
    response = messages.InitProducerIdResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_epoch=-1
    )
    with error_in(response):
        call.check()
        if request.transactional_id == "":
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            raise no_transactions()
        if (request.producer_id < 0) is not (request.producer_epoch < 0):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        response.producer_id, response.producer_epoch = call.cluster.next_producer_id(), 0
    return response
