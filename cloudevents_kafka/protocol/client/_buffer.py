"""`RecordBuffer`: the records that a consumer has fetched, but has not returned yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from cloudevents_kafka.protocol.client._cursor import Cursor
from cloudevents_kafka.protocol.client._message import Message, Offsets, PartitionId
from cloudevents_kafka.protocol.errors import ProtocolError


class RecordBuffer:
    """A consumer's fetched records: some are decoded already, and cursors decode the later records.

    ``positions`` maps each partition to the offset after its last returned record. All records of a cursor
    are decoded before the next cursor is used, so that only one batch is decompressed at a time.
    """

    def __init__(self) -> None:
        self.positions: Offsets = {}
        self.committed: Offsets = {}
        self.paused: set[PartitionId] = set()
        self.ready: deque[Message] = deque()
        self._cursors: deque[Cursor] = deque()
        self._set_aside: list[Message] = []  # records of paused partitions

    def assign(self, offsets: Offsets) -> None:
        """Discard all buffered records, and set the position of each partition in ``offsets``."""
        self.positions = dict(offsets)
        self.committed = dict(offsets)
        self.paused.clear()
        self.ready.clear()
        self._cursors.clear()
        self._set_aside.clear()

    def seek(self, key: PartitionId, offset: int) -> None:
        """Discard the records of a partition, and set its position."""
        self.ready = deque(m for m in self.ready if _key(m) != key)
        self._discard_cursors(key)
        self._set_aside = [m for m in self._set_aside if _key(m) != key]
        self.positions[key] = offset

    def pause(self, keys: Iterable[PartitionId]) -> None:
        """Do not return records of the partitions in ``keys`` until `resume` is called."""
        self.paused |= set(keys)
        self._set_aside += [m for m in self.ready if _key(m) in self.paused]
        self.ready = deque(m for m in self.ready if _key(m) not in self.paused)
        for cursor in self._cursors:
            if cursor.key in self.paused:
                cursor.release()

    def resume(self, keys: Iterable[PartitionId]) -> None:
        """Return records of the partitions in ``keys`` again, which `pause` has stopped."""
        self.paused -= set(keys)
        self.ready.extendleft(m for m in reversed(self._set_aside) if _key(m) not in self.paused)
        self._set_aside = [m for m in self._set_aside if _key(m) in self.paused]

    def add(self, cursors: Iterable[Cursor]) -> None:
        self._cursors.extend(cursors)

    def pop(self) -> Message | None:
        """Return the first decoded record, or None, and advance the position of its partition."""
        if not self.ready:
            return None
        message = self.ready.popleft()
        self.positions[message.topic_name, message.partition_number] = message.record_offset + 1
        return message

    def next_cursor(self) -> Cursor | None:
        """Return the cursor to decode next, or None if only paused partitions have cursors."""
        return next((cursor for cursor in self._cursors if cursor.key not in self.paused), None)

    def decode(self, cursor: Cursor) -> None:
        """Decode the next records of a cursor, and remove the cursor after its last record.

        If `Cursor.take` raises an error, discard the later records of the partition, and raise this error.
        """
        try:
            self.ready.extend(cursor.take())
        except ProtocolError:
            self._discard_cursors(cursor.key)
            raise
        if cursor.done:
            self._cursors.remove(cursor)

    def _discard_cursors(self, key: PartitionId) -> None:
        self._cursors = deque(cursor for cursor in self._cursors if cursor.key != key)

    def is_last(self, cursor: Cursor) -> bool:
        """Return whether all cursors except ``cursor`` belong to paused partitions."""
        return all(other is cursor or other.key in self.paused for other in self._cursors)

    def decode_position(self, key: PartitionId) -> int | None:
        """Return a partition's next offset to decode, or None if all fetched records are decoded."""
        return next((cursor.position for cursor in self._cursors if cursor.key == key), None)

    def unread(self, messages: Sequence[Message]) -> None:
        """Put returned records back into the buffer, so that the next calls return these records again."""
        for message in reversed(messages):
            self.ready.appendleft(message)
            self.positions[_key(message)] = message.record_offset

    def uncommitted(self) -> Offsets:
        """Return the positions that differ from the committed offsets."""
        return {key: at for key, at in self.positions.items() if at != self.committed.get(key)}


def _key(message: Message) -> PartitionId:
    return message.topic_name, message.partition_number
