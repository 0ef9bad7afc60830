"""The counts of a batch or of all batches; a batch does not land if its counts contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from operator import add
from typing import Self, TypeVar

import msgspec
from msgspec.structs import replace

from cloudevents_kafka.counting import limit_labels, limit_nested
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline._errors import PipelineError
from cloudevents_kafka.spark.pipeline.notes._routes import EVENTS, QUARANTINE

_Count = TypeVar("_Count")
Labels = Mapping[str, Mapping[str, int]]


class CountMismatch(PipelineError):
    """Counts of records contradict each other or the planned offsets; no record of the batch has landed.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import BatchCounts, CountMismatch
        >>> try:
        ...     BatchCounts(read=3, events=2).check()
        ... except CountMismatch as error:
        ...     print(error)
        3 records were read, but events and quarantined records add up to 2
    """


class PartitionCounts(msgspec.Struct, frozen=True):
    """The first offset, the last offset and the number of the records that were read from a partition.

    ``newest`` is the latest timestamp among the last records of the partition, in milliseconds since 1970, or
    None.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import PartitionCounts
        >>> PartitionCounts(first=7, last=16, records=8).missing
        2
    """

    first: int
    last: int
    records: int
    newest: int | None = None

    @property
    def missing(self) -> int:
        """The number of offsets in the partition that have no record.

        An offset has no record if, for example, the record was compacted or has expired, or if the offset
        belongs to a transaction marker.
        """
        return self.last - self.first + 1 - self.records

    def merge(self, later: PartitionCounts) -> PartitionCounts:
        """Return these counts combined with the counts of later records of the same partition."""
        return PartitionCounts(
            min(self.first, later.first),
            max(self.last, later.last),
            self.records + later.records,
            _latest(self.newest, later.newest),
        )


class GapCounts(msgspec.Struct, frozen=True):
    """Numbers of offsets in one partition, for the range of a backfill.

    ``gaps`` counts offsets that no pipeline had landed and whose records could be read. ``landed`` counts
    offsets in the range that had landed already. ``expired`` counts offsets that had not landed, but whose
    records had expired. ``ahead`` counts offsets that the pipeline had not reached yet; the backfill does not
    read these offsets, because the pipeline will read them.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import GapCounts
        >>> GapCounts(gaps=100, landed=800, expired=100, ahead=24).gaps
        100
    """

    gaps: int = 0
    landed: int = 0
    expired: int = 0
    ahead: int = 0


class BatchCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of records that were read, that landed as events, or that went to the quarantine.

    ``tolerated`` is the number of events with accepted deviations. ``by_type`` counts events by their type,
    then by their content mode. ``by_reason`` counts quarantined records by the verdict in the column
    ``error``, then by the reason. ``by_tolerated`` counts events by the clause of a specification, then by
    the rule from which the events deviate; an event may deviate from several rules. ``offsets`` contains
    `PartitionCounts` by topic, then by partition (as text). ``quarantined_by_topic`` counts quarantined
    records by topic. ``routed`` counts the events in each table of the option ``tables``; all other events
    are in the common table. ``newest`` is the latest timestamp of a record, in milliseconds since 1970, or
    None.

    ``duplicates`` counts events that did not land because the table has them already; see the option
    ``deduplicate``. With the option ``upsert``, ``changes`` counts records by what they do to a row: a record
    has ``inserted``, ``updated`` or ``deleted`` a row, or is ``older`` than the row. ``tombstones`` counts
    the records in ``changes`` that have a key but no value. Tombstones are not events.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import BatchCounts
        >>> first = BatchCounts(read=3, events=2, quarantined=1, by_type={"order.placed": {"binary": 2}})
        >>> total = first.merge(BatchCounts(read=1, events=1, by_type={"order.placed": {"structured": 1}}))
        >>> total.read, total.modes
        (4, {'binary': 2, 'structured': 1})
    """

    read: int = 0
    events: int = 0
    quarantined: int = 0
    by_type: Labels = {}
    by_reason: Labels = {}
    tolerated: int = 0
    by_tolerated: Labels = {}
    offsets: Mapping[str, Mapping[str, PartitionCounts]] = {}
    quarantined_by_topic: Mapping[str, int] = {}
    routed: Mapping[str, int] = {}
    newest: int | None = None
    duplicates: int = 0
    tombstones: int = 0
    changes: Mapping[str, int] = {}

    def merge(self, later: BatchCounts) -> BatchCounts:
        """Return the sum of these counts and the counts of later records."""
        return replace(
            self.add_left(later),
            read=self.read + later.read,
            offsets=_merge(self.offsets, later.offsets, PartitionCounts.merge),
            newest=_latest(self.newest, later.newest),
            duplicates=self.duplicates + later.duplicates,
            tombstones=self.tombstones + later.tombstones,
            changes=dict(Counter(self.changes) + Counter(later.changes)),
        )

    def add_left(self, others: BatchCounts) -> BatchCounts:
        """Return these counts plus ``others``, the counts of other records in the same batch.

        The count ``read`` stays the same, because it already includes the records of ``others``.
        """
        return replace(
            self,
            events=self.events + others.events,
            quarantined=self.quarantined + others.quarantined,
            by_type=limit_nested(_merge(self.by_type, others.by_type, add)),
            by_reason=limit_nested(_merge(self.by_reason, others.by_reason, add)),
            tolerated=self.tolerated + others.tolerated,
            by_tolerated=limit_nested(_merge(self.by_tolerated, others.by_tolerated, add)),
            quarantined_by_topic=_sum(self.quarantined_by_topic, others.quarantined_by_topic),
            routed=_sum(self.routed, others.routed),
        )

    def check(self) -> Self:
        """Return these counts; raise `CountMismatch` if the counts contradict each other."""
        records = (part.records for parts in self.offsets.values() for part in parts.values())
        labelled = (sum(inner.values()) for by in (self.by_type, self.by_reason) for inner in by.values())
        others = self.duplicates + self.tombstones
        and_others = ", with duplicates and tombstones," if others else ""
        sums = {
            f"events and quarantined records{and_others}": self.events + self.quarantined + others,
            f"events by type and mode, and quarantined records by reason{and_others}": sum(labelled) + others,
            "records by partition": sum(records),
        }
        for what, total in sums.items():
            if total != self.read:
                raise CountMismatch(f"{self.read:,} records were read, but {what} add up to {total:,}")
        if self.changes and sum(self.changes.values()) != self.events + self.tombstones:
            raise CountMismatch(
                f"{self.events + self.tombstones:,} records were to change rows, but the numbers of "
                f"inserted, updated, deleted and older add up to {sum(self.changes.values()):,}"
            )
        if self.by_table[EVENTS] < 0:
            raise CountMismatch(
                f"{self.events:,} events were read, but the numbers of events in the tables by type add up "
                f"to {sum(self.routed.values()):,}"
            )
        return self

    def check_rows(self, rows: Mapping[str, int], name: Callable[[str], str]) -> None:
        """Raise `CountMismatch` if the files of a table have more or fewer rows than the batch counted."""
        for table, number in rows.items():
            counted = self.rows.get(table, 0)
            if number != counted:
                raise CountMismatch(
                    f"the files for {name(table)} must have the {counted:,} rows that were counted, got "
                    f"{number:,}. Start again"
                )

    @property
    def rows(self) -> dict[str, int]:
        """The number of records that went to each table."""
        return {**self.by_table, QUARANTINE: self.quarantined}

    @property
    def by_table(self) -> dict[str, int]:
        """The number of events in each table of events; the first table is the common table, `EVENTS`."""
        return {EVENTS: self.events - sum(self.routed.values()), **self.routed}

    @property
    def filled(self) -> list[str]:
        """The tables of events in which the batch adds or changes rows.

        With the option ``upsert``, the list is empty if all records are older than the rows that they would
        change.
        """
        if self.changes:
            return [EVENTS] if self.changes.keys() - {"older"} else []
        return [table for table, number in self.by_table.items() if number]

    def skipped_since(self, earlier: BatchCounts) -> dict[str, dict[str, int]]:
        """Return how many offsets without a record were added since the counts ``earlier`` were made.

        The result contains this number for each topic and partition.
        """
        nothing = PartitionCounts(0, -1, 0)
        return {
            topic: {
                partition: part.missing - earlier.offsets.get(topic, {}).get(partition, nothing).missing
                for partition, part in parts.items()
            }
            for topic, parts in self.offsets.items()
        }

    @property
    def sums(self) -> str:
        """The number of records with each outcome, as text, such as ``2 events + 1 quarantined``."""
        parts = [pluralize(self.events, "event"), f"{self.quarantined:,} quarantined"]
        parts += [pluralize(self.duplicates, "duplicate")] if self.duplicates else []
        parts += [pluralize(self.tombstones, "tombstone")] if self.tombstones else []
        return " + ".join(parts)

    @property
    def modes(self) -> dict[str, int]:
        """The number of events in each content mode."""
        return dict(sorted(sum(map(Counter, self.by_type.values()), Counter[str]()).items()))


def _latest(*times: int | None) -> int | None:
    return max(filter(None, times), default=None)


def _sum(earlier: Mapping[str, int], later: Mapping[str, int]) -> dict[str, int]:
    return limit_labels(Counter(earlier) + Counter(later))


def _merge(
    earlier: Mapping[str, Mapping[str, _Count]],
    later: Mapping[str, Mapping[str, _Count]],
    combine: Callable[[_Count, _Count], _Count],
) -> dict[str, dict[str, _Count]]:
    merged = {outer: dict(counts) for outer, counts in earlier.items()}
    for outer, counts in later.items():
        into = merged.setdefault(outer, {})
        for inner, count in counts.items():
            into[inner] = combine(into[inner], count) if inner in into else count
    return merged
