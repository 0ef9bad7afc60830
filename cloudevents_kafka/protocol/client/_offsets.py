"""Offsets: the first and last offsets of partitions, and the offsets that groups have committed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._isolation import isolated
from cloudevents_kafka.protocol.client._message import (
    EARLIEST,
    LATEST,
    STORED,
    UNKNOWN,
    Offsets,
    PartitionId,
    by_topic,
)
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._settings import OffsetReset
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, ProtocolError
from cloudevents_kafka.protocol.messages import offsets as messages
from cloudevents_kafka.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse

_UNSTABLE_PAUSE: Final = 0.1  # seconds, before offsets that a transaction commits are requested again
_ATTEMPT: Final = 5.0  # seconds before a request that may be repeated is sent on another connection


def _attempt(deadline: Deadline) -> Deadline:
    return Deadline(deadline.at_most(_ATTEMPT))


def offset_at(
    cluster: Cluster,
    topic_partition: PartitionId,
    timestamp: int,
    deadline: Deadline,
    *,
    committed_only: bool,
) -> int | None:
    """Return the offset of the first record at or after ``timestamp``, or None if all records are older.

    ``timestamp`` is in ms since the epoch, or is `LATEST` or `EARLIEST`. Brokers before 0.10.1 store only the
    timestamps of segments, and return the first offset of the newest segment that is older than
    ``timestamp``.
    """
    request = offsets_request({topic_partition: timestamp})
    subject = "{}[{}]".format(*topic_partition)

    def attempt() -> int | None:
        broker = cluster.broker(cluster.leader(*topic_partition, deadline), deadline)
        response = broker.request(isolated(request, broker, committed_only=committed_only), deadline)
        for key, row in found_offsets(response):
            if key == topic_partition:
                if row.error_code:
                    raise BrokerError(row.error_code, subject)
                return row.offset if row.offset >= 0 else None
        raise BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR, subject, hint="the response does not contain the partition"
        )

    return cluster.retry(f"offsets of {subject}", attempt, deadline, unknown_errors=True)


def offsets_request(times: Mapping[PartitionId, int]) -> messages.ListOffsetsRequest:
    """Return a request for each partition's first offset at or after a time (ms, `LATEST` or `EARLIEST`)."""
    rows = (
        (topic, messages.ListOffsetsPartition(partition_index=partition, timestamp=time))
        for (topic, partition), time in times.items()
    )
    topics = [
        messages.ListOffsetsTopic(name=name, partitions=parts) for name, parts in by_topic(rows).items()
    ]
    return messages.ListOffsetsRequest(replica_id=-1, topics=topics)


def found_offsets(
    response: messages.ListOffsetsResponse,
) -> Iterator[tuple[PartitionId, messages.ListOffsetsPartitionResponse]]:
    """Yield each partition, and the part of the response for this partition.

    A broker before 0.10.1 sends a list of offsets for each partition; the yielded part then contains the
    first offset of this list.
    """
    for topic in response.topics:
        for row in topic.partitions:
            if row.old_style_offsets:
                row.offset = row.old_style_offsets[0]
            yield (topic.name, row.partition_index), row


def starts_of(
    offsets: Offsets,
    group: GroupOffsets | None,
    reset: OffsetReset,
    deadline: Deadline,
    patience: Deadline | None = None,
) -> Offsets:
    """Return offsets in which `STORED` and `UNKNOWN` are replaced by a number, `EARLIEST` or `LATEST`.

    Raises the errors of `GroupOffsets.committed`, and `BrokerError` if an offset is missing and ``reset`` is
    "error".
    """
    stored = [key for key, offset in offsets.items() if offset in {STORED, UNKNOWN}]
    found = offsets | (group.committed(stored, deadline, patience) if stored and group is not None else {})
    return {key: _reset_to(key, offset, reset) if offset < 0 else offset for key, offset in found.items()}


def _reset_to(key: PartitionId, offset: int, reset: OffsetReset) -> int:
    if offset in {EARLIEST, LATEST}:
        return offset
    if reset == "error":
        message = "no offset is committed, and reset is 'error'"
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, "{}[{}]".format(*key), hint=message)
    return EARLIEST if reset == "earliest" else LATEST


_Rows: TypeAlias = dict[PartitionId, messages.OffsetFetchResponsePartition]


