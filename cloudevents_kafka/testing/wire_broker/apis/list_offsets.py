"""ListOffsets: by segments in version 0, by time from then on."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.errors import Refused
from cloudevents_kafka.testing.wire_broker.log import Log

_LATEST: Final = -1
_EARLIEST: Final = frozenset({-2, -4})
"""The beginning, of all there is and of what lies on the broker's own disk."""
_OF_NEWEST: Final = -3


def list_offsets(call: Call, asked: ListOffsetsRequest) -> ListOffsetsResponse:
    """Find offsets; -1 where nothing is that late, which is no error."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_row(call, topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in asked.topics
        ]
    )


def _row(call: Call, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    number = wanted.partition_index
    try:
        partition = call.led(topic, number, wanted.current_leader_epoch)
    except Refused as refused:
        return ListOffsetsPartitionResponse(partition_index=number, error_code=refused.code)
    if call.version == 0:
        return ListOffsetsPartitionResponse(
            partition_index=number, error_code=0, old_style_offsets=_segments(partition.log, wanted)
        )
    time, offset = _at(partition.log, wanted.timestamp)
    return ListOffsetsPartitionResponse(
        partition_index=number,
        error_code=0,
        timestamp=time,
        offset=offset,
        leader_epoch=partition.epoch if call.version >= 4 else -1,
    )


def _segments(log: Log, wanted: ListOffsetsPartition) -> list[int]:
    if wanted.timestamp in _EARLIEST:
        return [log.start][: max(0, wanted.max_num_offsets)]
    return log.segments_before(wanted.timestamp, wanted.max_num_offsets)


def _at(log: Log, timestamp: int) -> tuple[int, int]:
    """Return a timestamp and an offset, each -1 if there is none."""
    if timestamp == _LATEST:
        return -1, log.end
    if timestamp in _EARLIEST:
        return -1, log.start
    found = log.newest() if timestamp == _OF_NEWEST else log.at_time(timestamp)
    return found or (-1, -1)
