"""Numbers with their nouns, for messages."""

from __future__ import annotations


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 record``, ``2,000 records``.

    The default plural ends in s; pass ``"batches"``, or ``"events were"`` for ``"event was"``.
    """
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"
