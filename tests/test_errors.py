"""The error tree, and what errors say and keep to themselves."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest

import cloudevents_kafka
from cloudevents_kafka import (
    BrokenEvent,
    CloudEventsKafkaError,
    ConsumeError,
    DataError,
    DecodeError,
    DeliveryError,
    EncodeError,
    InvalidEvent,
    NotAnEvent,
    Problem,
    Record,
    UnsupportedBatch,
    UnsupportedFormat,
)
from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.errors import preview

RECORD = Record(value=b"secret", headers=[("a", b"b")], topic="orders", partition=3, offset=7)
PROBLEMS = (
    Problem("time", "must be an RFC 3339 timestamp", "T-12", "'noon'"),
    Problem(None, "is odd", "J-01"),
)
ERRORS: list[CloudEventsKafkaError] = [
    InvalidEvent(PROBLEMS),
    EncodeError("no"),
    DataError("no JSON"),
    DecodeError("why", RECORD, "do this"),
    NotAnEvent("why", RECORD),
    BrokenEvent(PROBLEMS, RECORD),
    BrokenEvent(PROBLEMS, RECORD, "mend it"),
    UnsupportedFormat("application/cloudevents+xyz", RECORD, "register it"),
    UnsupportedBatch("application/cloudevents-batch+json", RECORD),
    DeliveryError("queue full"),
    ConsumeError("broker gone", "orders[3]@7"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickle_and_copy(error: CloudEventsKafkaError) -> None:
    """An error that crosses a process says the same and holds the same."""
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert repr(again) == repr(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_have_one_root_and_tell_no_data(error: CloudEventsKafkaError) -> None:
    """One except clause catches all; none shows the record's value."""
    assert isinstance(error, CloudEventsKafkaError)
    assert "secret" not in f"{error} {error!r}"


def test_a_broken_event_is_both_undecodable_and_invalid() -> None:
    """It can be caught as a DecodeError, as an InvalidEvent and as a ValueError."""
    error = BrokenEvent(PROBLEMS, RECORD)
    assert isinstance(error, DecodeError)
    assert isinstance(error, InvalidEvent)
    assert isinstance(error, ValueError)
    assert error.problems == PROBLEMS
    assert error.record is RECORD


def test_a_message_says_where_what_which_rule_and_what_next() -> None:
    """The four parts of an error's text stand in one line."""
    text = str(BrokenEvent(PROBLEMS, RECORD, "mend it"))
    assert text == (
        "orders[3]@7: broken CloudEvent: "
        "time: must be an RFC 3339 timestamp, got 'noon' (T-12, core: Type System, Timestamp); "
        "is odd (J-01, JSON format 2); mend it"
    )
    assert "\n" not in text


def test_a_message_is_no_longer_for_a_flood_of_problems() -> None:
    """A stranger decides how many rules a record breaks, and how long its names are: not how long we talk."""
    flood = [Problem("x" * 1000, "is odd", "J-01", "'x'")] * 1000
    for error in (InvalidEvent(flood), BrokenEvent(flood, RECORD)):
        assert len(error.problems) == 1000
        assert len(str(error)) < 3000
        assert str(error).endswith("; and 980 more")
        assert len(str(pickle.loads(pickle.dumps(error)))) < 3000


def test_a_name_cannot_pretend_to_be_another_line() -> None:
    """Names come from strangers too: what a log or a terminal would obey is spelled out."""
    assert str(Problem("a\n\x1b[2Jb", "is odd", "J-01")) == r"'a\n\x1b[2Jb': is odd (J-01, JSON format 2)"


def test_each_clause_that_the_code_names_is_known() -> None:
    """No error can fail for want of a clause's section."""
    sources = Path(cloudevents_kafka.__file__).parent
    used = {
        clause
        for path in (*sources.glob("*.py"), *sources.glob("formats/*.py"))
        for clause in re.findall(r'"([A-Z]{1,2}-\d\d)"', path.read_text(encoding="utf-8"))
    }
    assert used <= SECTIONS.keys()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "'x'"),
        (b"\xff", "b'\\xff'"),
        ("x" * 61, "'" + "x" * 59 + "…"),
        ("x" * 10**6, "'" + "x" * 59 + "…"),
        (5, "5"),
        (10**5000, "a number of 16610 bits"),
        ([[]] * 7, "a list of 7"),
        ({"a": 1}, "a dict of 1"),
        (None, "None"),
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_values_are_shown_short(value: object, text: str) -> None:
    """However long, large or deep a value is, what an error shows of it is short."""
    assert preview(value) == text
    assert len(preview(value)) <= 61
