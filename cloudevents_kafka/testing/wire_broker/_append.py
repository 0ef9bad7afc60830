"""Produced message sets and record batches, checked and prepared for the log; their sequence numbers.

Brokers assign the offsets. They compress a set of compressed messages again, with the offsets
inside; the offset of an uncompressed message, and of a batch, lies outside the checksum and is
overwritten.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from itertools import chain, groupby
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, Unsupported
from cloudevents_kafka.protocol.records import (
    Batch,
    Batches,
    Codec,
    MessageEntry,
    RecordBatch,
    encode_batch,
    encode_message_set,
)
from cloudevents_kafka.testing.wire_broker._errors import ApiError

_OFFSET: Final = struct.Struct(">q")
_OFFSET_AND_EPOCH: Final = struct.Struct(">qii")
_NUMBERS: Final = 1 << 31
"""Sequence numbers wrap to 0 after the largest int32."""
_REMEMBERED: Final = 5
"""Batches per producer whose offsets a broker remembers: as many as may be in flight at once."""


class Entry(NamedTuple):
    """A message, a compressed wrapper of messages or a record batch in the log.

    ``max_timestamp`` is its latest timestamp, -1 without one; ``written`` is when it was appended.
    Both are in milliseconds.
    """

    base: int
    last: int
    data: bytes
    magic: int
    max_timestamp: int
    written: int


class SentBatch(NamedTuple):
    """An entry as the producer sent it; ``offsets`` is the number of offsets that it covers."""

    batch: Batch
    data: bytes
    offsets: int
    max_timestamp: int

    def at_offset(self, base: int, epoch: int, written: int) -> Entry:
        """Return the entry with offsets from ``base`` on."""
        last = base + self.offsets - 1
        batch = self.batch
        if isinstance(batch, RecordBatch):
            data = _OFFSET_AND_EPOCH.pack(base, len(self.data) - 12, epoch) + self.data[16:]
        elif batch.codec is Codec.NONE:
            data = _OFFSET.pack(base) + self.data[8:]
        else:
            data = encode_message_set(batch, batch.magic, batch.codec, base_offset=base)
        return Entry(base, last, data, batch.magic, self.max_timestamp, written)


def parse_message_set(data: bytes, max_bytes: int, magic: int) -> list[SentBatch]:
    """Return the entries of a message set, converted to the log's ``magic``.

    The set may be empty. Brokers before 0.10 keep a message of magic 1, and fail on a compressed
    wrapper of such messages. Raises `ApiError` if the broker refuses the set.
    """
    sent = _all(data, max_bytes)
    if any(isinstance(one.batch, RecordBatch) for one in sent):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE)
    if any(one.batch.magic > magic and one.batch.codec is not Codec.NONE for one in sent):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if all(one.batch.magic >= magic for one in sent):
        return sent
    runs = groupby(sent, key=lambda one: one.batch.codec)
    return _all(b"".join(_converted(list(run), codec, magic) for codec, run in runs), max_bytes)


def _converted(run: list[SentBatch], codec: Codec, magic: int) -> bytes:
    records = chain.from_iterable(one.batch for one in run)
    return encode_batch(records, codec) if magic == 2 else encode_message_set(records, magic, codec)


def parse_record_batch(data: bytes, max_bytes: int) -> tuple[RecordBatch, SentBatch]:
    """Return the only record batch of the data; raise `ApiError` if the broker refuses it."""
    sent = _all(data, max_bytes)
    if len(sent) != 1:
        raise ApiError(ErrorCode.INVALID_RECORD)
    batch = sent[0].batch
    if not isinstance(batch, RecordBatch) or sent[0].offsets < 1 or batch.is_control:
        raise ApiError(ErrorCode.INVALID_RECORD)
    return batch, sent[0]


def _all(data: bytes, max_bytes: int) -> list[SentBatch]:
    try:
        batches = Batches(data)
        if batches.partial_size:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE)
        if any(batch.end - batch.start > max_bytes for batch in batches):
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE)
        return list(_checked(data, batches))
    except Unsupported as error:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE) from error
    except Malformed as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE) from error


def _checked(data: bytes, batches: Batches) -> Iterator[SentBatch]:
    for batch in batches:
        whole = data[batch.start : batch.end]
        if isinstance(batch, MessageEntry):
            times = [-1 if record.timestamp is None else record.timestamp for record in batch]
            if times:
                yield SentBatch(batch, whole, len(times), max(times))
            continue
        if _count(batch) != batch.last_offset_delta + 1:
            raise ApiError(ErrorCode.INVALID_RECORD)
        yield SentBatch(batch, whole, batch.count, batch.max_timestamp)


def _count(batch: RecordBatch) -> int:
    """Return the number of records by reading them; the header's count if the codec is missing."""
    try:
        return sum(1 for _ in batch)
    except Unsupported:
        return batch.count


# --- sequence numbers ------------------------------------------------------------------


class Sequences:
    """The last batches of each idempotent producer in one partition (KIP-98)."""

    def __init__(self) -> None:
        self._producers: dict[int, tuple[int, deque[tuple[tuple[int, int], int]]]] = {}
        """The epoch of each producer, and sequence numbers and offset of its batches."""

    def offset_of_duplicate(self, batch: RecordBatch) -> int | None:
        """Return the offset of a batch that was appended before, None for the producer's next batch.

        Raises `ApiError` if batches are missing before it, if it is so old that its offset is
        forgotten, or if its producer has a newer epoch.
        """
        if batch.producer_id not in self._producers:
            return None
        epoch, appended = self._producers[batch.producer_id]
        if batch.producer_epoch < epoch:
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if batch.producer_epoch > epoch:
            if batch.base_sequence != 0:
                raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            return None
        for sequence, offset in appended:
            if sequence == _range(batch):
                return offset
        ahead = (batch.base_sequence - appended[-1][0][1] - 1) % _NUMBERS
        if ahead:
            is_gap = ahead < _NUMBERS // 2
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if is_gap else ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            )
        return None

    def add(self, batch: RecordBatch, offset: int) -> None:
        """Remember the offset of an appended batch."""
        if batch.producer_id < 0:
            return
        epoch, appended = self._producers.get(batch.producer_id, (-1, None))
        if appended is None or epoch != batch.producer_epoch:
            appended = deque(maxlen=_REMEMBERED)
            self._producers[batch.producer_id] = batch.producer_epoch, appended
        appended.append((_range(batch), offset))


def _range(batch: RecordBatch) -> tuple[int, int]:
    return batch.base_sequence, (batch.base_sequence + batch.last_offset_delta) % _NUMBERS
