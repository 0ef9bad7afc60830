"""`Asked` is the range that a backfill reads in one partition; `next_batch` splits gaps into batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cloudevents_kafka.spark.pipeline.notes import GapCounts, Ledger, OffsetRange, OffsetRanges


class Gap(NamedTuple):
    """A range of offsets in one partition; the records at these offsets have not landed."""

    topic: str
    partition: str
    offsets: OffsetRange


class Asked(NamedTuple):
    """The range that a backfill must read in one partition; records before the offset ``first`` have expired.

    The backfill does not read the offset ``end`` and the offsets after it. ``end`` is the next offset that
    the pipeline will read, or 0 if the pipeline will read the whole partition. If the pipeline does not read
    the topic, ``end`` is the end of the partition.
    """

    topic: str
    partition: str
    offsets: OffsetRange
    first: int
    end: int

    def find(self, ids: Mapping[str, str], ledgers: Iterable[Ledger]) -> tuple[list[Gap], GapCounts]:
        """Return the gaps (the offsets that have not landed) in the range, and counts of the range's offsets.

        The first item of ``ledgers`` is the ledger of the table of events, which determines the gaps. The
        other items of ``ledgers`` are the ledgers of the other tables. If a run was killed before the commit
        to the table of events, another table may have rows of the unfinished batch. So if a range in another
        ledger begins inside a gap, the gap is divided at the beginning of this range, and a batch begins at
        this offset.
        """
        events, *others = ledgers
        topic, partition, topic_id = self.topic, self.partition, ids.get(self.topic, "")
        start, end = self.offsets.start, max(self.offsets.start, min(self.offsets.end, self.end))
        first = min(max(start, self.first), end)
        cuts = {
            entry.offsets.start
            for ledger in others
            for entry in ledger.entries()
            if (entry.topic, entry.partition) == (topic, partition)
        }
        gaps = events.gaps(topic, topic_id, partition, OffsetRange(first, end))
        lost = _size(events.gaps(topic, topic_id, partition, OffsetRange(start, first)))
        counts = GapCounts(_size(gaps), end - start - _size(gaps) - lost, lost, self.offsets.end - end)
        return [Gap(topic, partition, part) for gap in gaps for part in _cut(gap, cuts)], counts


def _size(ranges: Iterable[OffsetRange]) -> int:
    return sum(range_.end - range_.start for range_ in ranges)


def _cut(offsets: OffsetRange, cuts: Iterable[int]) -> list[OffsetRange]:
    inner = sorted(cut for cut in cuts if offsets.start < cut < offsets.end)
    starts, ends = [offsets.start, *inner], [*inner, offsets.end]
    return [OffsetRange(start, end) for start, end in zip(starts, ends, strict=True)]


def next_batch(gaps: list[Gap], most: int | None) -> tuple[OffsetRanges, list[Gap]]:
    """Return the offsets of the next batch, and the gaps that remain after this batch.

    The batch has at most as many offsets as the limit ``most``, and at most one range for each partition.
    """
    batch: dict[str, dict[str, OffsetRange]] = {}
    left: list[Gap] = []
    room = most if most is not None else _size(gap.offsets for gap in gaps)
    for gap in gaps:
        start, end = gap.offsets.start, gap.offsets.end
        taken = 0 if gap.partition in batch.get(gap.topic, {}) else min(room, end - start)
        if taken:
            batch.setdefault(gap.topic, {})[gap.partition] = OffsetRange(start, start + taken)
            room -= taken
        if start + taken < end:
            left.append(Gap(gap.topic, gap.partition, OffsetRange(start + taken, end)))
    return batch, left
