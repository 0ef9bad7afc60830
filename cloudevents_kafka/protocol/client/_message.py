"""Messages, partitions and offsets, as users see them and as the client stores them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.records import Record
from cloudevents_kafka.protocol.records.record import Headers

_T = TypeVar("_T")

PartitionId: TypeAlias = tuple[str, int]
"""A topic and the number of a partition."""

Offsets: TypeAlias = dict[PartitionId, int]
"""Offsets by topic and partition."""

# S0-A13: "-1 to receive the latest offsets and -2"
LATEST: Final = -1
"""The number that means the end of a partition, in place of an offset or a timestamp of ListOffsets.

Examples:
    >>> from cloudevents_kafka.protocol import LATEST, Client
    >>> with Client("localhost:9092") as client:
    ...     client.offset_at("orders", 0, LATEST)
    2
"""

EARLIEST: Final = -2
"""The number that means the beginning of a partition, in place of an offset or a timestamp of ListOffsets.

Examples:
    >>> from cloudevents_kafka.protocol import EARLIEST, Client
    >>> with Client("localhost:9092") as client:
    ...     client.offset_at("orders", 0, EARLIEST)
    0
"""

STORED: Final = -1000
"""The offset that stands for the committed offset, as in confluent-kafka.

Examples:
    >>> from cloudevents_kafka.protocol import STORED, Client, TopicPartition
    >>> with Client("localhost:9092").consumer(group="mail", reset="earliest") as consumer:
    ...     consumer.assign([TopicPartition("orders", 0, STORED)])
    ...     message = consumer.poll(10)
    >>> message and message.offset()
    0
"""

UNKNOWN: Final = -1001
"""An offset that is not set: a consumer begins at the committed offset, or as ``reset`` says.

Examples:
    >>> from cloudevents_kafka.protocol import UNKNOWN, TopicPartition
    >>> TopicPartition("orders", 0).offset == UNKNOWN
    True
"""


class TopicPartition(NamedTuple):
    """A partition, and an offset in this partition.

    Examples:
        >>> from cloudevents_kafka.protocol import TopicPartition
        >>> TopicPartition("orders", 0, 17)
        TopicPartition(topic='orders', partition=0, offset=17)
    """

    topic: str
    partition: int
    offset: int = UNKNOWN


class HasOffset(Protocol):
    """The `TopicPartition` of this module, or the `TopicPartition` of confluent-kafka."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


def key_of(partition: HasOffset) -> PartitionId:
    """Return the topic and partition, without the offset."""
    return partition.topic, partition.partition


def by_topic(pairs: Iterable[tuple[str, _T]]) -> dict[str, list[_T]]:
    """Group pairs of a topic and an item: return a dict that maps each topic to a list of its items."""
    topics: dict[str, list[_T]] = defaultdict(list)
    for topic, item in pairs:
        topics[topic].append(item)
    return topics


class Message(msgspec.Struct, frozen=True):
    """A produced or consumed record, with the methods of confluent-kafka's `Message`.

    Examples:
        >>> from cloudevents_kafka import Record
        >>> from cloudevents_kafka.protocol import EARLIEST, Client, TopicPartition
        >>> with Client("localhost:9092").consumer() as consumer:
        ...     consumer.assign([TopicPartition("orders", 0, EARLIEST)])
        ...     message = consumer.poll(10)
        >>> message and Record.of(message).key
        b'customer-4'
    """

    record: Record
    topic_name: str
    partition_number: int
    record_offset: int
    delivery_error: ProtocolError | None = None

    def topic(self) -> str:
        """Return the topic's name."""
        return self.topic_name

    def partition(self) -> int:
        """Return the partition's number."""
        return self.partition_number

    def offset(self) -> int:
        """Return the record's offset in its partition, or -1 if the offset is unknown."""
        return self.record_offset

    def key(self) -> bytes | None:
        """Return the key."""
        return self.record.key

    def value(self) -> bytes | None:
        """Return the value."""
        return self.record.value

    def headers(self) -> Headers | None:
        """Return the headers, or None if the record has no headers."""
        return self.record.headers or None

    def timestamp(self) -> tuple[int, int]:
        """Return the timestamp's type (0 none, 1 create time, 2 log append time), and the timestamp in ms."""
        if self.record.timestamp is None:
            return 0, -1
        return self.record.timestamp_type + 1, self.record.timestamp

    def error(self) -> ProtocolError | None:
        """Return why the record was not delivered, or None if it was delivered."""
        return self.delivery_error

    def __len__(self) -> int:
        """Return the length of the value, or 0 for a tombstone.

        A message of length 0 is falsy, so compare messages with None.
        """
        return len(self.record.value or b"")
