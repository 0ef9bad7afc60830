"""Positions in a partition."""

from __future__ import annotations

import pytest

from cloudevents_kafka.cli.kafka.reader import Position, parse_position, resolve_offset

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
    """Every form of the grammar is parsed; a time between two milliseconds is rounded up."""
    assert parse_position(text) == position


@pytest.mark.parametrize(
    "text", ["", "begin", "+1", "-0", "--1", "1.5", "٣", "@", "@-1", "@yesterday", "@2026-11-21", "9" * 30]
)
def test_invalid_positions(text):
    """Other text raises an error with the grammar."""
    with pytest.raises(ValueError, match="must be earliest, latest, N"):
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


@pytest.mark.parametrize(("position", "known", "offset"), RESOLVED)
def test_offsets_are_within_the_watermarks(position, known, offset):
    """A position resolves to an offset of the partition, or to its end."""
    assert resolve_offset(position, (5, 9), known) == offset
