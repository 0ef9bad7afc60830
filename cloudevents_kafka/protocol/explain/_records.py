"""The fields of message sets and record batches, including compressed data.

The decoders in `records` are fast and skip fields that a consumer does not need; these functions cover every
byte. An invalid entry ends its set, but not the frame.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

from cloudevents_kafka.primitives.varint import MAX_BYTES
from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated
from cloudevents_kafka.protocol.explain._field import Cursor, describe_attributes, describe_value, format_time
from cloudevents_kafka.protocol.frames import trailing_bytes
from cloudevents_kafka.protocol.records import ABORT, COMMIT, Codec, ControlRecord, Record, crc32c, decompress
from cloudevents_kafka.protocol.schema import INT8, INT16, INT32, INT64, UINT32, VARINTS, Fixed, Varint

_START: Final = 12  # offset and size, which the size does not include
_MAGIC_AT: Final = 16
_MIN_SIZE: Final = 14  # of a message: checksum, magic, attributes, two lengths
_MAX_NESTING: Final = 8
_PARTIAL: Final = "a partial entry: brokers cut at the requested size"
_DELTA: Final = VARINTS["varint64"]
_SIZE: Final = VARINTS["varint32"]
_CONTROL_TYPES: Final = {ABORT: "the transaction is aborted", COMMIT: "the transaction is committed"}


def explain_records(cursor: Cursor, path: str, depth: int = 0) -> None:
    """Explain the entries from the cursor to its end; an invalid entry is a problem."""
    number = 0
    while cursor.at < cursor.end:
        where = f"{path}[{number}]"
        try:
            stop = _stop(cursor, where)
            if stop is None:
                cursor.add_field(where, cursor.end, "partial", cursor.end - cursor.at, _PARTIAL)
                return
            _entry(cursor.part(stop), where, depth)
        except ProtocolError as error:
            cursor.stop(error, where)
        else:
            cursor.at = stop
        number += 1


def _stop(cursor: Cursor, path: str) -> int | None:
    """Return the end of an entry, None if it is partial."""
    if cursor.end - cursor.at <= _MAGIC_AT:
        return None
    (size,) = struct.unpack_from(">i", cursor.data, cursor.at + 8)
    if size < _MIN_SIZE:
        raise Malformed(
            f"the size of an entry must be at least {_MIN_SIZE}, got {size}", at=cursor.at + 8, path=path
        )
    stop: int = cursor.at + _START + size
    return stop if stop <= cursor.end else None


def _entry(cursor: Cursor, path: str, depth: int) -> None:
    """Explain a message or batch."""
    magic = cursor.data[cursor.at + _MAGIC_AT]
    try:
        if magic == 2:
            _batch(cursor, path)
        elif magic < 2:
            _message(cursor, path, depth)
        else:
            raise Malformed(f"the magic must be 0, 1 or 2, got {magic}", at=cursor.at + _MAGIC_AT, path=path)
        if cursor.at < cursor.end:
            raise Malformed(trailing_bytes(cursor.end - cursor.at), at=cursor.at, path=path)
    except ProtocolError as error:
        cursor.stop(error, path)


# --- message sets --------------------------------------------------------------------


def _message(cursor: Cursor, path: str, depth: int) -> None:
    explain_integer(cursor, f"{path}.offset", INT64)
    explain_integer(cursor, f"{path}.message_size", INT32)
    explain_checksum(cursor, f"{path}.crc", zlib.crc32(cursor.data[cursor.at + 4 : cursor.end]))
    magic = explain_integer(cursor, f"{path}.magic_byte", INT8)
    flags = explain_integer(cursor, f"{path}.attributes", INT8, magic=magic)
    if magic:
        explain_integer(cursor, f"{path}.timestamp", INT64)
    _blob(cursor, f"{path}.key")
    if not flags & 7:
        _blob(cursor, f"{path}.value")
        return
    packed = _blob(cursor, f"{path}.value", "a compressed message set")
    if packed is None or depth == _MAX_NESTING:
        rule = "not be null" if packed is None else f"be nested at most {_MAX_NESTING} deep"
        raise Malformed(f"a compressed message set must {rule}", at=cursor.at, path=path)
    inner = decompress_field(cursor, f"{path}.value", packed, flags)
    explain_records(inner, f"{path}.messages", depth + 1)


def _blob(cursor: Cursor, path: str, note: str = "") -> bytes | None:
    """Explain bytes after an int32 length; return them."""
    begin = cursor.check(INT32.size, path)
    (size,) = struct.unpack_from(">i", cursor.data, cursor.at)
    if size < -1:
        raise Malformed(f"a length must be at least -1, got {size}", at=cursor.at, path=path)
    end = cursor.check(max(size, 0), path, begin)
    value = None if size < 0 else cursor.data[begin:end]
    cursor.add_field(path, end, "nullable_bytes", value, note)
    return value


# --- record batches ------------------------------------------------------------------


def _batch(cursor: Cursor, path: str) -> None:
    offset = explain_integer(cursor, f"{path}.base_offset", INT64)
    explain_integer(cursor, f"{path}.batch_size", INT32)
    explain_integer(cursor, f"{path}.partition_leader_epoch", INT32)
    explain_integer(cursor, f"{path}.magic", INT8)
    explain_checksum(cursor, f"{path}.crc", crc32c(cursor.data[cursor.at + 4 : cursor.end]))
    flags = explain_integer(cursor, f"{path}.attributes", INT16, magic=2)
    explain_integer(cursor, f"{path}.last_offset_delta", INT32)
    time = explain_integer(cursor, f"{path}.base_timestamp", INT64)
    explain_integer(cursor, f"{path}.max_timestamp", INT64)
    explain_integer(cursor, f"{path}.producer_id", INT64)
    explain_integer(cursor, f"{path}.producer_epoch", INT16)
    explain_integer(cursor, f"{path}.base_sequence", INT32)
    count = explain_integer(cursor, f"{path}.records", INT32)
    inner = cursor
    if flags & 7:
        packed = cursor.data[cursor.at : cursor.end]
        cursor.add_field(f"{path}.compressed", cursor.end, "rest", packed, "compressed records")
        inner = decompress_field(cursor, f"{path}.compressed", packed, flags)
    _records(inner, f"{path}.records", count, (offset, time), control=bool(flags & 0x20))


def _records(cursor: Cursor, path: str, count: int, base: tuple[int, int], *, control: bool) -> None:
    try:
        for number in range(count):
            where = f"{path}[{number}]"
            start = cursor.at
            size = _varint(cursor, f"{where}.length", _SIZE)
            if size < 0:
                raise Malformed(
                    f"the length of a record must be at least 0, got {size}", at=start, path=where
                )
            _record(cursor.part(cursor.check(size, where)), where, base, control=control)
            cursor.at += size
        if cursor.at < cursor.end or count < 0:
            left = cursor.end - cursor.at
            raise Malformed(
                f"the batch must end after {count} records, got {left} more bytes", at=cursor.at, path=path
            )
    except ProtocolError as error:
        cursor.stop(error, path)


def _record(cursor: Cursor, path: str, base: tuple[int, int], *, control: bool) -> None:
    try:
        explain_integer(cursor, f"{path}.attributes", INT8)
        _delta(cursor, f"{path}.timestamp_delta", _DELTA, base[1])
        _delta(cursor, f"{path}.offset_delta", _SIZE, base[0])
        _bytes(cursor, f"{path}.key", control=control)
        _bytes(cursor, f"{path}.value")
        start = cursor.at
        count = _varint(cursor, f"{path}.headers", _SIZE)
        if count < 0:
            raise Malformed(f"the number of headers must be at least 0, got {count}", at=start, path=path)
        for number in range(count):
            _bytes(cursor, f"{path}.headers[{number}].name", nullable=False)
            _bytes(cursor, f"{path}.headers[{number}].value")
        if cursor.at < cursor.end:
            raise Malformed("the fields of a record must have its length", at=cursor.at, path=path)
    except ProtocolError as error:
        cursor.stop(error, path)


def _delta(cursor: Cursor, path: str, type: Varint, base: int) -> None:
    delta, end = _read(cursor, path, type)
    total = base + delta
    meaning = f"offset {total}" if type is _SIZE else "" if total == -1 else format_time(total)
    cursor.add_field(path, end, type.name, delta, meaning)


def _bytes(cursor: Cursor, path: str, *, nullable: bool = True, control: bool = False) -> None:
    """Explain bytes after a varint length; ``control`` is whether they are the key of a control record."""
    size, begin = _read(cursor, path, _SIZE)
    if size < -1:
        raise Malformed(f"a length must be at least -1, got {size}", at=cursor.at, path=path)
    end = cursor.check(max(size, 0), path, begin)
    if size < 0 and not nullable:
        raise Malformed("the name of a header must not be null", at=cursor.at, path=path)
    value = None if size < 0 else cursor.data[begin:end]
    meaning = ""
    if control and value is not None and len(value) >= 4:
        kind = ControlRecord.from_record(Record(key=value)).type
        meaning = _CONTROL_TYPES.get(kind, "a control record between brokers")
    cursor.add_field(path, end, "varint_bytes", value, meaning)


# --- both formats --------------------------------------------------------------------


def decompress_field(cursor: Cursor, path: str, packed: bytes, flags: int) -> Cursor:
    """Return a cursor on the decompressed data of a field; raise `Malformed`."""
    allowance = cursor.findings.allowance
    try:
        data = decompress(packed, Codec.of(flags), limit=allowance)
    except ProtocolError as error:
        # The index of the error is one in the compressed data.
        raise Malformed(f"cannot be decompressed: {error}", at=cursor.at, path=path) from error
    cursor.findings.allowance -= len(data)
    return Cursor(cursor.findings, data, 0, len(data), path)


def explain_integer(cursor: Cursor, path: str, type: Fixed, *, magic: int | None = None) -> int:
    """Explain an integer of fixed width, with a ``magic`` as attributes; return it."""
    end = cursor.check(type.size, path)
    value: int = struct.unpack_from(f">{type.code}", cursor.data, cursor.at)[0]
    name = path.rpartition(".")[2]
    meaning = describe_value(name, value) if magic is None else describe_attributes(value, magic)
    cursor.add_field(path, end, type.name, value, meaning)
    return value


def explain_checksum(cursor: Cursor, path: str, found: int) -> None:
    """Explain a checksum; a wrong one is a problem that does not stop the decoding."""
    end = cursor.check(UINT32.size, path)
    expected: int = struct.unpack_from(">I", cursor.data, cursor.at)[0]
    if expected != found:
        cursor.add_problem(f"the checksum must be {found:08x}, got {expected:08x}", path)
    note = "correct" if expected == found else f"wrong, must be {found:08x}"
    cursor.add_field(path, end, UINT32.name, expected, note)


def _varint(cursor: Cursor, path: str, type: Varint) -> Any:
    value, end = _read(cursor, path, type)
    cursor.add_field(path, end, type.name, value)
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
