"""Filters on attributes and headers."""

from __future__ import annotations

import pytest

from cloudevents_kafka import Event, Record, decode, to_record
from cloudevents_kafka.cli.records import Filter

EVENT = decode(
    to_record(
        Event(id="1", source="/a/b", type="order.placed", sampledrate=5, flag=True),
        headers=[("x", b"1"), ("x", b"2"), ("n", None), ("b", b"\xff")],
    )
)
OTHER = decode(Record(headers=[("x", b"1")]))
FILTERS = [
    (Filter(), True, True),
    (Filter(globs={"type": ["order.*"], "source": (), "subject": ()}), True, False),
    (Filter(globs={"type": ["Order.*"]}), False, False),
    (Filter(globs={"type": ["a", "*.placed"], "source": ["/a/?"]}), True, False),
    (Filter(globs={"type": ["order.*"], "source": ["/x"]}), False, False),
    (Filter(globs={"subject": ["*"]}), False, False),
    (Filter(attributes=[("sampledrate", "5"), ("flag", "true")]), True, False),
    (Filter(attributes=[("sampledrate", "05")]), False, False),
    (Filter(attributes=[("none", "")]), False, False),
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
