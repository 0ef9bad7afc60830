"""Counts for a limited number of labels, because labels such as event types are untrusted input.

If counts are limited to ``most`` labels, three rules are true in any order of additions, limits and merges:

1. The counts of all labels, plus the count ``others``, add up to the sum of all numbers that were added.
2. The count of a label is never larger than the exact count, and is at most ``others / (most + 1)`` smaller
   than the exact count. Therefore, each label that makes up more than ``1 / (most + 1)`` of the sum has a
   count.
3. If there are at most ``most`` different labels, all counts are exact, and ``others`` is 0.

The algorithm was published by Misra and Gries (1982), and by Agarwal et al. in "Mergeable summaries" (2012).
If there are too many labels, the labels with the smallest counts are removed, and each other count is reduced
by the largest removed count. Each removal therefore reduces the counts of at least ``most + 1`` labels by the
same number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from heapq import nlargest
from typing import Final, Generic, TypeVar

from cloudevents_kafka.primitives.bounded import OTHERS

MAX_LABELS: Final = 1000

_Label = TypeVar("_Label", bound=Hashable)
_Nested = Mapping[str, Mapping[str, int]]


class Labels(Generic[_Label]):
    """Counts by label, with the rules of this module; ``total`` is the sum of all counts."""

    def __init__(self, most: int = MAX_LABELS) -> None:
        self._most = most
        self._counts: dict[_Label, int] = {}
        self.total = 0

    def add(self, label: _Label, number: int = 1) -> None:
        """Add ``number`` to the count of a label; the label may be `OTHERS`."""
        self.total += number
        if label != OTHERS:
            self._counts[label] = self._counts.get(label, 0) + number
        if len(self._counts) > 2 * self._most:  # only rarely, because the call takes time for each label
            self._counts = _most_of(self._counts, self._most)

    def merge(self, other: Labels[_Label]) -> None:
        """Add the counts of another `Labels` object to these counts."""
        self.total += other.total
        self._counts = _most_of(Counter(self._counts) + Counter(other._counts), self._most)

    def most_common(self, number: int) -> tuple[list[tuple[_Label, int]], int]:
        """Return the ``number`` labels with the highest counts, and the sum of all other counts."""
        kept = _most_of(self._counts, self._most)
        found = sorted(kept.items(), key=lambda item: (-item[1], str(item[0])))[:number]
        return found, self.total - sum(count for _, count in found)


def _most_of(counts: Mapping[_Label, int], most: int) -> dict[_Label, int]:
    """Return at most ``most`` of the counts; each is reduced by the largest count that was removed."""
    if len(counts) <= most:
        return dict(counts)
    cut = nlargest(most + 1, counts.values())[-1]
    return {label: count - cut for label, count in counts.items() if count > cut}


def limit_labels(counts: Mapping[str, int], most: int = MAX_LABELS) -> dict[str, int]:
    """Return at most ``most`` counts, as the module says; `OTHERS` is the sum of all other counts."""
    if len(counts) <= most:
        return dict(counts)
    kept = _most_of({label: count for label, count in counts.items() if label != OTHERS}, most - 1)
    return {**kept, OTHERS: sum(counts.values()) - sum(kept.values())}


def limit_nested(labels: _Nested, most: int = MAX_LABELS) -> dict[str, dict[str, int]]:
    """Return at most ``most`` labels, each with at most ``most`` inner labels; the sum stays the same."""
    limited = {outer: limit_labels(inner, most) for outer, inner in labels.items()}
    if len(limited) <= most:
        return limited
    sums = limit_labels({outer: sum(inner.values()) for outer, inner in limited.items()}, most)
    others = Counter(limited.pop(OTHERS, {}))
    found: dict[str, dict[str, int]] = {}
    for outer, inner in limited.items():
        left = sums.get(outer, 0)
        for label, count in Counter(inner).most_common():
            kept = min(count, left)
            left -= kept
            others[label] += count - kept
            if kept:
                found.setdefault(outer, {})[label] = kept
    return {**found, OTHERS: limit_labels(+others, most)}
