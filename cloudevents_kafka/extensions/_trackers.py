"""Trackers, which observe the events of many sources: duplicates, sequences, severities.

A tracker remembers a bounded number of sources or events, those that it observed last. Threads may share it.
`sequence_numbers` and `severity_name` are the producer's side of two extensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from threading import Lock
from typing import Final, Literal

import msgspec

from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window
from cloudevents_kafka.primitives.preview import preview

_MAX_DIGITS: Final = 100  # digits of a number: converting takes quadratic time

_ONE_NUMBER: Final = "should be used with {} as before, since in a source a text belongs to one number"

SEVERITY_NAMES: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""The recommended names; each covers four numbers, the first from 1 to 4."""

Order = Literal["unnumbered", "first", "next", "gap", "later", "same", "earlier"]
"""The position of an event after the highest sequence of its source so far.

``first``: the source had no sequence so far. ``next``: the next number. ``gap``: a number after the next one.
``later``: higher, but the two are not numbers of equal length. ``same``: a duplicate, or two events with one
sequence. ``earlier``: a late event, or a duplicate. ``unnumbered``: the event has no sequence.
"""


class DuplicateTracker:
    """A memory of the most recent events, which finds events that arrive again, also in a replay.

    Source and id identify an event (core: id). The tracker needs 32 bytes for each of the ``events`` that it
    observed last. If others could fill it with events of their own, pass only verified events. A signature
    covers source and id, but does not show whether an event was read before (verifiability, Replay).

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import DuplicateTracker
        >>> seen = DuplicateTracker()
        >>> [seen.observe(Event(id=id, source="/shop", type="order.placed")) for id in ("1", "2", "1")]
        [False, False, True]
    """

    def __init__(self, events: int = 100_000) -> None:
        self._observed: Window[bytes, None] = Window(events)
        self._lock = Lock()

    def observe(self, event: Event) -> bool:
        """Return whether an event with this source and id was observed before, and remember it."""
        source, id = (sha256(text.encode()).digest() for text in (event.source, event.id))
        digest = sha256(source + id).digest()
        with self._lock:
            is_duplicate = digest in self._observed
            self._observed[digest] = None
        return is_duplicate


def sequence_numbers(start: int = 1, digits: int = 19) -> Iterator[str]:
    """Return an iterator of consecutive numbers as texts of a fixed length, since sequences compare as text.

    Use it as ``event.replace(sequence=next(numbers))``. Threads may share it: no number occurs twice. Raises
    `ValueError` if ``start`` is negative or has more than ``digits`` digits. Iteration raises `OverflowError`
    after the highest number.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import sequence_numbers
        >>> numbers = sequence_numbers(digits=6)
        >>> [Event(id=id, source="/shop", type="t", sequence=next(numbers))["sequence"] for id in "ab"]
        ['000001', '000002']
    """
    if digits < 1 or not 0 <= start < 10**digits:
        raise ValueError(f"start must be from 0 to below 10^{digits}, with digits above 0, got {start}")

    def padded(number: int) -> str:
        if number >= 10**digits:
            raise OverflowError(f"the sequence has no more numbers of {digits} digits")
        return f"{number:0{digits}}"

    return map(padded, count(start))  # not a generator, which threads cannot share


class Step(msgspec.Struct, frozen=True):
    """The position of an event after the earlier ones; ``missing`` is the number of events in a ``gap``.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import SequenceTracker
        >>> tracker, event = SequenceTracker(), Event(id="1", source="/shop", type="t", sequence="1")
        >>> tracker.observe(event), tracker.observe(event.replace(sequence="4"))
        (Step(order='first', missing=0), Step(order='gap', missing=2))
    """

    order: Order
    missing: int = 0


