"""Severities: names of numbers, and sources that use a name or number in two ways."""

from __future__ import annotations

from typing import Any

import pytest
import strategies as make
from hypothesis import given

from cloudevents_kafka import Decoded, Event, Record, decode
from cloudevents_kafka.extensions import SeverityTracker, severity_name


def event(number: int | None, text: str | None = None, source: str = "/") -> Event:
    return Event(id="1", source=source, type="t", severitynumber=number, severitytext=text)


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
    assert severity_name(event(number, text)) == name


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
    problems = [watch.observe(event(number, text)) for number, text in pairs]
    assert [problem.attribute for problem in problems if problem] == reported
    assert {problem.clause for problem in problems if problem} <= {"X-24"}


def test_each_source_has_severities_of_its_own() -> None:
    """A bounded number of sources and of their pairs is kept."""
    watch = SeverityTracker(sources=2, pairs=2)
    assert watch.observe(event(9, "INFO", "/a")) is None
    assert watch.observe(event(9, "Notice", "/b")) is None
    assert watch.observe(event(10, "INFO", "/a")) is not None
    assert watch.observe(event(9, "info", "/c")) is None
    assert watch.observe(event(9, "NOTE", "/b")) is None  # forgotten: /a was seen later
    assert watch.observe(event(17, "ERROR", "/b")) is None
    assert watch.observe(event(21, "FATAL", "/b")) is None
    assert watch.observe(event(21, "ALERT", "/b")) is None  # two pairs are all that is kept


@given(make.hostile_records())
def test_any_event_can_be_observed(record: Record) -> None:
    """Any event can be observed, also one from lenient reading."""
    item = decode(record, lenient=True)
    if isinstance(item, Decoded):
        severity_name(item.event)
        assert SeverityTracker().observe(item.event) is None


def test_an_invalid_number_has_no_name() -> None:
    """A text in place of a number, from lenient reading, has no name."""
    headers = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/"), ("ce_type", b"t")]
    item = decode(Record(headers=[*headers, ("ce_severitynumber", b"high")]), lenient=True)
    assert isinstance(item, Decoded)
    assert severity_name(item.event) is None
