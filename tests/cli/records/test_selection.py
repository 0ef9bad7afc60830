"""Filters of `consume`."""

from __future__ import annotations

import pytest

from cloudevents_kafka import Event, Record, decode, to_record
from cloudevents_kafka.cli.records.selection import Filter
from tests.support.cases import each

EVENT = decode(
    to_record(
        Event(id="1", source="/a/b", type="order.placed", sampledrate=5, flag=True),
        headers=[("x", b"1"), ("x", b"2"), ("n", None), ("b", b"\xff")],
        key="customer-7",
    )
)
OTHER = decode(Record(headers=[("x", b"1")], key=b"\xff-7", value=b'{"order": 17}\n'))
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
    (Filter(keys=["customer-7"]), True, False),
    (Filter(keys=["x", "*-7"]), True, True),
    (Filter(keys=["?-7"]), False, True),
    (Filter(keys=["Customer-7"]), False, False),
    (Filter(values=["*17*"]), False, True),
    (Filter(values=["*"]), False, True),  # null has no text
    (Filter(keys=["*-7"], values=["*18*"]), False, False),
]


@each(("filter_", "event", "other"), FILTERS)
def test_filters(filter_, event, other):
    """All conditions on attributes and headers must match; other records have no attributes."""
    assert filter_.matches(EVENT) is event
    assert filter_.matches(OTHER) is other


NOT_ATTRIBUTES = [
    ("key=c-4", "pass --key GLOB"),
    ("value=x", "pass --value GLOB"),
    ("data.order=17", "pass --value GLOB, or filter the JSON lines of consume, as by jq"),
    ("data=17", "pass --value GLOB"),
    ("$.order=17", "filter the JSON lines of consume, as by jq"),
    ("order[0]=17", "filter the JSON lines of consume, as by jq"),
    ("offset=4", "pass --from N"),
    ("partition=0", "pass -p N"),
    ("topic=t", "pass -t TOPIC"),
    ("timestamp=1", "pass --from @TIME"),
    ("headers=x", "pass --header NAME=VALUE"),
    ("trace-id=1", "pass --header NAME=VALUE"),
    ("ce_key=1", "pass --header NAME=VALUE"),
    ("ce_type=order.placed", "write type=order.placed"),
    ("ce-type=x", "write type=x"),
    ("partitionKey=c-4", "write partitionkey=c-4"),
]


@pytest.mark.parametrize("command", ["consume", "stats", "replay"])
@pytest.mark.parametrize(("where", "advice"), NOT_ATTRIBUTES)
def test_what_is_not_an_attribute_has_an_option(run, command, where, advice):
    """A name that no attribute can have is refused, with the option that chooses by it."""
    result = run(command, "-b", "127.0.0.1:1", "-t", "t", "--where", where)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"NAME must be an attribute of events, got {where.partition('=')[0]!r}; " in result.stderr
    assert advice in result.stderr
