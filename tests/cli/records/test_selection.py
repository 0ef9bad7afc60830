"""Filters of `consume`."""

from __future__ import annotations

import pytest

from cloudevents_kafka import Event, Record, decode, to_record
from cloudevents_kafka.cli.records.selection import Filter

EVENT = decode(
    to_record(
        Event(id="1", source="/a/b", type="order.placed", sampledrate=5, flag=True),
        headers=[("x", b"1"), ("x", b"2"), ("n", None), ("b", b"\xff")],
    )
)
OTHER = decode(Record(headers=[("x", b"1")]))
FILTERS = [
    (Filter(), True, True),
    (Filter(types=["order.*"]), True, False),
    (Filter(types=["Order.*"]), False, False),
    (Filter(types=["a", "*.placed"], sources=["/a/?"]), True, False),
    (Filter(types=["order.*"], sources=["/x"]), False, False),
    (Filter(subjects=["*"]), False, False),
    (Filter(where=[("sampledrate", "5"), ("flag", "true")]), True, False),
    (Filter(where=[("sampledrate", "05")]), False, False),
    (Filter(where=[("none", "")]), False, False),
    (Filter(headers=[("x", None)]), True, True),
    (Filter(headers=[("x", b"2")]), True, False),
    (Filter(headers=[("n", None)]), True, False),
    (Filter(headers=[("n", b"")]), False, False),
    (Filter(headers=[("b", b"\xff")]), True, False),
    (Filter(headers=[("X", None)]), False, False),
]


@pytest.mark.parametrize(("filter_", "event", "other"), FILTERS)
def test_filters(filter_, event, other):
    """All conditions on attributes and headers must match; other records have no attributes."""
    assert filter_.matches(EVENT) is event
    assert filter_.matches(OTHER) is other
