"""What a producer sent, checked and made ready for the log: offsets are the broker's.

Sets of compressed messages are packed anew, with the right offsets inside, as brokers do; the
offset of an uncompressed message, and of a batch, lies outside its checksum and is
written over.
"""

from __future__ import annotations

import struct
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
from cloudevents_kafka.testing.wire_broker.errors import Refused

_OFFSET: Final = struct.Struct(">q")
_OFFSET_AND_EPOCH: Final = struct.Struct(">qii")


class Entry(NamedTuple):
    """A message, a wrapper of messages or a batch, as it lies in the log.

    ``newest`` is the latest timestamp in it, -1 if there is none; ``written`` is when it was
    appended. Both in milliseconds.
    """

    base: int
    last: int
    data: bytes
    magic: int
    newest: int
    written: int


class Sent(NamedTuple):
    """An entry as it was sent; ``offsets`` is how many offsets are its."""

    batch: Batch
    data: bytes
    offsets: int
    newest: int

    def placed(self, base: int, epoch: int, written: int) -> Entry:
        """Give it offsets from ``base`` on."""
        last = base + self.offsets - 1
        batch = self.batch
        if isinstance(batch, RecordBatch):
            data = _OFFSET_AND_EPOCH.pack(base, len(self.data) - 12, epoch) + self.data[16:]
        elif batch.codec is Codec.NONE:
            data = _OFFSET.pack(base) + self.data[8:]
        else:
            data = encode_message_set(batch, batch.magic, batch.codec, base_offset=base)
        return Entry(base, last, data, batch.magic, self.newest, written)


def sent_in_set(data: bytes, most: int, magic: int) -> list[Sent]:
    """Check a message set, which may be empty, and bring it into the log's form; `Refused`.

    Brokers before 0.10 keep a message of magic 1 as it is, and fail on a wrapper of such.
    """
    sent = _all(data, most)
    if any(isinstance(one.batch, RecordBatch) for one in sent):
        raise Refused(ErrorCode.CORRUPT_MESSAGE)
    if any(one.batch.magic > magic and one.batch.codec is not Codec.NONE for one in sent):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if all(one.batch.magic >= magic for one in sent):
        return sent
    runs = groupby(sent, key=lambda one: one.batch.codec)
    return _all(b"".join(_converted(list(run), codec, magic) for codec, run in runs), most)


def _converted(run: list[Sent], codec: Codec, magic: int) -> bytes:
    records = chain.from_iterable(one.batch for one in run)
    return encode_batch(records, codec) if magic == 2 else encode_message_set(records, magic, codec)


def sent_in_batch(data: bytes, most: int) -> tuple[RecordBatch, Sent]:
    """Check that there is one record batch, and it alone; `Refused`."""
    sent = _all(data, most)
    if len(sent) != 1:
        raise Refused(ErrorCode.INVALID_RECORD)
    batch = sent[0].batch
    if not isinstance(batch, RecordBatch) or sent[0].offsets < 1 or batch.is_control:
        raise Refused(ErrorCode.INVALID_RECORD)
    return batch, sent[0]


def _all(data: bytes, most: int) -> list[Sent]:
    try:
        batches = Batches(data)
        if batches.partial_size:
            raise Refused(ErrorCode.CORRUPT_MESSAGE)
        if any(batch.end - batch.start > most for batch in batches):
            raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
        return list(_checked(data, batches))
    except Unsupported as error:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE) from error
    except Malformed as error:
        raise Refused(ErrorCode.CORRUPT_MESSAGE) from error


def _checked(data: bytes, batches: Batches) -> Iterator[Sent]:
    for batch in batches:
        whole = data[batch.start : batch.end]
        if isinstance(batch, MessageEntry):
            times = [-1 if record.timestamp is None else record.timestamp for record in batch]
            if times:
                yield Sent(batch, whole, len(times), max(times))
            continue
        if _count(batch) != batch.last_offset_delta + 1:
            raise Refused(ErrorCode.INVALID_RECORD)
        yield Sent(batch, whole, batch.count, batch.max_timestamp)


def _count(batch: RecordBatch) -> int:
    """Count the records by reading them all; without their codec, the header is believed."""
    try:
        return sum(1 for _ in batch)
    except Unsupported:
        return batch.count
