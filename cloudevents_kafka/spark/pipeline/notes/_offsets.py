"""Ranges of offsets by topic and partition: what Spark planned for a batch, and what has landed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec


class OffsetRange(msgspec.Struct, frozen=True, array_like=True):
    """Offsets of one partition: ``start`` is the first, ``end`` the first after the last."""

    start: int
    end: int


# Topic, then partition as text.
OffsetRanges = Mapping[str, Mapping[str, OffsetRange]]


class BatchPlan(msgspec.Struct, frozen=True):
    """The offsets that Spark planned for a batch, read from its checkpoint."""

    batch: int
    ranges: OffsetRanges


def iter_partitions(ranges: OffsetRanges) -> Iterator[tuple[str, str, OffsetRange]]:
    """Yield topic, partition and offsets of each partition."""
    for topic, partitions in ranges.items():
        for partition, offsets in partitions.items():
            yield topic, partition, offsets


def find_range(ranges: OffsetRanges, topic: str, partition: str) -> OffsetRange | None:
    """Return the offsets of a partition, or None."""
    return ranges.get(topic, {}).get(partition)


def subtract_landed(planned: OffsetRanges, landed: OffsetRanges) -> OffsetRanges:
    """Return the planned offsets after the landed ones, without empty ranges."""
    left: dict[str, dict[str, OffsetRange]] = {}
    for topic, partition, offsets in iter_partitions(planned):
        before = find_range(landed, topic, partition)
        start = offsets.start if before is None else max(offsets.start, before.end)
        if start < offsets.end:
            left.setdefault(topic, {})[partition] = OffsetRange(start, offsets.end)
    return left


def add_landed(landed: OffsetRanges, planned: OffsetRanges) -> OffsetRanges:
    """Return the landed offsets extended by a plan that begins within them or at their end."""
    total = {topic: dict(partitions) for topic, partitions in landed.items()}
    for topic, partition, offsets in iter_partitions(planned):
        before = find_range(landed, topic, partition) or offsets
        total.setdefault(topic, {})[partition] = OffsetRange(before.start, max(before.end, offsets.end))
    return total


def format_ranges(ranges: OffsetRanges) -> str:
    """Return ranges as text, such as ``orders[0]@17 to 41``."""
    return ", ".join(
        f"{topic}[{partition}]@{offsets.start} to {offsets.end - 1}"
        for topic, partition, offsets in iter_partitions(ranges)
    )
