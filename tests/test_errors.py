"""The exceptions: their tree, their messages, and the data that messages leave out."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

import cloudevents_kafka
from cloudevents_kafka import (
    BrokenData,
    BrokenEvent,
    CloudEventsKafkaError,
    ConsumeError,
    DataError,
    DecodeError,
    DeliveryError,
    EncodeError,
    Event,
    InvalidEvent,
    NotAnEvent,
    Problem,
    Record,
    UnsupportedBatch,
    UnsupportedFormat,
    errors,
)
from cloudevents_kafka.extensions import signing
from cloudevents_kafka.primitives.preview import preview
from tests.support.cases import each

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
    BrokenData("data is not JSON", RECORD, Event(id="1", source="/s", type="t")),
    BrokenEvent(PROBLEMS, RECORD),
    BrokenEvent(PROBLEMS, RECORD, "mend it"),
    UnsupportedFormat("application/cloudevents+xyz", RECORD, "register it"),
    UnsupportedBatch("application/cloudevents-batch+json", RECORD),
    DeliveryError("queue full"),
    ConsumeError("broker gone", "orders[3]@7"),
]


@each("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickle_and_copy(error: CloudEventsKafkaError) -> None:
    """A pickled or copied error has the same type, message and attributes."""
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert repr(again) == repr(error)
        assert vars(again) == vars(error)


@each("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_have_one_root_and_contain_no_data(error: CloudEventsKafkaError) -> None:
    """Every error derives from the root, and no message contains the record's value."""
    assert isinstance(error, CloudEventsKafkaError)
    assert "secret" not in f"{error} {error!r}"


def test_a_broken_event_is_both_undecodable_and_invalid() -> None:
    """BrokenEvent is a DecodeError, an InvalidEvent and a ValueError."""
    error = BrokenEvent(PROBLEMS, RECORD)
    assert isinstance(error, DecodeError)
    assert isinstance(error, InvalidEvent)
    assert isinstance(error, ValueError)
    assert error.problems == PROBLEMS
    assert error.record is RECORD


def test_a_message_has_position_value_rule_and_hint() -> None:
    """The message of a DecodeError is one line with its four parts."""
    text = str(BrokenEvent(PROBLEMS, RECORD, "mend it"))
    assert text == (
        "orders[3]@7: broken CloudEvent: "
        "time: must be an RFC 3339 timestamp, got 'noon' (T-12, core: Type System, Timestamp); "
        "is odd (J-01, JSON format 2); mend it"
    )
    assert "\n" not in text


def test_a_message_is_bounded() -> None:
    """The message stays short for any number of problems and any length of names."""
    flood = [Problem("x" * 1000, "is odd", "J-01", "'x'")] * 1000
    for error in (InvalidEvent(flood), BrokenEvent(flood, RECORD)):
        assert len(error.problems) == 1000
        assert len(str(error)) < 3000
        assert str(error).endswith("; and 980 more")
        assert len(str(pickle.loads(pickle.dumps(error)))) < 3000


def test_an_unprintable_name_is_escaped() -> None:
    """A line break or terminal sequence in a name does not reach a log."""
    assert str(Problem("a\n\x1b[2Jb", "is odd", "J-01")) == r"'a\n\x1b[2Jb': is odd (J-01, JSON format 2)"


def test_a_problem_has_the_section_of_its_clause() -> None:
    """The section is that of the list of clauses."""
    assert Problem("id", "must not be empty", "R-02").section == "core: id"


@each(
    ("error", "verdict", "clauses"),
    [
        (NotAnEvent("why", RECORD), "not-an-event", ("K-11",)),
        (BrokenEvent((*PROBLEMS, PROBLEMS[0]), RECORD), "broken-event", ("T-12", "J-01")),
        (BrokenData("data is not JSON", RECORD, Event(id="1", source="/s", type="t")), "broken-data", ()),
        (UnsupportedFormat("application/cloudevents+xyz", RECORD), "unsupported-format", ("K-10",)),
        (UnsupportedBatch("application/cloudevents-batch+json", RECORD), "batch", ("K-01",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_decode_error_has_a_verdict_and_clauses(
    error: DecodeError, verdict: str, clauses: tuple[str, ...]
) -> None:
    """Each DecodeError has its verdict, and its clauses once each, in a message and as attributes."""
    assert (error.verdict, error.clauses) == (verdict, clauses)
    assert bool(error.problems) == isinstance(error, BrokenEvent)
    assert all(clause in str(error) or verdict == "not-an-event" for clause in clauses)


def test_the_docstring_draws_the_tree() -> None:
    """The drawing in `errors` has every public exception, below its base class."""
    pytest.importorskip("pyspark")
    from cloudevents_kafka.spark import pipeline

    public = {**vars(cloudevents_kafka), **vars(signing), **vars(pipeline)}
    classes = {
        name: value
        for name, value in public.items()
        if isinstance(value, type) and issubclass(value, CloudEventsKafkaError)
    }
    drawn = re.findall(r"^    ([│ ]*)[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE)
    parents = ["CloudEventsKafkaError"]
    for indent, name in drawn:
        level = len(indent) // 4
        parents[level + 1 :] = [name]
        assert parents[level] in {base.__name__ for base in classes[name].__bases__}
    assert {name for _, name in drawn} == classes.keys() - {"CloudEventsKafkaError"}


@each(
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
def test_a_preview_is_short(value: object, text: str) -> None:
    """The preview of a long, large or deep value has at most 61 characters."""
    assert preview(value) == text
    assert len(preview(value)) <= 61
