"""Severities: their names, and sources that use a name or number in two ways (extension severity)."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.errors import Problem, preview
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window

SEVERITY_NAMES: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""The recommended names; each covers four numbers, the first from 1 to 4."""

_RULE: Final = "should be used with {} at this source, as before: a text belongs to one number"


def severity_name(event: Event) -> str | None:
    """Return the event's ``severitytext``, or the short name of its ``severitynumber``, or None.

    The short names of 1 to 24 are OpenTelemetry's: 9 is INFO, 10 is INFO2.
    """
    number = _number(event)
    if "severitytext" in event or number is None or not 1 <= number <= 4 * len(SEVERITY_NAMES):
        return event.text("severitytext")
    name, step = divmod(number - 1, 4)
    return f"{SEVERITY_NAMES[name]}{step + 1}" if step else SEVERITY_NAMES[name]


class SeverityTracker:
    """A tracker of the severities of each source, where a text belongs to one number and the reverse.

    The first use of a text or number counts. It keeps the first ``pairs`` of text and number of each
    of the ``sources`` that it observed last.
    """

    def __init__(self, sources: int = 10_000, pairs: int = 100) -> None:
        self._known: Window[str, tuple[dict[str, int], dict[int, str]]] = Window(sources)
        self._pairs = pairs

    def observe(self, event: Event) -> Problem | None:
        """Return the problem of an event that contradicts its source (X-24), or None, and remember it."""
        text, number = event.text("severitytext"), _number(event)
        if text is None or number is None:
            return None
        numbers, texts = self._known.get(event.source) or ({}, {})
        self._known[event.source] = (numbers, texts)
        if texts.get(number, text) != text:
            return Problem("severitytext", _RULE.format(preview(texts[number])), "X-24", preview(text))
        if numbers.get(text, number) != number:
            return Problem("severitynumber", _RULE.format(numbers[text]), "X-24", preview(number))
        if len(numbers) < self._pairs:
            numbers[text], texts[number] = number, text
        return None


def _number(event: Event) -> int | None:
    number = event.get("severitynumber")
    return number if isinstance(number, int) and not isinstance(number, bool) else None
