"""Counts of a batch, or of all batches so far: they add up, or the batch does not land."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Self

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.pipeline.offsets import Spans, as_text, span_of

# Types and reasons told apart; a producer that makes up a type per event must not fill our memory.
TOLD_APART = 1000
OTHERS = "(others)"


class Miscounted(CloudEventsKafkaError):
    """What was written is not what was read; nothing of the batch has landed."""


class Offsets(msgspec.Struct, frozen=True):
    """What was read of one partition: the first and last offset, and how many records."""

    first: int
    last: int
    records: int

    @property
    def missing(self) -> int:
        """How many offsets from first to last had no record: compacted, expired, transaction markers."""
        return self.last - self.first + 1 - self.records

    def plus(self, later: Offsets) -> Offsets:
        """Join with what was read after it."""
        return Offsets(min(self.first, later.first), max(self.last, later.last), self.records + later.records)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Records read, and what became of them.

    ``by_type`` is type to mode to events, ``by_reason`` verdict to reason to records,
    ``offsets`` topic to partition (as text) to what was read of it.
    """

    read: int = 0
    events: int = 0
    quarantined: int = 0
    by_type: Mapping[str, Mapping[str, int]] = {}
    by_reason: Mapping[str, Mapping[str, int]] = {}
    offsets: Mapping[str, Mapping[str, Offsets]] = {}

    def plus(self, later: Tally) -> Tally:
        """Add the counts of what was read after this."""
        return Tally(
            read=self.read + later.read,
            events=self.events + later.events,
            quarantined=self.quarantined + later.quarantined,
            by_type=_limited(_added(self.by_type, later.by_type)),
            by_reason=_limited(_added(self.by_reason, later.by_reason)),
            offsets=_joined(self.offsets, later.offsets),
        )

    def checked(self) -> Self:
        """Give the tally itself; raises `Miscounted` where it contradicts itself."""
        sums = {
            "events and quarantined records": self.events + self.quarantined,
            "events by type and mode, and quarantined records by reason": _total(self.by_type)
            + _total(self.by_reason),
            "records by partition": sum(
                part.records for parts in self.offsets.values() for part in parts.values()
            ),
        }
        for what, total in sums.items():
            if total != self.read:
                raise Miscounted(f"{self.read:,} records were read, but {what} come to {total:,}")
        return self

    def check_within(self, planned: Spans) -> None:
        """Raise `Miscounted` where a record was read whose offset was not planned for the batch."""
        for topic, by_number in self.offsets.items():
            for number, part in by_number.items():
                span = span_of(planned, topic, number)
                if span is None or part.first < span.start or part.last >= span.end:
                    raise Miscounted(
                        f"{topic}[{number}]@{part.first} to {part.last} was read, but the batch was to land "
                        f"{as_text(planned)}: the checkpoint was changed while it is in use. "
                        "Start again; if that does not help, land into a fresh folder with a fresh checkpoint"
                    )

    def skipped_since(self, earlier: Tally) -> dict[str, dict[str, int]]:
        """Count offsets without a record, by topic and partition, beyond those of an earlier total."""
        before = {
            (topic, number): part.missing
            for topic, parts in earlier.offsets.items()
            for number, part in parts.items()
        }
        return {
            topic: {number: part.missing - before.get((topic, number), 0) for number, part in parts.items()}
            for topic, parts in self.offsets.items()
        }

    @property
    def modes(self) -> dict[str, int]:
        """Events by mode."""
        modes: Counter[str] = Counter()
        for counts in self.by_type.values():
            modes.update(counts)
        return dict(sorted(modes.items()))


def _total(counts: Mapping[str, Mapping[str, int]]) -> int:
    return sum(sum(inner.values()) for inner in counts.values())


def _added(
    one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    added = {outer: dict(counts) for outer, counts in one.items()}
    for outer, counts in other.items():
        into = added.setdefault(outer, {})
        for inner, number in counts.items():
            into[inner] = into.get(inner, 0) + number
    return added


def _limited(counts: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Fold the rarest outer names, and the rarest inner ones of each, into one beyond the limit."""
    folded = {outer: _limited_inner(inner) for outer, inner in counts.items()}
    if len(folded) <= TOLD_APART:
        return folded
    others = folded.pop(OTHERS, {})
    ranked = sorted(folded.items(), key=lambda item: -sum(item[1].values()))
    for _, inner in ranked[TOLD_APART - 1 :]:
        others = _added({OTHERS: others}, {OTHERS: inner})[OTHERS]
    return {**dict(ranked[: TOLD_APART - 1]), OTHERS: _limited_inner(others)}


def _limited_inner(counts: dict[str, int]) -> dict[str, int]:
    if len(counts) <= TOLD_APART:
        return counts
    kept = Counter(counts)
    others = kept.pop(OTHERS, 0)
    common = dict(kept.most_common(TOLD_APART - 1))
    return {**common, OTHERS: others + sum(kept.values()) - sum(common.values())}


def _joined(
    one: Mapping[str, Mapping[str, Offsets]], other: Mapping[str, Mapping[str, Offsets]]
) -> dict[str, dict[str, Offsets]]:
    joined = {topic: dict(parts) for topic, parts in one.items()}
    for topic, parts in other.items():
        into = joined.setdefault(topic, {})
        for number, part in parts.items():
            into[number] = into[number].plus(part) if number in into else part
    return joined
