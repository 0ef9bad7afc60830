"""Offsets: the first and last of partitions, and those that groups committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.client._batches import TopicAndPartition
from cloudevents_kafka.protocol.client._broker import BrokerConnection
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._deadline import Deadline
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError
from cloudevents_kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from cloudevents_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from cloudevents_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from cloudevents_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

LATEST: Final = -1
"""The timestamp that means the end of a partition."""

EARLIEST: Final = -2
"""The timestamp that means the beginning of a partition."""


def offset_at(
    cluster: Cluster, topic_partition: TopicAndPartition, timestamp: int, deadline: Deadline
) -> int | None:
    """Return the offset of the first record at or after a timestamp in ms, or of `LATEST`, `EARLIEST`.

    None if all records are older. Brokers before 0.10.1 have timestamps of segments only: the
    offset is the beginning of the newest segment from before that time.
    """
    topic, partition = topic_partition
    subject = f"{topic}[{partition}]"

    def attempt() -> int | None:
        broker = cluster.broker(cluster.leader(topic, partition, deadline), deadline)
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        response = broker.request(request, deadline)
        assert isinstance(response, ListOffsetsResponse)
        for row in (p for t in response.topics if t.name == topic for p in t.partitions):
            if row.partition_index == partition:
                if row.error_code:
                    raise BrokerError(row.error_code, subject)
                old = row.old_style_offsets
                return old[0] if old else (row.offset if row.offset >= 0 else None)
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, subject, "the response omits it")

    return cluster.retry(f"offsets of {subject}", attempt, deadline, unknown_errors=True)


def find_coordinator(cluster: Cluster, group: str, deadline: Deadline) -> BrokerConnection:
    """Return the connection to a group's coordinator."""

    def attempt() -> BrokerConnection:
        broker = cluster.any_broker(deadline)
        response = broker.request(FindCoordinatorRequest(key=group, key_type=0), deadline)
        assert isinstance(response, FindCoordinatorResponse)
        if response.error_code:
            raise BrokerError(response.error_code, f"group {group}", response.error_message)
        return cluster.broker(response.node_id, deadline)

    return cluster.retry(f"the coordinator of group {group}", attempt, deadline)


def commit_offsets(
    broker: BrokerConnection,
    group: str,
    offsets: Mapping[TopicAndPartition, int],
    deadline: Deadline,
    *,
    generation: int = -1,
    member: str = "",
) -> None:
    """Commit offsets with a group's coordinator; `BrokerError` for the first that is refused."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        row = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        topics.setdefault(topic, []).append(row)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()],
    )
    response = broker.request(request, deadline)
    assert isinstance(response, OffsetCommitResponse)
    for topic_response in response.topics:
        for result in topic_response.partitions:
            if result.error_code:
                subject = f"group {group}: {topic_response.name}[{result.partition_index}]"
                raise BrokerError(result.error_code, subject)


def fetch_committed(
    broker: BrokerConnection, group: str, partitions: list[TopicAndPartition], deadline: Deadline
) -> dict[TopicAndPartition, int]:
    """Return a group's committed offsets; partitions without one are left out."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    request = OffsetFetchRequest(
        group_id=group,
        topics=[
            OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()
        ],
    )
    response = broker.request(request, deadline)
    assert isinstance(response, OffsetFetchResponse)
    if response.error_code:
        raise BrokerError(response.error_code, f"group {group}")
    committed: dict[TopicAndPartition, int] = {}
    for rows in response.topics:
        for row in rows.partitions:
            if row.error_code:
                raise BrokerError(row.error_code, f"group {group}: {rows.name}[{row.partition_index}]")
            if row.committed_offset >= 0:
                committed[rows.name, row.partition_index] = row.committed_offset
    return committed


class GroupOffsets:
    """The offsets of a group, for a client that is not a member of it."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster: Final = cluster
        self._group: Final = group

    def commit(self, offsets: Mapping[TopicAndPartition, int], deadline: Deadline) -> None:
        """Commit offsets; `BrokerError` if the group refuses, as a group with members does."""

        def attempt() -> None:
            broker = find_coordinator(self._cluster, self._group, deadline)
            commit_offsets(broker, self._group, offsets, deadline)

        self._cluster.retry(f"offsets of group {self._group}", attempt, deadline)

    def committed(
        self, partitions: list[TopicAndPartition], deadline: Deadline
    ) -> dict[TopicAndPartition, int]:
        """Return the committed offsets; partitions without one are left out."""

        def attempt() -> dict[TopicAndPartition, int]:
            broker = find_coordinator(self._cluster, self._group, deadline)
            return fetch_committed(broker, self._group, partitions, deadline)

        return self._cluster.retry(f"offsets of group {self._group}", attempt, deadline)
