"""Sequences: the order of a source's events (extension sequence).

The texts compare by their characters, so numbers are padded with zeros. They are to be
compared within one source only. That they follow each other without a gap is what the
extension recommends, and no more: gaps can be seen between numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Literal

import msgspec

from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window

Order = Literal["unnumbered", "first", "next", "gap", "later", "same", "earlier"]
"""How an event follows the furthest of its source so far.

``next`` is the next number and ``gap`` a number beyond it; ``later`` is behind it where
that cannot be told. ``same`` is a duplicate, or two events with one text; ``earlier``
is late, or was read before. ``unnumbered`` has no sequence, ``first`` is the source's first.
"""


def sequence_numbers(start: int = 1, digits: int = 19) -> Iterator[str]:
    """Count in texts of as many digits, which follow each other as their numbers do.

    ``event.replace(sequence=next(numbers))``; threads may share it, and no number comes
    twice. `ValueError` for no digits, and for a start that is negative or does not fit;
    `OverflowError`, each time, where the digits do not suffice any more.
    """
    if digits < 1 or not 0 <= start < 10**digits:
        raise ValueError(f"a sequence of {digits} digits starts at 0 or above, and below 10^{digits}")

    def padded(number: int) -> str:
        if number >= 10**digits:
            raise OverflowError(f"the sequence has no more numbers of {digits} digits")
        return f"{number:0{digits}}"

    return map(padded, count(start))  # not a generator, which only one thread at a time may ask


class Step(msgspec.Struct, frozen=True):
    """How an event follows those before it; of a ``gap``, how many are ``missing``."""

    order: Order
    missing: int = 0


class SequenceTracker:
    """Watches the sequence of each source, and tells gaps, duplicates and late events.

    It remembers one text for each of as many sources as told, those seen last: a source
    that was forgotten has its ``first`` event again. Another ``attribute`` may count so
    as well, such as ``bamtxid``, which is the ``same`` in all events of a transaction.
    """

    def __init__(self, sources: int = 10_000, *, attribute: str = "sequence") -> None:
        self._attribute = attribute
        self._furthest: Window[str, str] = Window(sources)

    def observe(self, event: Event) -> Step:
        """Tell how an event follows the furthest of its source, and remember it."""
        text = event.text(self._attribute)
        if text is None:
            return Step("unnumbered")
        before = self._furthest.get(event.source)
        self._furthest[event.source] = text if before is None else max(before, text)
        return Step("first") if before is None else _step(before, text)


def _step(before: str, text: str) -> Step:
    if text <= before:
        return Step("same" if text == before else "earlier")
    if not (_is_number(before) and _is_number(text) and len(before) == len(text)):
        return Step("later")
    missing = int(text) - int(before) - 1
    return Step("gap", missing) if missing else Step("next")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 100  # longer ones take their time
