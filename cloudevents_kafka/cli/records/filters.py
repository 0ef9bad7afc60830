"""Which records are wanted: by globs on attributes, by attributes, by headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that all must hold; of several globs for one attribute, one must.

    ``globs`` are by attribute name, ``where`` are attributes and their exact text, and
    ``headers`` are names with the value that one such header must have, None for any.
    """

    globs: Mapping[str, Sequence[str]] = {}
    where: Sequence[tuple[str, str]] = ()
    headers: Sequence[tuple[str, bytes | None]] = ()

    @property
    def on_events(self) -> bool:
        """Whether a record that is no event cannot pass, having no attributes."""
        return bool(self.where) or any(self.globs.values())

    def passes(self, item: Decoded | Undecodable) -> bool:
        """Tell whether a record is wanted."""
        if not all(_has_header(item.record, name, value) for name, value in self.headers):
            return False
        if not self.on_events:
            return True
        return isinstance(item, Decoded) and self._fits(item.event)

    def _fits(self, event: Event) -> bool:
        return all(event.text(name) == value for name, value in self.where) and all(
            _matches(event.text(name), globs) for name, globs in self.globs.items() if globs
        )


def _matches(text: str | None, globs: Sequence[str]) -> bool:
    return text is not None and any(fnmatchcase(text, glob) for glob in globs)


def _has_header(record: Record, wanted: str, value: bytes | None) -> bool:
    return any(name == wanted and (value is None or held == value) for name, held in record.headers)
