"""Message sets: messages of magic 0 and 1, as brokers before 0.11 know them.

::

    int64 offset   int32 size   uint32 crc   int8 magic   int8 attributes
    int64 timestamp (magic 1)   int32 size, key   int32 size, value        (size -1: null)

Attributes: codec in the lowest three bits, and in magic 1 bit 3 for a timestamp that the
broker set. A compressed set is the value of one wrapper message. In magic 0 the messages
inside have their own offsets; in magic 1 they count from 0, and the wrapper has that of
the last one. The checksum, CRC-32, is over all that follows it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, Unencodable
from cloudevents_kafka.protocol.records._compression import LIMIT, Codec, compress, decompress
from cloudevents_kafka.protocol.records._framing import START, frames
from cloudevents_kafka.protocol.records._record import Record, TimestampType, offsets_of

_HEAD: Final = struct.Struct(">qiIBB")
_CRC: Final = struct.Struct(">I")
_SIZE: Final = struct.Struct(">i")
_TIMESTAMP: Final = struct.Struct(">q")
_TYPES: Final = (TimestampType.CREATE, TimestampType.LOG_APPEND)
_AFTER_CRC: Final = START.size + _CRC.size
_DEEPEST: Final = 8
"""How deep wrappers may be nested. Brokers nest once; the guide sets no bound."""


class MessageEntry(msgspec.Struct, frozen=True, gc=False):
    """A message, or a wrapper of compressed ones, in the shape of a `RecordBatch`.

    Its records are decoded when they are asked for, each time anew.
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
        """Say where it stands and what it is, without its bytes."""
        return (
            f"<MessageEntry magic={self.magic} last_offset={self.last_offset} {self.end - self.start} bytes>"
        )

    @property
    def codec(self) -> Codec:
        """How the messages inside are compressed; NONE for a message; `Malformed` if not known."""
        return Codec.of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamp; always the producer in magic 0."""
        return _TYPES[self.attributes >> 3 & 1 if self.magic else 0]

    @property
    def base_offset(self) -> int:
        """The first record's offset; a wrapper must be unpacked to see it."""
        if self.codec == Codec.NONE:
            return self.last_offset
        return next((record.offset for record in self), self.last_offset)

    def records(self) -> list[Record]:
        """Decode all records; `Malformed`, `Corrupt`, and `Unsupported` if a codec is missing."""
        return list(self)

    def __iter__(self) -> Iterator[Record]:
        """Decode one record after the other; errors are those of `records`."""
        if self.codec == Codec.NONE:
            return iter((_record(self),))
        return _unwrapped(self, _Allowance(self.limit), 0)


class _Allowance:
    """How many bytes may still be unpacked from one outermost wrapper."""

    def __init__(self, left: int) -> None:
        self._left = left

    def unpacked(self, data: bytes, codec: Codec) -> bytes:
        out = decompress(data, codec, limit=self._left)
        self._left -= len(out)
        return out


def read_message(
    data: bytes, start: int, end: int, *, check_crc: bool = True, limit: int = LIMIT
) -> MessageEntry:
    """Read the head of the entry that reaches from start to end, as `framing.frames` found it."""
    offset, _, _, magic, attributes = _HEAD.unpack_from(data, start)
    return MessageEntry(data, start, end, offset, magic, attributes, check_crc, limit)


def _unwrapped(wrapper: MessageEntry, allowance: _Allowance, depth: int) -> Iterator[Record]:
    timestamp, _, value = _fields(wrapper)
    if depth == _DEEPEST or value is None:
        reason = "is null" if value is None else f"is nested more than {_DEEPEST} deep"
        raise Malformed(f"a compressed message set {reason}", at=wrapper.start, path="value")
    stamped = timestamp if wrapper.timestamp_type == TimestampType.LOG_APPEND else None
    for entry in _inner(wrapper, allowance.unpacked(value, wrapper.codec)):
        plain = entry.codec == Codec.NONE
        for record in (_record(entry),) if plain else _unwrapped(entry, allowance, depth + 1):
            yield record if stamped is None else _stamped(record, stamped)