class GroupOffsets:
    """The committed offsets of a group, and the connection to its coordinator.

    One thread at a time uses the connection.

    ``generation`` and ``member_id`` are sent with commits; a client that is not a member sends -1 and "".
    With ``committed_only``, an offset that an open transaction commits is unknown until the transaction ends
    (KIP-447).
    """

    def __init__(self, cluster: Cluster, group: str, *, committed_only: bool) -> None:
        self._cluster: Final = cluster
        self._group: Final = group
        self._committed_only: Final = committed_only
        self._lock: Final = threading.Lock()
        self._connection: Connection | None = None
        self.generation = -1
        self.member_id = ""

    @contextmanager
    def coordinator(self, deadline: Deadline) -> Iterator[Connection]:
        """Yield the connection to the coordinator.

        After an error, the next call looks up the coordinator again.
        """
        if not self._lock.acquire(timeout=deadline.at_most(threading.TIMEOUT_MAX)):
            raise DeadlineExceeded("the connection is busy while the group rebalances")
        try:
            if self._connection is None or self._connection.ended():
                self._connection = self._cluster.retry(
                    f"the coordinator of group {self._group}", lambda: self._find(deadline), deadline
                )
            yield self._connection
        except ProtocolError:
            self._connection = None
            raise
        finally:
            self._lock.release()

    def commit(self, offsets: Mapping[PartitionId, int], deadline: Deadline) -> None:
        """Commit offsets.

        Raises `BrokerError` if this member must rejoin, or if the group has members but this client is not a
        member.
        """
        part = messages.OffsetCommitRequestPartition
        parts = (
            (topic, part(partition_index=partition, committed_offset=offset, committed_metadata=""))
            for (topic, partition), offset in offsets.items()
        )
        topics = [
            messages.OffsetCommitRequestTopic(name=name, partitions=rows)
            for name, rows in by_topic(parts).items()
        ]

        def attempt() -> None:
            request = messages.OffsetCommitRequest(
                group_id=self._group,
                # S4-B6: the generation "is sent in heartbeats and offset commit requests"
                generation_id_or_member_epoch=self.generation,
                member_id=self.member_id,
                topics=topics,
            )
            with self.coordinator(deadline) as broker:
                response: messages.OffsetCommitResponse = broker.request(request, _attempt(deadline))
                for committed in response.topics:
                    for result in committed.partitions:
                        self._check(result.error_code, f": {committed.name}[{result.partition_index}]")

        self._cluster.retry(f"offsets of group {self._group}", attempt, deadline)

    def committed(
        self, partitions: Sequence[PartitionId], deadline: Deadline, patience: Deadline | None = None
    ) -> Offsets:
        """Return the committed offsets; the result omits partitions without a committed offset.

        If open transactions commit offsets for some of ``partitions``, the call waits for the end of the
        transactions. The deadline of this wait is ``patience``, or ``deadline`` if ``patience`` is None. If a
        transaction is still open when the wait ends, the call raises `BrokerError` with
        UNSTABLE_OFFSET_COMMIT.
        """
        request = messages.OffsetFetchRequest(
            group_id=self._group,
            topics=[
                messages.OffsetFetchRequestTopic(name=name, partition_indexes=ids)
                for name, ids in by_topic(partitions).items()
            ],
        )

        def attempt() -> _Rows:
            with self.coordinator(deadline) as broker:
                asked = isolated(request, broker, committed_only=self._committed_only)
                response: messages.OffsetFetchResponse = broker.request(asked, _attempt(deadline))
                self._check(response.error_code)
                rows = {(t.name, row.partition_index): row for t in response.topics for row in t.partitions}
                for key, row in rows.items():
                    if row.error_code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                        self._check(row.error_code, ": {}[{}]".format(*key))
                return rows

        limit = deadline if patience is None else patience
        while True:
            rows = self._cluster.retry(f"offsets of group {self._group}", attempt, deadline)
            unstable = next((key for key, row in rows.items() if row.error_code), None)
            if unstable is None:
                # S0-A18: without an offset the broker "sets the offset field to -1"
                return {key: row.committed_offset for key, row in rows.items() if row.committed_offset >= 0}
            if limit.at_most(_UNSTABLE_PAUSE) < _UNSTABLE_PAUSE:
                self._check(ErrorCode.UNSTABLE_OFFSET_COMMIT, ": {}[{}]".format(*unstable))
            self._cluster.sleep(_UNSTABLE_PAUSE)

    def _find(self, deadline: Deadline) -> Connection:
        # S0-A20: a consumer must "issue its offset commit and fetch requests to this specific broker"
        request = FindCoordinatorRequest(key=self._group, key_type=0)
        response: FindCoordinatorResponse = self._cluster.ask(lambda _: request, deadline)
        self._check(response.error_code, message=response.error_message)
        return self._cluster.broker_at(Address(response.host, response.port), deadline)

    def _check(self, code: int, where: str = "", message: str | None = None) -> None:
        if code:
            raise BrokerError(code, f"group {self._group}{where}", message)
