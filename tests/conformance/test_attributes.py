"""Attribute by attribute: what one door refuses, all doors refuse."""

from __future__ import annotations

import pytest

from cloudevents_kafka import Event, InvalidEvent, from_record, to_record

from .entries import Attempt, attempts
from .judging import faults, judge_attribute
from .loading import Case, all_cases

ENTRIES = [
    pytest.param(case, attempt, id=f"{case['id']} {door}")
    for case in all_cases()
    if case["kind"] == "attribute"
    for door, attempt in attempts(case)
]


@pytest.mark.parametrize(("case", "attempt"), ENTRIES)
def test_attribute(case: Case, attempt: Attempt) -> None:
    """A value is accepted or refused by constructor, headers, JSON and Avro alike."""
    if case["accepted"]:
        _judge_accepted(attempt(), case)
        return
    with pytest.raises(InvalidEvent) as caught:
        attempt()
    fault = case.get("fault", case["attribute"])
    if fault is not None:
        assert faults(caught.value.problems) == {fault}


def _judge_accepted(event: Event, case: Case) -> None:
    name = case["attribute"]
    if case.get("absent"):
        assert name not in event
        assert event.get(name) is None
        return
    judge_attribute(event, name, case.get("text", case.get("value")))
    if "typed" in case:
        judge_attribute(event, name, case["typed"])
    for mode in ("binary", "structured"):
        assert from_record(to_record(event, mode=mode)).text(name) == event.text(name)
