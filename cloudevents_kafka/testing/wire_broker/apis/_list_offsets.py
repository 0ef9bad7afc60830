"""The ListOffsets API: by segments in version 0, by timestamp from version 1 on."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._errors import ApiError
from cloudevents_kafka.testing.wire_broker._log import Log

_LATEST: Final = -1
_EARLIEST: Final = frozenset({-2, -4})
"""The first offset: -2 of the log, -4 of the part on the broker's disk."""
_MAX_TIMESTAMP: Final = -3


def list_offsets(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return offsets by timestamp; -1, without an error, if all records are older."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_row(call, topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _row(call: Call, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    number = wanted.partition_index
    try:
        partition = call.led_partition(topic, number, wanted.current_leader_epoch)
    except ApiError as error:
        return ListOffsetsPartitionResponse(partition_index=number, error_code=error.code)
    if call.version == 0:
        return ListOffsetsPartitionResponse(
            partition_index=number,
            error_code=ErrorCode.NONE,
            old_style_offsets=_segments(partition.log, wanted),
        )
    time, offset = _at(partition.log, wanted.timestamp)
    return ListOffsetsPartitionResponse(
        partition_index=number,
        error_code=ErrorCode.NONE,
        timestamp=time,
        offset=offset,
        leader_epoch=partition.epoch if call.version >= 4 else -1,
    )


def _segments(log: Log, wanted: ListOffsetsPartition) -> list[int]:
    if wanted.timestamp in _EARLIEST:
        return [log.start][: max(0, wanted.max_num_offsets)]
    return log.segments_before(wanted.timestamp, wanted.max_num_offsets)


def _at(log: Log, timestamp: int) -> tuple[int, int]:
    """Return a timestamp and an offset, or -1 and -1."""
    if timestamp == _LATEST:
        return -1, log.end
    if timestamp in _EARLIEST:
        return -1, log.start
    found = log.max_timestamp() if timestamp == _MAX_TIMESTAMP else log.at_time(timestamp)
    return found or (-1, -1)
