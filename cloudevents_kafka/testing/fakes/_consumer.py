"""`FakeConsumer`: a consumer that has confluent-kafka's methods, and reads from memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.primitives.closing import Closing
from cloudevents_kafka.testing.fakes._checks import (
    INVALID_ARGUMENT,
    check_message,
    check_place,
    check_places,
    check_seconds,
    check_subscription,
    is_offset,
)
from cloudevents_kafka.testing.fakes._group import FakeGroup
from cloudevents_kafka.testing.fakes._log import FakeLog, PartitionId, kafka_error, kafka_exception
from cloudevents_kafka.testing.fakes._message import FakeMessage
from cloudevents_kafka.testing.fakes._metadata import cluster_metadata

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin._metadata import ClusterMetadata

_NEWEST, _EARLIEST, _LATEST, _STORED, _INVALID = -3, -2, -1, -1000, -1001
_MAX_MESSAGES = 1_000_000

RebalanceCallback = Callable[[Any, list["TopicPartition"]], object]


class _Offset(int):
    """A committed offset, with the metadata of the commit, which may be None."""

    metadata: str | None

    @classmethod
    def of(cls, part: TopicPartition) -> _Offset:
        offset = cls(part.offset)
        offset.metadata = part.metadata or None
        return offset


class FakeConsumer(Closing):
    """A fake of `confluent_kafka.Consumer` that reads from a `FakeLog`, or reads the messages passed to it.

    The fake never waits: if no message is left to read, `poll` returns None, and `consume` returns a shorter
    list. When the fake subscribes to topics, the fake joins its consumer group. All partitions of the
    subscribed topics are assigned to the fake, except partitions without messages. The fake consumer refuses
    the same calls and arguments as the real client. ``offsets`` maps a topic and partition to the group's
    committed offset; to simulate a restart, pass ``offsets`` to the next consumer. The method `fail_next`
    makes the next reads return errors.

    Examples:
        >>> from cloudevents_kafka.testing import FakeConsumer, FakeMessage
        >>> fake = FakeConsumer([FakeMessage("orders", value=b"17", key="customer-4")])
        >>> fake.subscribe(["orders"])
        >>> message = fake.poll()
        >>> message and (message.key(), message.value(), message.offset())
        (b'customer-4', b'17', 0)
    """

    def __init__(
        self,
        source: FakeLog | Iterable[FakeMessage] = (),
        *,
        offsets: dict[PartitionId, int] | None = None,
        auto_offset_reset: str = "earliest",
        auto_commit: bool = True,
        auto_offset_store: bool = True,
    ) -> None:
        self.log = source if isinstance(source, FakeLog) else FakeLog(source)
        self.offsets: dict[PartitionId, int] = {} if offsets is None else offsets
        self._from_start = auto_offset_reset == "earliest"
        self._auto_commit = auto_commit
        self._auto_store = auto_offset_store
        self._topics: list[str] = []
        self._on_assign: RebalanceCallback | None = None
        self._on_revoke: RebalanceCallback | None = None
        self._on_lost: RebalanceCallback | None = None
        self._positions: dict[PartitionId, int] = {}
        self._begins: dict[PartitionId, int] = {}  # the offsets with which partitions were assigned
        self._returned: dict[PartitionId, int] = {}  # unknown after a seek, as in the client
        self._stored: dict[PartitionId, int] = {}
        self._paused: set[PartitionId] = set()
        self._errors: deque[FakeMessage] = deque()
        self._generation = 0
        self._offered: set[PartitionId] = set()  # the partitions of an `on_assign` that has not assigned them
        self._known: set[str] = set()  # the topics of partitions that were assigned
        self._member: str | None = None
        self._closed = False

    def fail_next(self, *codes: str) -> None:
        """Make the next reads return errors: one message for each error name in ``codes``.

        Examples:
            >>> fake = FakeConsumer()
            >>> fake.fail_next("_ALL_BROKERS_DOWN")
            >>> message = fake.poll()
            >>> message and message.error()
            KafkaError{code=_ALL_BROKERS_DOWN,val=-187,str="Local: All broker connections are down"}
        """
        for code in codes:
            error = kafka_error(code)
            self._errors.append(FakeMessage(value=error.str(), partition=None, error=error))

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Read these topics from the next `poll` on; a name that begins with ``^`` is a pattern."""
        self._check_open()
        check_subscription(topics, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        self._topics = list(map(str, topics))
        self._member = ""
        self._on_assign = on_assign
        self._on_revoke = on_revoke
        self._on_lost = on_lost or on_revoke

    def unsubscribe(self) -> None:
        """Stop reading the subscribed topics."""
        self._check_open()
        self._topics = []
        self.rebalance()

    def rebalance(self, *, lost: bool = False) -> None:
        """Revoke all partitions, as if another member joined; the next read assigns the partitions again.

        First, the callback ``on_revoke`` is called; if ``lost`` is true, the callback ``on_lost`` is called
        instead of ``on_revoke``. After the rebalance, the consumer continues to read at the committed
        offsets.
        """
        self._check_open()
        callback = self._on_lost if lost else self._on_revoke
        if self._positions and callback is not None:
            callback(self, _offsets_of({}, [tp for tp in self._positions if tp not in self._offered]))
        self._generation += 1
        self._clear(commit=self._auto_commit and not lost)

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read exactly these partitions, each from the offset that is passed with it."""
        self._check_open()
        check_places(partitions)
        keys = set(map(_to_key, partitions))
        if len(keys) < len(partitions) or not all(is_offset(part.offset) for part in partitions):
            raise kafka_exception("_INVALID_ARG", f"Failed to set assignment: {INVALID_ARGUMENT}")
        self._clear(commit=self._auto_commit)
        self._assign(partitions)

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions additionally, each from the offset that is passed with it."""
        self._check_open()
        check_places(partitions)
        new: set[PartitionId] = set()
        for part in partitions:
            key, name = _to_key(part), f"{part.topic} [{part.partition}]"
            if not is_offset(part.offset):
                raise kafka_exception("_INVALID_ARG", f"{name} has invalid start offset {part.offset}")
            if key in new:
                raise kafka_exception("_INVALID_ARG", f"Duplicate {name} in input list")
            if key in self._positions and key not in self._offered:
                raise kafka_exception("_CONFLICT", f"{name} is already part of the current assignment")
            new.add(key)
        self._assign(partitions)

    def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading these partitions; with ``auto_commit``, first commit their stored offsets."""
        self._check_open()
        check_places(partitions)
        for part in partitions:
            if not self._positions:
                raise kafka_exception("_INVALID_ARG", "Can't subtract from empty assignment")
            if _to_key(part) not in self._positions:
                reason = "can't be unassigned since it is not in the current assignment"
                raise kafka_exception("_INVALID_ARG", f"{part.topic} [{part.partition}] {reason}")
        self._clear(commit=self._auto_commit, only=set(map(_to_key, partitions)))

    def unassign(self) -> None:
        """Stop reading all partitions; with ``auto_commit``, first commit their stored offsets."""
        self._check_open()
        self._clear(commit=self._auto_commit)

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions, each with the offset with which it was assigned."""
        self._check_open()
        return _offsets_of(self._begins, [tp for tp in self._positions if tp not in self._offered])

    def poll(self, timeout: float = -1) -> FakeMessage | None:
        """Return the next message, or None if no message is left, without waiting."""
        check_seconds(timeout)
        return next(iter(self._read(1)), None)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[FakeMessage]:
        """Return up to ``num_messages`` messages, without waiting for more."""
        num_messages = index(num_messages)
        check_seconds(timeout)
        if not 0 <= num_messages <= _MAX_MESSAGES:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        return self._read(num_messages)

    def seek(self, partition: TopicPartition) -> None:
        """Continue to read a partition from another offset."""
        self._check_open()
        check_place(partition)
        if _to_key(partition) not in self._positions.keys() - self._offered:
            code = "_STATE" if partition.topic in self._known else "_UNKNOWN_PARTITION"
            reason = kafka_error(code).str()
            raise kafka_exception(code, f"Failed to seek to offset {partition.offset}: {reason}")
        if partition.offset == _STORED:
            reason = kafka_error("_INVALID_ARG").str()
            raise kafka_exception("_INVALID_ARG", f"Failed to seek to offset {_STORED}: {reason}")
        self._positions[_to_key(partition)] = self._start_offset(partition)
        self._returned.pop(_to_key(partition), None)

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading partitions until `resume`, even if the partitions are revoked and assigned again."""
        self._check_open()
        check_places(partitions)
        self._paused.update(map(_to_key, partitions))

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """Continue to read paused partitions."""
        self._check_open()
        check_places(partitions)
        self._paused.difference_update(map(_to_key, partitions))

    def commit(
        self, message: Any = None, offsets: Sequence[TopicPartition] | None = None, asynchronous: bool = True
    ) -> list[TopicPartition] | None:
        """Commit the passed offsets, or the offset after the passed message; by default, the stored offsets.

        Return the committed offsets, or None if the commit is asynchronous.
        """
        self._check_open()
        chosen = self._chosen_offsets(message, offsets)
        if chosen is None:
            chosen = {tp: at for tp, at in self._stored.items() if at != self.offsets.get(tp)}
        committed = {tp: at for tp, at in chosen.items() if at >= 0}
        exist = all(map(self.log.has_partition, committed))
        if not asynchronous and not (committed and exist):
            code = "UNKNOWN_TOPIC_OR_PART" if committed else "_NO_OFFSET"
            raise kafka_exception(code, f"Commit failed: {kafka_error(code).str()}")
        self.offsets.update(committed if exist else {})
        return None if asynchronous else _offsets_of(chosen, chosen)

    def store_offsets(self, message: Any = None, offsets: Sequence[TopicPartition] | None = None) -> None:
        """Set the offsets that the next `commit` without arguments commits."""
        self._check_open()
        chosen = self._chosen_offsets(message, offsets)
        if chosen is None:
            raise ValueError("expected either message or offsets")
        if self._auto_store:
            raise kafka_exception(
                "_INVALID_ARG", "StoreOffsets failed: Local: Invalid argument or configuration"
            )
        if not chosen.keys() & self._positions.keys():
            code = "_STATE" if any(topic in self._known for topic, _ in chosen) else "_UNKNOWN_PARTITION"
            raise kafka_exception(code, f"StoreOffsets failed: {kafka_error(code).str()}")
        self._stored.update(chosen)

    def committed(self, partitions: Sequence[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Return the committed offset of each partition; -1001 means that no offset is committed."""
        self._check_open()
        check_places(partitions)
        check_seconds(timeout)
        return _offsets_of(self.offsets, map(_to_key, partitions))

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the consumer's position in each partition: the offset after the last message that was read.

        The returned offset is -1001 if no message was read since the assignment, or since the last seek.
        """
        self._check_open()
        check_places(partitions)
        return _offsets_of(self._returned, map(_to_key, partitions))

    def consumer_group_metadata(self) -> FakeGroup:
        """Return the metadata with which a transaction may commit the group's offsets.

        This metadata is valid until the next rebalance of the group.
        """
        self._check_open()
        return FakeGroup(self.offsets, self.log, lambda: self._generation)

    def memberid(self) -> str | None:
        """Return an empty text as the member id, or None if the consumer has never subscribed."""
        self._check_open()
        return self._member

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """Return the first offset of a partition, and the offset after its last message."""
        self._check_open()
        check_place(partition)
        check_seconds(timeout)
        if not self.log.has_partition(_to_key(partition)):
            reason = "Failed to get watermark offsets: Local: Unknown partition"
            raise kafka_exception("_UNKNOWN_PARTITION", reason)
        return 0, self.log.end_offset(_to_key(partition))

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Return the offset of each partition's first message at or after a time.

        The attribute ``offset`` of each passed `TopicPartition` contains the time, in milliseconds since the
        epoch. The returned offset is -1 if all messages of the partition are earlier than this time. The time
        -1 means the end of the partition, -2 means its start, and -3 the message with the latest time.
        """
        self._check_open()
        check_places(partitions)
        check_seconds(timeout)
        code = "" if partitions else "_INVALID_ARG"
        if partitions and not any(self.log.has_partition(_to_key(part)) for part in partitions):
            code = "_UNKNOWN_PARTITION"
        elif any(part.offset < _NEWEST for part in partitions):
            code = "UNSUPPORTED_VERSION"
        if code:
            raise kafka_exception(code, f"Failed to get offsets: {kafka_error(code).str()}")
        return [self._offset_at(part) for part in partitions]

    def _offset_at(self, part: TopicPartition) -> TopicPartition:
        key = _to_key(part)
        if not self.log.has_partition(key):
            return _to_topic_partition(key, part.offset)  # the client also sets an error
        ends = {_EARLIEST: 0, _LATEST: self.log.end_offset(key), _NEWEST: self.log.newest_offset(key)}
        offset = ends[part.offset] if part.offset in ends else self.log.offset_at(key, part.offset)
        return _to_topic_partition(key, offset)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the metadata of a topic, or of all topics that contain messages."""
        if self._closed:
            raise RuntimeError("Handle has been closed")
        return cluster_metadata(self.log, topic, timeout)

    def close(self) -> None:
        """Revoke all partitions, and refuse further calls; with ``auto_commit``, commit stored offsets."""
        try:
            if not self._closed:
                self.rebalance()
        finally:  # also if ``on_revoke`` raises an error
            self._closed = True

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        for part in partitions:
            self._positions[_to_key(part)] = self._start_offset(part)
            self._begins[_to_key(part)] = _STORED if part.offset == _INVALID else int(part.offset)
        self._known.update(part.topic for part in partitions)
        self._offered -= set(map(_to_key, partitions))

    def _clear(self, *, commit: bool, only: set[PartitionId] | None = None) -> None:
        """Forget the consumer's positions in all partitions, or in the partitions in ``only``.

        Paused partitions stay paused.
        """
        keys = {*self._positions, *self._returned, *self._stored} if only is None else only
        if commit:
            self.offsets.update({key: at for key, at in self._stored.items() if key in keys})
        for offsets in (self._positions, self._begins, self._returned, self._stored):
            for key in keys & offsets.keys():
                del offsets[key]

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")

    def _read(self, max_messages: int) -> list[FakeMessage]:
        self._check_open()
        self._assign_new()
        messages: list[FakeMessage] = []
        while len(messages) < max_messages:
            message = self._errors.popleft() if self._errors else self._next()
            if message is None:
                break
            messages.append(message)
        return messages

    def _next(self) -> FakeMessage | None:
        for tp, offset in self._positions.items():
            if offset > self.log.end_offset(tp):  # out of range: ``auto_offset_reset`` applies
                offset = self._positions[tp] = 0 if self._from_start else self.log.end_offset(tp)  # noqa: PLW2901
            message = None if tp in self._paused else self.log.read(tp, offset)
            if message is not None:
                self._positions[tp] = self._returned[tp] = (message.offset() or 0) + 1
                if self._auto_store:
                    self._stored[tp] = self._returned[tp]
                return message
        return None

    def _assign_new(self) -> None:
        """Assign the partitions of the subscribed topics that are not assigned yet."""
        found = [tp for tp in self.log.topic_partitions() if self._is_subscribed(tp[0])]
        new = [_to_topic_partition(tp, _INVALID) for tp in found if tp not in self._positions]
        self._assign(new)
        if new and self._on_assign is not None:
            self._offered = set(map(_to_key, new))
            try:
                self._on_assign(self, new)
            finally:
                self._offered = set()

    def _is_subscribed(self, topic: str) -> bool:
        return any(re.match(name, topic) if name.startswith("^") else name == topic for name in self._topics)

    def _start_offset(self, part: TopicPartition) -> int:
        """Return the offset at which the consumer begins to read a partition.

        This offset is the offset in the assignment of the partition. If the assignment does not contain an
        offset, reading begins at the committed offset. If no offset is committed, the setting
        ``auto_offset_reset`` determines where reading begins.
        """
        tp = _to_key(part)
        if part.offset >= 0:
            return int(part.offset)
        if part.offset in {_STORED, _INVALID} and tp in self.offsets:
            return self.offsets[tp]
        at_start = part.offset == _EARLIEST or (part.offset != _LATEST and self._from_start)
        return 0 if at_start else self.log.end_offset(tp)

    def _chosen_offsets(
        self, message: Any, offsets: Sequence[TopicPartition] | None
    ) -> dict[PartitionId, int] | None:
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            check_message(message)
            return {(message.topic(), message.partition()): message.offset() + 1}
        if offsets is not None:
            check_places(offsets)
        return None if offsets is None else {_to_key(part): _Offset.of(part) for part in offsets}


def _to_key(part: TopicPartition) -> PartitionId:
    return part.topic, part.partition


def _to_topic_partition(tp: PartitionId, offset: int) -> TopicPartition:
    from confluent_kafka import TopicPartition  # takes 120 ms, needed only for users who ask for partitions

    metadata = getattr(offset, "metadata", None)
    return TopicPartition(*tp, offset) if metadata is None else TopicPartition(*tp, offset, metadata)


def _offsets_of(offsets: dict[PartitionId, int], partitions: Iterable[PartitionId]) -> list[TopicPartition]:
    return [_to_topic_partition(tp, offsets.get(tp, _INVALID)) for tp in partitions]
