"""The records of a fetch response: any mix of messages and batches.

The boundaries of the entries (messages and batches) are computed first, from the sizes of the entries. Each
entry is decoded on demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Final

from cloudevents_kafka.protocol.records._message_set import MessageEntry, read_message
from cloudevents_kafka.protocol.records._record_batch import RecordBatch, read_batch
from cloudevents_kafka.protocol.records.compression import LIMIT
from cloudevents_kafka.protocol.records.record import Record, find_entries

Batch = RecordBatch | MessageEntry
"""An entry of a buffer: a record batch, or a message; both types use the same attribute names.

Examples:
    >>> from cloudevents_kafka.protocol.records import Batch, Batches, Record, encode_batch
    >>> entries: list[Batch] = list(Batches(encode_batch([Record(value=b"17")])))
    >>> entries[0].magic
    2
"""


class Batches:
    """The complete entries of a buffer, in order, and the size of the partial entry at its end.

    ``limit`` is the largest decompressed size of an entry in bytes. The checksum of an entry is checked when
    the records of the entry are decoded, so the entries before a corrupt entry can be decoded.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Batches, Record, encode_batch, encode_message_set
        >>> old = encode_message_set([Record(value=b"17")])
        >>> new = encode_batch([Record(value=b"18")], base_offset=1)
        >>> [(record.offset, record.value) for record in Batches(old + new).records()]
        [(0, b'17'), (1, b'18')]
    """

    def __init__(self, data: bytes, *, check_crc: bool = True, limit: int = LIMIT) -> None:
        """Find the messages and batches in the data; raise `Malformed` for an invalid size or magic."""
        self._data: Final = data
        self._check_crc: Final = check_crc
        self._limit: Final = limit
        self._bounds: Final = [0, *(end for _, end in find_entries(data))]
        self.partial_size: Final = len(data) - self._bounds[-1]

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __iter__(self) -> Iterator[Batch]:
        for start, end in pairwise(self._bounds):
            yield self._read(start, end)

    @property
    def is_partial(self) -> bool:
        """Whether the buffer contains only a partial entry, so that more bytes must be fetched."""
        return len(self._bounds) == 1 and self.partial_size > 0

    @property
    def first_offset(self) -> int | None:
        """The offset of the first record, or None if the buffer has no complete entry.

        If the first entry is a wrapper message, this property decompresses the message.
        """
        return self._read(*self._bounds[:2]).base_offset if len(self) else None

    @property
    def last_offset(self) -> int | None:
        """The last offset of the entries, or None if the buffer has no complete entry."""
        return self._read(*self._bounds[-2:]).last_offset if len(self) else None

    def records(self) -> Iterator[Record]:
        """Return an iterator over all records, including control records.

        Raises the errors of `RecordBatch.records`.
        """
        return chain.from_iterable(self)

    def _read(self, start: int, end: int) -> Batch:
        read = read_batch if self._data[start + 16] == 2 else read_message
        return read(self._data, start, end, check_crc=self._check_crc, limit=self._limit)
