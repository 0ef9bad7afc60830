"""The names of partitions, the offsets of records, and the metadata that a run commits with an offset."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.binding import Decoded, Undecodable

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

Item = Decoded | Undecodable
"""A record that was read: consumers return it, and handlers are called with it."""
PartitionName = tuple[str | None, int | None]
MARK: Final = "cloudevents_kafka.run"
"""The start of the metadata that a run commits with an offset; the bits of finished records follow it."""
MOST_BITS: Final = 12_000
"""The largest number of bits in an offset's metadata (2,000 characters; by default, brokers accept 4,096)."""

_OBJECTS: Final = 1024  # bytes of a record's Python objects, in addition to its key, value and headers


def name_of(item: Item) -> PartitionName:
    """Return the topic and the partition of a record."""
    return item.record.topic, item.record.partition


def offset_of(item: Item) -> int:
    """Return the offset of a record."""
    return item.record.next_offset - 1


def size_of(item: Item) -> int:
    """Return how many bytes of the limit ``max_bytes`` a waiting record uses."""
    record = item.record
    headers = sum(len(value) for _, value in record.headers if value)
    return _OBJECTS + len(record.key or b"") + len(record.value or b"") + headers


def places_of(names: Iterable[PartitionName]) -> list[TopicPartition]:
    """Return partitions as the ``TopicPartition`` objects of confluent-kafka."""
    from confluent_kafka import TopicPartition

    return [TopicPartition(topic or "", partition or 0) for topic, partition in names]


def mark_of(bits: int) -> str:
    """Return the metadata of a committed offset; the first bit stands for the record at the offset."""
    return MARK + (b64encode(bits.to_bytes(bits.bit_length() // 8 + 1, "little")).decode() if bits else "")


def bits_of(metadata: str | None) -> int:
    """Return the bits of finished records in the metadata of an offset, or 0 for other metadata."""
    if metadata is None or not metadata.startswith(MARK):
        return 0
    try:
        return int.from_bytes(b64decode(metadata[len(MARK) :], validate=True), "little")
    except ValueError:
        return 0
