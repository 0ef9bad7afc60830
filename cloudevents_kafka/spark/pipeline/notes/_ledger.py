"""`Ledger` lists the ranges of offsets whose records are in a table.

A ledger lists ranges of offsets by topic, id of the topic, pipeline and partition. A commit adds rows to a
table, and the offsets of these rows to the table's ledger, in one step. docs/design.md explains ledgers under
"The law of landing". If the offset of a row is not in the ledger, a writer other than a pipeline has added
the row to the table. Such a row does not count as a landed record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from cloudevents_kafka.spark.pipeline._errors import WrongTable


class OffsetRange(msgspec.Struct, frozen=True, array_like=True):
    """The offsets of one partition from ``start`` to ``end``; the range does not include ``end`` itself."""

    start: int
    end: int


REPLAYS: Final = "(replays)"
"""The name under which a ledger stores the replays of the quarantine, as if this were the name of a topic. No
topic can have this name."""

# Ranges by topic, then by partition (as text).
OffsetRanges = Mapping[str, Mapping[str, OffsetRange]]
# The ranges of each partition (as text), in order; ranges that touch are joined.
_Partitions = Mapping[str, tuple[OffsetRange, ...]]
# By topic, then by the topic's id ("" if the brokers do not report ids), then by pipeline.
_Topics = Mapping[str, Mapping[str, Mapping[str, _Partitions]]]


class LedgerEntry(NamedTuple):
    """A range of offsets that a pipeline has landed."""

    topic: str
    topic_id: str
    pipeline: str
    partition: str
    offsets: OffsetRange


class Ledger(msgspec.Struct, frozen=True):
    """The offsets that all pipelines have committed to a table; ``generation`` counts the commits."""

    generation: int = 0
    topics: _Topics = {}

    def entries(self) -> Iterator[LedgerEntry]:
        """Yield a `LedgerEntry` for each range of offsets in the ledger."""
        for topic, ids in self.topics.items():
            for topic_id, pipelines in ids.items():
                for pipeline, partitions in pipelines.items():
                    for partition, ranges in partitions.items():
                        for offsets in ranges:
                            yield LedgerEntry(topic, topic_id, pipeline, partition, offsets)

    def landed(self, ids: Mapping[str, str]) -> OffsetRanges:
        """Return the last landed range of each partition of the topics with these ids.

        The result includes the ranges of all pipelines.
        """
        return {
            topic: {
                partition: _joined([entry.offsets for entry in entries])[-1]
                for partition, entries in self._by_partition(topic, topic_id).items()
            }
            for topic, topic_id in ids.items()
        }

    def left(self, ids: Mapping[str, str], planned: OffsetRanges, owner: str | None = None) -> OffsetRanges:
        """Return the planned offsets that have not landed, without empty ranges.

        Raises `WrongTable` if a pipeline other than the pipeline ``owner`` has landed some of the planned
        offsets. If ``owner`` is None, the planned offsets may contain offsets that any pipeline has landed.
        """
        left: dict[str, dict[str, OffsetRange]] = {}
        for topic, partitions in planned.items():
            landed = self._by_partition(topic, ids.get(topic, ""))
            for partition, offsets in partitions.items():
                new = _left(owner, topic, offsets, landed.get(partition, []))
                if new.start < new.end:
                    left.setdefault(topic, {})[partition] = new
        return left

    def gaps(self, topic: str, topic_id: str, partition: str, offsets: OffsetRange) -> list[OffsetRange]:
        """Return the parts of a range of offsets that no pipeline has landed, in order."""
        start, found = offsets.start, []
        for entry in self._by_partition(topic, topic_id).get(partition, []):
            if entry.offsets.start < entry.offsets.end:  # an empty range only says where a pipeline begins
                found.append(OffsetRange(start, min(entry.offsets.start, offsets.end)))
                start = max(start, entry.offsets.end)
        found.append(OffsetRange(start, offsets.end))
        return [gap for gap in found if gap.start < gap.end]

    @property
    def replays(self) -> int:
        """The number of the last landed replay of the quarantine, or 0 if no replay has landed."""
        return max((entry.offsets.end for entry in self.entries() if entry.topic == REPLAYS), default=0)

    def add_replay(self, number: int) -> Ledger:
        """Return the ledger after the replay with this number has landed.

        Replays have the numbers 1, 2, …, so the ledger stores all replays as one range from 0 to ``number``.
        """
        return self.add("replay", {}, {REPLAYS: {"0": OffsetRange(0, number)}})

    def _by_partition(self, topic: str, topic_id: str) -> dict[str, list[LedgerEntry]]:
        """Return the ranges of offsets in a topic by partition, in order.

        A range in the ledger belongs to the topic if both the topic's name and its id are the same. If
        ``topic_id`` or the id in the ledger is unknown, only the names are compared.
        """
        found: dict[str, list[LedgerEntry]] = {}
        entries = Ledger(topics={topic: self.topics.get(topic, {})}).entries()
        for entry in sorted(entries, key=lambda entry: entry.offsets.start):
            if entry.topic_id == topic_id or not (entry.topic_id and topic_id):
                found.setdefault(entry.partition, []).append(entry)
        return found

    def add(self, pipeline: str, ids: Mapping[str, str], ranges: OffsetRanges) -> Ledger:
        """Return the ledger after a pipeline has committed these offsets."""
        added = (
            LedgerEntry(topic, ids.get(topic, ""), pipeline, partition, offsets)
            for topic, partition, offsets in iter_partitions(ranges)
        )
        return Ledger.of_entries(self.generation + 1, chain(self.entries(), added))

    def merge(self, entries: Iterable[LedgerEntry]) -> Ledger:
        """Return the ledger with additional ranges of offsets."""
        return Ledger.of_entries(self.generation, chain(self.entries(), entries))

    def begins(self) -> list[LedgerEntry]:
        """Return the empty ranges of the ledger.

        The offset of an empty range is the offset at which a pipeline begins to read a partition. A pipeline
        with an empty range in a partition has not landed any record of the partition.
        """
        return [entry for entry in self.entries() if entry.offsets.start == entry.offsets.end]

    @staticmethod
    def of_entries(generation: int, entries: Iterable[LedgerEntry]) -> Ledger:
        """Return a ledger with this generation and these ranges."""
        topics: dict[str, dict[str, dict[str, dict[str, tuple[OffsetRange, ...]]]]] = {}
        for topic, topic_id, pipeline, partition, offsets in entries:
            owned = topics.setdefault(topic, {}).setdefault(topic_id, {}).setdefault(pipeline, {})
            owned[partition] = _joined([*owned.get(partition, ()), offsets])
        return Ledger(generation, topics)


def _joined(ranges: list[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return ranges of offsets in order; ranges that touch or overlap are joined.

    An empty range that does not touch another range stays in the result, because its offset is the offset at
    which a pipeline begins.
    """
    joined: list[OffsetRange] = []
    for range_ in sorted(ranges, key=lambda range_: range_.start):
        if joined and range_.start <= joined[-1].end:
            joined[-1] = OffsetRange(joined[-1].start, max(joined[-1].end, range_.end))
        else:
            joined.append(range_)
    return tuple(joined)


