"""Cases of extensions and of events that were read: moments, sequences, relations and sizes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cloudevents_kafka.attributes.timestamps import to_datetime
from cloudevents_kafka.binding import from_record, to_record
from cloudevents_kafka.conformance._assertions import require_equal
from cloudevents_kafka.conformance._vectors import (
    MODES_AND_FORMATS,
    MomentCase,
    RelationCase,
    SequenceCase,
    SizeCase,
)
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
    tracker = DuplicateTracker()
    return not tracker.observe(one) and tracker.observe(other)


_IS_RELATED: Final[dict[str, Callable[[Event, Event], bool]]] = {
    "duplicate": _is_duplicate,
    "effect": lambda cause, event: event.get("causationid") == cause.id,
}


def run_moment(case: MomentCase) -> None:
    """Check whether the moment of an event is over."""
    name = case.attribute
    over = _IS_OVER[name](as_event(case.event), to_datetime(case.now))
    require_equal(over, case.over, f"whether {name} is over at {case.now}")


def run_sequence(case: SequenceCase) -> None:
    """Check how each event follows the earlier events of its source."""
    tracker = SequenceTracker(attribute=case.attribute or "sequence")
    steps = [tracker.observe(as_event(event)) for event in case.events]
    require_equal([step.order for step in steps], case.orders, "the order of the events")
    require_equal(sum(step.missing for step in steps), case.missing, "the number of missing events")


def run_relation(case: RelationCase) -> None:
    """Check, in each mode and format, whether the second event is related to the first."""
    events = [as_event(event) for event in case.events]
    for mode, format in MODES_AND_FORMATS:
        first, second = (from_record(to_record(event, mode=mode, format=format)) for event in events)
        holds = _IS_RELATED[case.relation](first, second)
        what = f"after {format or mode}, whether {second} is {case.relation} of {first}"
        require_equal(holds, case.holds, what)


def run_size(case: SizeCase) -> None:
    """Check whether an encoding of an event is too large, and whether its data is stored elsewhere."""
    event = as_event(case.event)
    records = [to_record(event, mode=one.mode, format=one.format) for one in case.encodings]
    too_large = any(size_problem(record) is not None for record in records)
    require_equal(too_large, case.too_large, "whether an encoding is too large")
    if case.referred is not None:
        require_equal(_has_dataref(event), case.referred, "whether the data is stored elsewhere")


def _has_dataref(event: Event) -> bool:
    """Return whether the data of an event is stored elsewhere, after fetching it back."""
    stored: list[bytes] = []

    def store(data: bytes) -> str:
        stored.append(data)
        return "/stored"

    sent = store_data(event, store)
    fetched = fetch_data(sent, lambda _: stored.pop())
    require_equal(fetched.payload, event.payload, "the fetched data")
    return "dataref" in sent and sent.payload is None
