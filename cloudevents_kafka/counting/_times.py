"""A histogram of times by label; its bins become wider if the times are far apart.

Producers may write any timestamps. The total count of a bin is exact, and the counts by label obey the rules
of `Labels`. At most `MAX_BINS` bins are not empty; their width is the smallest width in `WIDTHS` for which so
many bins suffice. The result therefore does not depend on the order in which times are added, and one event
in the year 9999 takes only one bin.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from operator import mul
from typing import Final, NamedTuple

from cloudevents_kafka.counting._labels import Labels

MAX_BINS: Final = 240
_MOST_LABELS: Final = 32  # of one bin
# Each divides the next: seconds, minutes, hours, 1 to 364 days, and more for times in other units.
WIDTHS: Final[tuple[int, ...]] = tuple(
    accumulate((1000, 5, 3, 4, 5, 3, 4, 3, 2, 2, 2, 7, 4, 13, *(10,) * 8), mul)
)
"""The possible widths of bins, in milliseconds."""
# A window leaves out a few times that are further away than this number of spans of nearly all times.
_AWAY: Final = 2


class TimeWindow(NamedTuple):
    """Adjacent bins of one width, their first millisecond, and the counts of earlier and later times."""

    start: int
    width: int
    bins: list[Labels[str]]
    before: int
    after: int


class TimeHistogram:
    """Counts of times by label and bin; the times are in milliseconds since the epoch.

    The module's docstring states how exact the counts are.
    """

    def __init__(self, width: int = WIDTHS[0]) -> None:
        self.width = width
        self._bins: dict[int, Labels[str]] = {}

    def add(self, time: int, label: str, number: int = 1) -> None:
        """Count a time."""
        self._bin(time // self.width).add(label, number)
        self._widen()

    def bins(self) -> Iterator[tuple[int, Labels[str]]]:
        """Yield the first millisecond and the counts of each bin that is not empty, in ascending order."""
        yield from ((number * self.width, labels) for number, labels in sorted(self._bins.items()))

    def _bin(self, number: int) -> Labels[str]:
        return self._bins.setdefault(number, Labels(_MOST_LABELS))

    def _widen(self) -> None:
        """Make the bins wider until at most `MAX_BINS` bins are not empty."""
        while len(self._bins) > MAX_BINS:
            before, self._bins = list(self.bins()), {}
            self.width = WIDTHS[WIDTHS.index(self.width) + 1]
            for time, labels in before:
                self._bin(time // self.width).merge(labels)

    def window(self, most: int) -> TimeWindow:
        """Return at most ``most`` adjacent bins, without a few times that are far from all other times."""
        found = [(time, labels, labels.total) for time, labels in self.bins()]
        first, last = _span([(time, count) for time, _, count in found])
        fits = (width for width in WIDTHS if width >= self.width and last // width - first // width < most)
        width = next(fits, WIDTHS[-1])
        start = first // width * width
        bins = [Labels[str](_MOST_LABELS) for _ in range(start, last + 1, width)]
        for time, labels, _ in found:
            if first <= time <= last:
                bins[(time - start) // width].merge(labels)
        before = sum(count for time, _, count in found if time < first)
        after = sum(count for time, _, count in found if time > last)
        return TimeWindow(start, width, bins, before, after)


def _span(times: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the first and the last of sorted ``times``, without a few times that are far from the others."""
    if not times:
        return 0, -1
    sums = list(accumulate(count for _, count in times))
    few = max(sums[-1] // 100, min(2, sums[-1] // 8))
    first = next(time for (time, _), so_far in zip(times, sums, strict=True) if so_far > few)
    last = next(time for (time, _), so_far in zip(times, sums, strict=True) if so_far >= sums[-1] - few)
    length = _AWAY * (last - first + WIDTHS[0])
    near = [time for time, _ in times if first - length <= time <= last + length]
    return near[0], near[-1]
