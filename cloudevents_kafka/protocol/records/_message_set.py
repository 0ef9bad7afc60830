"""Message sets: messages of magic 0 and 1, the format of brokers before 0.11.

::

    int64 offset   int32 size   uint32 crc   int8 magic   int8 attributes
    int64 timestamp (magic 1)   int32 size, key   int32 size, value        (size -1: null)

In the attributes, bits 0 to 2 are the codec; in magic 1, bit 3 is set if the broker set the timestamp. A
compressed message set is the value of a wrapper message. In magic 0, the inner messages have absolute
offsets. In magic 1, the offsets of the inner messages count from 0, and the offset of the wrapper is the
absolute offset of the last inner message. The checksum (CRC-32) covers all bytes that follow it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

import msgspec

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, Unencodable
from cloudevents_kafka.protocol.records._unpacked import LARGE, Data, free, take
from cloudevents_kafka.protocol.records.compression import LIMIT, Codec, compress
from cloudevents_kafka.protocol.records.nesting import Nesting
from cloudevents_kafka.protocol.records.record import START, Record, TimestampType, find_entries, offsets_of

_HEAD: Final = struct.Struct(">qiIBB")
_CRC: Final = struct.Struct(">I")
_SIZE: Final = struct.Struct(">i")
_TIMESTAMP: Final = struct.Struct(">q")
_TYPES: Final = (TimestampType.CREATE, TimestampType.LOG_APPEND)
_AFTER_CRC: Final = START.size + _CRC.size


class MessageEntry(msgspec.Struct, frozen=True, gc=False):
    """A message or a wrapper message; its attributes have the same names as the attributes of `RecordBatch`.

    The entry's records are decoded on demand, and again on each iteration.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Batches, Record, encode_message_set
        >>> [entry.magic for entry in Batches(encode_message_set([Record(value=b"17")], magic=0))]
        [0]
    """

    data: bytes
    start: int
    end: int
    last_offset: int
    magic: int
    attributes: int
    check_crc: bool
    limit: int

    is_control = False
    is_transactional = False
    producer_id = -1
    producer_epoch = -1
    base_sequence = -1

    def __repr__(self) -> str:
        """Return a text with the magic, offset and size of the message."""
        return (
            f"<MessageEntry magic={self.magic} last_offset={self.last_offset} {self.end - self.start} bytes>"
        )

    @property
    def codec(self) -> Codec:
        """The codec of a wrapper message, or `Codec.NONE`; raises `Malformed` for an unknown codec."""
        return Codec.of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamp: the producer, or in magic 1 possibly the broker."""
        return _TYPES[self.attributes >> 3 & 1 if self.magic else 0]

    @property
    def base_offset(self) -> int:
        """The offset of the first record; reading this property decompresses a wrapper message."""
        if self.codec == Codec.NONE:
            return self.last_offset
        return next((record.offset for record in self), self.last_offset)

    def records(self) -> list[Record]:
        """Return all records.

        Raises `Malformed` or `Corrupt` for wrong bytes, and `Unsupported` if the codec is not installed.
        """
        return list(self)

    def __iter__(self) -> Iterator[Record]:
        """Return an iterator over the records of this entry.

        Raises the errors of `records`.
        """
        if self.codec == Codec.NONE:
            return iter((_record(self),))
        return _unwrap(self, Nesting(self.limit, self.end - self.start), 0)


def read_message(
    data: Data, start: int, end: int, *, check_crc: bool = True, limit: int = LIMIT
) -> MessageEntry:
    """Return the entry in the bytes from ``start`` to ``end``; `find_entries` yields these two indexes."""
    offset, _, _, magic, attributes = _HEAD.unpack_from(data, start)
    return MessageEntry(cast("bytes", data), start, end, offset, magic, attributes, check_crc, limit)


def _unwrap(wrapper: MessageEntry, nesting: Nesting, depth: int) -> Iterator[Record]:
    timestamp, _, value = _fields(wrapper)
    if value is None:
        raise Malformed("a compressed message set must not be null", at=wrapper.start, path="value")
    changes: dict[str, Any] = {}
    if wrapper.timestamp_type == TimestampType.LOG_APPEND and timestamp is not None:
        changes = {"timestamp": timestamp, "timestamp_type": TimestampType.LOG_APPEND}
    for entry in _inner(wrapper, nesting.unpack(value, wrapper.codec, depth)):
        # S0-M6: "we allow messages to recursively contain compressed message sets"
        plain = entry.codec == Codec.NONE
        for record in (_record(entry),) if plain else _unwrap(entry, nesting, depth + 1):
            yield msgspec.structs.replace(record, **changes) if changes else record


def _record(entry: MessageEntry) -> Record:
    timestamp, key, value = _fields(entry)
    return Record(key, value, [], timestamp, entry.last_offset, entry.timestamp_type)


def _inner(wrapper: MessageEntry, data: Data) -> Iterator[MessageEntry]:
    """Yield the entries of a decompressed message set, with absolute offsets; free an `mmap` step by step."""
    # If a producer left the wrapper's offset at 0, keep the inner offsets, as the Java client does.
    shift = max(0, wrapper.last_offset - _last_offset(data)) if wrapper.magic else 0
    end = freed = 0
    for start, end in find_entries(data):
        if start - freed > LARGE:
            free(data, freed, start)
            freed = start
        entry = read_message(data, start, end, check_crc=wrapper.check_crc)
        if entry.magic == 2:
            raise Malformed("a compressed message set must have magic 0 or 1, got 2", at=start, path="magic")
        yield msgspec.structs.replace(entry, last_offset=entry.last_offset + shift) if shift else entry
    if partial_size := len(data) - end:
        raise Malformed(
            f"a compressed message set must end with a complete message, got {partial_size} more bytes"
        )


