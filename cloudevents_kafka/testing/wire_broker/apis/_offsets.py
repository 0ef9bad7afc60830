"""ListOffsets, by segments in version 0, by timestamp later; OffsetCommit and OffsetFetch in all shapes."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeVar

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import offsets as messages
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._coordinator import CommittedOffset
from cloudevents_kafka.testing.wire_broker._errors import ApiError, error_code_of
from cloudevents_kafka.testing.wire_broker._log import Log
from cloudevents_kafka.testing.wire_broker.apis._groups import check_coordinator

_LATEST: Final = -1
_EARLIEST: Final = frozenset({-2, -4})
"""The first offset: -2 of the log, -4 of the part on the broker's disk."""
_MAX_TIMESTAMP: Final = -3
_MAX_METADATA: Final = 4096
_NOT_COMMITTED: Final = CommittedOffset(-1)

_Row = TypeVar("_Row", messages.OffsetFetchResponsePartition, messages.OffsetFetchResponsePartitions)


def list_offsets(call: Call, request: messages.ListOffsetsRequest) -> messages.ListOffsetsResponse:
    """Return offsets by timestamp; -1, without an error, if all records are older."""
    return messages.ListOffsetsResponse(
        topics=[
            messages.ListOffsetsTopicResponse(
                name=topic.name, partitions=[_listed(call, topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _listed(
    call: Call, topic: str, wanted: messages.ListOffsetsPartition
) -> messages.ListOffsetsPartitionResponse:
    number = wanted.partition_index
    try:
        partition = call.led_partition(topic, number, wanted.current_leader_epoch)
    except ApiError as error:
        return messages.ListOffsetsPartitionResponse(partition_index=number, error_code=error.code)
    if call.version == 0:
        return messages.ListOffsetsPartitionResponse(
            partition_index=number,
            error_code=ErrorCode.NONE,
            old_style_offsets=_segments(partition.log, wanted),
        )
    time, offset = _at(partition.log, wanted.timestamp)
    return messages.ListOffsetsPartitionResponse(
        partition_index=number,
        error_code=ErrorCode.NONE,
        timestamp=time,
        offset=offset,
        leader_epoch=partition.epoch if call.version >= 4 else -1,
    )


def _segments(log: Log, wanted: messages.ListOffsetsPartition) -> list[int]:
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


def offset_commit(
    call: Call, request: messages.OffsetCommitRequest | messages.OffsetCommitRequestBeta
) -> messages.OffsetCommitResponse:
    """Store offsets and return the response; an error of the group is repeated for each partition."""
    if isinstance(request, messages.OffsetCommitRequestBeta):
        request = _released_layout(request)
    code = error_code_of(partial(_check_group, call, request))
    return messages.OffsetCommitResponse(
        topics=[
            messages.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    messages.OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=code or _commit_one(call, request.group_id, topic, one),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _released_layout(request: messages.OffsetCommitRequestBeta) -> messages.OffsetCommitRequest:
    """Return a request in the released layout; the timestamp of the guide's layout is dropped."""
    return messages.OffsetCommitRequest(
        group_id=request.group_id,
        topics=[
            messages.OffsetCommitRequestTopic(
                name=topic.name,
                partitions=[
                    messages.OffsetCommitRequestPartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_metadata=one.committed_metadata,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _check_group(call: Call, request: messages.OffsetCommitRequest) -> None:
    if _in_zookeeper(call):  # every node writes there, without a check of the member
        return
    if call.version == 0 and not call.release.beta_offset_commit:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    check_coordinator(call, request.group_id)
    member = request.member_id, request.group_instance_id
    call.cluster.groups.check_commit(request.group_id, member, request.generation_id_or_member_epoch)


def _commit_one(
    call: Call,
    group: str,
    topic: messages.OffsetCommitRequestTopic,
    one: messages.OffsetCommitRequestPartition,
) -> int:
    def commit() -> None:
        name = call.topic_name(topic.name, topic.topic_id)
        call.check(name, one.partition_index)
        call.cluster.partition(name, one.partition_index)
        zookeeper = _in_zookeeper(call)
        metadata = "" if zookeeper else one.committed_metadata or ""
        if len(metadata.encode()) > _MAX_METADATA:
            raise ApiError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        offset = CommittedOffset(one.committed_offset, one.committed_leader_epoch, metadata)
        call.cluster.committed_offsets.commit(group, name, one.partition_index, offset, zookeeper=zookeeper)

    return error_code_of(commit)


def offset_fetch(call: Call, request: messages.OffsetFetchRequest) -> messages.OffsetFetchResponse:
    """Return committed offsets; -1 if the group has not committed one."""
    if call.version >= 8:
        return messages.OffsetFetchResponse(groups=[_group(call, group) for group in request.groups])
    group, zookeeper = request.group_id, _in_zookeeper(call)
    code = 0 if zookeeper else error_code_of(partial(check_coordinator, call, group))
    if code and call.version >= 2:
        return messages.OffsetFetchResponse(error_code=code)
    if request.topics is None:
        wanted = _by_topic(call.cluster.committed_offsets.of(group, zookeeper=zookeeper))
    else:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    kind, topics = messages.OffsetFetchResponsePartition, []
    for name, numbers in wanted.items():
        rows = [_fetched(kind, call, group, name, number, code=code) for number in numbers]
        topics.append(messages.OffsetFetchResponseTopic(name=name, partitions=rows))
    return messages.OffsetFetchResponse(topics=topics)


def _group(call: Call, request: messages.OffsetFetchRequestGroup) -> messages.OffsetFetchResponseGroup:
    group, wanted = request.group_id, request.topics
    code = error_code_of(lambda: check_coordinator(call, group))
    if code:
        return messages.OffsetFetchResponseGroup(group_id=group, topics=[], error_code=code)
    if wanted is None:
        topics = call.cluster.topics
        wanted = [
            messages.OffsetFetchRequestTopics(name=name, topic_id=topics[name].id, partition_indexes=numbers)
            for name, numbers in _by_topic(call.cluster.committed_offsets.of(group)).items()
        ]
    return messages.OffsetFetchResponseGroup(
        group_id=group, topics=[_topic(call, group, topic) for topic in wanted]
    )


def _topic(
    call: Call, group: str, topic: messages.OffsetFetchRequestTopics
) -> messages.OffsetFetchResponseTopics:
    name, code = topic.name, 0
    try:
        name = call.topic_name(topic.name, topic.topic_id)
    except ApiError as error:
        code = error.code
    kind = messages.OffsetFetchResponsePartitions
    rows = [_fetched(kind, call, group, name, number, code=code) for number in topic.partition_indexes]
    return messages.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def _fetched(kind: type[_Row], call: Call, group: str, topic: str, number: int, *, code: int) -> _Row:
    """Return a row with a committed offset, or with an error; a missing one is an error in ZooKeeper."""
    code = code or error_code_of(lambda: call.check(topic, number))
    zookeeper = _in_zookeeper(call)
    if call.version == 0 and not zookeeper and not call.release.beta_offset_commit:
        code = code or ErrorCode.UNSUPPORTED_VERSION
    committed = call.cluster.committed_offsets.of(group, zookeeper=zookeeper).get((topic, number))
    if committed is None and zookeeper:
        code = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if code or committed is None:
        committed = _NOT_COMMITTED
    return kind(
        partition_index=number,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )


def _by_topic(committed: dict[tuple[str, int], CommittedOffset]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in committed:
        found.setdefault(topic, []).append(number)
    return found


def _in_zookeeper(call: Call) -> bool:
    return call.version == 0 and call.release.zookeeper