def _left(
    pipeline: str | None, topic: str, planned: OffsetRange, landed: Iterable[LedgerEntry]
) -> OffsetRange:
    """Return the planned offsets of one partition that come after its landed offsets.

    Raises `WrongTable` if another pipeline has landed some of the planned offsets. Also raises `WrongTable`
    if some of the planned offsets have landed, although planned offsets before them have not landed.
    """
    start = planned.start
    for entry in landed:
        common = OffsetRange(max(start, entry.offsets.start), min(planned.end, entry.offsets.end))
        if common.start >= common.end:
            continue
        text = format_ranges({topic: {entry.partition: common}})
        if pipeline not in (None, entry.pipeline):
            raise WrongTable(
                f"pipeline {pipeline} must not land {text}, which pipeline {entry.pipeline} has landed in "
                "this table. Stop one of the two pipelines, or land into another table; a pipeline with a "
                "fresh folder continues after the table's offsets"
            )
        if common.start > start:
            raise WrongTable(
                f"pipeline {entry.pipeline} has already landed {text}, in the middle of this batch: the "
                "checkpoint was set back, or began at earlier offsets. Use a fresh checkpoint, which "
                "continues after the landed offsets"
            )
        start = common.end
    return OffsetRange(start, planned.end)


def iter_partitions(ranges: OffsetRanges) -> Iterator[tuple[str, str, OffsetRange]]:
    """Yield the name of the topic, the number of the partition and the offsets, for each partition."""
    for topic, partitions in ranges.items():
        for partition, offsets in partitions.items():
            yield topic, partition, offsets


def format_ranges(ranges: OffsetRanges) -> str:
    """Return ranges as text, such as ``orders[0]@17 to 41``."""
    return ", ".join(
        f"{topic}[{partition}]@{offsets.start} to {offsets.end - 1}"
        for topic, partition, offsets in iter_partitions(ranges)
    )