def _last_offset(data: Data) -> int:
    """Return the offset of the last entry, or 0 if there are no entries."""
    last = 0
    for start, _ in find_entries(data):
        last = start
    offset: int = START.unpack_from(data, last)[0] if len(data) >= START.size else 0
    return offset


def _fields(entry: MessageEntry) -> tuple[int | None, bytes | None, bytes | None]:
    """Check the checksum of a message; return its timestamp, key and value."""
    data, at = entry.data, entry.start + _HEAD.size
    if entry.check_crc:
        (expected,) = _CRC.unpack_from(data, entry.start + START.size)
        # S0-M3: the CRC-32 "of the remainder of the message bytes"
        begin, end = entry.start + _AFTER_CRC, entry.end
        found = zlib.crc32(data[begin:end]) if end - begin < LARGE else _crc_of_large(data, begin, end)
        if found != expected:
            raise Corrupt(f"the CRC-32 must be {expected:08x}, got {found:08x}", at=entry.start)
    timestamp = None
    if entry.magic:
        milliseconds = _TIMESTAMP.unpack_from(data, at)[0]
        timestamp = None if milliseconds == -1 else milliseconds
        at += _TIMESTAMP.size
    key, at = _bytes(data, at, entry.end)
    value, at = _bytes(data, at, entry.end)
    if at != entry.end:
        raise Malformed(f"a message must end with its value, got {entry.end - at} more bytes", at=at)
    return timestamp, key, value


def _crc_of_large(data: Data, begin: int, end: int) -> int:
    with memoryview(data) as view, view[begin:end] as part:
        return zlib.crc32(part)


def _bytes(data: Data, at: int, end: int) -> tuple[bytes | None, int]:
    begin = at + _SIZE.size
    size = _SIZE.unpack_from(data, at)[0] if begin <= end else -2
    if size == -1:
        return None, begin
    if not 0 <= size <= end - begin:
        raise Malformed("a key or value must fit into its message", at=at)
    stop = begin + size
    return (data[begin:stop] if size < LARGE else take(data, begin, stop)), stop


def encode_message_set(
    records: Iterable[Record],
    magic: int = 1,
    codec: Codec = Codec.NONE,
    *,
    base_offset: int = 0,
    keep_offsets: bool = False,
    timestamp_type: TimestampType = TimestampType.CREATE,
) -> bytes:
    """Return the bytes of a message set; with a codec, the bytes of one wrapper message.

    If ``keep_offsets`` is true, the records keep their offsets; if not, offsets count from ``base_offset``.
    Magic 0 drops timestamps. Raises `Unencodable` for headers and for zstd, because both need magic 2. Raises
    `Unsupported` if the codec is not installed.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Record, encode_message_set
        >>> encode_message_set([Record(value=b"17")], magic=0).hex()
        '0000000000000000000000101ac427350000ffffffff000000023137'
    """
    if magic not in {0, 1}:
        raise Unencodable(f"the magic of a message set must be 0 or 1, got {magic}")
    if codec == Codec.ZSTD:
        raise Unencodable("the codec of a message set must not be zstd; use a record batch (magic 2)")
    records = list(records)
    offsets = offsets_of(records, None if keep_offsets else base_offset)
    attributes = timestamp_type << 3 if magic else 0
    if codec == Codec.NONE or not records:
        return _messages(records, offsets, magic, attributes)
    first = offsets[0] if magic else 0
    plain = _messages(records, [offset - first for offset in offsets], magic, attributes)
    packed = compress(plain, codec, old_lz4=magic == 0)
    newest = max((record.timestamp for record in records if record.timestamp is not None), default=None)
    return _message(Record(value=packed, timestamp=newest), offsets[-1], magic, attributes | codec)


def _messages(records: list[Record], offsets: Sequence[int], magic: int, attributes: int) -> bytes:
    pairs = zip(records, offsets, strict=True)
    return b"".join(_message(record, offset, magic, attributes) for record, offset in pairs)


def _message(record: Record, offset: int, magic: int, attributes: int) -> bytes:
    if record.headers:
        raise Unencodable(
            f"a message of magic {magic} must not have headers; use magic 2 (Kafka 0.11 and later)"
        )
    timestamp = -1 if record.timestamp is None else record.timestamp
    try:
        body = b"".join(
            (
                bytes((magic, attributes)),
                _TIMESTAMP.pack(timestamp) if magic else b"",
                *_nullable(record.key),
                *_nullable(record.value),
            )
        )
        return START.pack(offset, _CRC.size + len(body)) + _CRC.pack(zlib.crc32(body)) + body
    except struct.error as error:
        raise Unencodable(
            f"the offset, timestamp and size of a message must fit their fields: {error}"
        ) from error


def _nullable(field: bytes | None) -> tuple[bytes, bytes]:
    return (_SIZE.pack(-1), b"") if field is None else (_SIZE.pack(len(field)), field)
