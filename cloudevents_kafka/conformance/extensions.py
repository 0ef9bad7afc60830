"""Cases of what is done with events that were read: moments, order, relations and size."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cloudevents_kafka.attributes.timestamps import to_datetime
from cloudevents_kafka.binding import from_record, to_record
from cloudevents_kafka.conformance.assertions import same
from cloudevents_kafka.conformance.dataset import Case
from cloudevents_kafka.conformance.modes import WAYS
from cloudevents_kafka.conformance.notation import as_event
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import (
    DuplicateTracker,
    SequenceTracker,
    fetch_data,
    is_expired,
    is_past_sunset,
    size_problem,
    store_data,
)

_IS_OVER: Final[dict[str, Callable[[Event, datetime], bool]]] = {
    "expirytime": is_expired,
    "deprecationsunset": is_past_sunset,
}


def _is_duplicate(one: Event, other: Event) -> bool:
    watch = DuplicateTracker()
    return not watch.observe(one) and watch.observe(other)


_RELATED: Final[dict[str, Callable[[Event, Event], bool]]] = {
    "duplicate": _is_duplicate,
    "effect": lambda cause, event: event.get("causationid") == cause.id,
}


def run_moment(case: Case) -> None:
    """Tell whether a moment that an event names has come."""
    name = case["attribute"]
    over = _IS_OVER[name](as_event(case["event"]), to_datetime(case["now"]))
    same(over, case["over"], f"whether {name} has come at {case['now']}")


def run_sequence(case: Case) -> None:
    """Tell how each event follows those of its source before it."""
    watch = SequenceTracker(attribute=case.get("attribute", "sequence"))
    steps = [watch.observe(as_event(event)) for event in case["events"]]
    same([step.order for step in steps], case["orders"], "how the events follow each other")
    same(sum(step.missing for step in steps), case.get("missing", 0), "how many are missing")


def run_relation(case: Case) -> None:
    """Tell, of two events as they arrive by each way, whether the second is so related to the first."""
    events = [as_event(event) for event in case["events"]]
    for mode, form in WAYS:
        first, second = (from_record(to_record(event, mode=mode, format=form)) for event in events)
        holds = _RELATED[case["relation"]](first, second)
        same(holds, case["holds"], f"after {form or mode}, whether {second} is {case['relation']} of {first}")


def run_size(case: Case) -> None:
    """Tell whether the largest encoding of an event is too large, and whether its data goes elsewhere."""
    event = as_event(case["event"])
    records = [to_record(event, mode=way["mode"], format=way.get("format")) for way in case["encodings"]]
    too_large = any(size_problem(record) is not None for record in records)
    same(too_large, case["too_large"], "whether one of its encodings is too large")
    if "referred" in case:
        same(_is_referred_to(event), case["referred"], "whether its data is referred to")


def _is_referred_to(event: Event) -> bool:
    """Tell whether an event goes without its data, which is then found where it says."""
    stored: list[bytes] = []

    def store(data: bytes) -> str:
        stored.append(data)
        return "/stored"

    sent = store_data(event, store)
    back = fetch_data(sent, lambda _: stored.pop())
    same(back.payload, event.payload, "the data in the end")
    return "dataref" in sent and sent.payload is None
