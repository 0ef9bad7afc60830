"""`RecordBuffer`: fetched records that are not returned yet, and the consumer's positions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from cloudevents_kafka.protocol.client._message import Message, Offsets, TopicAndPartition


class RecordBuffer:
    """Records in the order of fetching; ``positions`` are the offsets after the returned ones."""

    def __init__(self) -> None:
        self.positions: Offsets = {}
        self.committed: Offsets = {}
        self.paused: set[TopicAndPartition] = set()
        self._records: deque[Message] = deque()

    def assign(self, offsets: Offsets) -> None:
        """Discard all records, and begin at these offsets."""
        self.positions = dict(offsets)
        self.committed = dict(offsets)
        self.paused.clear()
        self._records.clear()

    def seek(self, key: TopicAndPartition, offset: int) -> None:
        """Discard the records of a partition, and set its position."""
        self._records = deque(m for m in self._records if (m.topic(), m.partition()) != key)
        self.positions[key] = offset

    def add(self, messages: Iterable[Message]) -> None:
        """Append fetched records."""
        self._records.extend(messages)

    def pop(self) -> Message | None:
        """Return the first record of a partition that is not paused, and advance its position."""
        for _ in range(len(self._records)):
            message = self._records.popleft()
            key = (message.topic(), message.partition())
            if key not in self.paused:
                self.positions[key] = message.offset() + 1
                return message
            self._records.append(message)
        return None

    def unread(self, messages: Sequence[Message]) -> None:
        """Put returned records back."""
        for message in reversed(messages):
            self._records.appendleft(message)
            self.positions[message.topic(), message.partition()] = message.offset()

    def uncommitted(self) -> Offsets:
        """Return the positions that differ from the committed ones."""
        return {key: at for key, at in self.positions.items() if at != self.committed.get(key)}
