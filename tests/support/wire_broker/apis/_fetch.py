"""The Fetch API, by long polling."""

from __future__ import annotations

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
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._cluster import Partition
from tests.support.wire_broker._errors import ApiError, CloseConnection, error_in
from tests.support.wire_broker._log import Log

_NO_SESSION: Final = frozenset({-1, 0})
"""The epochs that ask for a response without a session, or to begin one (KIP-227)."""
_ISOLATION_LEVELS: Final = frozenset({0, 1})
_DEBUGGER: Final = -2
"""The replica id that may read from nodes other than the leader."""


def fetch(call: Call, request: FetchRequest) -> FetchResponse:
    """Return the records once there are enough bytes, an error, or no time left; no session begins."""
    if request.session_epoch not in _NO_SESSION:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    call.cluster.changes.sleep(max(0, request.max_wait_ms) / 1000, lambda: _is_enough(call, request))
    response = FetchResponse(responses=[])
    if request.isolation_level not in _ISOLATION_LEVELS:
        if call.release.number < (3, 9):
            raise CloseConnection(f"the isolation level must be 0 or 1, got {request.isolation_level}")
        response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    left = request.max_bytes
    for topic in request.topics:
        rows = []
        for wanted in topic.partitions:
            row = _row(call, request, topic, wanted, left)
            left -= len(row.records or b"")
            rows.append(row)
        if rows:
            response.responses.append(
                FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=rows)
            )
    return response


def _is_enough(call: Call, request: FetchRequest) -> bool:
    size = 0
    for topic in request.topics:
        for wanted in topic.partitions:
            try:
                found = _partition(call, request, topic, wanted).log.size_since(wanted.fetch_offset)
            except ApiError:
                return True
            size += min(found, max(0, wanted.partition_max_bytes))
    return size >= request.min_bytes  # S0-A10: with 0 "the server will always respond immediately"


def _partition(call: Call, request: FetchRequest, topic: FetchTopic, wanted: FetchPartition) -> Partition:
    """Return the partition; raise `ApiError` if it does not have the offset."""
    name, number = call.topic_name(topic.topic, topic.topic_id), wanted.partition
    if request.replica_id == _DEBUGGER:
        partition = call.cluster.partition(name, number)
    else:
        partition = call.led_partition(name, number, max(-1, wanted.current_leader_epoch))
        if request.replica_id >= 0:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    has_offset = partition.log.start <= wanted.fetch_offset <= partition.log.end
    if not has_offset or wanted.last_fetched_epoch > partition.epoch:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return partition


def _row(
    call: Call, request: FetchRequest, topic: FetchTopic, wanted: FetchPartition, left: int
) -> PartitionData:
    row = PartitionData(
        partition_index=wanted.partition, error_code=ErrorCode.NONE, high_watermark=-1, records=b""
    )
    with error_in(row):
        if request.isolation_level not in _ISOLATION_LEVELS:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        log = _partition(call, request, topic, wanted).log
        if min(wanted.partition_max_bytes, request.max_bytes) < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        row.high_watermark = log.end
        if request.isolation_level or call.release.number >= (3, 9):
            row.last_stable_offset = log.end
        row.log_start_offset = log.start
        row.aborted_transactions = [] if request.isolation_level else None
        row.records = _records(call, log, wanted, left, first=left == request.max_bytes)
    return row


def _records(call: Call, log: Log, wanted: FetchPartition, left: int, *, first: bool) -> bytes:
    """Return the records that fit: before version 4 cut anywhere, then in whole batches.

    From version 3 on the first entry of a response is complete, however large it is (KIP-74).
    """
    version = call.version
    max_bytes = max(0, min(left, wanted.partition_max_bytes))
    magic = 0 if version < 2 else 1 if version < 4 else 2
    if call.release.magic == 0:  # these brokers do not convert
        magic = 2
    entries = list(log.read(wanted.fetch_offset, max(1, max_bytes), magic))
    if first and version >= 3 and entries:
        max_bytes = max(max_bytes, len(entries[0]))
    data = b"".join(entries)
    if version >= 4 and len(data) > max_bytes:  # only the last entry can exceed it
        return data[: -len(entries[-1])]
    return data[:max_bytes]  # S0-M7: "allowed to return a partial message"
