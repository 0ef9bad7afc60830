"""Record batches: magic 2, the format of brokers and clients since 0.11.

::

    int64 base offset   int32 size   int32 partition leader epoch   int8 magic   uint32 crc
    int16 attributes    int32 last offset delta   int64 base timestamp   int64 max timestamp
    int64 producer id   int16 producer epoch      int32 base sequence    int32 count, records

In the attributes, bits 0 to 2 are the codec. Bit 3 is set if the broker set the timestamps. Bit 4 is set in a
transactional batch, and bit 5 is set in a control batch. Bit 6 is set if the base timestamp is a delete
horizon. The checksum (CRC-32C) covers all bytes that follow it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, Unencodable
from cloudevents_kafka.protocol.records._batch_body import Base, decode_records, encode_records
from cloudevents_kafka.protocol.records.checksum import crc32c
from cloudevents_kafka.protocol.records.compression import LIMIT, Codec, compress, unpack
from cloudevents_kafka.protocol.records.record import ControlRecord, Record, TimestampType, offsets_of

_HEADER: Final = struct.Struct(">qiiBIhiqqqhii")
_BEFORE_CRC: Final = struct.Struct(">qiiBI")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")
_START: Final = 12  # offset and size, which the size does not include
_TYPES: Final = (TimestampType.CREATE, TimestampType.LOG_APPEND)
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_HORIZON: Final = 0x40


class RecordBatch(msgspec.Struct, frozen=True, gc=False):
    """The header of a batch; the records are decoded on demand, and again on each iteration.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Batches, Record, RecordBatch, encode_batch
        >>> (batch,) = Batches(encode_batch([Record(value=b"17"), Record(value=b"18")], base_offset=7))
        >>> isinstance(batch, RecordBatch), batch.base_offset, batch.last_offset
        (True, 7, 8)
    """

    data: bytes
    start: int
    end: int
    check_crc: bool
    limit: int
    base_offset: int
    size: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    def __repr__(self) -> str:
        """Return a text with the offsets, the record count and the size of the batch."""
        return (
            f"<RecordBatch offsets={self.base_offset}..{self.last_offset} count={self.count}"
            f" {self.end - self.start} bytes>"
        )

    @property
    def last_offset(self) -> int:
        """The last offset of the batch, even if compaction removed the record with this offset."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        """The codec of the records; raises `Malformed` for an unknown codec."""
        return Codec.of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps: the producer, or the broker."""
        return _TYPES[self.attributes >> 3 & 1]

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the records are control records; see `control_record`."""
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """The earliest time in ms at which compaction may drop the batch's tombstones, or None if not set."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None

    def control_record(self) -> ControlRecord | None:
        """Return the first control record, or None if the batch contains no control record.

        Raises the errors of `records`.
        """
        if not self.is_control:
            return None
        return next(map(ControlRecord.from_record, self), None)

    def records(self) -> list[Record]:
        """Return all records.

        Raises `Malformed` or `Corrupt` for wrong bytes, and `Unsupported` if the codec is not installed.
        """
        return list(self)

    def __iter__(self) -> Iterator[Record]:
        """Return an iterator over the records of this batch.

        Raises the errors of `records`.
        """
        if self.check_crc:
            self._check()
        if self.last_offset_delta < 0:
            raise Malformed(
                f"the last offset delta must be at least 0, got {self.last_offset_delta}",
                at=self.start,
                path="last offset delta",
            )
        body = self.start + _HEADER.size
        if self.count == 0 and body == self.end:  # compaction leaves such batches, with any codec
            return iter(())
        append_time = self.max_timestamp if self.timestamp_type is TimestampType.LOG_APPEND else None
        base = Base(self.base_offset, self.base_timestamp, append_time)
        if self.codec == Codec.NONE:
            return decode_records(self.data, body, self.end, self.count, base)
        body_data = unpack(self.data[body : self.end], self.codec, self.limit)
        return decode_records(body_data, 0, len(body_data), self.count, base)

    def _check(self) -> None:
        found = crc32c(self.data[self.start + _BEFORE_CRC.size : self.end])
        if found != self.crc:
            raise Corrupt(f"the CRC-32C must be {self.crc:08x}, got {found:08x}", at=self.start)


def read_batch(
    data: bytes, start: int, end: int, *, check_crc: bool = True, limit: int = LIMIT
) -> RecordBatch:
    """Return the batch between two indexes that `find_entries` has yielded."""
    return RecordBatch(data, start, end, check_crc, limit, *_HEADER.unpack_from(data, start))


def encode_batch(
    records: Iterable[Record],
    codec: Codec = Codec.NONE,
    *,
    base_offset: int = 0,
    keep_offsets: bool = False,
    timestamp_type: TimestampType = TimestampType.CREATE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Return the bytes of a batch of at least 1 record.

    If ``keep_offsets`` is true, the records keep their offsets; if not, offsets count from ``base_offset``.
    Raises `Unencodable` if a value does not fit its field, and `Unsupported` if the codec is not installed.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Record, encode_batch
        >>> len(encode_batch([Record(key=b"customer-4", value=b"17")]))
        80
    """
    records = list(records)
    if not records:
        raise Unencodable("a batch must have at least 1 record")
    offsets = offsets_of(records, None if keep_offsets else base_offset)
    times = [-1 if record.timestamp is None else record.timestamp for record in records]
    base = Base(offsets[0], times[0])
    body = compress(encode_records(records, offsets, base), codec)
    flags = (_TRANSACTIONAL if is_transactional else 0) | (_CONTROL if is_control else 0)
    try:
        rest = _AFTER_CRC.pack(
            codec | timestamp_type << 3 | flags,
            offsets[-1] - base.offset,
            base.timestamp,
            max(times),
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
        size = _BEFORE_CRC.size - _START + len(rest) + len(body)
        rest += body
        return _BEFORE_CRC.pack(base.offset, size, partition_leader_epoch, 2, crc32c(rest)) + rest
    except struct.error as error:
        raise Unencodable(f"the numbers of a batch must fit their fields: {error}") from error
