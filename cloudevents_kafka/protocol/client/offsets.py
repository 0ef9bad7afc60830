"""Questions about offsets: where partitions begin and end, and what groups have committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.client.batches import TopicAndPartition
from cloudevents_kafka.protocol.client.cluster import Broker, Cluster
from cloudevents_kafka.protocol.client.deadline import Deadline
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
"""The time that stands for the end of a partition."""

EARLIEST: Final = -2
"""The time that stands for the beginning of a partition."""


def offset_at(cluster: Cluster, place: TopicAndPartition, time: int, deadline: Deadline) -> int | None:
    """Return the offset of the first record not before a time in ms, or of `LATEST`, `EARLIEST`.

    None where there is none. Brokers before 0.10.1 know times only as well as their
    segments: they give the beginning of the newest one from before that time.
    """

    def ask() -> int | None:
        broker = cluster.broker(cluster.leader(*place, deadline), deadline)
        part = ListOffsetsPartition(partition_index=place[1], timestamp=time)
        topic = ListOffsetsTopic(name=place[0], partitions=[part])
        answer = broker.request(ListOffsetsRequest(replica_id=-1, topics=[topic]), deadline)
        assert isinstance(answer, ListOffsetsResponse)
        for row in (p for t in answer.topics if t.name == place[0] for p in t.partitions):
            if row.partition_index == place[1]:
                if row.error_code:
                    raise BrokerError(row.error_code, f"{place[0]}[{place[1]}]")
                old = row.old_style_offsets
                return old[0] if old else (row.offset if row.offset >= 0 else None)
        raise BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{place[0]}[{place[1]}]", "its answer leaves it out"
        )

    return cluster.retrying(f"offsets of {place[0]}[{place[1]}]", ask, deadline, untold=True)


def coordinator(cluster: Cluster, group: str, deadline: Deadline) -> Broker:
    """Return the connection to a group's coordinator."""

    def ask() -> Broker:
        broker = cluster.any_broker(deadline)
        answer = broker.request(FindCoordinatorRequest(key=group, key_type=0), deadline)
        assert isinstance(answer, FindCoordinatorResponse)
        if answer.error_code:
            raise BrokerError(answer.error_code, f"group {group}", answer.error_message)
        return cluster.broker(answer.node_id, deadline)

    return cluster.retrying(f"the coordinator of group {group}", ask, deadline)


def commit(
    broker: Broker,
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
    answer = broker.request(request, deadline)
    assert isinstance(answer, OffsetCommitResponse)
    for found in answer.topics:
        for row_back in found.partitions:
            if row_back.error_code:
                about = f"group {group}: {found.name}[{row_back.partition_index}]"
                raise BrokerError(row_back.error_code, about)


def committed(
    broker: Broker, group: str, places: list[TopicAndPartition], deadline: Deadline
) -> dict[TopicAndPartition, int]:
    """Return the committed offsets of those places that have one."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    request = OffsetFetchRequest(
        group_id=group,
        topics=[OffsetFetchRequestTopic(name=name, partition_indexes=some) for name, some in topics.items()],
    )
    answer = broker.request(request, deadline)
    assert isinstance(answer, OffsetFetchResponse)
    if answer.error_code:
        raise BrokerError(answer.error_code, f"group {group}")
    found: dict[TopicAndPartition, int] = {}
    for rows in answer.topics:
        for row in rows.partitions:
            if row.error_code:
                raise BrokerError(row.error_code, f"group {group}: {rows.name}[{row.partition_index}]")
            if row.committed_offset >= 0:
                found[rows.name, row.partition_index] = row.committed_offset
    return found


class GroupOffsets:
    """The offsets of a group, for a client that is not a member of it."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        """Use the cluster's connections."""
        self._cluster: Final = cluster
        self._group: Final = group

    def commit(self, offsets: Mapping[TopicAndPartition, int], deadline: Deadline) -> None:
        """Commit offsets; `BrokerError` where that is refused, as by a group that has members."""

        def ask() -> None:
            commit(coordinator(self._cluster, self._group, deadline), self._group, offsets, deadline)

        self._cluster.retrying(f"offsets of group {self._group}", ask, deadline)

    def committed(self, places: list[TopicAndPartition], deadline: Deadline) -> dict[TopicAndPartition, int]:
        """Return the committed offsets of those places that have one."""

        def ask() -> dict[TopicAndPartition, int]:
            broker = coordinator(self._cluster, self._group, deadline)
            return committed(broker, self._group, places, deadline)

        return self._cluster.retrying(f"offsets of group {self._group}", ask, deadline)
