"""Duplicates: events that come twice, by mistake or because somebody sends them again.

Source and id together tell events apart (core: id), and a signature covers both, but
does not tell that an event was read before: who must not take one twice remembers what
was read (extension verifiability, Replay). ``if not watch.observe(verified.event): …``
"""

from __future__ import annotations

from hashlib import sha256

from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.bounded import Window


class DuplicateTracker:
    """Remembers which events were seen, and tells those that come again.

    It keeps 32 bytes for each of as many events as told, those seen last: enough of them
    for as long as somebody could send one again. Give it verified events alone where
    strangers could fill it.
    """

    def __init__(self, events: int = 100_000) -> None:
        self._seen: Window[bytes, None] = Window(events)

    def observe(self, event: Event) -> bool:
        """Tell whether an event of this source and id was seen before, and remember it."""
        source, id = (sha256(text.encode()).digest() for text in (event.source, event.id))
        name = sha256(source + id).digest()
        before = name in self._seen
        self._seen[name] = None
        return before
