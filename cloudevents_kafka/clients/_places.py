"""Places: the names of partitions, and the metadata that a run commits with an offset."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.binding import Decoded, Undecodable

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

Item = Decoded | Undecodable
"""A record that was read: what consumers return, and handlers get."""
PartitionName = tuple[str | None, int | None]
MARK: Final = "cloudevents_kafka.run"
"""The metadata of each offset that a run commits; bits of records after it that are done follow."""
MOST_BITS: Final = 12_000
"""The number of these bits, which take 2,000 characters: brokers accept 4,096 by default."""

_OBJECTS: Final = 1024  # bytes of the objects of a record, next to its key, value and headers


def name_of(item: Item) -> PartitionName:
    """Return the topic and the partition of a record."""
    return item.record.topic, item.record.partition


def offset_of(item: Item) -> int:
    """Return the offset of a record."""
    return item.record.next_offset - 1


def size_of(item: Item) -> int:
    """Return the number of bytes that count for a record while it waits."""
    record = item.record
    headers = sum(len(value) for _, value in record.headers if value)
    return _OBJECTS + len(record.key or b"") + len(record.value or b"") + headers


def places_of(names: Iterable[PartitionName]) -> list[TopicPartition]:
    """Return partitions, as the client has them."""
    from confluent_kafka import TopicPartition

    return [TopicPartition(topic or "", partition or 0) for topic, partition in names]


def mark_of(bits: int) -> str:
    """Return the metadata of an offset; the first bit is for the record at the offset."""
    return MARK + (b64encode(bits.to_bytes(bits.bit_length() // 8 + 1, "little")).decode() if bits else "")


def bits_of(metadata: str | None) -> int:
    """Return the bits of done records in the metadata of an offset; 0 if no run has written it."""
    if metadata is None or not metadata.startswith(MARK):
        return 0
    try:
        return int.from_bytes(b64decode(metadata[len(MARK) :], validate=True), "little")
    except ValueError:
        return 0
