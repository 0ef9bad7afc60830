"""Produced message sets and record batches, checked and prepared for the log; their sequence numbers.

Brokers assign the offsets. They compress a set of compressed messages again, with the offsets
inside; the offset of an uncompressed message, and of a batch, lies outside the checksum and is
overwritten.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Iterator
from itertools import chain, groupby
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, Unsupported
from cloudevents_kafka.protocol.messages.produce import BatchIndexAndErrorMessage
from cloudevents_kafka.protocol.records import (
    Batch,
    Batches,
    Codec,
    RecordBatch,
    TimestampType,
    encode_batch,
    encode_message_set,
)
from cloudevents_kafka.protocol.records.checksum import crc32c
from cloudevents_kafka.protocol.records.compression import decompress
from tests.support.wire_broker._errors import ApiError, CloseConnection

_OFFSET: Final = struct.Struct(">q")
_OFFSET_AND_EPOCH: Final = struct.Struct(">qii")
_ATTRIBUTES: Final = struct.Struct(">h")
_AFTER_CRC: Final = 21
_MAX_TIMESTAMP: Final = 35
_HEADER: Final = 61
_CODEC: Final = 7
_LOG_APPEND_TIME: Final = 8
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


class Rules(NamedTuple):
    """What the settings of a topic ask of its records.

    ``max_bytes`` is the limit of a batch, ``max_ahead`` how far in the future, in milliseconds, a
    timestamp may be. With ``appends_time`` the broker's clock replaces the timestamps. The ``release``
    decides what is answered.
    """

    max_bytes: int
    needs_keys: bool = False
    appends_time: bool = False
    max_ahead: int = (1 << 63) - 1
    release: tuple[int, int] = (4, 3)


class SentBatch(NamedTuple):
    """An entry as the producer sent it; ``offsets`` is the number of offsets that it covers.

    With ``appends_time`` it receives the time at which it is appended.
    """

    batch: Batch
    data: bytes
    offsets: int
    max_timestamp: int
    appends_time: bool = False

    def at_offset(self, base: int, epoch: int, written: int) -> Entry:
        """Return the entry with offsets from ``base`` on."""
        last = base + self.offsets - 1
        batch = self.batch
        if isinstance(batch, RecordBatch):
            data = _OFFSET_AND_EPOCH.pack(base, len(self.data) - 12, epoch) + self.data[16:]
            if self.appends_time:
                return Entry(base, last, _with_time(data, written), batch.magic, written, written)
        elif batch.codec is Codec.NONE:
            data = _OFFSET.pack(base) + self.data[8:]
        else:
            data = encode_message_set(batch, batch.magic, batch.codec, base_offset=base)
        return Entry(base, last, data, batch.magic, self.max_timestamp, written)


def _with_time(data: bytes, time: int) -> bytes:
    """Return a batch whose records have the time at which they are appended."""
    (attributes,) = _ATTRIBUTES.unpack_from(data, _AFTER_CRC)
    rest = _ATTRIBUTES.pack(attributes | _LOG_APPEND_TIME) + data[_AFTER_CRC + 2 : _MAX_TIMESTAMP]
    rest += _OFFSET.pack(time) + data[_MAX_TIMESTAMP + 8 :]
    return data[: _AFTER_CRC - 4] + crc32c(rest).to_bytes(4) + rest


def parse_message_set(data: bytes, rules: Rules, magic: int) -> list[SentBatch]:
    """Return the entries of a message set, converted to the log's ``magic``.

    The set may be empty, or end with a partial entry, which is ignored. Brokers before 0.10 keep a
    message of magic 1, and fail on a compressed wrapper of such messages. Raises `ApiError` if the
    broker refuses the set.
    """
    sent = _all(data, rules.max_bytes)
    if len({one.batch.magic for one in sent}) > 1 and rules.release >= (3, 9):
        raise ApiError(ErrorCode.INVALID_RECORD)
    if any(isinstance(one.batch, RecordBatch) for one in sent) and magic < 2:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE)
    if any(one.batch.magic > magic and one.batch.codec is not Codec.NONE for one in sent):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if all(one.batch.magic >= magic for one in sent):
        return sent
    runs = groupby(sent, key=lambda one: one.batch.codec)
    return _all(b"".join(_converted(list(run), codec, magic) for codec, run in runs), rules.max_bytes)


def _converted(run: list[SentBatch], codec: Codec, magic: int) -> bytes:
    records = chain.from_iterable(one.batch for one in run)
    return encode_batch(records, codec) if magic == 2 else encode_message_set(records, magic, codec)


def parse_record_batch(data: bytes, rules: Rules, *, zstd: bool) -> tuple[RecordBatch, SentBatch]:
    """Return the only record batch of the data; raise `ApiError` if the broker refuses its header.

    Bytes of another, unfinished batch may follow it. Without ``zstd`` its records must have another codec.
    """
    try:
        batch = _only_batch(data)
    except ApiError as error:
        if rules.release < (3, 9):
            raise CloseConnection(f"the records of a Produce request cannot be read: {error}") from error
        raise
    if rules.release < (3, 9):
        return batch, _checked_batch(batch, data, rules)
    if batch.attributes & _CODEC == Codec.ZSTD and not zstd:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if batch.is_transactional:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return batch, _checked_batch(batch, data, rules)


def _checked_batch(batch: RecordBatch, data: bytes, rules: Rules) -> SentBatch:
    whole = data[batch.start : batch.end]
    if batch.crc != crc32c(whole[_AFTER_CRC:]):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE)
    if len(whole) > rules.max_bytes:
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE)
    return SentBatch(batch, whole, batch.count, batch.max_timestamp, rules.appends_time)


def _only_batch(data: bytes) -> RecordBatch:
    try:
        batches = list(Batches(data))
    except Malformed as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE) from error
    if len(batches) != 1 or not isinstance(batches[0], RecordBatch):
        raise _invalid()
    return batches[0]


def check_records(batch: RecordBatch, rules: Rules) -> None:
    """Raise `ApiError` if the records are malformed, or break a rule of the topic."""
    if batch.producer_id >= 0 > batch.base_sequence or batch.base_offset or batch.is_control:
        raise _invalid()
    if rules.release < (3, 9):
        _check_old_attributes(batch)
    latest = int(time.time() * 1000) + rules.max_ahead
    try:
        records = list(batch)
    except Unsupported:  # without the codec, the records are not checked
        return
    except Malformed as error:
        raise _invalid() if _unpacks(batch) else ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    if not 0 < len(records) == batch.last_offset_delta + 1:
        raise _invalid()
    for number, record in enumerate(records):
        if rules.needs_keys and record.key is None:
            raise _invalid(number)
        if not rules.appends_time and (record.timestamp or 0) > latest:
            raise _invalid(number, code=ErrorCode.INVALID_TIMESTAMP)


def _check_old_attributes(batch: RecordBatch) -> None:
    if batch.attributes & _CODEC == Codec.ZSTD:  # which came with 2.1
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if batch.timestamp_type is TimestampType.LOG_APPEND:
        raise _invalid(code=ErrorCode.INVALID_TIMESTAMP)


def _unpacks(batch: RecordBatch) -> bool:
    try:
        decompress(batch.data[batch.start + _HEADER : batch.end], batch.codec)
    except Malformed:
        return False
    return True


def _invalid(*numbers: int, code: int = ErrorCode.INVALID_RECORD) -> ApiError:
    """Return the error of a batch with the numbers of its invalid records."""
    return ApiError(code, record_errors=[BatchIndexAndErrorMessage(batch_index=number) for number in numbers])


def _all(data: bytes, max_bytes: int) -> list[SentBatch]:
    try:
        batches = Batches(data)
        if any(batch.end - batch.start > max_bytes for batch in batches):
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE)
        return list(_checked(data, batches))
    except Unsupported as error:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE) from error
    except Malformed as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE) from error


def _checked(data: bytes, batches: Batches) -> Iterator[SentBatch]:
    for batch in batches:
        times = [-1 if record.timestamp is None else record.timestamp for record in batch]
        if times:
            yield SentBatch(batch, data[batch.start : batch.end], len(times), max(times))


# --- sequence numbers ------------------------------------------------------------------


class Sequences:
    """The last batches of each idempotent producer in one partition (KIP-98)."""

    def __init__(self) -> None:
        self._producers: dict[int, tuple[int, deque[tuple[tuple[int, int], int]]]] = {}
        """The epoch of each producer, and sequence numbers and offset of its batches."""

    def offset_of_duplicate(self, batch: RecordBatch, release: tuple[int, int]) -> int | None:
        """Return the offset of a batch that was appended before, None for the producer's next batch.

        Raises `ApiError` if it is not the next one, as batches are missing before it or it overlaps
        others, if it is so old that its offset is forgotten, or if its producer has a newer epoch.
        """
        if batch.producer_id not in self._producers:
            if batch.producer_id >= 0 and batch.base_sequence and release < (3, 9):
                raise ApiError(ErrorCode.UNKNOWN_PRODUCER_ID)
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
        if batch.base_sequence != (appended[-1][0][1] + 1) % _NUMBERS:
            raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
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
