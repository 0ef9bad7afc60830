"""Positions in a topic as users write them: ``earliest``, an offset, ``-10``, or a time like ``-1h``."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Final, Literal

import msgspec

from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.primitives.epoch import EPOCH, MILLISECOND, format_milliseconds
from cloudevents_kafka.primitives.spans import parse_span

NAMED: Final = ("earliest", "latest", "stored")
"""The positions that have a name."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{10}", re.ASCII)  # from 2001 to 2286; as milliseconds, early in 1970
_LAST: Final = re.compile(r"-[1-9][0-9]{0,17}", re.ASCII)
_AGO: Final = re.compile(r"-[0-9]{1,9}[smhd]", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


class Position(msgspec.Struct, frozen=True):
    """A position in a topic, which applies to each of its partitions.

    ``number`` is an offset, a number of records before the end, or a time in milliseconds since the epoch, as
    ``kind`` says.
    """

    kind: Literal["earliest", "latest", "offset", "last", "time", "stored"]
    number: int = 0

    def is_after(self, end: Position) -> bool:
        """Return whether this position is after ``end`` in every partition."""
        if self.kind == end.kind:
            return self.number < end.number if self.kind == "last" else self.number > end.number
        ranks = {"earliest": -1, "latest": 1}
        return "stored" not in (self.kind, end.kind) and ranks.get(self.kind, 0) > ranks.get(end.kind, 0)

    def __str__(self) -> str:
        """Return the position as users write it on the command line."""
        if self.kind == "time":
            with suppress(OverflowError):
                return f"@{format_milliseconds(self.number)}"
        signs = {"offset": "", "last": "-", "time": "@"}
        return f"{signs[self.kind]}{self.number}" if self.kind in signs else self.kind


def parse_position(text: str, *, stored: bool = True) -> Position:
    """Return the position for a text such as ``-10``; the text ``stored`` is valid if ``stored`` is True.

    A time before 1970 becomes 0, because -1 and -2 would mean the last and the first offset. Raises
    `ValueError` for an invalid text; the error message shows the grammar of positions. A time of ten digits
    also raises `ValueError`, because the user has probably written seconds.
    """
    if text in NAMED and (stored or text != "stored"):
        return Position(text)  # type: ignore[arg-type]  # one of the three
    if _NUMBER.fullmatch(text):
        return Position("offset", int(text))
    if _LAST.fullmatch(text):
        return Position("last", -int(text))
    if _AGO.fullmatch(text):
        seconds = parse_span(text[1:], "a position")
        return Position("time", max(0, int((time.time() - seconds) * 1000)))
    if text.startswith("@"):
        at = f"{text[1:]}T00:00:00Z" if _DATE.fullmatch(text[1:]) else text[1:]
        if _SECONDS.fullmatch(at):
            raise ValueError(f"a time must be in milliseconds, got seconds, {text!r}; write @{at}000")
        if _NUMBER.fullmatch(at):
            return Position("time", int(at))
        if is_timestamp(at):  # rounded up: the first millisecond that is not before the time
            return Position("time", max(0, -((EPOCH - to_datetime(at)) // MILLISECOND)))
    raise ValueError(
        "a position must be earliest, latest, N (an offset), -N (the last N), -1h (a time ago: s, m, h, d), "
        "@2026-11-21 (a day in UTC), @2026-11-21T12:00:00Z or @1795262400000 (a time, in ms), "
        f"{'or stored, ' if stored else ''}got {text!r}"
    )
