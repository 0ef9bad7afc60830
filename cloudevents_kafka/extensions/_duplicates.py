"""Duplicates: events that arrive again, by mistake or in a replay.

Source and id together identify an event (core: id). A signature covers both, but does not show
that an event was read before, so a consumer that must not process an event twice remembers
those that it has read (extension verifiability, Replay)::

    if not tracker.observe(verified.event):
        process(verified.event)
"""

from __future__ import annotations

from hashlib import sha256

from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window


class DuplicateTracker:
    """A memory of the most recent events, which finds those that arrive again.

    It keeps 32 bytes for each of the ``events`` that it observed last. Pass only verified events
    if other users could fill it.
    """

    def __init__(self, events: int = 100_000) -> None:
        self._observed: Window[bytes, None] = Window(events)

    def observe(self, event: Event) -> bool:
        """Return whether an event with this source and id was observed before, and remember it."""
        source, id = (sha256(text.encode()).digest() for text in (event.source, event.id))
        digest = sha256(source + id).digest()
        is_duplicate = digest in self._observed
        self._observed[digest] = None
        return is_duplicate
