"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from cloudevents_kafka.primitives.plural import pluralize


@pytest.mark.parametrize(
    ("number", "nouns", "text"),
    [
        (0, ("record",), "0 records"),
        (1, ("record",), "1 record"),
        (2000, ("record",), "2,000 records"),
        (1, ("batch", "batches"), "1 batch"),
        (3, ("batch", "batches"), "3 batches"),
        (1, ("event was", "events were"), "1 event was"),
        (2, ("event was", "events were"), "2 events were"),
    ],
)
def test_pluralize(number: int, nouns: tuple[str, ...], text: str) -> None:
    """A noun is singular for 1 only; large numbers have separators."""
    assert pluralize(number, *nouns) == text
