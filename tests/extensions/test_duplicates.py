"""Duplicates: events with the same source and id are the same event."""

from __future__ import annotations

import strategies as make
from hypothesis import given

from cloudevents_kafka import Decoded, Event, Record, decode
from cloudevents_kafka.extensions import DuplicateTracker

EVENT = Event(id="1", source="/a", type="t")


def test_source_and_id_identify_events() -> None:
    """Only source and id identify an event, and they are not concatenated."""
    watch = DuplicateTracker()
    assert not watch.observe(EVENT)
    assert watch.observe(EVENT)
    assert watch.observe(EVENT.replace(type="other", data="more"))
    assert not watch.observe(EVENT.replace(id="2"))
    assert not watch.observe(EVENT.replace(source="/a1", id="1"))
    assert not watch.observe(EVENT.replace(source="/", id="a1"))


def test_a_bounded_number_is_kept() -> None:
    """The most recent events are kept; observing an event again makes it recent."""
    watch = DuplicateTracker(events=2)
    a, b, c = (EVENT.replace(id=id) for id in "abc")
    assert [watch.observe(event) for event in (a, b, a, c)] == [False, False, True, False]
    assert [watch.observe(event) for event in (a, b)] == [True, False]


@given(make.hostile_records())
def test_any_event_can_be_observed(record: Record) -> None:
    """Any event is a duplicate of itself, also one from lenient reading."""
    item = decode(record, lenient=True)
    if isinstance(item, Decoded):
        watch = DuplicateTracker()
        assert [watch.observe(item.event) for _ in range(2)] == [False, True]
