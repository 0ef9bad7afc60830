"""`Consumer`: returns records one by one or in lists, from assigned partitions or a group's.

Its methods are those of confluent-kafka's consumer, so `EventConsumer` can use it. Errors that a
retry does not fix are raised, not returned as messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self, TypeAlias

from cloudevents_kafka.protocol.client._batches import TopicAndPartition
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._deadline import Deadline
from cloudevents_kafka.protocol.client._fetcher import Fetcher, FetchSettings
from cloudevents_kafka.protocol.client._group import REJOIN_ERRORS, GroupMember, GroupSettings
from cloudevents_kafka.protocol.client._message import Message
from cloudevents_kafka.protocol.client._offsets import EARLIEST, LATEST, GroupOffsets, offset_at
from cloudevents_kafka.protocol.client._retry import is_retriable_or_timeout
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, ClientError, ProtocolError

STORED: Final = -1000
"""The offset that means the committed one, as in confluent-kafka."""

UNKNOWN: Final = -1001
"""The missing offset: begin at the committed one, or as ``reset`` says."""

_POLL_INTERVAL: Final = 0.2  # seconds, so that KeyboardInterrupt is raised soon


class TopicPartition(NamedTuple):
    """A partition and an offset in it."""

    topic: str
    partition: int
    offset: int = UNKNOWN


class _HasOffset(Protocol):
    """A `TopicPartition`, or confluent-kafka's."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


RebalanceCallback: TypeAlias = Callable[[Any, list[TopicPartition]], object]
"""Called with the consumer and its partitions."""


