"""Fetch, by long poll."""

from __future__ import annotations

import time
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.cluster import Partition
from cloudevents_kafka.testing.wire_broker.errors import Refused

_DEBUGGER: Final = -2
"""The replica id that may read from any node."""


def fetch(call: Call, asked: FetchRequest) -> FetchResponse:
    """Wait until there are enough bytes, an error, or no time left; sessions are declined."""
    if asked.session_id != 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    until = time.monotonic() + max(0, asked.max_wait_ms) / 1000
    while not _is_enough(call, asked) and time.monotonic() < until:
        call.cluster.wait(until)
    response = FetchResponse(responses=[])
    left = asked.max_bytes
    for topic in asked.topics:
        rows = []
        for wanted in topic.partitions:
            row = _row(call, asked, topic, wanted, left)
            left -= len(row.records or b"")
            rows.append(row)
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=rows)
        )
    return response


def _is_enough(call: Call, asked: FetchRequest) -> bool:
    size = 0
    for topic in asked.topics:
        for wanted in topic.partitions:
            try:
                found = _partition(call, asked, topic, wanted).log.size_since(wanted.fetch_offset)
            except Refused:
                return True
            size += min(found, max(0, wanted.partition_max_bytes))
    return size >= asked.min_bytes


def _partition(call: Call, asked: FetchRequest, topic: FetchTopic, wanted: FetchPartition) -> Partition:
    """Find the partition and check that it has the offset; `Refused`."""
    name, number = call.name(topic.topic, topic.topic_id), wanted.partition
    if asked.replica_id == _DEBUGGER:
        partition = call.cluster.partition(name, number)
    else:
        partition = call.led(name, number, wanted.current_leader_epoch)
    if not partition.log.start <= wanted.fetch_offset <= partition.log.end:
        raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
    return partition


def _row(
    call: Call, asked: FetchRequest, topic: FetchTopic, wanted: FetchPartition, left: int
) -> PartitionData:
    try:
        partition = _partition(call, asked, topic, wanted)
    except Refused as refused:
        return PartitionData(
            partition_index=wanted.partition, error_code=refused.code, high_watermark=-1, records=b""
        )
    log = partition.log
    return PartitionData(
        partition_index=wanted.partition,
        error_code=ErrorCode.NONE,
        high_watermark=log.end,
        last_stable_offset=log.end,
        log_start_offset=log.start,
        aborted_transactions=[] if asked.isolation_level else None,
        records=_records(call, partition, wanted, left, first=left == asked.max_bytes),
    )


def _records(call: Call, partition: Partition, wanted: FetchPartition, left: int, *, first: bool) -> bytes:
    """Read what fits: before version 4 cut anywhere, then in whole batches.

    From version 3 on the first entry of an answer comes whole, however large it is (KIP-74).
    """
    version = call.version
    most = max(0, min(left, wanted.partition_max_bytes))
    magic = 0 if version < 2 else 1 if version < 4 else 2
    if call.dialect.magic == 0:  # these brokers know no other form, and give what they were given
        magic = 2
    entries = list(partition.log.read(wanted.fetch_offset, max(1, most), magic))
    if first and version >= 3 and entries:
        most = max(most, len(entries[0]))
    data = b"".join(entries)
    if version >= 4 and len(data) > most:  # the last one alone can be too much
        return data[: -len(entries[-1])]
    return data[:most]
