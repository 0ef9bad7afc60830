"""Sequences: the order of the events of a source (extension sequence).

Sequences compare as text, so numbers are padded with zeros, and only within one source. That
they are consecutive is a recommendation; gaps can be found between numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final, Literal

import msgspec

from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window

_MAX_DIGITS: Final = 100  # of a number; to convert a longer one takes quadratic time

Order = Literal["unnumbered", "first", "next", "gap", "later", "same", "earlier"]
"""The position of an event after the highest sequence of its source so far.

``first``: the source had none. ``next``: the next number. ``gap``: a number beyond the next.
``later``: higher, but not both are numbers of equal length. ``same``: a duplicate, or two events
with one sequence. ``earlier``: late, or a duplicate. ``unnumbered``: the event has no sequence.
"""


def sequence_numbers(start: int = 1, digits: int = 19) -> Iterator[str]:
    """Return an iterator of consecutive numbers as texts of a fixed length.

    Use it as ``event.replace(sequence=next(numbers))``. Threads may share it: no number occurs
    twice. Raises `ValueError` if ``start`` is negative or does not fit the ``digits``; iteration
    raises `OverflowError` when the digits are exhausted.
    """
    if digits < 1 or not 0 <= start < 10**digits:
        raise ValueError(f"start must be from 0 to below 10^{digits}, with digits above 0, got {start}")

    def padded(number: int) -> str:
        if number >= 10**digits:
            raise OverflowError(f"the sequence has no more numbers of {digits} digits")
        return f"{number:0{digits}}"

    return map(padded, count(start))  # not a generator, which threads cannot share


class Step(msgspec.Struct, frozen=True):
    """The position of an event after those before it; ``missing`` is the number of events in a ``gap``."""

    order: Order
    missing: int = 0


class SequenceTracker:
    """A tracker of the sequence of each source, which finds gaps, duplicates and late events.

    It keeps one text for each of the ``sources`` that it observed last; the next event of a
    source that was dropped is ``first`` again. ``attribute`` may be another one that counts in
    this way, such as ``bamtxid``, which is the ``same`` in all events of a transaction.
    """

    def __init__(self, sources: int = 10_000, *, attribute: str = "sequence") -> None:
        self._attribute = attribute
        self._highest: Window[str, str] = Window(sources)

    def observe(self, event: Event) -> Step:
        """Return the position of an event after the highest sequence of its source, and remember it."""
        text = event.text(self._attribute)
        if text is None:
            return Step("unnumbered")
        highest = self._highest.get(event.source)
        self._highest[event.source] = text if highest is None else max(highest, text)
        return Step("first") if highest is None else _step(highest, text)


def _step(highest: str, text: str) -> Step:
    if text <= highest:
        return Step("same" if text == highest else "earlier")
    if not (_is_number(highest) and _is_number(text) and len(highest) == len(text)):
        return Step("later")
    missing = int(text) - int(highest) - 1
    return Step("gap", missing) if missing else Step("next")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
