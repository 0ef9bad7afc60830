"""Trackers: events that arrive again, gaps in sequences, and severities used in two ways."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Decoded, Event, Record, decode
from cloudevents_kafka.extensions import (
    DuplicateTracker,
    SequenceTracker,
    SeverityTracker,
    Step,
    sequence_numbers,
    severity_name,
)
from tests.support import strategies as make
from tests.support.cases import each

EVENT = Event(id="1", source="/a", type="t")


def numbered(sequence: str | None, source: str = "/") -> Event:
    return EVENT.replace(source=source, sequence=sequence)


def severe(number: int | None, text: str | None = None, source: str = "/") -> Event:
    return EVENT.replace(source=source, severitynumber=number, severitytext=text)


@given(make.hostile_records())
def test_any_event_can_be_observed(record: Record) -> None:
    """Any event can be observed, also one from lenient reading."""
    item = decode(record, lenient=True)
    if isinstance(item, Decoded):
        severity_name(item.event)
        assert SeverityTracker().observe(item.event) is None
        duplicates = DuplicateTracker()
        assert [duplicates.observe(item.event) for _ in range(2)] == [False, True]


def test_source_and_id_identify_events() -> None:
    """Only source and id identify an event, and they are not concatenated."""
    watch = DuplicateTracker()
    assert not watch.observe(EVENT)
    assert watch.observe(EVENT)
    assert watch.observe(EVENT.replace(type="other", data="more"))
    assert not watch.observe(EVENT.replace(id="2"))
    assert not watch.observe(EVENT.replace(source="/a1", id="1"))
    assert not watch.observe(EVENT.replace(source="/", id="a1"))


def test_a_bounded_number_of_events_is_kept() -> None:
    """The most recent events are kept; observing an event again makes it recent."""
    watch = DuplicateTracker(events=2)
    a, b, c = (EVENT.replace(id=id) for id in "abc")
    assert [watch.observe(event) for event in (a, b, a, c)] == [False, False, True, False]
    assert [watch.observe(event) for event in (a, b)] == [True, False]


@given(st.integers(0, 10**6), st.integers(7, 30))
def test_numbers_compare_as_texts(start: int, digits: int) -> None:
    """Each number is after the one before it as a text, and next to it."""
    numbers = list(islice(sequence_numbers(start, digits), 20))
    assert [int(text) for text in numbers] == list(range(start, start + 20))
    assert numbers == sorted(set(numbers))
    watch = SequenceTracker()
    assert [watch.observe(numbered(text)).order for text in numbers] == ["first", *["next"] * 19]


def test_numbers_are_exhausted() -> None:
    """A number with another digit would be before the others as a text."""
    numbers = sequence_numbers(98, 2)
    assert [next(numbers), next(numbers)] == ["98", "99"]
    for _ in range(2):
        with pytest.raises(OverflowError, match="no more numbers of 2 digits"):
            next(numbers)


@each(("start", "digits"), [(-1, 3), (1000, 3), (1, 0), (0, 0), (0, -1)])
def test_a_start_that_does_not_fit_is_refused(start: int, digits: int) -> None:
    """A wrong start is refused by the call, not by the first iteration."""
    with pytest.raises(ValueError, match="start must be at least 0"):
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
    assert [watch.observe(numbered(text)) for text in texts][-1] == last


def test_integers_are_compared_as_numbers() -> None:
    """Integers may have signs and any number of digits; a Boolean is compared by its text."""
    watch = SequenceTracker(attribute="number")
    numbers = (-(2**31), -10, -9, 9, 10, 10, 12, 3, 2**31 - 1)
    events = [Event(id="1", source="/", type="t", number=number) for number in numbers]
    orders = [watch.observe(event).order for event in events]
    assert orders == ["first", "gap", "next", "gap", "next", "same", "gap", "earlier", "gap"]
    assert [
        watch.observe(Event(id="1", source="/b", type="t", number=flag)).order for flag in (False, True)
    ] == [
        "first",
        "later",
    ]


def test_each_source_has_its_own_sequence() -> None:
    """Each source has its own sequence, and a bounded number of sources is kept."""
    watch = SequenceTracker(sources=2)
    assert [watch.observe(numbered("1", source)).order for source in ("/a", "/b", "/a", "/c")] == [
        "first",
        "first",
        "same",
        "first",
    ]
    assert watch.observe(numbered("2", "/a")).order == "next"
    assert watch.observe(numbered("2", "/b")).order == "first"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1)))
def test_any_texts_are_sequences(texts: list[str]) -> None:
    """Any texts are compared with the highest so far."""
    watch = SequenceTracker()
    furthest = ""
    for text in texts:
        order = watch.observe(numbered(text)).order
        assert (order in {"first", "next", "gap", "later"}) is (text > furthest)
        assert (order == "same") is (text == furthest)
        furthest = max(furthest, text)


@pytest.mark.parametrize(
    ("number", "text", "name"),
    [
        (None, None, None),
        (9, "Information", "Information"),
        (1, None, "TRACE"),
        (2, None, "TRACE2"),
        (4, None, "TRACE4"),
        (5, None, "DEBUG"),
        (9, None, "INFO"),
        (13, None, "WARN"),
        (20, None, "ERROR4"),
        (21, None, "FATAL"),
        (24, None, "FATAL4"),
        (0, None, None),
        (25, None, None),
    ],
)
def test_a_number_has_a_name(number: int | None, text: str | None, name: str | None) -> None:
    """The name is the severitytext, else OpenTelemetry's short name for 1 to 24."""
    assert severity_name(severe(number, text)) == name


@pytest.mark.parametrize(
    ("pairs", "reported"),
    [
        ([(9, "INFO"), (17, "ERROR"), (9, "INFO")], []),
        ([(9, "INFO"), (9, "Information")], ["severitytext"]),
        ([(9, "INFO"), (10, "INFO")], ["severitynumber"]),
        ([(9, "INFO"), (17, "ERROR"), (9, "ERROR")], ["severitytext"]),
        ([(9, None), (9, "INFO"), (None, None)], []),
    ],
)
def test_each_text_belongs_to_one_number(pairs: list[Any], reported: list[str]) -> None:
    """Within a source a text belongs to one number and the reverse; the first use counts."""
    watch = SeverityTracker()
    problems = [watch.observe(severe(number, text)) for number, text in pairs]
    assert [problem.attribute for problem in problems if problem] == reported
    assert {problem.clause for problem in problems if problem} <= {"X-24"}


def test_each_source_has_severities_of_its_own() -> None:
    """A bounded number of sources and of their pairs is kept."""
    watch = SeverityTracker(sources=2, pairs=2)
    assert watch.observe(severe(9, "INFO", "/a")) is None
    assert watch.observe(severe(9, "Notice", "/b")) is None
    assert watch.observe(severe(10, "INFO", "/a")) is not None
    assert watch.observe(severe(9, "info", "/c")) is None
    assert watch.observe(severe(9, "NOTE", "/b")) is None  # forgotten: /a was seen later
    assert watch.observe(severe(17, "ERROR", "/b")) is None
    assert watch.observe(severe(21, "FATAL", "/b")) is None
    assert watch.observe(severe(21, "ALERT", "/b")) is None  # two pairs are all that is kept


def test_an_invalid_number_has_no_name() -> None:
    """A text in place of a number, from lenient reading, has no name."""
    headers = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/"), ("ce_type", b"t")]
    item = decode(Record(headers=[*headers, ("ce_severitynumber", b"high")]), lenient=True)
    assert isinstance(item, Decoded)
    assert severity_name(item.event) is None
