"""Numbers with their nouns."""

from __future__ import annotations


def count(number: int, thing: str) -> str:
    """Write ``1 record`` and ``2,000 records``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
