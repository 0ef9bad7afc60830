"""`BackfillRange` is the range that the option ``backfill`` describes, by offsets or by times.

The option ``backfill`` contains either one range of offsets or times for all partitions, or a separate range
of offsets for each listed partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from cloudevents_kafka.positions import Position, parse_position
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRange

_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_GRAMMAR: Final = (
    "backfill must be FROM..TO, each earliest, latest, N (an offset), -1h (a time ago: s, m, h, d), "
    "@2026-11-21 (a day in UTC), @2026-11-21T12:00:00Z or @1795262400000 (a time, in ms), or offsets by "
    'topic and partition as {"orders": {"0": [17, 41]}}; the record at TO is not read. Got '
)
OffsetsAt = Callable[[str | int], Mapping[str, int]]
"""A function that returns an offset for each partition.

The argument of the function is ``earliest``, ``latest``, or a time in milliseconds since 1970.
"""


class BackfillRange(msgspec.Struct, frozen=True):
    """One range for all partitions, or a separate range for each partition in the field ``named``."""

    positions: tuple[Position, Position] = (Position("earliest"), Position("latest"))
    named: Mapping[str, Mapping[str, tuple[int, int]]] | None = None

    @classmethod
    def of(cls, text: str) -> BackfillRange:
        """Return the `BackfillRange` that a text describes.

        Raises `ValueError` if the text is not a valid range; the message of the error contains the grammar of
        ranges.
        """
        if text.startswith("{"):
            try:
                named = msgspec.json.decode(text, type=dict[str, dict[str, tuple[int, int]]])
            except msgspec.MsgspecError as error:
                raise ValueError(f"{_GRAMMAR}{text}: {error}") from None
            if all(0 <= start <= end for parts in named.values() for start, end in parts.values()):
                return cls(named=named)
        first, _, last = text.partition("..")
        try:
            begin, end = parse_position(first, stored=False), parse_position(last, stored=False)
        except ValueError:
            raise ValueError(f"{_GRAMMAR}{text!r}") from None
        if "last" in (begin.kind, end.kind):
            raise ValueError(f"{_GRAMMAR}{text!r}")
        if begin.is_after(end):
            raise ValueError(
                f"backfill must be FROM..TO, and FROM must not be after TO, got {text!r}; exchange "
                "FROM and TO"
            )
        return cls((begin, end))

    def check(self, partitions: Mapping[str, int]) -> None:
        """Raise `PipelineFailed` if a named topic is not read or a named partition does not exist."""
        for topic, numbers in (self.named or {}).items():
            count = partitions.get(topic, 0)
            wrong = [number for number in numbers if not (_NUMBER.fullmatch(number) and int(number) < count)]
            if wrong or not count:
                raise PipelineFailed(
                    f"backfill must have topics that are read, and partitions that these topics have, got "
                    f"{topic}[{', '.join(wrong)}] of {count} partitions; correct the range, and start again",
                    final=True,
                )

    def find(
        self, topic: str, partitions: Collection[str], offsets_at: OffsetsAt
    ) -> Mapping[str, OffsetRange]:
        """Return the ranges that a backfill reads in the partitions of a topic.

        If the option ``backfill`` names partitions, the result contains only the ranges of these partitions.
        """
        if self.named is not None:
            return {number: OffsetRange(*range_) for number, range_ in self.named.get(topic, {}).items()}
        begins, ends = (_offsets(position, partitions, offsets_at) for position in self.positions)
        return {number: OffsetRange(begins[number], ends[number]) for number in partitions}


def _offsets(position: Position, partitions: Collection[str], offsets_at: OffsetsAt) -> Mapping[str, int]:
    if position.kind == "offset":
        return dict.fromkeys(partitions, position.number)
    return offsets_at(position.number if position.kind == "time" else position.kind)
