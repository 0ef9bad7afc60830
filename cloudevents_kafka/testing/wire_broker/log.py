"""The log of a partition: entries by offset, segments, times; what a fetch gets of it."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.records import (
    Batches,
    Codec,
    MessageEntry,
    Record,
    RecordBatch,
    encode_message_set,
)
from cloudevents_kafka.testing.wire_broker.append import Entry, Sent


class Segment(NamedTuple):
    """Where a segment begins, and when that was, in milliseconds."""

    base: int
    written: int


class Log:
    """Grows at its end; ``start`` is the first offset it still has, ``end`` the next one."""

    def __init__(self, segment_bytes: int) -> None:
        """Begin with one empty segment; a new one is begun when one would exceed ``segment_bytes``."""
        self.start = 0
        self.end = 0
        self._entries: list[Entry] = []
        self._segments = [Segment(0, _now())]
        self._segment_bytes: Final = segment_bytes
        self._in_segment = 0

    def append(self, sent: list[Sent], epoch: int) -> int:
        """Append entries; return the offset of the first record."""
        first = self.end
        for one in sent:
            entry = one.placed(self.end, epoch, _now())
            if self._in_segment and self._in_segment + len(entry.data) > self._segment_bytes:
                self._segments.append(Segment(entry.base, entry.written))
                self._in_segment = 0
            self._in_segment += len(entry.data)
            self._entries.append(entry)
            self.end = entry.last + 1
        return first

    def delete_before(self, offset: int) -> None:
        """Forget what lies before an offset, as retention does; whole entries go."""
        self.start = min(max(offset, self.start), self.end)
        self._entries = list(self._since(self.start))
        kept = [segment for segment in self._segments if segment.base > self.start]
        self._segments = [Segment(self.start, _now()), *kept]

    def size_since(self, offset: int) -> int:
        """Return how many bytes there are from an offset on."""
        return sum(len(entry.data) for entry in self._since(offset))

    def read(self, offset: int, most: int, magic: int) -> Iterator[bytes]:
        """Give entries in forms up to ``magic`` until ``most`` bytes are reached; the last may exceed it."""
        for entry in self._since(offset):
            if most <= 0:
                return
            data = entry.data if entry.magic <= magic else _converted(entry, magic)
            most -= len(data)
            yield data

    def records(self) -> Iterator[Record]:
        """Decode all records."""
        for entry in self._entries:
            yield from Batches(entry.data).records()

    def segments_before(self, timestamp: int, most: int) -> list[int]:
        """Return the beginnings of segments that were begun by then, newest first; -1 adds the end."""
        found = [s.base for s in self._segments if timestamp == -1 or s.written <= timestamp]
        return ([self.end] * (timestamp == -1) + found[::-1])[: max(0, most)]

    def at_time(self, timestamp: int) -> tuple[int, int] | None:
        """Find the first record with this timestamp or a later one: its timestamp and offset."""
        return next(((time, offset) for time, offset in self._times(timestamp) if time >= timestamp), None)

    def newest(self) -> tuple[int, int] | None:
        """Find the first record with the latest timestamp: it and its offset."""
        latest = max((entry.newest for entry in self._entries), default=-1)
        return None if latest == -1 else self.at_time(latest)

    def _times(self, timestamp: int) -> Iterator[tuple[int, int]]:
        for entry in self._entries:
            if entry.newest >= timestamp:
                for record in Batches(entry.data).records():
                    yield -1 if record.timestamp is None else record.timestamp, record.offset

    def _since(self, offset: int) -> Iterator[Entry]:
        at = bisect_left(self._entries, offset, key=lambda entry: entry.last)
        return iter(self._entries[at:])


def _converted(entry: Entry, magic: int) -> bytes:
    """Write an entry in an older form, as brokers do for old clients; headers are lost."""
    (batch,) = Batches(entry.data)
    assert isinstance(batch, MessageEntry | RecordBatch)
    codec = Codec.GZIP if batch.codec is Codec.ZSTD else batch.codec
    records = [Record(r.key, r.value, [], r.timestamp, r.offset) for r in batch]
    return encode_message_set(records, magic, codec, keep_offsets=True)


def _now() -> int:
    return int(time.time() * 1000)
