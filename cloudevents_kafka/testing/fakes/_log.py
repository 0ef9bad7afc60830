"""`FakeLog`: topics in memory, which a `FakeProducer` writes and a `FakeConsumer` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

from cloudevents_kafka.testing.fakes._message import FakeMessage

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

PartitionId = tuple[str, int]
TransactionState = Literal["open", "committed", "aborted"]


@dataclass(slots=True)
class LogEntry:
    """A message in a partition, and the state of the transaction that has written the message."""

    message: FakeMessage
    state: TransactionState = "committed"


class FakeLog:
    """A log of messages by partition and offset; iteration yields the messages that consumers can read.

    Examples:
        >>> from cloudevents_kafka.testing import FakeLog, FakeProducer
        >>> log = FakeLog(partitions=3)
        >>> fake = FakeProducer(log)
        >>> fake.produce("orders", value=b"17", partition=2)
        >>> fake.flush()
        0
        >>> [(message.topic(), message.partition(), message.value()) for message in log]
        [('orders', 2, b'17')]
    """

    def __init__(self, messages: Iterable[FakeMessage] = (), *, partitions: int = 1) -> None:
        self.partitions = partitions
        self._entries: dict[PartitionId, list[LogEntry]] = {}
        self._lock = Lock()
        for message in messages:
            self.append(message)

    def append(self, message: FakeMessage, state: TransactionState = "committed") -> LogEntry:
        """Append a message to its partition, and return the new entry of the log."""
        topic_partition = (message.topic() or "", message.partition() or 0)
        entry = LogEntry(message, state)
        with self._lock:  # several producers may write to one log
            entries = self._entries.setdefault(topic_partition, [])
            message._offset = len(entries)  # noqa: SLF001 (the broker sets it)
            entries.append(entry)
        return entry

    def topic_partitions(self) -> list[PartitionId]:
        """Return the sorted list of the partitions that contain messages."""
        return sorted(self._entries)

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic contains messages."""
        with self._lock:  # another thread may append
            return any(name == topic for name, _ in self._entries)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic.

        The returned number is greater than the option ``partitions`` if a partition with a higher number
        contains messages.
        """
        with self._lock:  # another thread may append
            used = [number + 1 for name, number in self._entries if name == topic]
        return max([self.partitions, *used])

    def has_partition(self, topic_partition: PartitionId) -> bool:
        """Return whether a partition exists, or would be created when it is first used."""
        topic, number = topic_partition
        return 0 <= number < self.partitions or 0 <= number < self.partition_count(topic)

    def offset_at(self, topic_partition: PartitionId, timestamp: int) -> int:
        """Return the offset of a partition's first message at or after a time.

        The time is in milliseconds since the epoch. The returned offset is -1 if all messages of the
        partition are earlier than the time.
        """
        entries = self._entries.get(topic_partition, ())
        found = (n for n, entry in enumerate(entries) if entry.message.timestamp()[1] >= timestamp)
        return next(found, -1)

    def newest_offset(self, topic_partition: PartitionId) -> int:
        """Return the offset of the first message with the latest timestamp, or -1 without a message."""
        times = [entry.message.timestamp()[1] for entry in self._entries.get(topic_partition, ())]
        return times.index(max(times)) if times else -1

    def end_offset(self, topic_partition: PartitionId) -> int:
        """Return the offset after the last message of a partition."""
        return len(self._entries.get(topic_partition, ()))

    def read(self, topic_partition: PartitionId, offset: int) -> FakeMessage | None:
        """Return the first readable message at or after an offset, or None if there is no such message."""
        for entry in self._entries.get(topic_partition, ())[offset:]:
            if entry.state == "open":
                return None
            if entry.state == "committed":
                return entry.message
        return None

    def __iter__(self) -> Iterator[FakeMessage]:
        for key in self.topic_partitions():
            yield from (entry.message for entry in self._entries[key] if entry.state == "committed")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def kafka_error(code: str, reason: str | None = None, **flags: bool) -> KafkaError:
    """Return the `KafkaError` with a name such as ``_MSG_TIMED_OUT``, constructed with ``flags``."""
    from confluent_kafka import KafkaError  # takes 120 ms, needed only for errors

    number = getattr(KafkaError, code)
    return KafkaError(number, reason, **flags) if flags or reason is not None else KafkaError(number)


def kafka_exception(code: str, reason: str | None = None, **flags: bool) -> KafkaException:
    """Return a `KafkaException` that contains the `KafkaError` of `kafka_error`."""
    from confluent_kafka import KafkaException

    return KafkaException(kafka_error(code, reason, **flags))
