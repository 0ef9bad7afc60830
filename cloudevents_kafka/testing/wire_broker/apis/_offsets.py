"""OffsetCommit and OffsetFetch, in all their shapes."""

from __future__ import annotations

from functools import partial
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestBeta,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from cloudevents_kafka.protocol.schema import NO_UUID
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._coordinator import CommittedOffset
from cloudevents_kafka.testing.wire_broker._errors import ApiError, error_code_of
from cloudevents_kafka.testing.wire_broker.apis._groups import check_coordinator

_MAX_METADATA: Final = 4096
_NOT_COMMITTED: Final = CommittedOffset(-1)


def offset_commit(call: Call, request: OffsetCommitRequest | OffsetCommitRequestBeta) -> OffsetCommitResponse:
    """Store offsets and return the response; an error of the group is repeated for each partition."""
    if isinstance(request, OffsetCommitRequestBeta):
        request = _released_layout(request)
    code = error_code_of(partial(_check_group, call, request))
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=code or _commit_one(call, request.group_id, topic, one),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _released_layout(request: OffsetCommitRequestBeta) -> OffsetCommitRequest:
    """Return a request in the released layout; the timestamp of the guide's layout is dropped."""
    return OffsetCommitRequest(
        group_id=request.group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitRequestPartition(
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


def _check_group(call: Call, request: OffsetCommitRequest) -> None:
    if _in_zookeeper(call):  # every node writes there, without a check of the member
        return
    if call.version == 0 and not call.release.beta_offset_commit:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    check_coordinator(call, request.group_id)
    member = request.member_id, request.group_instance_id
    call.cluster.groups.check_commit(request.group_id, member, request.generation_id_or_member_epoch)


def _commit_one(
    call: Call, group: str, topic: OffsetCommitRequestTopic, one: OffsetCommitRequestPartition
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


def offset_fetch(call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return committed offsets; -1 if the group has not committed one."""
    if call.version >= 8:
        return OffsetFetchResponse(groups=[_group(call, group) for group in request.groups])
    zookeeper = _in_zookeeper(call)
    code = 0 if zookeeper else error_code_of(partial(check_coordinator, call, request.group_id))
    if code and call.version >= 2:
        return OffsetFetchResponse(error_code=code)
    if request.topics is None:
        committed = call.cluster.committed_offsets.of(request.group_id, zookeeper=zookeeper)
        wanted = _by_topic(committed)
    else:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[_partition(call, request.group_id, name, number, code) for number in numbers],
            )
            for name, numbers in wanted.items()
        ]
    )


def _partition(
    call: Call, group: str, topic: str, number: int, group_code: int
) -> OffsetFetchResponsePartition:
    committed, code = _committed(call, group, topic, number)
    return OffsetFetchResponsePartition(
        partition_index=number,
        committed_offset=-1 if group_code else committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=group_code or code,
    )


def _group(call: Call, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    code = error_code_of(lambda: check_coordinator(call, request.group_id))
    if code:
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=[], error_code=code)
    if request.topics is None:
        names = _by_topic(call.cluster.committed_offsets.of(request.group_id))
        topics = [_topic(call, request.group_id, name, numbers) for name, numbers in names.items()]
    else:
        topics = []
        for topic in request.topics:
            try:
                name = call.topic_name(topic.name, topic.topic_id)
                row = _topic(call, request.group_id, name, topic.partition_indexes)
            except ApiError as error:
                row = _unknown_topic(topic.partition_indexes, error.code)
            row.name, row.topic_id = topic.name, topic.topic_id
            topics.append(row)
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def _topic(call: Call, group: str, topic: str, numbers: list[int]) -> OffsetFetchResponseTopics:
    rows = []
    for number in numbers:
        committed, code = _committed(call, group, topic, number)
        rows.append(
            OffsetFetchResponsePartitions(
                partition_index=number,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=code,
            )
        )
    known = call.cluster.topics.get(topic)
    return OffsetFetchResponseTopics(name=topic, topic_id=known.id if known else NO_UUID, partitions=rows)


def _unknown_topic(numbers: list[int], code: int) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=number, committed_offset=-1, metadata="", error_code=code
            )
            for number in numbers
        ]
    )


def _committed(call: Call, group: str, topic: str, number: int) -> tuple[CommittedOffset, int]:
    """Return an offset and an error code; a missing offset is an error only in ZooKeeper."""
    code = error_code_of(lambda: call.check(topic, number))
    zookeeper = _in_zookeeper(call)
    if call.version == 0 and not zookeeper and not call.release.beta_offset_commit:
        code = code or ErrorCode.UNSUPPORTED_VERSION
    committed = call.cluster.committed_offsets.of(group, zookeeper=zookeeper).get((topic, number))
    if code or committed is None:
        return _NOT_COMMITTED, code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if zookeeper else 0)
    return committed, 0


def _by_topic(committed: dict[tuple[str, int], CommittedOffset]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in committed:
        found.setdefault(topic, []).append(number)
    return found


def _in_zookeeper(call: Call) -> bool:
    return call.version == 0 and call.release.zookeeper