class Consumer:
    """Reads records. Create it by `Client.consumer`, and close it, so that its group rebalances at once."""

    def __init__(
        self,
        new_cluster: Callable[[], Cluster],
        settings: FetchSettings,
        group: GroupSettings | None,
        *,
        auto_commit: float | None,
    ) -> None:
        """Read nothing yet. ``auto_commit`` is the time between commits in seconds, None without."""
        self._new_cluster: Final = new_cluster
        self._cluster: Final = new_cluster()
        self._settings: Final = settings
        self._group: Final = group
        self._auto_commit: Final = auto_commit if group is not None else None
        self._fetcher: Final = Fetcher(self._cluster, settings)
        self._member: GroupMember | None = None
        self._generation = -1
        self._on_assign: RebalanceCallback | None = None
        self._on_revoke: RebalanceCallback | None = None
        self._fetched: deque[Message] = deque()
        self._positions: dict[TopicAndPartition, int] = {}
        self._committed: dict[TopicAndPartition, int] = {}
        self._paused: set[TopicAndPartition] = set()
        self._next_commit = Deadline(self._auto_commit)
        self._closed = False

    # --- assignment ----------------------------------------------------------------------

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
    ) -> None:
        """Join the group and read the partitions that it assigns; ``group`` is needed."""
        self._check_open()
        if self._group is None:
            raise ClientError("subscribe needs a group: client.consumer(group=...); or assign partitions")
        if isinstance(topics, str) or any(topic.startswith("^") for topic in topics):
            raise ValueError(f"topics must be a list of names, not patterns, got {topics!r}")
        self.unsubscribe()
        self._on_assign, self._on_revoke = on_assign, on_revoke
        self._member = GroupMember(self._new_cluster(), self._group, tuple(topics))

    def unsubscribe(self) -> None:
        """Leave the group, and stop reading."""
        self._check_open()
        if self._member is not None:
            self._revoke()
            self._member.close(self._request_deadline())
            self._member = None
        self._start_reading({})

    def assign(self, partitions: Iterable[_HasOffset]) -> None:
        """Read exactly these partitions, each from its offset.

        The offset is a number, or `EARLIEST`, `LATEST`, `STORED`, `UNKNOWN`.
        """
        self._check_open()
        offsets = {_key(part): part.offset for part in partitions}
        self._start_reading(self._resolve(offsets, self._request_deadline()))

    def unassign(self) -> None:
        """Stop reading."""
        self.assign([])

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read, with their positions."""
        return [TopicPartition(*key, offset) for key, offset in sorted(self._positions.items())]

    def seek(self, partition: _HasOffset) -> None:
        """Continue from another offset."""
        key = _key(partition)
        if key not in self._positions:
            raise ClientError("{}[{}] must be assigned before a seek".format(*key))
        start = self._resolve({key: partition.offset}, self._request_deadline())[key]
        self._fetched = deque(m for m in self._fetched if (m.topic(), m.partition()) != key)
        self._positions[key] = start
        offsets = {other: self._fetcher.position(other) or 0 for other in self._positions}
        self._fetcher.assign(offsets | {key: start})

    def pause(self, partitions: Iterable[_HasOffset]) -> None:
        """Stop returning records of partitions until `resume`."""
        self._paused |= {_key(part) for part in partitions}

    def resume(self, partitions: Iterable[_HasOffset]) -> None:
        """Continue with paused partitions."""
        self._paused -= {_key(part) for part in partitions}

    # --- records -------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next record, None if none arrives within ``timeout`` seconds; -1 waits forever.

        `ProtocolError` if reading fails and a retry does not help.
        """
        deadline = Deadline(timeout)
        while True:
            self._check_open()
            self._auto_commit_if_due()
            self._follow_group(deadline)
            if (message := self._next_message()) is not None:
                return message
            self._fetch(deadline)
            if deadline.expired():
                return self._next_message()

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to ``num_messages`` records that arrive within ``timeout`` seconds.

        The list is shorter if the group rebalances, or if an error occurs, which the next call
        raises. Only returned records are committed.
        """
        deadline = Deadline(timeout)
        if num_messages < 1 or (first := self.poll(timeout)) is None:
            return []
        messages = [first]
        try:
            while len(messages) < num_messages:
                if (message := self._next_message()) is not None:
                    messages.append(message)
                elif deadline.expired() or (self._member and self._member.state != "stable"):
                    break
                else:
                    self._fetch(deadline)
        except ProtocolError:
            return messages
        except BaseException:  # KeyboardInterrupt
            self._unread(messages)
            raise
        return messages

    def _fetch(self, deadline: Deadline) -> None:
        limit = Deadline(deadline.at_most(_POLL_INTERVAL))
        self._fetched.extend(self._fetcher.fetch(self._paused, limit))

    def _unread(self, messages: list[Message]) -> None:
        for message in reversed(messages):
            self._fetched.appendleft(message)
            self._positions[message.topic(), message.partition()] = message.offset()

    def _next_message(self) -> Message | None:
        """Return the first record of a partition that is not paused, and advance its position."""
        for _ in range(len(self._fetched)):
            message = self._fetched.popleft()
            key = (message.topic(), message.partition())
            if key not in self._paused:
                self._positions[key] = message.offset() + 1
                return message
            self._fetched.append(message)
        return None

    # --- offsets -------------------------------------------------------------------------

    def commit(
        self,
        message: Any = None,
        offsets: Iterable[_HasOffset] | None = None,
        asynchronous: bool = False,  # noqa: FBT001, FBT002, ARG002  # confluent-kafka's; here always False
    ) -> list[TopicPartition]:
        """Commit after a message, these offsets, or all positions; return the committed offsets."""
        self._check_open()
        if message is not None:
            chosen = {(message.topic(), message.partition()): message.offset() + 1}
        elif offsets is not None:
            chosen = {_key(part): part.offset for part in offsets}
        else:
            chosen = self._uncommitted()
        self._commit(chosen)
        return [TopicPartition(*key, offset) for key, offset in chosen.items()]

    def committed(self, partitions: Iterable[_HasOffset], timeout: float = -1) -> list[TopicPartition]:
        """Return the group's committed offsets, `UNKNOWN` for partitions without one."""
        keys = [_key(part) for part in partitions]
        committed = self._group_offsets().committed(keys, Deadline(timeout))
        return [TopicPartition(*key, committed.get(key, UNKNOWN)) for key in keys]

    def position(self, partitions: Iterable[_HasOffset]) -> list[TopicPartition]:
        """Return the offsets after the last returned records."""
        keys = [_key(part) for part in partitions]
        return [TopicPartition(*key, self._positions.get(key, UNKNOWN)) for key in keys]

    def fetch_position(self, partition: _HasOffset) -> int:
        """Return the next offset to fetch, which may be after control records and gaps."""
        return self._fetcher.position(_key(partition)) or 0

    def get_watermark_offsets(self, partition: _HasOffset, timeout: float = -1) -> tuple[int, int]:
        """Return the first offset of a partition, and the one after the last record."""
        key, deadline = _key(partition), Deadline(timeout)
        first = offset_at(self._cluster, key, EARLIEST, deadline)
        return first or 0, offset_at(self._cluster, key, LATEST, deadline) or 0

    def close(self) -> None:
        """Commit, leave the group, and close the connections."""
        if self._closed:
            return
        try:
            if self._member is not None:
                self._revoke()
        finally:
            self._closed = True
            self._cluster.close()
            if self._member is not None:
                self._member.close(self._request_deadline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the group -----------------------------------------------------------------------

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
        elif member.state == "stable" and member.generation != self._generation:
            generation = member.generation
            stored = dict.fromkeys(member.assignment, STORED)
            self._start_reading(self._resolve(stored, self._request_deadline()))
            self._generation = generation  # not before, so that a failure is repeated
            if self._on_assign is not None:
                self._on_assign(self, self.assignment())

    def _revoke(self) -> None:
        """Commit, and stop reading the assigned partitions."""
        # If the commit fails because the group goes on, the next reader repeats these records.
        with suppress(ProtocolError):
            if self._auto_commit is not None:
                self._commit(self._uncommitted())
        if self._on_revoke is not None and self._positions:
            self._on_revoke(self, self.assignment())
        self._generation = -1  # 0.9 forgets an empty group, and counts generations from 1 again
        self._start_reading({})

    def _start_reading(self, offsets: dict[TopicAndPartition, int]) -> None:
        self._fetched.clear()
        self._positions = dict(offsets)
        self._committed = dict(offsets)
        self._paused.clear()
        self._fetcher.assign(offsets)

    def _resolve(
        self, offsets: dict[TopicAndPartition, int], deadline: Deadline
    ) -> dict[TopicAndPartition, int]:
        """Return the offsets, with numbers for `STORED`, `UNKNOWN`, `EARLIEST` and `LATEST`."""
        stored = [key for key, offset in offsets.items() if offset in {STORED, UNKNOWN}]
        committed: dict[TopicAndPartition, int] = {}
        if stored and self._group is not None:
            committed = self._group_offsets().committed(stored, deadline)
        return {
            key: self._resolve_one(key, committed.get(key, offset), deadline)
            for key, offset in offsets.items()
        }

    def _resolve_one(self, key: TopicAndPartition, offset: int, deadline: Deadline) -> int:
        if offset >= 0:
            return offset
        if offset not in {EARLIEST, LATEST}:
            if self._settings.reset == "error":
                subject = "{}[{}]".format(*key)
                message = "no offset is committed, and reset is 'error'"
                raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, subject, message)
            offset = EARLIEST if self._settings.reset == "earliest" else LATEST
        return offset_at(self._cluster, key, offset, deadline) or 0

    def _group_offsets(self) -> GroupMember | GroupOffsets:
        if self._member is not None:
            return self._member
        if self._group is None:
            raise ClientError("committed offsets need a group: client.consumer(group=...)")
        return GroupOffsets(self._cluster, self._group.group)

    def _uncommitted(self) -> dict[TopicAndPartition, int]:
        return {key: at for key, at in self._positions.items() if at != self._committed.get(key)}

    def _commit(self, offsets: dict[TopicAndPartition, int]) -> None:
        if offsets:
            self._group_offsets().commit(offsets, self._request_deadline())
            self._committed |= offsets

    def _auto_commit_if_due(self) -> None:
        if self._auto_commit is None or not self._next_commit.expired():
            return
        self._next_commit = Deadline(self._auto_commit)
        try:
            self._commit(self._uncommitted())  # the user polls again, so the returned records are done
        except ProtocolError as error:
            must_rejoin = isinstance(error, BrokerError) and error.code in REJOIN_ERRORS
            if not must_rejoin and not is_retriable_or_timeout(error):
                raise

    def _request_deadline(self) -> Deadline:
        return Deadline(self._settings.request_timeout)

    def _check_open(self) -> None:
        if self._closed:
            raise ClientError("the consumer is closed")


def _key(partition: _HasOffset) -> TopicAndPartition:
    return partition.topic, partition.partition
