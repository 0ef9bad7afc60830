"""Positions in a topic, as users write them."""

from __future__ import annotations

import pytest

from cloudevents_kafka.positions import Position, parse_position
from tests.support.cases import each

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
    ("@1969-12-31T23:59:59.999Z", Position("time", 0)),
    ("@2026-11-21", Position("time", 1795219200000)),
    ("-90s", Position("time", 1795262310000)),
    ("-15m", Position("time", 1795261500000)),
    ("-1h", Position("time", 1795258800000)),
    ("-7d", Position("time", 1794657600000)),
    ("-0s", Position("time", 1795262400000)),
    ("-999999999d", Position("time", 0)),
]
NOON = 1795262400.0


@pytest.mark.parametrize(("text", "position"), POSITIONS)
def test_positions(text, position, monkeypatch):
    """Every form of the grammar is parsed; a time between two milliseconds is rounded up."""
    monkeypatch.setattr("time.time", lambda: NOON)
    assert parse_position(text) == position


@each(
    "text",
    [
        *("", "begin", "+1", "-0", "--1", "1.5", "٣", "@", "@-1", "@yesterday", "9" * 30),
        *(
            "-1w",
            "-h",
            "1h",
            "-1.5h",
            "-1h30m",
            "-1 hour",
            "@-1h",
            "@2026-11-31",
            "@2026-11",
            "@2026-11-21T12:00",
        ),
        *("-٣h", "-9999999999s", "@2026-11-21Z"),
    ],
)
def test_invalid_positions(text):
    """Other text raises an error with the grammar."""
    with pytest.raises(ValueError, match="must be earliest, latest, N"):
        parse_position(text)


def test_seconds_are_no_position():
    """A time in seconds would be a day of January 1970, so that reading would start at the first record."""
    with pytest.raises(
        ValueError, match="must be in milliseconds, got seconds, '@1795262400'; write @1795262400000"
    ):
        parse_position("@1795262400")


POSITIONS_IN_ORDER = [
    ["earliest", "5", "9", "latest"],
    ["earliest", "-9", "-5", "latest"],
    ["earliest", "@0", "@2026-11-21", "@2026-11-21T12:00:00Z", "-1d", "-1h", "@9999999999999999", "latest"],
]


def test_an_end_before_the_start_is_refused():
    """Positions that are in order in each partition are, and no others; equal ones are an empty range."""
    for row in POSITIONS_IN_ORDER:
        places = list(map(parse_position, row))
        for begin, first in enumerate(places):
            assert not first.is_after(parse_position(row[begin]))
            assert [first.is_after(last) for last in places[:begin]] == [True] * begin, row[begin]
            assert not any(first.is_after(last) for last in places[begin:])
    for begin, end in (("5", "-5"), ("-5", "@0"), ("stored", "earliest"), ("latest", "stored"), ("@0", "7")):
        assert not parse_position(begin).is_after(parse_position(end))


def test_positions_are_printed_as_they_are_written():
    """The text of a position is a position again."""
    for text, position in [*POSITIONS, ("@9999999999999999", Position("time", 9999999999999999))]:
        assert parse_position(str(position)) == position, text
