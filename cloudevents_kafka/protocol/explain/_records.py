"""Records explained: message sets and record batches, and what their compressed bytes unpack to.

The readers in `records` are made to be fast, and skip what no consumer asks for; these
tell every byte. A broken entry ends the set it stands in, not the frame around it.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

from cloudevents_kafka.primitives.varint import MAX_BYTES
from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated
from cloudevents_kafka.protocol.explain._field import Cursor
from cloudevents_kafka.protocol.explain._meanings import attributes, moment, note
from cloudevents_kafka.protocol.records import ABORT, COMMIT, Codec, ControlRecord, Record, crc32c, decompress
from cloudevents_kafka.protocol.schema import INT8, INT16, INT32, INT64, UINT32, VARINTS, Fixed, Varint

_START: Final = 12  # offset and size, which the size does not count
_MAGIC_AT: Final = 16
_SMALLEST: Final = 14  # of a message, by its size: checksum, magic, attributes, two lengths
_DEEPEST: Final = 8
_CUT: Final = "a cut entry: brokers cut where the bytes asked for end"
_DELTA: Final = VARINTS["varint64"]
_SIZE: Final = VARINTS["varint32"]
_MARKS: Final = {ABORT: "the transaction is aborted", COMMIT: "the transaction is committed"}


def explain_records(cursor: Cursor, path: str, depth: int = 0) -> None:
    """Tell of all entries from the cursor to its end; what is broken is a problem of its own."""
    number = 0
    while cursor.at < cursor.end:
        where = f"{path}[{number}]"
        try:
            stop = _stop(cursor, where)
            if stop is None:
                cursor.tell(where, cursor.end, "cut", cursor.end - cursor.at, _CUT)
                return
            _entry(cursor.part(stop), where, depth)
        except ProtocolError as error:
            cursor.break_off(error, where)
        else:
            cursor.at = stop
        number += 1


def _stop(cursor: Cursor, path: str) -> int | None:
    """Return where an entry ends; None where it is cut."""
    if cursor.end - cursor.at <= _MAGIC_AT:
        return None
    (size,) = struct.unpack_from(">i", cursor.data, cursor.at + 8)
    if size < _SMALLEST:
        raise Malformed(f"an entry of {size} bytes is too short for a message", at=cursor.at + 8, path=path)
    stop: int = cursor.at + _START + size
    return stop if stop <= cursor.end else None


def _entry(cursor: Cursor, path: str, depth: int) -> None:
    """Tell of a message or batch; a broken one up to its end."""
    magic = cursor.data[cursor.at + _MAGIC_AT]
    try:
        if magic == 2:
            _batch(cursor, path)
        elif magic < 2:
            _message(cursor, path, depth)
        else:
            raise Malformed(
                f"magic {magic} is not known; there are 0, 1 and 2", at=cursor.at + _MAGIC_AT, path=path
            )
        if cursor.at < cursor.end:
            raise Malformed(f"{cursor.end - cursor.at} bytes are left over", at=cursor.at, path=path)
    except ProtocolError as error:
        cursor.break_off(error, path)


# --- message sets --------------------------------------------------------------------


def _message(cursor: Cursor, path: str, depth: int) -> None:
    fixed(cursor, f"{path}.offset", INT64)
    fixed(cursor, f"{path}.message_size", INT32)
    told_checksum(cursor, f"{path}.crc", zlib.crc32(cursor.data[cursor.at + 4 : cursor.end]))
    magic = fixed(cursor, f"{path}.magic_byte", INT8)
    flags = flags_of(cursor, f"{path}.attributes", INT8, magic)
    if magic:
        fixed(cursor, f"{path}.timestamp", INT64)
    _blob(cursor, f"{path}.key")
    if not flags & 7:
        _blob(cursor, f"{path}.value")
        return
    packed = _blob(cursor, f"{path}.value", "a compressed message set")
    if packed is None or depth == _DEEPEST:
        reason = "is null" if packed is None else f"is nested more than {_DEEPEST} deep"
        raise Malformed(f"a compressed message set {reason}", at=cursor.at, path=path)
    inner = unpacked(cursor, f"{path}.value", packed, flags)
    explain_records(inner, f"{path}.messages", depth + 1)


def _blob(cursor: Cursor, path: str, note: str = "") -> bytes | None:
    """Tell of bytes behind an int32 length."""
    begin = cursor.check(INT32.size, path)
    (size,) = struct.unpack_from(">i", cursor.data, cursor.at)
    if size < -1:
        raise Malformed(f"a length of {size}: it must be 0 or more, or -1 for null", at=cursor.at, path=path)
    end = cursor.check(max(size, 0), path, begin)
    value = None if size < 0 else cursor.data[begin:end]
    cursor.tell(path, end, "nullable_bytes", value, note)
    return value


# --- record batches ------------------------------------------------------------------


def _batch(cursor: Cursor, path: str) -> None:
    offset = fixed(cursor, f"{path}.base_offset", INT64)
    fixed(cursor, f"{path}.batch_size", INT32)
    fixed(cursor, f"{path}.partition_leader_epoch", INT32)
    fixed(cursor, f"{path}.magic", INT8)
    told_checksum(cursor, f"{path}.crc", crc32c(cursor.data[cursor.at + 4 : cursor.end]))
    flags = flags_of(cursor, f"{path}.attributes", INT16, 2)
    fixed(cursor, f"{path}.last_offset_delta", INT32)
    time = fixed(cursor, f"{path}.base_timestamp", INT64)
    fixed(cursor, f"{path}.max_timestamp", INT64)
    fixed(cursor, f"{path}.producer_id", INT64)
    fixed(cursor, f"{path}.producer_epoch", INT16)
    fixed(cursor, f"{path}.base_sequence", INT32)
    count = fixed(cursor, f"{path}.records", INT32)
    inner = cursor
    if flags & 7:
        packed = cursor.data[cursor.at : cursor.end]
        cursor.tell(f"{path}.compressed", cursor.end, "rest", packed, "compressed records")
        inner = unpacked(cursor, f"{path}.compressed", packed, flags)
    _records(inner, f"{path}.records", count, (offset, time), control=bool(flags & 0x20))


def _records(cursor: Cursor, path: str, count: int, base: tuple[int, int], *, control: bool) -> None:
    try:
        for number in range(count):
            where = f"{path}[{number}]"
            start = cursor.at
            size = _varint(cursor, f"{where}.length", _SIZE)
            if size < 0:
                raise Malformed(f"a record of {size} bytes", at=start, path=where)
            _record(cursor.part(cursor.check(size, where)), where, base, control=control)
            cursor.at += size
        if cursor.at < cursor.end or count < 0:
            left = cursor.end - cursor.at
            raise Malformed(f"{left} bytes follow {count} records", at=cursor.at, path=path)
    except ProtocolError as error:
        cursor.break_off(error, path)


def _record(cursor: Cursor, path: str, base: tuple[int, int], *, control: bool) -> None:
    try:
        fixed(cursor, f"{path}.attributes", INT8)
        _delta(cursor, f"{path}.timestamp_delta", _DELTA, base[1])
        _delta(cursor, f"{path}.offset_delta", _SIZE, base[0])
        _key(cursor, f"{path}.key", control=control)
        _small(cursor, f"{path}.value")
        start = cursor.at
        count = _varint(cursor, f"{path}.headers", _SIZE)
        if count < 0:
            raise Malformed(f"{count} headers", at=start, path=path)
        for number in range(count):
            _small(cursor, f"{path}.headers[{number}].name", nullable=False)
            _small(cursor, f"{path}.headers[{number}].value")
        if cursor.at < cursor.end:
            raise Malformed("a record's fields end before its length does", at=cursor.at, path=path)
    except ProtocolError as error:
        cursor.break_off(error, path)


def _delta(cursor: Cursor, path: str, type: Varint, base: int) -> None:
    delta, end = _read(cursor, path, type)
    total = base + delta
    meaning = f"offset {total}" if type is _SIZE else "" if total == -1 else moment(total)
    cursor.tell(path, end, type.name, delta, meaning)


def _key(cursor: Cursor, path: str, *, control: bool) -> None:
    value, end = _small_value(cursor, path)
    meaning = ""
    if control and value is not None and len(value) >= 4:
        meaning = _MARKS.get(ControlRecord.from_record(Record(key=value)).type, "a mark among brokers")
    cursor.tell(path, end, "varint_bytes", value, meaning)


def _small(cursor: Cursor, path: str, *, nullable: bool = True) -> None:
    """Tell of bytes behind a varint length."""
    value, end = _small_value(cursor, path)
    if value is None and not nullable:
        raise Malformed("null, where there must be a name", at=cursor.at, path=path)
    cursor.tell(path, end, "varint_bytes", value)


def _small_value(cursor: Cursor, path: str) -> tuple[bytes | None, int]:
    size, begin = _read(cursor, path, _SIZE)
    if size < -1:
        raise Malformed(f"a length of {size}: it must be 0 or more, or -1 for null", at=cursor.at, path=path)
    end = cursor.check(max(size, 0), path, begin)
    return (None if size < 0 else cursor.data[begin:end]), end


# --- both ----------------------------------------------------------------------------


def unpacked(cursor: Cursor, path: str, packed: bytes, flags: int) -> Cursor:
    """Return a cursor on what compressed bytes unpack to; `Malformed` where they do not."""
    allowance = cursor.into.allowance
    try:
        data = decompress(packed, Codec.of(flags), limit=allowance)
    except ProtocolError as error:
        # Its byte counts in the compressed ones.
        raise Malformed(f"cannot be decompressed: {error}", at=cursor.at, path=path) from error
    cursor.into.allowance -= len(data)
    return Cursor(cursor.into, data, 0, len(data), path)


def fixed(cursor: Cursor, path: str, type: Fixed) -> int:
    """Tell of an integer of fixed width, and return it."""
    end = cursor.check(type.size, path)
    value: int = struct.unpack_from(f">{type.code}", cursor.data, cursor.at)[0]
    cursor.tell(path, end, type.name, value, note(path.rpartition(".")[2], value))
    return value


def flags_of(cursor: Cursor, path: str, type: Fixed, magic: int) -> int:
    """Tell of attributes, and return them."""
    end = cursor.check(type.size, path)
    value: int = struct.unpack_from(f">{type.code}", cursor.data, cursor.at)[0]
    cursor.tell(path, end, type.name, value, attributes(value, magic))
    return value


def told_checksum(cursor: Cursor, path: str, found: int) -> None:
    """Tell of a checksum, and whether it fits its bytes; that it does not is a problem that ends nothing."""
    end = cursor.check(UINT32.size, path)
    told: int = struct.unpack_from(">I", cursor.data, cursor.at)[0]
    fits = told == found
    if not fits:
        cursor.flag(f"the checksum is {told:08x}, that of the bytes {found:08x}", path)
    cursor.tell(path, end, UINT32.name, told, "fits" if fits else f"does not fit: {found:08x} does")


def _varint(cursor: Cursor, path: str, type: Varint) -> Any:
    value, end = _read(cursor, path, type)
    cursor.tell(path, end, type.name, value)
    return value


def _read(cursor: Cursor, path: str, type: Varint) -> tuple[int, int]:
    window = cursor.data[cursor.at : min(cursor.at + MAX_BYTES[type.bits], cursor.end)]
    try:
        value, size = varint.decode_signed(window, 0, type.bits)
    except Malformed as error:
        raise Malformed(error.rule, at=cursor.at, path=path) from None
    except Truncated as error:
        raise Truncated(error.missing, at=cursor.at, path=path) from None
    return value, cursor.at + size
