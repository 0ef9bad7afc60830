"""A buffer of records, as a fetch brings it: any mix of messages and batches.

The entries are found first, by their lengths alone; each is decoded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Final

from cloudevents_kafka.protocol.records._compression import LIMIT
from cloudevents_kafka.protocol.records._framing import frames
from cloudevents_kafka.protocol.records._message_set import MessageEntry, read_message
from cloudevents_kafka.protocol.records._record import Record
from cloudevents_kafka.protocol.records._record_batch import RecordBatch, read_batch

Batch = RecordBatch | MessageEntry
"""An entry of a buffer: both have the same names for what both have."""


class Batches:
    """The whole entries of a buffer, in order, and how many bytes of a cut one follow them.

    ``limit`` bounds the bytes that one entry may be unpacked to. A checksum is looked at
    when its entry's records are decoded, so entries before a bad one can still be read.
    """

    def __init__(self, data: bytes, *, check_crc: bool = True, limit: int = LIMIT) -> None:
        """Find the entries; `Malformed` for a size or magic that none has."""
        self._data: Final = data
        self._check_crc: Final = check_crc
        self._limit: Final = limit
        self._bounds, self.partial_size = frames(data)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __iter__(self) -> Iterator[Batch]:
        for start, end in pairwise(self._bounds):
            yield self._read(start, end)

    @property
    def is_partial(self) -> bool:
        """Whether there is nothing but the beginning of an entry: ask for more bytes."""
        return len(self._bounds) == 1 and self.partial_size > 0

    @property
    def first_offset(self) -> int | None:
        """The first record's offset, None if there is no entry; a wrapper must be unpacked to see it."""
        return self._read(*self._bounds[:2]).base_offset if len(self) else None

    @property
    def last_offset(self) -> int | None:
        """The last offset that the entries cover, None if there is none."""
        return self._read(*self._bounds[-2:]).last_offset if len(self) else None

    def records(self) -> Iterator[Record]:
        """Decode one record after the other, those of control batches too; errors as of a batch."""
        return chain.from_iterable(self)

    def _read(self, start: int, end: int) -> Batch:
        read = read_batch if self._data[start + 16] == 2 else read_message
        return read(self._data, start, end, check_crc=self._check_crc, limit=self._limit)
