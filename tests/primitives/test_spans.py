"""Spans of time are read from texts."""

from __future__ import annotations

import pytest

from cloudevents_kafka.primitives.spans import parse_span
from tests.support.cases import each


@each(
    ("text", "seconds"),
    [("30s", 30), ("90m", 5400), ("1h", 3600), ("1 hour", 3600), ("7 days", 604_800), ("2 min", 120)],
)
def test_spans(text: str, seconds: int) -> None:
    """A number and a unit are a span in seconds."""
    assert parse_span(text, "within") == seconds


@each("text", ["", "1", "h", "1 month", "-1h", "1.5h", "1h ", "\uff11h", "9" * 10 + "s"])
def test_no_spans(text: str) -> None:
    """Any other text is refused, with itself in the message."""
    with pytest.raises(ValueError, match=r"^within must be .* such as 90m, 1h or 7 days, got"):
        parse_span(text, "within")
