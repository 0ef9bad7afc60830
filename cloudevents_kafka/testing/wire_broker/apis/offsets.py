"""OffsetCommit and OffsetFetch, in all their shapes."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestBeta,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from cloudevents_kafka.protocol.messages.offset_fetch import (
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
from cloudevents_kafka.testing.wire_broker.apis.groups import check_coordinator
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.committed_offsets import Position
from cloudevents_kafka.testing.wire_broker.errors import Refused, outcome

_MOST_METADATA: Final = 4096
_NONE: Final = Position(-1)


def offset_commit(call: Call, asked: OffsetCommitRequest | OffsetCommitRequestBeta) -> OffsetCommitResponse:
    """Keep positions; an error of the group is one of every partition."""
    request = _released(asked) if isinstance(asked, OffsetCommitRequestBeta) else asked
    code = outcome(lambda: _check_group(call, request))
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=code or _kept(call, request.group_id, topic, one),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _released(asked: OffsetCommitRequestBeta) -> OffsetCommitRequest:
    """Write the guide's layout as that of the releases; the time stamp is of no use here."""
    return OffsetCommitRequest(
        group_id=asked.group_id,
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
            for topic in asked.topics
        ],
    )


def _check_group(call: Call, asked: OffsetCommitRequest) -> None:
    if _in_zookeeper(call):  # any node writes there, for anybody
        return
    if call.version == 0 and not call.dialect.beta_commits:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    check_coordinator(call, asked.group_id)
    member = asked.member_id, asked.group_instance_id
    call.cluster.groups.check_commit(asked.group_id, member, asked.generation_id_or_member_epoch)


def _kept(call: Call, group: str, topic: OffsetCommitRequestTopic, one: OffsetCommitRequestPartition) -> int:
    def keep() -> None:
        name = call.name(topic.name, topic.topic_id)
        call.check(name, one.partition_index)
        call.cluster.partition(name, one.partition_index)
        zookeeper = _in_zookeeper(call)
        metadata = "" if zookeeper else one.committed_metadata or ""
        if len(metadata.encode()) > _MOST_METADATA:
            raise Refused(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        position = Position(one.committed_offset, one.committed_leader_epoch, metadata)
        call.cluster.positions.keep(group, name, one.partition_index, position, zookeeper=zookeeper)

    return outcome(keep)


def offset_fetch(call: Call, asked: OffsetFetchRequest) -> OffsetFetchResponse:
    """Tell positions; -1 where none was kept."""
    if call.version >= 8:
        return OffsetFetchResponse(groups=[_group(call, group) for group in asked.groups])
    zookeeper = _in_zookeeper(call)
    code = ErrorCode.NONE if zookeeper else outcome(lambda: check_coordinator(call, asked.group_id))
    if code and call.version >= 2:
        return OffsetFetchResponse(error_code=code)
    if asked.topics is None:
        kept = call.cluster.positions.of(asked.group_id, zookeeper=zookeeper)
        wanted = _by_topic(kept)
    else:
        wanted = {topic.name: topic.partition_indexes for topic in asked.topics}
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=name, partitions=[_row(call, asked.group_id, name, number, code) for number in numbers]
            )
            for name, numbers in wanted.items()
        ]
    )


def _row(call: Call, group: str, topic: str, number: int, code: int) -> OffsetFetchResponsePartition:
    found, missing = _found(call, group, topic, number)
    return OffsetFetchResponsePartition(
        partition_index=number,
        committed_offset=-1 if code else found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
        error_code=code or missing,
    )


def _group(call: Call, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    code = outcome(lambda: check_coordinator(call, asked.group_id))
    if code:
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=[], error_code=code)
    if asked.topics is None:
        names = _by_topic(call.cluster.positions.of(asked.group_id))
        topics = [_named(call, asked.group_id, name, numbers) for name, numbers in names.items()]
    else:
        topics = []
        for topic in asked.topics:
            try:
                name = call.name(topic.name, topic.topic_id)
                row = _named(call, asked.group_id, name, topic.partition_indexes)
            except Refused as refused:
                row = _unknown(topic.partition_indexes, refused.code)
            row.name, row.topic_id = topic.name, topic.topic_id
            topics.append(row)
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _named(call: Call, group: str, topic: str, numbers: list[int]) -> OffsetFetchResponseTopics:
    rows = []
    for number in numbers:
        found, missing = _found(call, group, topic, number)
        rows.append(
            OffsetFetchResponsePartitions(
                partition_index=number,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=missing,
            )
        )
    known = call.cluster.topics.get(topic)
    return OffsetFetchResponseTopics(name=topic, topic_id=known.id if known else NO_UUID, partitions=rows)


def _unknown(numbers: list[int], code: int) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=number, committed_offset=-1, metadata="", error_code=code
            )
            for number in numbers
        ]
    )


def _found(call: Call, group: str, topic: str, number: int) -> tuple[Position, int]:
    """Return a position and an error; only in ZooKeeper is it one that there is none."""
    code = outcome(lambda: call.check(topic, number))
    zookeeper = _in_zookeeper(call)
    if call.version == 0 and not zookeeper and not call.dialect.beta_commits:
        code = code or ErrorCode.UNSUPPORTED_VERSION
    kept = call.cluster.positions.of(group, zookeeper=zookeeper).get((topic, number))
    if code or kept is None:
        return _NONE, code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if zookeeper else ErrorCode.NONE)
    return kept, 0


def _by_topic(kept: dict[tuple[str, int], Position]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in kept:
        found.setdefault(topic, []).append(number)
    return found


def _in_zookeeper(call: Call) -> bool:
    return call.version == 0 and call.dialect.zookeeper
