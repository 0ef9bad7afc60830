"""A histogram of times is bounded for any times, and its bins are exact."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.counting import TimeHistogram
from cloudevents_kafka.counting._times import MAX_BINS, WIDTHS

DAY = 86_400_000
NOW = 1_795_262_400_000
NEAR = st.integers(NOW, NOW + 3 * DAY)
ANY = st.integers(-(2**63), 2**63 - 1)


def histogram(times):
    found = TimeHistogram()
    for time in times:
        found.add(time, "t")
    return found


@given(st.lists(NEAR | ANY, max_size=400), st.randoms())
def test_law_of_times(times, random):
    """There are at most so many bins, of the narrowest width for which they suffice, each exact."""
    shuffled = list(times)
    random.shuffle(shuffled)
    found = histogram(shuffled)
    width = next(width for width in WIDTHS if len({time // width for time in times}) <= MAX_BINS)
    expected = Counter(time // width * width for time in times)
    assert found.width == width
    assert [(time, labels.total) for time, labels in found.bins()] == sorted(expected.items())


@given(st.lists(NEAR | ANY, max_size=300), st.integers(8, 60))
def test_windows_have_all_that_is_not_away(times, most):
    """A window has few bins without gaps; what is in them, before and after comes to all."""
    window = histogram(times).window(most)
    assert len(window.bins) <= most
    assert sum(labels.total for labels in window.bins) + window.before + window.after == len(times)
    assert window.before + window.after <= max(2 * (len(times) // 100), 4)


def test_widths_divide_each_other():
    """Each width divides the next, so that bins join to bins."""
    assert all(wide % narrow == 0 and wide > narrow for narrow, wide in itertools.pairwise(WIDTHS))


def test_one_time_far_away_changes_no_other():
    """One event of the year 9999 is counted outside of a window; the others keep their bins."""
    near = [NOW + n * 60_000 for n in range(60)]
    window = histogram([*near, 253_402_300_799_000]).window(60)
    assert (window.start, window.width, window.before, window.after) == (NOW, 60_000, 0, 1)
    assert [labels.total for labels in window.bins] == [1] * 60


def test_an_empty_histogram_has_an_empty_window():
    """Without times a window has no bins."""
    assert histogram([]).window(10).bins == []
