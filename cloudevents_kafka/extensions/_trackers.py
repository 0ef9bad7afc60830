"""Trackers find duplicate events, gaps in sequences, and contradictory severities, for many sources at once.

A tracker stores only a limited number of the most recent sources or events. Threads may share a tracker.
`sequence_numbers` and `severity_name` return values for the extensions sequence and severity.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from threading import Lock
from typing import Final, Literal

import msgspec

from cloudevents_kafka.attributes.types import INTEGER_RANGE
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window
from cloudevents_kafka.primitives.preview import preview

_MAX_DIGITS: Final = 100  # digits of a number: converting takes quadratic time

_ONE_NUMBER: Final = "should be used with {} as in earlier events: each text of a source has one number"

SEVERITY_NAMES: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""The recommended names of severities: each name covers four numbers, the first name 1 to 4."""

Order = Literal["unnumbered", "first", "next", "gap", "later", "same", "earlier"]
"""The position of an event relative to the highest sequence of its source so far.

``first``: the source had no sequence so far. ``next``: the sequence is the next number. ``gap``: the sequence
is a higher number than the next number. ``later``: the sequence is higher than the highest sequence, but the
two are not numbers of equal length. ``same``: the event is a duplicate, or has the same sequence as another
event. ``earlier``: the event is late, or is a duplicate. ``unnumbered``: the event has no sequence.
"""


class DuplicateTracker:
    """A tracker of recent events; it recognizes an event that arrives again, for example in a replay.

    The source and the id together identify an event (core, id). The tracker stores 32 bytes for each of the
    last ``events`` events that it observed. If untrusted senders could fill the tracker with their events,
    verify each event before you pass it to the tracker. A signature covers the source and the id of an event,
    but does not show that an event is sent again (verifiability, Replay).

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
        """Return whether an event with the same source and id was observed before; store this event."""
        source, id = (sha256(text.encode()).digest() for text in (event.source, event.id))
        digest = sha256(source + id).digest()
        with self._lock:
            is_duplicate = digest in self._observed
            self._observed[digest] = None
        return is_duplicate


def sequence_numbers(start: int = 1, digits: int = 19) -> Iterator[str]:
    """Return an iterator of consecutive numbers, as texts of equal length that sort like the numbers.

    Set a sequence with ``event.replace(sequence=next(numbers))``. Threads may share the iterator: no number
    occurs twice. Raises `ValueError` if ``start`` is negative or has more than ``digits`` digits. Iteration
    raises `OverflowError` after the highest number.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import sequence_numbers
        >>> numbers = sequence_numbers(digits=6)
        >>> [Event(id=id, source="/shop", type="t", sequence=next(numbers))["sequence"] for id in "ab"]
        ['000001', '000002']
    """
    if digits < 1 or not 0 <= start < 10**digits:
        raise ValueError(f"start must be at least 0 and below 10^{digits}, and digits above 0, got {start}")

    def padded(number: int) -> str:
        if number >= 10**digits:
            raise OverflowError(f"the sequence has no more numbers of {digits} digits")
        return f"{number:0{digits}}"

    return map(padded, count(start))  # not a generator, which threads cannot share


class Step(msgspec.Struct, frozen=True):
    """The position of an event in its source's sequence; ``missing`` counts the missing events before it.

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
    """A tracker of each source's sequence; it finds gaps, duplicates and late events.

    The tracker stores one text for each of the last ``sources`` sources that it observed. If the tracker has
    forgotten a source, the next event of this source has the order ``first`` again. ``attribute`` may be the
    name of another attribute whose values increase, such as ``bamtxid``. With ``bamtxid``, every later event
    of a transaction has the order ``same``. Integers are compared as numbers, and texts by character (X-03):
    the text ``10`` is earlier than the text ``9``.

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
        """Compare an event with the highest sequence of its source; return the position of the event.

        If the sequence of this event is the highest sequence of its source, the tracker stores this sequence.
        """
        text = event.text(self._attribute)
        if text is None:
            return Step("unnumbered")
        value = event[self._attribute]
        if type(value) is int:  # texts of one length have the order of their numbers
            text = f"{value - INTEGER_RANGE.start:010}"
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

    The numbers 1 to 24 have the short names of OpenTelemetry: 9 is INFO, and 10 is INFO2.

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
    """A tracker of the severities that each source uses; it finds contradictions.

    A contradiction is a severity text that a source uses with two numbers, or a number that it uses with two
    texts.

    The pair in which a text or number first occurs is regarded as correct. The tracker stores the first
    ``pairs`` pairs of text and number for each of the last ``sources`` sources that it observed.

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
        """Return a problem if the event contradicts earlier events of its source (X-24), else None.

        If the event does not contradict earlier events, the tracker stores its severity, up to the limits.
        """
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
