"""`Schedule`: the unfinished records of a run, their order, and the offsets that the run may commit.

The loops for threads and for asyncio use `Schedule`. This module does no input or output, and uses no lock
and no clock: methods that depend on the current time receive it as an argument. The rules of `Schedule`:

1. A lane is a queue of records: all records with one key, or all records without a key in one partition. The
   records of a lane are handled in the order in which they were read. All tries of a record end before the
   next record of its lane is handled.
2. The offset after a record may be committed when this record and all earlier records of its partition are
   done. If the group has no offset for a partition, or did not answer, the offset of the first record is
   committed at once.
3. In each partition, at most ``max_ahead`` records after the oldest unfinished record are added to lanes.
   Further records wait.
4. A record that waits for another try does not delay the records of other lanes. Lanes take turns: between
   two records of a lane, each other lane with a ready record is served once.
5. A partition is closed when it is revoked because another member of the group becomes its owner. No further
   record of a closed partition is passed to the handler.
6. The metadata of a committed offset says which records after the offset are done, so that no member of the
   group handles these records again. A committed offset is committed again when more records after it are
   done. It is also committed again when the group reports a different offset. If a commit is refused, it is
   repeated without the list of finished records, because the list may be too long for the broker. The next
   commits also omit the list of finished records. With each further refused commit in a row, the number of
   commits that omit the list doubles.
7. A partition becomes full when the bytes of its unfinished records reach the high mark. The partition stays
   full until its unfinished records have fallen to the low mark. While a partition is full, it is not read.
   The high mark of a partition is ``max_bytes`` divided by the number of partitions. The low mark has two
   parts: at most half of the bytes of the high mark, and at most half of ``max_ahead`` records. A partition
   without unfinished records is never full. No record is read while every partition is full or has
   ``max_ahead`` records after its oldest unfinished record. Therefore, if handlers are slow for all
   partitions, no partition is paused, and the client drops none of its fetched records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec

from cloudevents_kafka.clients._places import (
    MARK,
    MOST_BITS,
    Item,
    PartitionName,
    bits_of,
    mark_of,
    name_of,
    offset_of,
    size_of,
)

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_MOST_REFUSALS: Final = 10  # further refusals do not double the number again: about 1,000 commits


class _Partition(msgspec.Struct, eq=False):
    """The records of a partition that were read since its assignment, or since its last seek."""

    name: PartitionName
    end: int  # the offset after the last record that was added to a lane
    tasks: deque[Task] = msgspec.field(default_factory=deque)  # from the oldest unfinished record on
    held: deque[tuple[Item, int]] = msgspec.field(default_factory=deque)  # beyond ``max_ahead``, with sizes
    size: int = 0  # bytes of the unfinished records
    is_closed: bool = False
    is_changed: bool = False  # whether more records are done than were committed
    sent: tuple[int, str | None] | None = None  # the last commit, if the group has not confirmed it
    refusals: int = 0  # of commits that list finished records, in a row
    plain: int = 0  # how many of the next commits omit this list
    first: int = 0
    done: int = 0  # bits of records from the offset ``first`` on that other members have handled


class Task(msgspec.Struct, eq=False):
    """A record that was read; ``error`` is its last error, or None if the handler must be called."""

    item: Item
    lane: object
    partition: _Partition
    began: float
    size: int
    attempt: int = 0
    error: Exception | None = None
    is_done: bool = False
    is_in_work: bool = False
    is_waiting: bool = False  # for its next try
    is_reported: bool = False  # by `find_old`


class Schedule:
    """The unfinished records of a run, and the offsets that the run may commit."""

    def __init__(self, max_ahead: int, max_bytes: int) -> None:
        self._max_ahead = max_ahead
        self._max_bytes = self._share = max_bytes
        self._partitions: dict[PartitionName, _Partition] = {}
        self._seen: dict[PartitionName, tuple[int, str | None]] = {}  # the group's last offset and metadata
        self._lanes: dict[object, deque[Task]] = {}
        self._ready: deque[Task] = deque()
        self._tries: list[tuple[float, int, Task]] = []  # a heap by time
        self._number = count()
        self.ahead: set[PartitionName] = set()
        """Partitions at the limit ``max_ahead``; further records wait until half of the limit is free."""
        self.full: set[PartitionName] = set()
        """Partitions that must not be read: they have reached the high mark, but not yet the low mark."""
        self.in_work: dict[Task, float] = {}
        """The records that are being handled, each with the time when it was passed to its handler."""

    @property
    def is_idle(self) -> bool:
        """Whether all records that were read are done."""
        return not self._lanes

    def divide(self, partitions: int) -> None:
        """Divide ``max_bytes`` into equal shares for this number of partitions."""
        self._share = self._max_bytes // max(1, partitions)

    def may_read(self, partitions: int) -> bool:
        """Return whether reading continues, because at least one partition has not reached its limits."""
        stopped = self.ahead | self.full if self.full else self.ahead
        return not stopped or len(stopped) < partitions

    def is_known(self, item: Item) -> bool:
        """Return whether the schedule already knows the partition of a record."""
        return self.knows(name_of(item))

    def knows(self, name: PartitionName) -> bool:
        """Return whether a record or a committed offset was stored since the partition was assigned."""
        return name in self._seen or name in self._partitions

    def add(self, item: Item, now: float) -> None:
        """Add a record that was read; if its partition has reached ``max_ahead``, the record must wait."""
        name, offset = name_of(item), offset_of(item)
        partition = self._partitions.get(name)
        if partition is not None and offset < _next(partition):  # after a seek, or a new assignment
            self.close((name,))
            partition = _Partition(name, offset)
            self._partitions[name] = partition
        if partition is None:
            partition = self._partitions[name] = _Partition(name, offset)
            first, metadata = self._seen.get(name, (-1, None))
            partition.is_changed = first < 0  # without an offset, the next process may begin at the end
            if offset >= first >= 0:
                partition.first, partition.done = first, bits_of(metadata)
        size = size_of(item)
        partition.size += size
        if name in self.ahead:
            partition.held.append((item, size))
        else:
            self._begin(partition, item, size, now)
        if partition.size >= self._share:
            self.full.add(name)
            self._read_on(partition)

    def _read_on(self, partition: _Partition) -> None:
        """Let a full partition be read again if its unfinished records have fallen to the low mark."""
        if partition.name not in self.ahead and partition.size <= self._share // 2:
            self.full.discard(partition.name)

    def _begin(self, partition: _Partition, item: Item, size: int, now: float) -> None:
        record, offset = item.record, offset_of(item)
        lane = record.topic, record.partition if record.key is None else record.key
        task = Task(item, lane, partition, now, size)
        partition.end = offset + 1
        if partition.done and partition.done >> (offset - partition.first) & 1:
            task.is_done = True
            partition.size -= size
            partition.is_changed |= not partition.tasks  # a later offset may be committed
            partition.tasks.extend((task,) * bool(partition.tasks))
            return
        tasks = self._lanes.setdefault(lane, deque())
        tasks.append(task)
        if len(tasks) == 1:
            self._ready.append(task)
        partition.tasks.append(task)
        if len(partition.tasks) > self._max_ahead:
            self.ahead.add(partition.name)

    @property
    def is_ready(self) -> bool:
        """Whether a record is ready, so that `next` need not wait for the next try of a failed record."""
        return bool(self._ready)

    def next(self, now: float) -> Task | None:
        """Return the next record to handle, or None if no record is ready."""
        while self._tries and self._tries[0][0] <= now:
            task = heappop(self._tries)[2]
            if not task.partition.is_closed:
                task.is_waiting = False
                self._ready.append(task)
        while self._ready:
            task = self._ready.popleft()
            if not task.partition.is_closed:
                task.is_in_work = True
                task.attempt += task.error is None
                self.in_work[task] = now
                return task
        return None

    def next_try(self) -> float | None:
        """Return the time at which a failed record is tried again, or None if no failed record waits."""
        return self._tries[0][0] if self._tries else None

    def fail(self, task: Task, error: Exception) -> None:
        """Make a record ready again, because a message that its handler has sent was not delivered."""
        task.error = error
        if self._leave_work(task):
            self._ready.append(task)

    def wait(self, task: Task, until: float) -> None:
        """Let a failed record wait until the time of its next try."""
        task.error = None
        if self._leave_work(task):
            task.is_waiting = True
            heappush(self._tries, (until, next(self._number), task))

    def leave(self, task: Task) -> None:
        """Remember that a handler left a record unfinished; later records of its lane are not handled."""
        self._leave_work(task)

    def end(self, task: Task, now: float) -> bool:
        """Mark a record as done, so that the next record of its lane becomes ready.

        Records that waited because of the limit ``max_ahead`` are added to their lanes. Return whether the
        partition of the record may be read again.
        """
        task.is_done = True
        if self._leave_work(task):
            self._leave_lane(task)
        partition = task.partition
        partition.is_changed = True
        partition.size -= task.size
        while partition.tasks and partition.tasks[0].is_done:
            partition.tasks.popleft()
        if partition.is_closed:
            return False
        stopped = len(self.ahead) + len(self.full)
        if len(partition.tasks) <= self._max_ahead // 2 + 1:
            self.ahead.discard(partition.name)
            while partition.held and partition.name not in self.ahead:
                self._begin(partition, *partition.held.popleft(), now)
        if partition.name in self.full:
            self._read_on(partition)
        return len(self.ahead) + len(self.full) < stopped

    def _leave_work(self, task: Task) -> bool:
        """Remove a record that is no longer being handled; return False if its partition is closed."""
        task.is_in_work = False
        del self.in_work[task]
        if task.partition.is_closed:
            self._leave_lane(task)
        return not task.partition.is_closed

    def _leave_lane(self, task: Task) -> None:
        tasks = self._lanes[task.lane]
        tasks.popleft()
        if tasks:
            self._ready.append(tasks[0])
        else:
            del self._lanes[task.lane]

    def close(self, names: Iterable[PartitionName]) -> None:
        """Close partitions: drop all their records, except the records that are being handled."""
        closed = [self._partitions[name] for name in names if name in self._partitions]
        for partition in closed:
            partition.is_closed = True
            partition.held.clear()
            self.ahead.discard(partition.name)
            self.full.discard(partition.name)
        for lane in {task.lane for each in closed for task in each.tasks if not task.is_done}:
            before = self._lanes.get(lane)
            if not before:
                continue
            left = deque(task for task in before if task.is_in_work or not task.partition.is_closed)
            if not left:
                del self._lanes[lane]
                continue
            self._lanes[lane] = left
            if left[0] is not before[0]:
                self._ready.append(left[0])

    def working(self, names: Iterable[PartitionName]) -> int:
        """Return how many records of the partitions in ``names`` are being handled."""
        found = [self._partitions[name] for name in names if name in self._partitions]
        return sum(task.is_in_work for partition in found for task in partition.tasks)

    def forget(self, names: Iterable[PartitionName]) -> None:
        """Forget partitions that are closed."""
        for name in names:
            self._partitions.pop(name, None)
            self._seen.pop(name, None)

    def keep(self, assigned: list[TopicPartition]) -> None:
        """Close and forget all partitions that are no longer assigned."""
        names = {(place.topic, place.partition) for place in assigned}
        gone = (self._partitions.keys() | self._seen.keys()) - names
        self.close(gone)
        self.forget(gone)

    def find_old(self, before: float) -> Iterator[Task]:
        """Yield the oldest unfinished record of each partition, if it was read before the time ``before``.

        No record is yielded by two calls of this method.
        """
        for partition in self._partitions.values():
            oldest = partition.tasks[0] if partition.tasks else None
            if oldest is not None and oldest.began < before and not oldest.is_reported:
                oldest.is_reported = True
                yield oldest

    def done(
        self, names: Collection[PartitionName] | None = None, *, again: bool = False
    ) -> list[TopicPartition]:
        """Return the offsets to commit in the partitions ``names``; None stands for all partitions.

        The result contains only partitions in which further records are done since the last `commit`. With
        ``again``, the result contains an offset for each partition in ``names``.
        """
        chosen = [each for name, each in self._partitions.items() if names is None or name in names]
        return [_place(each, _first(each)) for each in chosen if again or each.is_changed]

    def asked(self, *, unfinished: bool) -> list[TopicPartition]:
        """Return the partitions whose offset must be committed, or whose last commit must be confirmed.

        With ``unfinished``, the result also contains the partitions that have unfinished records.
        """
        chosen = self._partitions.values()
        return [
            _place(each, _first(each))
            for each in chosen
            if each.is_changed or each.sent is not None or (unfinished and each.tasks)
        ]

    def commit(self, places: list[TopicPartition], *, failed: bool = False) -> None:
        """Remember that offsets are being committed or, with ``failed``, that their commit has failed."""
        for place in places:
            if (partition := self._partitions.get((place.topic, place.partition))) is not None:
                partition.is_changed = failed
                partition.sent = None if failed else (place.offset, place.metadata)
                if failed:
                    _refuse(partition, place.metadata)

    def confirm(self, committed: list[TopicPartition]) -> list[TopicPartition]:
        """Return the committed offsets of the group that differ from the last commit.

        After that, the method `done` returns the partitions of these offsets again.
        """
        refused = []
        for place in committed:
            partition = self._partitions.get((place.topic, place.partition))
            if partition is None or partition.sent is None:
                continue
            sent, partition.sent = partition.sent, None
            if (place.offset, place.metadata or sent[1]) != sent:
                partition.is_changed = True
                refused.append(place)
                _refuse(partition, sent[1])
            elif sent[1] != MARK:
                partition.refusals = 0
            elif partition.plain:
                partition.plain -= 1
                partition.is_changed |= not partition.plain
        return refused

    def left(self, names: Collection[PartitionName] | None = None) -> list[TopicPartition]:
        """Return the offset of the first unfinished record in each partition of ``names``.

        If ``names`` is None, the result contains all partitions with unfinished records.
        """
        chosen = [each for name, each in self._partitions.items() if names is None or name in names]
        return [_place(each, _first(each)) for each in chosen if each.tasks]

    def note(self, committed: list[TopicPartition]) -> None:
        """Store the committed offsets of the group; any member of the group may have committed them."""
        self._seen |= {(place.topic, place.partition): (place.offset, place.metadata) for place in committed}

    def find_foreign(self, committed: list[TopicPartition]) -> TopicPartition | None:
        """Return a foreign offset, which is after an unfinished record and which no run has committed.

        Without a foreign offset, the result is None.

        An offset counts as foreign if its metadata does not begin with `MARK`, and if it has changed since
        the last check. An offset that has not changed is not foreign: an earlier process may have committed
        it before a consumer sought back to an earlier record. At the first check of a partition, there is no
        earlier offset for a comparison. After the first check, the method `done` returns such a partition, so
        that the group's offset is set back. If no offset is foreign, the offsets are stored for the next
        check.
        """
        for place in committed:
            name = place.topic, place.partition
            partition = self._partitions.get(name)
            seen = place.offset, place.metadata
            is_after = partition is not None and bool(partition.tasks) and place.offset > _first(partition)
            if partition is None or not is_after or (place.metadata or "").startswith(MARK):
                continue
            if name not in self._seen:  # the group did not answer before
                partition.is_changed = True
            elif self._seen[name] != seen:
                return place
        self.note(committed)
        return None


def _refuse(partition: _Partition, metadata: str | None) -> None:
    """If the refused commit contained a list of finished records, omit this list from the next commits."""
    if metadata != MARK:
        partition.refusals += 1
        partition.plain = 2 ** min(partition.refusals, _MOST_REFUSALS)


def _first(partition: _Partition) -> int:
    """Return the offset of the oldest unfinished record.

    If no record is unfinished, the result is the offset after the last record.
    """
    return offset_of(partition.tasks[0].item) if partition.tasks else partition.end


def _next(partition: _Partition) -> int:
    """Return the offset after the last record of the partition that was read."""
    return offset_of(partition.held[-1][0]) + 1 if partition.held else partition.end


def _place(partition: _Partition, offset: int) -> TopicPartition:
    from confluent_kafka import TopicPartition

    topic, number = partition.name
    if partition.plain:
        return TopicPartition(topic or "", number or 0, offset, MARK)
    # Other members have handled some records that were not read yet.
    bits = partition.done >> (partition.end - partition.first) << (partition.end - offset)
    bits &= (1 << MOST_BITS) - 1
    for task in partition.tasks:
        bit = offset_of(task.item) - offset
        if bit >= MOST_BITS:
            break
        bits |= task.is_done << bit
    return TopicPartition(topic or "", number or 0, offset, mark_of(bits))
