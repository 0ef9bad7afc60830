"""`Cursor`: the fetched bytes of a partition; each call of `take` decodes a slice of the records.

A batch of some kilobytes may expand to millions of records, and a response may contain thousands of such
batches. For this reason, a cursor keeps only one slice of decoded records, and the decompressed bytes of one
batch, in memory at a time. A slice of records is small enough for `Consumer.poll` to return in time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from cloudevents_kafka.protocol.client._message import Message, PartitionId
from cloudevents_kafka.protocol.client._settings import ConsumerSettings
from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.messages.fetch import AbortedTransaction, PartitionData
from cloudevents_kafka.protocol.records import Batches, Record, RecordBatch
from cloudevents_kafka.protocol.records.record import ABORT

_SLICE: Final = 2500
"""The maximum number of records and headers in a slice, for instance 500 records with 4 headers each."""
_SLICE_SECONDS: Final = 0.1
"""A slice of records ends after this number of seconds, at the end of a batch, even if the slice is empty."""
_BOUNDARY: Final = (None,)
"""A tuple whose only item is None; this None separates the records of two batches."""


class Cursor:
    """The records of a fetched partition from ``position`` on.

    ``position`` is the offset of the next record that `take` returns. ``end`` is the next offset to fetch.
    ``partial_size`` is the number of fetched bytes if they contain only an incomplete batch, otherwise 0. The
    constructor raises `Malformed` if the size or magic of a batch is invalid.
    """

    def __init__(
        self, key: PartitionId, offset: int, part: PartitionData, settings: ConsumerSettings
    ) -> None:
        self.key: Final = key
        self.position = offset
        self.done = False
        self._batches: Final = Batches(
            part.records or b"", check_crc=settings.check_crc, limit=settings.max_unpacked_bytes
        )
        # Redpanda also sends aborted transactions to a consumer that reads uncommitted records.
        self._aborted: Final = (part.aborted_transactions or ()) if settings.committed_only else ()
        self._records: Iterator[Record | None] | None = None
        self._error: ProtocolError | None = None
        last = self._batches.last_offset
        self.end: Final = offset if last is None else max(offset, last + 1)
        self.partial_size: Final = self._batches.partial_size if self._batches.is_partial else 0

    def take(self) -> list[Message]:
        """Return the next slice of the records from ``position`` on; set ``done`` after the last slice.

        An error is raised only after the records before the invalid data have been returned.
        """
        if self._error is not None:
            raise self._error
        if self._records is None:
            self._records = chain.from_iterable(_visible_batches(self._batches, self._aborted))
        messages: list[Message] = []
        try:
            self.done = self._take(self._records, messages)
        except ProtocolError as error:
            if not messages:
                raise
            self._error = without_frames(error)
        except BaseException:  # KeyboardInterrupt, which has ended the iterator
            self.release()
            raise
        if messages:
            self.position = messages[-1].record_offset + 1
        return messages

    def _take(self, records: Iterator[Record | None], messages: list[Message]) -> bool:
        """Append the records of a slice to ``messages``; return whether this slice is the last slice."""
        (topic, number), start = self.key, self.position
        room, end = _SLICE, time.monotonic() + _SLICE_SECONDS
        for record in records:
            if record is None:
                if time.monotonic() > end:
                    return False
                continue
            if (offset := record.offset) >= start:
                messages.append(Message(record, topic, number, offset))
            room -= 1 + len(record.headers)
            if room <= 0:
                return False
        return True

    def release(self) -> None:
        """Free the decompressed data; the next call of `take` decompresses the data again."""
        self._records = self._error = None


def without_frames(error: ProtocolError) -> ProtocolError:
    """Return an error after removing its stack frames and the stack frames of its causes.

    The stack frames refer to decompressed data, which would stay in memory.
    """
    one: BaseException | None = error
    while one is not None:
        one.__traceback__ = None
        one = one.__cause__ or one.__context__
    return error


def _visible_batches(
    batches: Batches, transactions: Sequence[AbortedTransaction]
) -> Iterator[Iterable[Record | None]]:
    """Yield the batches, except control batches and batches of aborted transactions (KIP-98)."""
    aborted = deque(sorted(transactions, key=lambda one: one.first_offset))
    producers: set[int] = set()
    for batch in batches:
        yield _BOUNDARY
        if not isinstance(batch, RecordBatch):
            yield batch
            continue
        while aborted and aborted[0].first_offset <= batch.last_offset:
            producers.add(aborted.popleft().producer_id)
        if batch.is_control:
            record = batch.control_record()
            if record is not None and record.type == ABORT:
                producers.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in producers):
            yield batch
