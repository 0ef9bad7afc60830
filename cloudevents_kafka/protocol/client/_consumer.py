"""`Consumer`: returns records one by one or in lists.

The user assigns the partitions, or the consumer's group assigns them. The consumer has the methods that
`EventConsumer` calls; these methods have the same names as in confluent-kafka's consumer. Errors are raised,
not returned as messages. After a temporary error, the consumer tries again and raises no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from cloudevents_kafka.primitives.closing import Closing
from cloudevents_kafka.protocol.client._buffer import RecordBuffer
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._fetcher import Fetcher
from cloudevents_kafka.protocol.client._group import REJOIN_ERRORS, GroupMember
from cloudevents_kafka.protocol.client._message import (
    EARLIEST,
    LATEST,
    STORED,
    UNKNOWN,
    HasOffset,
    Message,
    Offsets,
    PartitionId,
    TopicPartition,
    key_of,
)
from cloudevents_kafka.protocol.client._offsets import GroupOffsets, offset_at, starts_of
from cloudevents_kafka.protocol.client._retry import Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ConsumerSettings
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, ClientError, ProtocolError

_POLL_INTERVAL: Final = 0.2  # seconds, so that KeyboardInterrupt is raised soon

RebalanceCallback: TypeAlias = Callable[[Any, list[TopicPartition]], object]
"""A function that is called with the consumer and the partitions that are assigned or revoked."""


class Consumer(Closing):
    """Reads records. Create a consumer with `Client.consumer`.

    Close the consumer, so that its group rebalances at once.

    Examples:
        >>> from cloudevents_kafka.protocol import EARLIEST, Client, TopicPartition
        >>> with Client("localhost:9092").consumer() as consumer:
        ...     consumer.assign([TopicPartition("orders", 0, EARLIEST)])
        ...     [message.offset() for message in consumer.consume(2, timeout=10)]
        [0, 1]
    """

    def __init__(
        self, new_cluster: Callable[[], Cluster], settings: ConsumerSettings, group: str | None
    ) -> None:
        self._new_cluster: Final = new_cluster
        self._cluster: Final = new_cluster()
        self._settings: Final = settings
        self._group: Final = group
        self._auto_commit: Final = None if group is None else settings.auto_commit
        self._fetcher: Final = Fetcher(self._cluster, settings)
        self._member: GroupMember | None = None
        self._generation = -1
        self._on_assign: RebalanceCallback | None = None
        self._on_revoke: RebalanceCallback | None = None
        self._buffer: Final = RecordBuffer()
        self._next_commit = Deadline(self._auto_commit)
        self._closed = False

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
    ) -> None:
        """Join the group, and read the partitions that the group assigns to this consumer.

        The consumer must have a ``group``.
        """
        self._check_open()
        if self._group is None:
            raise ClientError("subscribe needs a group; pass group to client.consumer, or call assign")
        if isinstance(topics, str) or any(topic.startswith("^") for topic in topics):
            raise ValueError(f"topics must be a list of names, not patterns, got {topics!r}")
        self.unsubscribe()
        self._on_assign, self._on_revoke = on_assign, on_revoke
        self._member = GroupMember(self._new_cluster(), self._settings, self._group, tuple(topics))

    def unsubscribe(self) -> None:
        """Leave the group, and stop reading."""
        self._check_open()
        if self._member is not None:
            self._revoke()
            self._member.close(self._request_deadline())
            self._member = None
        self.unassign()

    def assign(self, partitions: Iterable[HasOffset]) -> None:
        """Read exactly ``partitions``, each from its offset, which may be `EARLIEST`, `LATEST` or `STORED`.

        A consumer that commits automatically first commits the offsets of its earlier partitions. A leader
        that does not answer delays only its own partitions. Raises the `ProtocolError` of a partition whose
        start offset cannot be determined, or `DeadlineExceeded` if no start offset is found.
        """
        self._check_open()
        if self._member is None:
            self._commit_returned()
        offsets = {key_of(part): part.offset for part in partitions}
        self._start_reading(self._starts_of(offsets))

    def unassign(self) -> None:
        """Stop reading."""
        self.assign([])

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read, with their positions."""
        return [TopicPartition(*key, offset) for key, offset in sorted(self._buffer.positions.items())]

    def seek(self, partition: HasOffset) -> None:
        """Set the offset from which a partition is read next."""
        key = key_of(partition)
        if key not in self._buffer.positions:
            raise ClientError("{}[{}] must be assigned before a seek".format(*key))
        start = self._starts_of({key: partition.offset})[key]
        if start < 0:
            start = self._offset_at(key, start, self._request_deadline()) or 0
        self._buffer.seek(key, start)
        self._fetcher.seek(key, start)

    def pause(self, partitions: Iterable[HasOffset]) -> None:
        """Stop returning records of ``partitions`` until `resume` is called."""
        self._buffer.pause(key_of(part) for part in partitions)

    def resume(self, partitions: Iterable[HasOffset]) -> None:
        """Return records of ``partitions`` again, which `pause` has stopped."""
        self._buffer.resume(key_of(part) for part in partitions)

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next record, or None if no record arrives within ``timeout`` seconds; -1 means no limit.

        While no broker answers, a call may take as long as the client's ``timeout``.
        Raises `ProtocolError` if reading fails and a retry does not help.
        """
        if self._buffer.ready and not self._is_due():
            return self._buffer.pop()
        deadline = Deadline(timeout)
        while True:
            self._check_open()
            self._auto_commit_if_due()
            self._follow_group(deadline)
            if (message := self._next(deadline)) is not None or deadline.expired():
                return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to ``num_messages`` records that arrive within ``timeout`` seconds.

        The returned list is shorter if the group rebalances, or if an error occurs, which the next call then
        raises. Only the offsets of returned records are committed.
        """
        deadline = Deadline(timeout)
        if num_messages < 1 or (first := self.poll(timeout)) is None:
            return []
        messages = [first]
        try:
            while len(messages) < num_messages:
                if (message := self._next(deadline)) is not None:
                    messages.append(message)
                elif deadline.expired() or (self._member and self._member.state != "stable"):
                    break
        except ProtocolError:
            return messages
        except BaseException:  # KeyboardInterrupt
            self._buffer.unread(messages)
            raise
        return messages

    def _next(self, deadline: Deadline) -> Message | None:
        """Return the next record; return None if no record arrives soon, or if the next slice is empty."""
        if (message := self._buffer.pop()) is not None:
            return message
        if self._buffer.next_cursor() is None:
            limit = Deadline(deadline.at_most(_POLL_INTERVAL))
            self._buffer.add(self._fetcher.fetch(self._buffer.paused, limit))
        if (cursor := self._buffer.next_cursor()) is None:
            return None
        if self._buffer.is_last(cursor):  # brokers answer while the records are decoded and returned
            self._fetcher.send_requests(self._buffer.paused)
        try:
            self._buffer.decode(cursor)
        except ProtocolError as error:
            self._fetcher.fail(cursor, error)
        return self._buffer.pop()

    def commit(
        self,
        message: Any = None,
        offsets: Iterable[HasOffset] | None = None,
        asynchronous: bool = False,  # noqa: FBT001, FBT002, ARG002  # confluent-kafka's; here always False
    ) -> list[TopicPartition]:
        """Commit ``offsets``, the offset after ``message``, or all positions; return the committed offsets.

        All positions are committed if neither ``message`` nor ``offsets`` is passed.
        """
        self._check_open()
        if message is not None:
            chosen = {(message.topic(), message.partition()): message.offset() + 1}
        elif offsets is not None:
            chosen = {key_of(part): part.offset for part in offsets}
        else:
            chosen = self._buffer.uncommitted()
        self._commit(chosen)
        return [TopicPartition(*key, offset) for key, offset in chosen.items()]

    def committed(self, partitions: Iterable[HasOffset], timeout: float = -1) -> list[TopicPartition]:
        """Return the group's committed offsets, or `UNKNOWN` for partitions without a committed offset."""
        keys = [key_of(part) for part in partitions]
        committed = self._group_offsets().committed(keys, Deadline(timeout))
        return [TopicPartition(*key, committed.get(key, UNKNOWN)) for key in keys]

    def position(self, partitions: Iterable[HasOffset]) -> list[TopicPartition]:
        """Return each partition's position: the offset after the last returned record, or the start offset.

        The position is `UNKNOWN` until the start offset is known.
        """
        keys = [key_of(part) for part in partitions]
        found = {key: at for key, at in self._buffer.positions.items() if at >= 0}
        return [TopicPartition(*key, found.get(key, UNKNOWN)) for key in keys]

    def fetch_position(self, partition: HasOffset) -> int:
        """Return the next offset to fetch, which may be after control records and gaps."""
        key = key_of(partition)
        position = self._buffer.decode_position(key)
        return self._fetcher.position(key) if position is None else position

    def get_watermark_offsets(self, partition: HasOffset, timeout: float = -1) -> tuple[int, int]:
        """Return the first offset of a partition, and the offset after the last record.

        With ``committed_only``, the last record is the record before the first open transaction.
        """
        key, deadline = key_of(partition), Deadline(timeout)
        first, end = (self._offset_at(key, at, deadline) for at in (EARLIEST, LATEST))
        return first or 0, end or 0

    def _offset_at(self, key: PartitionId, at: int, deadline: Deadline) -> int | None:
        return offset_at(self._cluster, key, at, deadline, committed_only=self._settings.committed_only)

    def close(self) -> None:
        """Leave the group, and close the connections; a consumer that commits automatically commits first."""
        if self._closed:
            return
        try:
            if self._member is not None:
                self._revoke()
            else:
                self._commit_returned()
        finally:
            self._closed = True
            self._cluster.close()
            if self._member is not None:
                self._member.close(self._request_deadline())

    def _is_due(self) -> bool:
        """Return whether the consumer is closed, must commit offsets, or must react to a rebalance."""
        member = self._member
        return (
            self._closed
            or (self._auto_commit is not None and self._next_commit.expired())
            or (member is not None and not (member.state == "stable" and self._is_current(member)))
        )

    def _is_current(self, member: GroupMember) -> bool:
        """Return whether the consumer reads the partitions of the group's current generation."""
        return member.offsets.generation == self._generation

    def _follow_group(self, deadline: Deadline) -> None:
        member = self._member
        if member is None:
            return
        if member.state == "joining":
            member.wait(Deadline(deadline.at_most(_POLL_INTERVAL)))
        if member.state == "failed" and member.error is not None:
            raise member.error
        if member.state == "rebalancing":
            self._revoke()
            member.rejoin()
        elif member.state == "stable" and not self._is_current(member):
            generation = member.offsets.generation
            try:
                starts = self._starts_of(dict.fromkeys(member.assignment, STORED), deadline)
            except BrokerError as error:
                if error.code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    return  # a transaction that commits offsets is open: the next call asks again
                raise
            self._start_reading(starts)
            self._generation = generation  # set last, so that after a failure the next call tries again
            if self._on_assign is not None:
                self._on_assign(self, self.assignment())

    def _revoke(self) -> None:
        """Stop reading the assigned partitions; a consumer that commits automatically commits first."""
        self._commit_returned()
        if self._on_revoke is not None and self._buffer.positions:
            self._on_revoke(self, self.assignment())
        self._generation = -1  # 0.9 forgets an empty group, and numbers generations from 1 again
        self._start_reading({})

    def _start_reading(self, offsets: Offsets) -> None:
        self._buffer.assign(self._fetcher.assign(offsets, self._request_deadline()))

    def _starts_of(self, offsets: Offsets, patience: Deadline | None = None) -> Offsets:
        group = None if self._group is None else self._group_offsets()
        return starts_of(offsets, group, self._settings.reset, self._request_deadline(), patience)

    def _group_offsets(self) -> GroupOffsets:
        if self._member is not None:
            return self._member.offsets
        if self._group is None:
            raise ClientError("committed offsets need a group; pass group to client.consumer")
        return GroupOffsets(self._cluster, self._group, committed_only=self._settings.committed_only)

    def _commit(self, offsets: Offsets) -> None:
        if offsets:
            self._group_offsets().commit(offsets, self._request_deadline())
            self._buffer.committed |= offsets

    def _commit_returned(self) -> None:
        """Commit the offsets of returned records, if the consumer commits automatically."""
        # If the commit fails because the group continues without this member, the records are read again.
        with suppress(ProtocolError):
            if self._auto_commit is not None:
                self._commit(self._buffer.uncommitted())

    def _auto_commit_if_due(self) -> None:
        if self._auto_commit is None or not self._next_commit.expired():
            return
        self._next_commit = Deadline(self._auto_commit)
        try:
            self._commit(self._buffer.uncommitted())  # a user who polls again has handled the records
        except ProtocolError as error:
            must_rejoin = isinstance(error, BrokerError) and error.code in REJOIN_ERRORS
            if not must_rejoin and not is_retriable(error):
                raise

    def _request_deadline(self) -> Deadline:
        return Deadline(self._settings.request_timeout)

    def _check_open(self) -> None:
        if self._closed:
            raise ClientError("the consumer is closed")
