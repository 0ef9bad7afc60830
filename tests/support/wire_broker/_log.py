"""`Log`: the log of a partition, with its segments, offsets and timestamps."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from cloudevents_kafka.protocol.records import (
    Batches,
    Codec,
    MessageEntry,
    Record,
    RecordBatch,
    encode_message_set,
)
from tests.support.wire_broker._append import Entry, SentBatch


class Log:
    """The entries of a partition; ``start`` is the first offset left, ``end`` the next to be written."""

    def __init__(self, segment_bytes: int) -> None:
        """Begin with one empty segment; the next begins when one would exceed ``segment_bytes``."""
        self.start = 0
        self.end = 0
        self._entries: list[Entry] = []
        self._segments = [(0, _now())]  # the first offset of each, and when it was begun, in milliseconds
        self._segment_bytes: Final = segment_bytes
        self._in_segment = 0

    def append(self, sent: list[SentBatch], epoch: int, time: int) -> int:
        """Append batches at a time in milliseconds; return the offset of the first record."""
        first = self.end
        for one in sent:
            entry = one.at_offset(self.end, epoch, time)
            if self._in_segment and self._in_segment + len(entry.data) > self._segment_bytes:
                self._segments.append((entry.base, entry.written))
                self._in_segment = 0
            self._in_segment += len(entry.data)
            self._entries.append(entry)
            self.end = entry.last + 1
        return first

    def delete_before(self, offset: int) -> None:
        """Delete the entries that end before an offset, as retention does."""
        self.start = min(max(offset, self.start), self.end)
        self._entries = list(self._since(self.start))
        kept = [(base, written) for base, written in self._segments if base > self.start]
        self._segments = [(self.start, _now()), *kept]

    def size_since(self, offset: int) -> int:
        """Return the number of bytes from an offset on."""
        return sum(len(entry.data) for entry in self._since(offset))

    def read(self, offset: int, max_bytes: int, magic: int) -> Iterator[bytes]:
        """Yield entries, converted down to ``magic``, up to ``max_bytes``; the last may exceed it."""
        for entry in self._since(offset):
            if max_bytes <= 0:
                return
            data = entry.data if entry.magic <= magic else _converted(entry, magic)
            max_bytes -= len(data)
            yield data

    def records(self) -> Iterator[Record]:
        """Yield all records."""
        for entry in self._entries:
            yield from Batches(entry.data).records()

    def segments_before(self, timestamp: int, max_number: int) -> list[int]:
        """Return the first offsets of segments begun by then, newest first; timestamp -1 adds the end."""
        found = [base for base, written in self._segments if timestamp == -1 or written <= timestamp]
        return ([self.end] * (timestamp == -1) + found[::-1])[: max(0, max_number)]

    def at_time(self, timestamp: int) -> tuple[int, int] | None:
        """Return timestamp and offset of the first record with this timestamp or a later one, or None."""
        return next(((time, offset) for time, offset in self._times(timestamp) if time >= timestamp), None)

    def max_timestamp(self) -> tuple[int, int] | None:
        """Return timestamp and offset of the first record with the latest timestamp, or None."""
        return self.at_time(max((entry.max_timestamp for entry in self._entries), default=-1))

    def _times(self, timestamp: int) -> Iterator[tuple[int, int]]:
        for entry in self._entries:
            if entry.max_timestamp >= timestamp:
                for record in Batches(entry.data).records():
                    yield -1 if record.timestamp is None else record.timestamp, record.offset

    def _since(self, offset: int) -> Iterator[Entry]:
        at = bisect_left(self._entries, offset, key=lambda entry: entry.last)
        return iter(self._entries[at:])


def _converted(entry: Entry, magic: int) -> bytes:
    """Return an entry in an older format, as brokers do for old clients; headers are lost."""
    (batch,) = Batches(entry.data)
    assert isinstance(batch, MessageEntry | RecordBatch)
    codec = Codec.GZIP if batch.codec is Codec.ZSTD else batch.codec
    records = [Record(r.key, r.value, [], r.timestamp, r.offset) for r in batch]
    return encode_message_set(records, magic, codec, keep_offsets=True)


def _now() -> int:
    return int(time.time() * 1000)
