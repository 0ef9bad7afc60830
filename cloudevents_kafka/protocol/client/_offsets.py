"""Offsets: the first and last of partitions, and those that groups committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._message import (
    EARLIEST,
    LATEST,
    STORED,
    UNKNOWN,
    Offsets,
    TopicAndPartition,
)
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._settings import OffsetReset
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError
from cloudevents_kafka.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from cloudevents_kafka.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)


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
        response: ListOffsetsResponse = broker.request(request, deadline)
        for row in (p for t in response.topics if t.name == topic for p in t.partitions):
            if row.partition_index == partition:
                if row.error_code:
                    raise BrokerError(row.error_code, subject)
                old = row.old_style_offsets
                return old[0] if old else (row.offset if row.offset >= 0 else None)
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, subject, "the response omits it")

    return cluster.retry(f"offsets of {subject}", attempt, deadline, unknown_errors=True)


def resolve_offset(
    cluster: Cluster, key: TopicAndPartition, offset: int, reset: OffsetReset, deadline: Deadline
) -> int:
    """Return the number of an offset, which may be `EARLIEST`, `LATEST`, or any other negative: ``reset``."""
    if offset >= 0:
        return offset
    if offset not in {EARLIEST, LATEST}:
        if reset == "error":
            message = "no offset is committed, and reset is 'error'"
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, "{}[{}]".format(*key), message)
        offset = EARLIEST if reset == "earliest" else LATEST
    return offset_at(cluster, key, offset, deadline) or 0


def find_coordinator(cluster: Cluster, group: str, deadline: Deadline) -> Connection:
    """Return the connection to a group's coordinator."""

    def attempt() -> Connection:
        broker = cluster.any_broker(deadline)
        request = FindCoordinatorRequest(key=group, key_type=0)
        response: FindCoordinatorResponse = broker.request(request, deadline)
        if response.error_code:
            raise BrokerError(response.error_code, f"group {group}", response.error_message)
        return cluster.broker(response.node_id, deadline)

    return cluster.retry(f"the coordinator of group {group}", attempt, deadline)


class GroupOffsets:
    """The committed offsets of a group.

    ``coordinator`` yields the connection to the group's coordinator, and ``member`` returns the
    generation and the member id, which a client that is not a member leaves out.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        coordinator: Callable[[Deadline], AbstractContextManager[Connection]] | None = None,
        member: Callable[[], tuple[int, str]] = lambda: (-1, ""),
    ) -> None:
        self._cluster: Final = cluster
        self._group: Final = group
        self._coordinator: Final = coordinator or self._find_coordinator
        self._member: Final = member

    def commit(self, offsets: Mapping[TopicAndPartition, int], deadline: Deadline) -> None:
        """Commit offsets; `BrokerError` if a member must rejoin, or if others are members."""

        def attempt() -> None:
            with self._coordinator(deadline) as broker:
                self._commit(broker, offsets, deadline)

        self._cluster.retry(f"offsets of group {self._group}", attempt, deadline)

    def committed(self, partitions: Sequence[TopicAndPartition], deadline: Deadline) -> Offsets:
        """Return the committed offsets; partitions without one are left out."""

        def attempt() -> Offsets:
            with self._coordinator(deadline) as broker:
                return self._fetch(broker, partitions, deadline)

        return self._cluster.retry(f"offsets of group {self._group}", attempt, deadline)

    def _find_coordinator(self, deadline: Deadline) -> AbstractContextManager[Connection]:
        return nullcontext(find_coordinator(self._cluster, self._group, deadline))

    def _commit(
        self, broker: Connection, offsets: Mapping[TopicAndPartition, int], deadline: Deadline
    ) -> None:
        topics: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
        for (topic, partition), offset in offsets.items():
            row = OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
            topics[topic].append(row)
        generation, member_id = self._member()
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()],
        )
        response: OffsetCommitResponse = broker.request(request, deadline)
        for topic_response in response.topics:
            for result in topic_response.partitions:
                self._check(result.error_code, f": {topic_response.name}[{result.partition_index}]")

    def _fetch(
        self, broker: Connection, partitions: Sequence[TopicAndPartition], deadline: Deadline
    ) -> Offsets:
        topics: dict[str, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            topics[topic].append(partition)
        wanted = [OffsetFetchRequestTopic(name=name, partition_indexes=ids) for name, ids in topics.items()]
        request = OffsetFetchRequest(group_id=self._group, topics=wanted)
        response: OffsetFetchResponse = broker.request(request, deadline)
        self._check(response.error_code)
        committed: Offsets = {}
        for rows in response.topics:
            for row in rows.partitions:
                self._check(row.error_code, f": {rows.name}[{row.partition_index}]")
                if row.committed_offset >= 0:
                    committed[rows.name, row.partition_index] = row.committed_offset
        return committed

    def _check(self, code: int, where: str = "") -> None:
        if code:
            raise BrokerError(code, f"group {self._group}{where}")


def resolve_offsets(
    cluster: Cluster, offsets: Offsets, group: GroupOffsets | None, reset: OffsetReset, deadline: Deadline
) -> Offsets:
    """Return the offsets, with numbers for `STORED`, `UNKNOWN`, `EARLIEST` and `LATEST`."""
    stored = [key for key, offset in offsets.items() if offset in {STORED, UNKNOWN}]
    committed = group.committed(stored, deadline) if stored and group is not None else {}
    return {
        key: resolve_offset(cluster, key, committed.get(key, offset), reset, deadline)
        for key, offset in offsets.items()
    }
