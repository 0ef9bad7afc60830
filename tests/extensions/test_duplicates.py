"""Duplicates: the same source and id is the same event, whatever else it says."""

from __future__ import annotations

import strategies as make
from hypothesis import given

from cloudevents_kafka import Decoded, Event, Record, decode
from cloudevents_kafka.extensions import DuplicateTracker

EVENT = Event(id="1", source="/a", type="t")


def test_source_and_id_tell_events_apart() -> None:
    """Nothing else does, and the two are not mixed up."""
    watch = DuplicateTracker()
    assert not watch.observe(EVENT)
    assert watch.observe(EVENT)
    assert watch.observe(EVENT.replace(type="other", data="more"))
    assert not watch.observe(EVENT.replace(id="2"))
    assert not watch.observe(EVENT.replace(source="/a1", id="1"))
    assert not watch.observe(EVENT.replace(source="/", id="a1"))


def test_a_bounded_number_is_remembered() -> None:
    """Those seen last; one that is seen again is seen last."""
    watch = DuplicateTracker(events=2)
    a, b, c = (EVENT.replace(id=id) for id in "abc")
    assert [watch.observe(event) for event in (a, b, a, c)] == [False, False, True, False]
    assert [watch.observe(event) for event in (a, b)] == [True, False]


@given(make.hostile_records())
def test_any_event_can_be_watched(record: Record) -> None:
    """What lenient reading let pass too is itself when it comes again."""
    item = decode(record, lenient=True)
    if isinstance(item, Decoded):
        watch = DuplicateTracker()
        assert [watch.observe(item.event) for _ in range(2)] == [False, True]
