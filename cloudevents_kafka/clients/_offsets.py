"""The offsets that a group may commit while records are handled in any order, and those that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudevents_kafka.binding import Decoded, Undecodable

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

Item = Decoded | Undecodable
_Partition = tuple[str | None, int | None]
MARK: Final = "cloudevents_kafka.run"
"""The metadata of each offset that `EventConsumer.run` commits."""


class Progress:
    """The unfinished records, and the offsets that a group may commit: none is after an unfinished record."""

    def __init__(self) -> None:
        self._open: dict[_Partition, dict[int, Item]] = {}  # by partition, in the order of offsets
        self._ends: dict[_Partition, int] = {}  # after the last record of each
        self._committed: dict[_Partition, int] = {}
        self._seen: dict[_Partition, tuple[int, str | None]] = {}  # the group's last offset and its metadata

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def is_known(self, item: Item) -> bool:
        """Return whether the record's partition has offsets here since it was assigned."""
        name = item.record.topic, item.record.partition
        return name in self._seen or name in self._ends

    def begin(self, item: Item) -> None:
        """Add an unfinished record."""
        record = item.record
        name, offset = (record.topic, record.partition), record.next_offset - 1
        if offset < self._ends.get(name, 0):  # the partition moved back: it was sought or assigned again
            self._forget_records(name)
        self._open.setdefault(name, {})[offset] = item
        self._ends[name] = offset + 1
        self._committed.setdefault(name, offset)

    def end(self, item: Item) -> None:
        """Remove a record that is done, unless its partition was moved after `begin`."""
        record = item.record
        open_ = self._open.get((record.topic, record.partition), {})
        if open_.get(record.next_offset - 1) is item:
            del open_[record.next_offset - 1]

    def keep(self, assigned: list[TopicPartition]) -> None:
        """Forget partitions that are not assigned."""
        names = {(place.topic, place.partition) for place in assigned}
        for name in (self._ends.keys() | self._seen.keys()) - names:
            self._forget_records(name)
            self._seen.pop(name, None)

    def _forget_records(self, name: _Partition) -> None:
        for table in (self._open, self._ends, self._committed):
            table.pop(name, None)

    def done(self, *, again: bool = False) -> list[TopicPartition]:
        """Return the offsets to commit: those that are new since `commit`, or all with ``again``."""
        done = {name: next(iter(self._open.get(name, ())), end) for name, end in self._ends.items()}
        new = {name: offset for name, offset in done.items() if again or offset > self._committed[name]}
        return [_place(name, offset) for name, offset in new.items()]

    def commit(self, places: list[TopicPartition]) -> None:
        """Store the offsets that are committed."""
        self._committed |= {(place.topic, place.partition): place.offset for place in places}

    def left(self) -> list[TopicPartition]:
        """Return the offset of the first unfinished record of each partition."""
        return [_place(name, next(iter(open_))) for name, open_ in self._open.items() if open_]

    def note(self, committed: list[TopicPartition]) -> None:
        """Store the group's offsets, which any member may have committed."""
        self._seen |= {(place.topic, place.partition): (place.offset, place.metadata) for place in committed}

    def find_foreign(self, committed: list[TopicPartition]) -> TopicPartition | None:
        """Return an offset after an unfinished record that `EventConsumer.run` has not committed, or None.

        Such an offset has no mark, and has changed since the last check: an unchanged one may be of an
        earlier process, before a seek back. If there is none, the offsets are stored for the next check.
        """
        for place in committed:
            name = place.topic, place.partition
            first = next(iter(self._open.get(name, ())), None)
            seen = place.offset, place.metadata
            is_after = first is not None and place.offset > first
            if is_after and place.metadata != MARK and self._seen.setdefault(name, seen) != seen:
                return place
        self.note(committed)
        return None


def _place(name: _Partition, offset: int) -> TopicPartition:
    from confluent_kafka import TopicPartition

    topic, partition = name
    return TopicPartition(topic or "", partition or 0, offset, MARK)
