"""Positions, filters and what a terminal may see."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event, Record, decode, to_record
from cloudevents_kafka.cli.kafka import Position, Watermarks, parse_position, resolve_offset
from cloudevents_kafka.cli.records import Filter, item_lines
from cloudevents_kafka.cli.records._text import timestamp_text
from cloudevents_kafka.cli.terminal import escape, escape_json, parse_pair

POSITIONS = [
    ("earliest", Position("earliest")),
    ("latest", Position("latest")),
    ("stored", Position("stored")),
    ("0", Position("offset", 0)),
    ("1741", Position("offset", 1741)),
    ("-10", Position("last", 10)),
    ("@1795262400000", Position("time", 1795262400000)),
    ("@2026-11-21T12:00:00Z", Position("time", 1795262400000)),
    ("@2026-11-21t13:00:00.1234+01:00", Position("time", 1795262400124)),
    ("@1969-12-31T23:59:59.999Z", Position("time", -1)),
]


@pytest.mark.parametrize(("text", "position"), POSITIONS)
def test_positions(text, position):
    """Every form of the grammar is read; a time between two milliseconds is the later one."""
    assert parse_position(text) == position


@pytest.mark.parametrize(
    "text", ["", "begin", "+1", "-0", "--1", "1.5", "٣", "@", "@-1", "@yesterday", "@2026-11-21", "9" * 30]
)
def test_no_positions(text):
    """Anything else is refused with the grammar."""
    with pytest.raises(ValueError, match="earliest, latest, N"):
        parse_position(text)


RESOLVED = [
    (Position("earliest"), None, 5),
    (Position("latest"), None, 9),
    (Position("offset", 7), None, 7),
    (Position("offset", 0), None, 5),
    (Position("offset", 99), None, 9),
    (Position("last", 3), None, 6),
    (Position("last", 99), None, 5),
    (Position("time", 1), 8, 8),
    (Position("time", 1), None, 9),
    (Position("stored"), 6, 6),
    (Position("stored"), 2, 5),
    (Position("stored"), None, 5),
]


@pytest.mark.parametrize(("position", "found", "offset"), RESOLVED)
def test_positions_mean_offsets_within_bounds(position, found, offset):
    """A position is an offset that the partition has, or its end."""
    assert resolve_offset(position, Watermarks(5, 9), found) == offset


ITEM = decode(
    to_record(
        Event(id="1", source="/a/b", type="order.placed", sampledrate=5, flag=True),
        headers=[("x", b"1"), ("x", b"2"), ("n", None), ("b", b"\xff")],
    )
)
STRANGER = decode(Record(headers=[("x", b"1")]))
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


@pytest.mark.parametrize(("condition", "event", "stranger"), FILTERS)
def test_filters(condition, event, stranger):
    """Conditions hold of attributes and headers; a record that is no event has no attributes."""
    assert condition.matches(ITEM) is event
    assert condition.matches(STRANGER) is stranger


def test_pairs():
    """Only the first equals sign divides a pair; a name there must be."""
    assert parse_pair("a=b=c") == ("a", "b=c")
    assert parse_pair("a=") == ("a", "")
    assert parse_pair("a", allow_name=True) == ("a", None)
    for text in ("=b", "", "a"):
        with pytest.raises(ValueError, match="name=value"):
            parse_pair(text)


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text):
    """Text is printable after it was made visible, and JSON is the same value."""
    shown = escape(text)
    assert not any(c in shown for c in "\x1b\x9b\x07\r\n\u202e\u2066\u200b\u2028\x7f")
    assert escape(shown) == shown
    written = json.dumps(text, ensure_ascii=False)
    assert json.loads(escape_json(written)) == text
    assert escape_json(written).isprintable() or not written.isprintable()


def test_plain_text_stays_as_it_is():
    """Letters of any script, symbols and spaces are not touched."""
    assert escape("Grüße, 你好 — 😀 ok") == "Grüße, 你好 — 😀 ok"


def test_records_as_text_hold_no_control_characters():
    """Whatever stands in a record, its text obeys nobody."""
    evil = b"\x1b]0;x\x07\xc2\x9b2J"
    record = Record(key=evil, value=evil, headers=[(evil.decode(), evil)], topic="\x1b[2J")
    event = to_record(
        Event(id="1", source="/", type="t", datacontenttype="text/plain", data=evil), headers=[("x", evil)]
    )
    for item in (decode(record), decode(event)):
        text = "".join(part for line in item_lines(item) for part, _ in line)
        assert text.isprintable()


def test_moments_out_of_range():
    """A timestamp that no date has is shown as the number it is."""
    assert timestamp_text(1795262400000) == "2026-11-21T12:00:00.000Z"
    assert timestamp_text(10**18) == str(10**18)
