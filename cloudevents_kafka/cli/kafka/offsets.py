"""Where to begin and where to end: ``earliest``, ``latest``, N, -N, ``@time``, ``stored``."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import click
import msgspec

from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.primitives.epoch import EPOCH, MILLISECOND

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_LAST: Final = re.compile(r"-[1-9][0-9]{0,17}", re.ASCII)


class Position(msgspec.Struct, frozen=True):
    """A place in every partition; ``number`` is the offset, the count, or ms since the epoch."""

    kind: Literal["earliest", "latest", "offset", "last", "time", "stored"]
    number: int = 0


class Bounds(msgspec.Struct, frozen=True):
    """What a partition holds: from offset ``low``, up to but without ``high``."""

    low: int
    high: int


def parse_position(text: str) -> Position:
    """Parse a position; raises `ValueError` with the grammar."""
    if text in ("earliest", "latest", "stored"):
        return Position(text)  # type: ignore[arg-type]  # one of the three
    if _NUMBER.fullmatch(text):
        return Position("offset", int(text))
    if _LAST.fullmatch(text):
        return Position("last", -int(text))
    if text.startswith("@"):
        moment = text[1:]
        if _NUMBER.fullmatch(moment):
            return Position("time", int(moment))
        if is_timestamp(moment):
            return Position("time", -((EPOCH - to_datetime(moment)) // MILLISECOND))
    raise ValueError(
        f"{text!r} is no position: earliest, latest, N (an offset), -N (the last N), "
        "@2026-11-21T12:00:00Z or @1795262400000 (a time, in ms)"
    )


class PositionType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """click's view of a `Position`."""

    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Position:
        """Parse what was given; a usage error for what is no position."""
        if isinstance(value, Position):
            return value
        try:
            return parse_position(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def resolve(position: Position, bounds: Bounds, found: int | None) -> int:
    """Give the offset that a position means in a partition, within its bounds.

    ``found`` is what the broker told for a time or for a group's stored offset; None
    where it knows none: no record is that late, or the group has stored nothing.
    """
    if position.kind == "earliest":
        offset = bounds.low
    elif position.kind == "latest":
        offset = bounds.high
    elif position.kind == "last":
        offset = bounds.high - position.number
    elif position.kind == "offset":
        offset = position.number
    elif found is not None:
        offset = found
    else:
        offset = bounds.high if position.kind == "time" else bounds.low
    return max(bounds.low, min(offset, bounds.high))
