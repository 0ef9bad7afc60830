"""Severities: a name for each, and sources that name one in two ways (extension severity)."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.errors import Problem, preview
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window

SEVERITY_NAMES: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""The names that the document recommends; each stands for four numbers, from 1 on."""

_RULE: Final = "should go with {} at this source, as before: each text belongs to one number"


def severity_name(event: Event) -> str | None:
    """Return what to call an event's severity: its text, else the short name of its number.

    The short names are OpenTelemetry's for 1 to 24: INFO is 9, INFO2 is 10. None where
    there is neither.
    """
    number = _number(event)
    if "severitytext" in event or number is None or not 1 <= number <= 4 * len(SEVERITY_NAMES):
        return event.text("severitytext")
    name, step = divmod(number - 1, 4)
    return f"{SEVERITY_NAMES[name]}{step + 1}" if step else SEVERITY_NAMES[name]


class SeverityTracker:
    """Watches the severities of each source: a text should belong to one number, and a number to one text.

    What came first counts. It remembers as many sources as told, those seen last, and of
    each the first ``pairs`` of text and number.
    """

    def __init__(self, sources: int = 10_000, pairs: int = 100) -> None:
        self._known: Window[str, tuple[dict[str, int], dict[int, str]]] = Window(sources)
        self._pairs = pairs

    def observe(self, event: Event) -> Problem | None:
        """Tell what an event says otherwise than its source did before (X-24), and remember it."""
        text, number = event.text("severitytext"), _number(event)
        if text is None or number is None:
            return None
        numbers, texts = self._known.get(event.source) or ({}, {})
        self._known[event.source] = numbers, texts
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
