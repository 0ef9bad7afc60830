"""Ranges of versions, in the notation of Kafka's own definitions: ``0+``, ``2-5``, ``7``, ``none``."""

from __future__ import annotations

from typing import Final, NamedTuple

NEWEST: Final = 32767
"""The end of a range without one; versions are int16 on the wire."""


class Versions(NamedTuple):
    """A range of versions, both ends included; empty where ``first`` lies behind ``last``."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read ``0+``, ``2-5``, ``7`` or ``none``; ValueError for anything else."""
        if text == "none":
            return NONE
        if text.endswith("+"):
            return cls(int(text[:-1]), NEWEST)
        first, dash, last = text.partition("-")
        return cls(int(first), int(last if dash else first))

    def __contains__(self, version: object) -> bool:
        """Tell whether the range has this version."""
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        """Write the range as `parse` reads it."""
        if self.first > self.last:
            return "none"
        if self.last == NEWEST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def common(self, other: Versions) -> Versions:
        """Return the versions that are in both."""
        return Versions(max(self.first, other.first), min(self.last, other.last))


NONE: Final = Versions(0, -1)
ALL: Final = Versions(0, NEWEST)
