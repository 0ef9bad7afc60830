"""Partitions and offsets, as users write them and as the client's tables have them."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, TypeAlias

TopicAndPartition: TypeAlias = tuple[str, int]
"""A topic and a partition."""

Offsets: TypeAlias = dict[TopicAndPartition, int]
"""Offsets by topic and partition."""

LATEST: Final = -1
"""The end of a partition, as an offset and as a timestamp of ListOffsets."""

EARLIEST: Final = -2
"""The beginning of a partition, as an offset and as a timestamp of ListOffsets."""

STORED: Final = -1000
"""The offset that means the committed one, as in confluent-kafka."""

UNKNOWN: Final = -1001
"""The missing offset: begin at the committed one, or as ``reset`` says."""


class TopicPartition(NamedTuple):
    """A partition and an offset in it."""

    topic: str
    partition: int
    offset: int = UNKNOWN


class HasOffset(Protocol):
    """A `TopicPartition`, or confluent-kafka's."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


def key_of(partition: HasOffset) -> TopicAndPartition:
    """Return the topic and partition, without the offset."""
    return partition.topic, partition.partition
