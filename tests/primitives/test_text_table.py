"""Tables as aligned text."""

from __future__ import annotations

from cloudevents_kafka.primitives.text_table import format_table


def test_aligned() -> None:
    """Numbers are aligned to the right, words to the left."""
    assert format_table(["a", "n"], [["x", "1,000"], ["long", "2"]]).splitlines() == [
        "  a         n",
        "  ----  -----",
        "  x     1,000",
        "  long      2",
    ]
