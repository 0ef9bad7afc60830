"""The topics that a `FakeProducer` writes and a `FakeConsumer` reads, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING

from cloudevents_kafka.testing.fakes.message import FakeMessage

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

TopicAndPartition = tuple[str, int]


class Fate(Enum):
    """What became of the transaction that wrote a message."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class Entry:
    """A message in a partition."""

    message: FakeMessage
    fate: Fate = Fate.COMMITTED


class FakeLog:
    """Partitions of messages, each at its offset; iterates over all that readers may see."""

    def __init__(self, messages: Iterable[FakeMessage] = (), *, partitions: int = 1) -> None:
        self.partitions = partitions
        self._entries: dict[TopicAndPartition, list[Entry]] = {}
        self._lock = Lock()
        for message in messages:
            self.append(message)

    def append(self, message: FakeMessage, fate: Fate = Fate.COMMITTED) -> Entry:
        """Store a message at the next offset of its partition."""
        place = (message.topic() or "", message.partition() or 0)
        entry = Entry(message, fate)
        with self._lock:  # several producers may write to one log
            entries = self._entries.setdefault(place, [])
            message._offset = len(entries)  # noqa: SLF001 (the broker sets it)
            entries.append(entry)
        return entry

    def places(self) -> list[TopicAndPartition]:
        """List topic and partition of all that was written to, sorted."""
        return sorted(self._entries)

    def end(self, place: TopicAndPartition) -> int:
        """Give the offset after the last message."""
        return len(self._entries.get(place, ()))

    def read(self, place: TopicAndPartition, offset: int) -> FakeMessage | None:
        """Give the first message at or after `offset` that a reader may see."""
        for entry in self._entries.get(place, ())[offset:]:
            if entry.fate is Fate.OPEN:
                return None
            if entry.fate is Fate.COMMITTED:
                return entry.message
        return None

    def __iter__(self) -> Iterator[FakeMessage]:
        for place in self.places():
            yield from (entry.message for entry in self._entries[place] if entry.fate is Fate.COMMITTED)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def kafka_error(code: str, reason: str | None = None) -> KafkaError:
    """Make a real error by its name, such as ``_MSG_TIMED_OUT`` or ``TOPIC_AUTHORIZATION_FAILED``."""
    from confluent_kafka import KafkaError  # 120 ms that users of fakes pay only for errors

    number = getattr(KafkaError, code)
    return KafkaError(number) if reason is None else KafkaError(number, reason)


def kafka_exception(code: str, reason: str | None = None) -> KafkaException:
    """Make a real exception around `kafka_error`."""
    from confluent_kafka import KafkaException

    return KafkaException(kafka_error(code, reason))
