"""Numbers with their nouns."""

from __future__ import annotations


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 record``, ``2,000 records``; ``plural`` is for ``entries``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