def _record(entry: MessageEntry) -> Record:
    timestamp, key, value = _fields(entry)
    return Record(key, value, [], timestamp, entry.last_offset, entry.timestamp_type)


def _inner(wrapper: MessageEntry, data: bytes) -> Iterator[MessageEntry]:
    """Read the entries of an unpacked set, their offsets made absolute."""
    bounds, partial_size = frames(data)
    if partial_size:
        raise Malformed(f"a compressed message set ends with {partial_size} bytes of a cut message")
    ends = bounds[1:]
    last: int = START.unpack_from(data, bounds[-2])[0] if ends else 0
    # A producer may leave the wrapper's offset at 0: then those inside stand as they are, as with Java.
    shift = max(0, wrapper.last_offset - last) if wrapper.magic else 0
    for start, end in zip(bounds, ends, strict=False):
        entry = read_message(data, start, end, check_crc=wrapper.check_crc)
        if entry.magic == 2:
            raise Malformed("a compressed message set holds a batch of magic 2", at=start, path="magic")
        yield msgspec.structs.replace(entry, last_offset=entry.last_offset + shift) if shift else entry


def _stamped(record: Record, timestamp: int) -> Record:
    return msgspec.structs.replace(record, timestamp=timestamp, timestamp_type=TimestampType.LOG_APPEND)


def _fields(entry: MessageEntry) -> tuple[int | None, bytes | None, bytes | None]:
    """Check the checksum; return timestamp, key and value."""
    data, at = entry.data, entry.start + _HEAD.size
    if entry.check_crc:
        _check(data, entry.start, entry.end)
    timestamp = None
    if entry.magic:
        written = _TIMESTAMP.unpack_from(data, at)[0]
        timestamp = None if written == -1 else written
        at += _TIMESTAMP.size
    key, at = _bytes(data, at, entry.end)
    value, at = _bytes(data, at, entry.end)
    if at != entry.end:
        raise Malformed(f"{entry.end - at} bytes follow a message's value", at=at)
    return timestamp, key, value


def _check(data: bytes, start: int, end: int) -> None:
    (told,) = _CRC.unpack_from(data, start + START.size)
    found = zlib.crc32(data[start + _AFTER_CRC : end])
    if told != found:
        raise Corrupt(f"the message says CRC-32 {told:08x}, its bytes have {found:08x}", at=start)


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    begin = at + _SIZE.size
    size = _SIZE.unpack_from(data, at)[0] if begin <= end else -2
    if size == -1:
        return None, begin
    if not 0 <= size <= end - begin:
        raise Malformed("a key or value does not fit into its message", at=at)
    return data[begin : begin + size], begin + size


def encode_message_set(
    records: Iterable[Record],
    magic: int = 1,
    codec: Codec = Codec.NONE,
    *,
    base_offset: int = 0,
    keep_offsets: bool = False,
    timestamp_type: TimestampType = TimestampType.CREATE,
) -> bytes:
    """Encode records, of which there may be none, as a set; with a codec, in one wrapper.

    Offsets count from ``base_offset``, unless the records' own are kept. Magic 0 has no
    timestamps, so they are left out. `Unencodable` for headers, which neither magic has,
    and for zstd; `Unsupported` if a codec is missing.
    """
    if magic not in {0, 1}:
        raise Unencodable(f"message sets have magic 0 or 1, not {magic}")
    if codec == Codec.ZSTD:
        raise Unencodable("message sets have no zstd; it came with record batches")
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
        raise Unencodable(f"magic {magic} has no headers; they need magic 2, which brokers have since 0.11")
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
        raise Unencodable(f"a message's offset, timestamp or size is too large: {error}") from error


def _nullable(field: bytes | None) -> tuple[bytes, bytes]:
    return (_SIZE.pack(-1), b"") if field is None else (_SIZE.pack(len(field)), field)
