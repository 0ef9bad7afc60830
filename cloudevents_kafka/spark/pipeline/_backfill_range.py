"""`BackfillRange`: what a backfill is asked to read, by offsets or by times, of each partition or of some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

import msgspec

from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.primitives.epoch import EPOCH, MILLISECOND
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRange

_GRAMMAR: Final = (
    "backfill must be FROM..TO, each earliest, latest, N (an offset) or @2026-11-21T12:00:00Z, or offsets by "
    'topic and partition as {"orders": {"0": [17, 41]}}; TO is the first that is not read. Got '
)
Position = Literal["earliest", "latest"] | int
"""A place in any partition: its begin, its end, or the first record from a time on, in ms since 1970."""


_ENDS: Final[Mapping[str, Position]] = {"earliest": "earliest", "latest": "latest"}


class BackfillRange(msgspec.Struct, frozen=True):
    """A range of each partition: offsets, or positions where an offset is None; or ``named`` partitions."""

    begin: Position | None = None
    end: Position | None = None
    offsets: tuple[int | None, int | None] = (None, None)
    named: Mapping[str, Mapping[str, tuple[int, int]]] | None = None

    @classmethod
    def of(cls, text: str) -> BackfillRange:
        """Return the range of a text; raise `ValueError` with the grammar."""
        if text.lstrip().startswith("{"):
            try:
                named = msgspec.json.decode(text, type=dict[str, dict[str, tuple[int, int]]])
            except msgspec.MsgspecError as error:
                raise ValueError(f"{_GRAMMAR}{text}: {error}") from None
            if any(not 0 <= start <= end for parts in named.values() for start, end in parts.values()):
                raise ValueError(f"{_GRAMMAR}{text}")
            return cls(named=named)
        begin, dots, end = text.partition("..")
        if not dots:
            raise ValueError(f"{_GRAMMAR}{text!r}")
        positions: list[Position | None] = [
            None if part.isdecimal() else _position(part, text) for part in (begin, end)
        ]
        first, last = (int(part) if part.isdecimal() else None for part in (begin, end))
        return cls(positions[0], positions[1], (first, last))

    def check(self, partitions: Mapping[str, int]) -> None:
        """Raise `PipelineFailed` for named partitions that the topics do not have."""
        for topic, numbers in (self.named or {}).items():
            count = partitions.get(topic, 0)
            wrong = [number for number in numbers if not (number.isdecimal() and int(number) < count)]
            if wrong or not count:
                raise PipelineFailed(
                    f"backfill must have topics that are read, and partitions below their number, "
                    f"got {topic}[{', '.join(wrong)}] of {count}; correct it, and start again",
                    final=True,
                )

    def find(
        self, topic: str, partitions: Iterable[str], offsets_at: Callable[[Position], Mapping[str, int]]
    ) -> dict[str, OffsetRange]:
        """Return the range of each partition of a topic; ``offsets_at`` returns the offsets of a position."""
        if self.named is not None:
            return {number: OffsetRange(*range_) for number, range_ in self.named.get(topic, {}).items()}
        first, last = self.offsets
        begins = {} if self.begin is None else offsets_at(self.begin)
        ends = {} if self.end is None else offsets_at(self.end)
        return {
            number: OffsetRange(
                begins[number] if first is None else first, ends[number] if last is None else last
            )
            for number in partitions
        }


def _position(part: str, text: str) -> Position:
    if part in _ENDS:
        return _ENDS[part]
    if part.startswith("@") and is_timestamp(part[1:]):
        return -((EPOCH - to_datetime(part[1:])) // MILLISECOND)  # rounded up
    raise ValueError(f"{_GRAMMAR}{text!r}")
