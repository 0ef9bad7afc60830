"""Counts by label keep a bounded number of labels, and stay true."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.counting import Labels, limit_labels, limit_nested
from cloudevents_kafka.primitives.bounded import OTHERS
from tests.support.cases import each

NAMES = st.sampled_from("abcdefghijkl")
MOST = st.integers(1, 5)


@given(st.lists(st.lists(st.tuples(NAMES, st.integers(1, 9)), max_size=30), max_size=5), MOST, st.randoms())
def test_law_of_labels(histories, most, random):
    """Sums are exact, and a label has at most its count, and at most the share of the others less."""
    true = Counter()
    parts = []
    for history in histories:
        part = Labels(most)
        for label, number in history:
            part.add(label, number)
            true[label] += number
        parts.append(part)
    random.shuffle(parts)
    while len(parts) > 1:  # merged in any order, as a tree of any form
        one = parts.pop(random.randrange(len(parts)))
        parts[random.randrange(len(parts))].merge(one)
    labels = parts[0] if parts else Labels(most)
    found, others = labels.most_common(most)
    counts = dict(found)
    assert labels.total == sum(counts.values()) + others == true.total()
    assert len(counts) <= most
    for label, number in true.items():
        assert number - others / (most + 1) <= counts.get(label, 0) <= number
    if len(true) <= most:
        assert (counts, others) == (dict(true), 0)


@given(st.lists(st.dictionaries(NAMES | st.just(OTHERS), st.integers(1, 9)), max_size=6), st.integers(2, 5))
def test_law_of_limited_counts(histories, most):
    """Counts in a dictionary obey the same law, in which the others are one of its labels."""
    true, counts = Counter(), {}
    for history in histories:
        true += Counter(history)
        counts = limit_labels(Counter(counts) + Counter(history), most)
    assert len(counts) <= most
    assert sum(counts.values()) == true.total()
    for label in true.keys() - {OTHERS}:
        assert true[label] - counts.get(OTHERS, 0) / most <= counts.get(label, 0) <= true[label]


@given(
    st.lists(st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(1, 9), max_size=6)), max_size=5), MOST
)
def test_nested_counts_keep_their_sums(histories, most):
    """Counts of two labels keep the sum of all, and no label has more than was counted."""
    most += 1
    counts, true, inner_true = {}, Counter(), Counter()
    for history in histories:
        merged = {outer: Counter(counts.get(outer, {})) for outer in counts.keys() | history.keys()}
        for outer, inner in history.items():
            merged[outer] += Counter(inner)
            true[outer] += sum(inner.values())
            inner_true += Counter(inner)
        counts = limit_nested(merged, most)
        assert len(counts) <= most
        assert all(len(inner) <= most for inner in counts.values())
    assert sum(sum(inner.values()) for inner in counts.values()) == true.total()
    for outer in true:
        assert sum(counts.get(outer, {}).values()) <= true[outer]
    if len(inner_true) <= most:  # then the sums of inner labels are exact, too
        found = sum((Counter(inner) for inner in counts.values()), Counter())
        assert found == inner_true


def test_a_frequent_label_that_comes_late_is_there():
    """A label that was not among the first is found when it is frequent, also next to frequent first ones."""
    labels = Labels(10)
    for number in range(10):
        labels.add(f"early {number}", 100)
    for _ in range(100):
        labels.add("late", 50)
        for number in range(30):
            labels.add(f"rare {number}")
    assert labels.most_common(1)[0][0][0] == "late"


def test_labels_are_bounded():
    """However many labels are added, few are kept at any time."""
    labels = Labels(10)
    for number in range(1000):
        labels.add(str(number))
        assert len(labels._counts) <= 20
    assert labels.most_common(3) == ([], 1000)


@each("number", [0, 1, 2])
def test_ties_are_in_order(number):
    """Labels with equal counts are in the order of their names."""
    labels = Labels()
    for name in "cab":
        labels.add(name)
    assert labels.most_common(number) == ([(name, 1) for name in "abc"[:number]], 3 - number)
