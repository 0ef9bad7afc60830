"""Partitions, and positions in them: ``earliest``, ``latest``, N, -N, ``@time`` and ``stored``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import click
import msgspec

from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.cli.terminal import BadUsage
from cloudevents_kafka.primitives.epoch import EPOCH, MILLISECOND

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_LAST: Final = re.compile(r"-[1-9][0-9]{0,17}", re.ASCII)


class Position(msgspec.Struct, frozen=True):
    """A position that applies to any partition.

    ``number`` is the offset, the number of last records, or a time in milliseconds since the epoch.
    """

    kind: Literal["earliest", "latest", "offset", "last", "time", "stored"]
    number: int = 0


def parse_position(text: str) -> Position:
    """Return the position of a text such as ``-10``; raises `ValueError` with the grammar."""
    if text in ("earliest", "latest", "stored"):
        return Position(text)  # type: ignore[arg-type]  # one of the three
    if _NUMBER.fullmatch(text):
        return Position("offset", int(text))
    if _LAST.fullmatch(text):
        return Position("last", -int(text))
    if text.startswith("@"):
        time = text[1:]
        if _NUMBER.fullmatch(time):
            return Position("time", int(time))
        if is_timestamp(time):  # rounded up: the first millisecond that is not before the time
            return Position("time", -((EPOCH - to_datetime(time)) // MILLISECOND))
    raise ValueError(
        "a position must be earliest, latest, N (an offset), -N (the last N), "
        f"@2026-11-21T12:00:00Z or @1795262400000 (a time, in ms), got {text!r}"
    )


class PositionType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """The type of parameters that are a `Position`."""

    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Position:
        """Return the position; other text is a usage error."""
        if isinstance(value, Position):
            return value
        try:
            return parse_position(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def resolve_offset(position: Position, watermarks: tuple[int, int], known: int | None) -> int:
    """Return the offset of a position in a partition, limited to its watermarks.

    The watermarks are the first offset, and the offset after the last. ``known`` is the broker's
    answer for a time or for the stored offset of a group. None is the end of the partition for a time
    (all records are older), and its start for a group without an offset.
    """
    low, high = watermarks
    if position.kind == "earliest":
        offset = low
    elif position.kind == "latest":
        offset = high
    elif position.kind == "last":
        offset = high - position.number
    elif position.kind == "offset":
        offset = position.number
    elif known is not None:
        offset = known
    else:
        offset = high if position.kind == "time" else low
    return max(low, min(offset, high))


def check_partitions(topic: str, wanted: Iterable[int], existing: Sequence[int]) -> None:
    """Raise `BadUsage` if a topic does not have one of the wanted partitions."""
    missing = sorted(set(wanted) - set(existing))
    if missing:
        last = max(existing, default=0)
        known = f"partitions 0 to {last}" if last else "partition 0"
        raise BadUsage(f"topic {topic!r} has no partition {missing[0]}; it has {known}")