class SequenceTracker:
    """A tracker of the sequence of each source, which finds gaps, duplicates and late events.

    It stores one text for each of the ``sources`` that it observed last; the next event of a source that was
    dropped is ``first`` again. ``attribute`` may be another attribute that counts, such as ``bamtxid``; all
    events of a transaction have the ``same``.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import SequenceTracker
        >>> tracker = SequenceTracker()
        >>> events = [Event(id=number, source="/", type="t", sequence=number) for number in ("1", "2", "5")]
        >>> [tracker.observe(event).order for event in events]
        ['first', 'next', 'gap']
    """

    def __init__(self, sources: int = 10_000, *, attribute: str = "sequence") -> None:
        self._attribute = attribute
        self._highest: Window[str, str] = Window(sources)
        self._lock = Lock()

    def observe(self, event: Event) -> Step:
        """Return the position of an event after the highest sequence of its source, and remember it."""
        text = event.text(self._attribute)
        if text is None:
            return Step("unnumbered")
        with self._lock:
            highest = self._highest.get(event.source)
            self._highest[event.source] = text if highest is None else max(highest, text)
        return Step("first") if highest is None else _step(highest, text)


def _step(highest: str, text: str) -> Step:
    if text <= highest:  # sequences are compared by character
        return Step("same" if text == highest else "earlier")
    if not (_is_number(highest) and _is_number(text) and len(highest) == len(text)):
        return Step("later")
    missing = int(text) - int(highest) - 1
    return Step("gap", missing) if missing else Step("next")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def severity_name(event: Event) -> str | None:
    """Return the event's ``severitytext``, or the short name of its ``severitynumber``, or None.

    The short names of 1 to 24 are OpenTelemetry's: 9 is INFO, 10 is INFO2.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import severity_name
        >>> severity_name(Event(id="1", source="/shop", type="t", severitynumber=10))
        'INFO2'
    """
    number = _number(event)
    if "severitytext" in event or number is None or not 1 <= number <= 4 * len(SEVERITY_NAMES):
        return event.text("severitytext")
    name, step = divmod(number - 1, 4)
    return f"{SEVERITY_NAMES[name]}{step + 1}" if step else SEVERITY_NAMES[name]


class SeverityTracker:
    """A tracker of the severities of each source, which finds contradictions.

    A contradiction is a text with two numbers, or a number with two texts.

    The first use of a text or number counts. It stores the first ``pairs`` of text and number of each of the
    ``sources`` that it observed last.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import SeverityTracker
        >>> tracker = SeverityTracker()
        >>> event = Event(id="1", source="/shop", type="t", severitynumber=9, severitytext="INFO")
        >>> tracker.observe(event) is None
        True
        >>> problem = tracker.observe(event.replace(severitytext="NOTICE"))
        >>> problem and problem.clause
        'X-24'
    """

    def __init__(self, sources: int = 10_000, pairs: int = 100) -> None:
        self._known: Window[str, tuple[dict[str, int], dict[int, str]]] = Window(sources)
        self._pairs = pairs
        self._lock = Lock()

    def observe(self, event: Event) -> Problem | None:
        """Return the problem of an event that contradicts its source (X-24), or None, and remember it."""
        text, number = event.text("severitytext"), _number(event)
        if text is None or number is None:
            return None
        with self._lock:
            return self._compare(event.source, text, number)

    def _compare(self, source: str, text: str, number: int) -> Problem | None:
        numbers, texts = self._known.get(source) or ({}, {})
        self._known[source] = (numbers, texts)
        if texts.get(number, text) != text:
            return Problem("severitytext", _ONE_NUMBER.format(preview(texts[number])), "X-24", preview(text))
        if numbers.get(text, number) != number:
            return Problem("severitynumber", _ONE_NUMBER.format(numbers[text]), "X-24", preview(number))
        if len(numbers) < self._pairs:
            numbers[text], texts[number] = number, text
        return None


def _number(event: Event) -> int | None:
    number = event.get("severitynumber")
    return number if isinstance(number, int) and not isinstance(number, bool) else None
