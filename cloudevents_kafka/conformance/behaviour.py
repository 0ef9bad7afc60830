"""Cases of what extensions ask for beyond their values: moments that come, and numbers that follow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cloudevents_kafka.conformance.judging import same
from cloudevents_kafka.conformance.library import Case
from cloudevents_kafka.conformance.notation import as_event
from cloudevents_kafka.event import Event
from cloudevents_kafka.expiry import is_expired, is_past_sunset
from cloudevents_kafka.sequence import SequenceWatch
from cloudevents_kafka.timestamps import to_datetime

_IS_OVER: Final[dict[str, Callable[[Event, datetime], bool]]] = {
    "expirytime": is_expired,
    "deprecationsunset": is_past_sunset,
}


def run_moment(case: Case) -> None:
    """Tell whether a moment that an event names has come."""
    name = case["attribute"]
    over = _IS_OVER[name](as_event(case["event"]), to_datetime(case["now"]))
    same(over, case["over"], f"whether {name} has come at {case['now']}")


def run_sequence(case: Case) -> None:
    """Tell how each event follows those of its source before it."""
    watch = SequenceWatch()
    steps = [watch.see(as_event(event)) for event in case["events"]]
    same([step.order for step in steps], case["orders"], "how the events follow each other")
    same(sum(step.missing for step in steps), case.get("missing", 0), "how many are missing")
