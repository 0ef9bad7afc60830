"""ListOffsets, by segments in version 0, by timestamp later; OffsetCommit and OffsetFetch in all shapes."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Final

import msgspec

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import offsets as messages
from cloudevents_kafka.protocol.schema import NEWEST
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._cluster import CommittedOffset
from tests.support.wire_broker._errors import ApiError, CloseConnection, error_in
from tests.support.wire_broker._log import Log
from tests.support.wire_broker.apis._groups import check_commit, check_coordinator

_LATEST: Final = -1
_EARLIEST: Final = frozenset({-2, -4})
"""The first offset: -2 of the log, -4 of the part on the broker's disk."""
_MAX_TIMESTAMP: Final = -3
_FIRST_VERSIONS: Final = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
"""The special timestamps, and the versions of ListOffsets from which they are there."""
_MAX_METADATA: Final = 4096


def list_offsets(call: Call, request: messages.ListOffsetsRequest) -> messages.ListOffsetsResponse:
    """Return offsets by timestamp; -1, without an error, if all records are older."""
    rows = [(topic.name, wanted) for topic in request.topics for wanted in topic.partitions]
    times = Counter((name, wanted.partition_index) for name, wanted in rows)
    found: dict[str, list[messages.ListOffsetsPartitionResponse]] = {}
    for name, wanted in rows:
        number = wanted.partition_index
        is_single = times[name, number] == 1 or call.version == 0
        found.setdefault(name, []).append(_listed(call, request, name, wanted, is_single=is_single))
    return messages.ListOffsetsResponse(
        topics=[
            messages.ListOffsetsTopicResponse(
                name=name,
                partitions=rows if call.release.number == (3, 9) else _last_of_each(rows),
            )
            for name, rows in found.items()
        ]
    )


def _last_of_each(
    rows: list[messages.ListOffsetsPartitionResponse],
) -> list[messages.ListOffsetsPartitionResponse]:
    return list({row.partition_index: row for row in rows}.values())


def _listed(
    call: Call,
    request: messages.ListOffsetsRequest,
    topic: str,
    wanted: messages.ListOffsetsPartition,
    *,
    is_single: bool,
) -> messages.ListOffsetsPartitionResponse:
    number = wanted.partition_index
    row = messages.ListOffsetsPartitionResponse(partition_index=number, error_code=ErrorCode.NONE)
    with error_in(row):
        if not is_single:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if request.isolation_level not in {0, 1}:
            if call.release.number < (3, 9):
                raise CloseConnection(f"the isolation level must be 0 or 1, got {request.isolation_level}")
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if call.version and call.release.number >= (3, 9) and call.version < _first_version(wanted.timestamp):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        partition = call.led_partition(topic, number, wanted.current_leader_epoch)
        if call.version == 0:
            row.old_style_offsets = _segments(partition.log, wanted)
            return row
        row.timestamp, row.offset = _at(call, partition.log, wanted.timestamp)
        if call.version >= 4 and row.offset >= 0:
            row.leader_epoch = partition.epoch
    return row


def _first_version(timestamp: int) -> int:
    """Return the version from which a timestamp may be asked for; none has an unknown special one."""
    return 0 if timestamp >= 0 else _FIRST_VERSIONS.get(timestamp, NEWEST)


def _segments(log: Log, wanted: messages.ListOffsetsPartition) -> list[int]:
    if wanted.max_num_offsets < 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if wanted.timestamp in _EARLIEST:
        return [log.start][: max(0, wanted.max_num_offsets)]
    return log.segments_before(wanted.timestamp, wanted.max_num_offsets)


def _at(call: Call, log: Log, timestamp: int) -> tuple[int, int]:
    """Return a timestamp and an offset, or -1 and -1."""
    if timestamp == _LATEST:
        return -1, log.end
    if timestamp in _EARLIEST:
        return -1, log.start
    if call.release.number < (3, 9):
        return log.at_time(timestamp) or (-1, -1)
    if timestamp < _MAX_TIMESTAMP:  # there is no other store than the disk
        return -1, -1
    found = log.max_timestamp() if timestamp == _MAX_TIMESTAMP else log.at_time(timestamp)
    return found or (-1, -1)


def offset_commit(
    call: Call, request: messages.OffsetCommitRequest | messages.OffsetCommitRequestBeta
) -> messages.OffsetCommitResponse:
    """Store offsets and return the response; an error of the group is repeated for each partition."""
    released = msgspec.convert(request, messages.OffsetCommitRequest, from_attributes=True)
    return messages.OffsetCommitResponse(
        topics=[
            messages.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[_commit(call, released, topic, one) for one in _distinct(call, topic)],
            )
            for topic in released.topics
            if topic.partitions
        ]
    )


def _distinct(
    call: Call, topic: messages.OffsetCommitRequestTopic
) -> list[messages.OffsetCommitRequestPartition]:
    """Return the partitions; before 4.0 only the last one of those that are there twice."""
    if call.release.number >= (4, 3):
        return topic.partitions
    return list({one.partition_index: one for one in topic.partitions}.values())


