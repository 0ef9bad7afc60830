"""Ranges of versions, in the notation of Kafka's own definitions: ``0+``, ``2-5``, ``7``, ``none``."""

from __future__ import annotations

from typing import Final, NamedTuple

NEWEST: Final = 32767
"""The end of an open range; versions are int16."""


class Versions(NamedTuple):
    """A range of versions, both ends included; empty if ``first > last``."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Return the range of a text (``0+``, ``2-5``, ``7`` or ``none``); raise `ValueError`."""
        if text == "none":
            return NONE
        if text.endswith("+"):
            return cls(int(text[:-1]), NEWEST)
        first, dash, last = text.partition("-")
        return cls(int(first), int(last if dash else first))

    def __contains__(self, version: object) -> bool:
        """Return whether the range contains a version."""
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        """Return the notation that `parse` accepts."""
        if self.first > self.last:
            return "none"
        if self.last == NEWEST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def common(self, other: Versions) -> Versions:
        """Return the versions in both ranges."""
        return Versions(max(self.first, other.first), min(self.last, other.last))


NONE: Final = Versions(0, -1)
ALL: Final = Versions(0, NEWEST)
