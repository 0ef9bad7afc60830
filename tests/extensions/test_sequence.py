"""Sequences: texts that compare in the order of their events, and the gaps between them."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event
from cloudevents_kafka.extensions import SequenceTracker, Step, sequence_numbers


def event(sequence: str | None, source: str = "/") -> Event:
    return Event(id="1", source=source, type="t", sequence=sequence)


@given(st.integers(0, 10**6), st.integers(7, 30))
def test_numbers_compare_as_texts(start: int, digits: int) -> None:
    """Each number is after the one before it as a text, and next to it."""
    numbers = list(islice(sequence_numbers(start, digits), 20))
    assert [int(text) for text in numbers] == list(range(start, start + 20))
    assert numbers == sorted(set(numbers))
    watch = SequenceTracker()
    assert [watch.observe(event(text)).order for text in numbers] == ["first", *["next"] * 19]


def test_numbers_are_exhausted() -> None:
    """A number with another digit would be before the others as a text."""
    numbers = sequence_numbers(98, 2)
    assert [next(numbers), next(numbers)] == ["98", "99"]
    for _ in range(2):
        with pytest.raises(OverflowError, match="no more numbers of 2 digits"):
            next(numbers)


@pytest.mark.parametrize(("start", "digits"), [(-1, 3), (1000, 3), (1, 0), (0, 0), (0, -1)])
def test_a_start_that_does_not_fit_is_refused(start: int, digits: int) -> None:
    """A wrong start is refused by the call, not by the first iteration."""
    with pytest.raises(ValueError, match="start must be from 0"):
        sequence_numbers(start, digits)


def test_threads_share_the_numbers() -> None:
    """Threads that share an iterator get each number once."""
    numbers = sequence_numbers()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            taken = list(pool.map(lambda _: list(islice(numbers, 2000)), range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert sorted(int(text) for texts in taken for text in texts) == list(range(1, 8001))


@pytest.mark.parametrize(
    ("texts", "last"),
    [
        (["1"], Step("first")),
        (["001", "002"], Step("next")),
        (["001", "005"], Step("gap", 3)),
        (["001", "001"], Step("same")),
        (["002", "001"], Step("earlier")),
        (["1", "3", "2"], Step("earlier")),
        (["1", "3", "2", "4"], Step("next")),
        (["9", "10"], Step("earlier")),
        (["1", "20"], Step("later")),
        (["a", "b"], Step("later")),
        (["٣", "٤"], Step("later")),
        (["1" * 5000, "2" * 5000], Step("later")),
        (["1", None], Step("unnumbered")),
    ],
)
def test_the_order_of_events(texts: list[Any], last: Step) -> None:
    """Only between numbers of the same length is a gap known."""
    watch = SequenceTracker()
    assert [watch.observe(event(text)) for text in texts][-1] == last


def test_each_source_has_its_own() -> None:
    """Each source has its own sequence, and a bounded number of sources is kept."""
    watch = SequenceTracker(sources=2)
    assert [watch.observe(event("1", source)).order for source in ("/a", "/b", "/a", "/c")] == [
        "first",
        "first",
        "same",
        "first",
    ]
    assert watch.observe(event("2", "/a")).order == "next"
    assert watch.observe(event("2", "/b")).order == "first"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1)))
def test_any_texts_are_compared(texts: list[str]) -> None:
    """Any texts are compared with the highest so far."""
    watch = SequenceTracker()
    furthest = ""
    for text in texts:
        order = watch.observe(event(text)).order
        assert (order in {"first", "next", "gap", "later"}) is (text > furthest)
        assert (order == "same") is (text == furthest)
        furthest = max(furthest, text)