def _commit(
    call: Call,
    request: messages.OffsetCommitRequest,
    topic: messages.OffsetCommitRequestTopic,
    one: messages.OffsetCommitRequestPartition,
) -> messages.OffsetCommitResponsePartition:
    number, in_zookeeper = one.partition_index, _in_zookeeper(call)
    row = messages.OffsetCommitResponsePartition(partition_index=number, error_code=ErrorCode.NONE)
    with error_in(row):
        if call.version == 0 and not in_zookeeper and not call.release.beta_offset_commit:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if not in_zookeeper:  # every node writes there, without a check of the member
            check_commit(call, request)
        name = call.topic_name(topic.name, topic.topic_id)
        call.check(name, number)
        _check_partition(call, name, number)
        metadata = one.committed_metadata
        if in_zookeeper or (metadata is None and call.release.number >= (0, 10)):
            metadata = ""
        if len(metadata or "") > _MAX_METADATA:
            raise ApiError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        offset = CommittedOffset(one.committed_offset, one.committed_leader_epoch, metadata)
        call.cluster.committed_offsets[in_zookeeper, request.group_id][name, number] = offset
    return row


def _check_partition(call: Call, name: str, number: int) -> None:
    """Raise `ApiError` if there is no such partition; before KRaft only the topic must be there."""
    is_checked = call.release.number >= (3, 9) or call.version == 0 or name not in call.cluster.topics
    call.cluster.partition(name, number if is_checked else 0)


def offset_fetch(call: Call, request: messages.OffsetFetchRequest) -> messages.OffsetFetchResponse:
    """Return committed offsets; -1 if the group has not committed one."""
    if call.version >= 8:
        return messages.OffsetFetchResponse(groups=[_group(call, group) for group in request.groups])
    group = _group(call, msgspec.convert(request, messages.OffsetFetchRequestGroup, from_attributes=True))
    return msgspec.convert(group, messages.OffsetFetchResponse, from_attributes=True)


def _group(call: Call, request: messages.OffsetFetchRequestGroup) -> messages.OffsetFetchResponseGroup:
    """Return the offsets of a group; before version 2 its error is repeated for each partition."""
    response = messages.OffsetFetchResponseGroup(group_id=request.group_id, topics=[])
    with error_in(response):
        if not _in_zookeeper(call):
            check_coordinator(call, request.group_id)
    code = response.error_code
    if call.version < 2:
        response.error_code = ErrorCode.NONE
    elif code:
        return response
    topics = _committed_topics(call, request.group_id) if request.topics is None else request.topics
    response.topics = [_topic(call, request.group_id, topic, code) for topic in _merged(call, topics)]
    return response


def _merged(
    call: Call, topics: list[messages.OffsetFetchRequestTopics]
) -> list[messages.OffsetFetchRequestTopics]:
    """Return the topics; from 0.10 to 3.9 those that are there twice are one, and so are partitions."""
    if not (0, 10) <= call.release.number <= (3, 9):
        return topics
    merged: dict[tuple[str, uuid.UUID], messages.OffsetFetchRequestTopics] = {}
    for topic in topics:
        one = merged.setdefault(
            (topic.name, topic.topic_id),
            messages.OffsetFetchRequestTopics(name=topic.name, topic_id=topic.topic_id, partition_indexes=[]),
        )
        one.partition_indexes = list(dict.fromkeys([*one.partition_indexes, *topic.partition_indexes]))
    return list(merged.values())


def _committed_topics(call: Call, group: str) -> list[messages.OffsetFetchRequestTopics]:
    numbers: dict[str, list[int]] = {}
    for topic, number in call.cluster.committed_offsets[_in_zookeeper(call), group]:
        numbers.setdefault(topic, []).append(number)
    return [
        messages.OffsetFetchRequestTopics(
            name=name, topic_id=call.cluster.topics[name].id, partition_indexes=found
        )
        for name, found in numbers.items()
    ]


def _topic(
    call: Call, group: str, topic: messages.OffsetFetchRequestTopics, code: int
) -> messages.OffsetFetchResponseTopics:
    rows = [_fetched(call, group, topic, number, code) for number in topic.partition_indexes]
    return messages.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def _fetched(
    call: Call, group: str, topic: messages.OffsetFetchRequestTopics, number: int, code: int
) -> messages.OffsetFetchResponsePartitions:
    """Return a row with a committed offset, or with an error; a missing one is an error in ZooKeeper."""
    row = messages.OffsetFetchResponsePartitions(
        partition_index=number, committed_offset=-1, metadata="", error_code=code
    )
    with error_in(row):
        if code:
            raise ApiError(code)
        name, in_zookeeper = call.topic_name(topic.name, topic.topic_id), _in_zookeeper(call)
        call.check(name, number)
        if call.version == 0 and not in_zookeeper and not call.release.beta_offset_commit:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        committed = call.cluster.committed_offsets[in_zookeeper, group].get((name, number))
        if committed is not None:
            row.committed_offset, row.committed_leader_epoch, row.metadata = committed
        elif in_zookeeper:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return row


def _in_zookeeper(call: Call) -> bool:
    return call.version == 0 and call.release.zookeeper
