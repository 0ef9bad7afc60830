"""Select records by globs on attributes, by attribute values and by headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that a record must all meet.

    ``globs`` maps attribute names to globs, of which one must match; ``attributes`` are names with
    their exact text; ``headers`` are names with the value of one such header, or None for any value.
    """

    globs: Mapping[str, Sequence[str]] = {}
    attributes: Sequence[tuple[str, str]] = ()
    headers: Sequence[tuple[str, bytes | None]] = ()

    @property
    def needs_event(self) -> bool:
        """Whether only events can match, since a condition is on attributes."""
        return bool(self.attributes) or any(self.globs.values())

    def matches(self, item: Decoded | Undecodable) -> bool:
        """Return whether a record meets all conditions."""
        if not all(_has_header(item.record, name, value) for name, value in self.headers):
            return False
        if not self.needs_event:
            return True
        return isinstance(item, Decoded) and self._matches_event(item.event)

    def _matches_event(self, event: Event) -> bool:
        return all(event.text(name) == value for name, value in self.attributes) and all(
            _matches_glob(event.text(name), globs) for name, globs in self.globs.items() if globs
        )


def _matches_glob(text: str | None, globs: Sequence[str]) -> bool:
    return text is not None and any(fnmatchcase(text, glob) for glob in globs)


def _has_header(record: Record, name: str, value: bytes | None) -> bool:
    return any(n == name and (value is None or v == value) for n, v in record.headers)
