"""The epoch and timestamps in milliseconds."""

from __future__ import annotations

import pytest

from cloudevents_kafka.primitives.epoch import EPOCH, format_milliseconds
from tests.support.cases import each


@each(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1795262400123, "2026-11-21T12:00:00.123Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (-62135596800000, "0001-01-01T00:00:00.000Z"),
    ],
)
def test_milliseconds_as_text(milliseconds: int, text: str) -> None:
    """Milliseconds since 1970 are an RFC 3339 text in UTC."""
    assert EPOCH.isoformat() == "1970-01-01T00:00:00+00:00"
    assert format_milliseconds(milliseconds) == text


@each("milliseconds", [253402300800000, -62135596800001, 2**63 - 1, -(2**63)])
def test_milliseconds_beyond_the_calendar(milliseconds: int) -> None:
    """A time outside of the years 1 to 9999 raises OverflowError."""
    with pytest.raises(OverflowError):
        format_milliseconds(milliseconds)
