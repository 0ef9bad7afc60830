"""The fields of message sets and record batches, including compressed data.

The decoders in `records` are fast and skip fields that a consumer does not need. The functions in this module
explain every byte. An invalid entry ends the decoding of its message set, but not the decoding of the frame.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.explain._cursor import Cursor
from cloudevents_kafka.protocol.explain._field import format_time
from cloudevents_kafka.protocol.frames import trailing_bytes
from cloudevents_kafka.protocol.records import ControlRecord, Record
from cloudevents_kafka.protocol.records.checksum import crc32c
from cloudevents_kafka.protocol.records.record import ABORT, COMMIT
from cloudevents_kafka.protocol.schema import INT8, INT16, INT32, INT64, VARINTS, Varint

_START: Final = 12  # offset and size, which the size does not include
_MAGIC_AT: Final = 16
_MIN_SIZE: Final = 14  # of a message: checksum, magic, attributes, two lengths
_PARTIAL: Final = "a partial entry: brokers cut the records at the requested size"
_SIZE: Final = VARINTS["varint32"]


def explain_records(cursor: Cursor, path: str, depth: int = 0) -> None:
    """Explain the entries from the cursor's index to the cursor's end; add an invalid entry as a problem."""
    number = 0
    while cursor.at < cursor.end:
        where = f"{path}[{number}]"
        if cursor.frame.is_cut:
            cursor.skip(where)
            return
        with cursor.stop_on_error(where):
            stop = _stop(cursor, where)
            if stop is None:
                # S0-M7: "a partial message at the end of the message set"
                cursor.add_field(where, cursor.end, "partial", cursor.end - cursor.at, _PARTIAL)
                return
            _entry(cursor.part(stop), where, depth)
            cursor.at = stop
        number += 1


def _stop(cursor: Cursor, path: str) -> int | None:
    """Return the index after a message or batch, or None if its last bytes are missing."""
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
    """Add the fields of a message or record batch."""
    magic = cursor.data[cursor.at + _MAGIC_AT]
    with cursor.stop_on_error(path):
        if magic == 2:
            _batch(cursor, path)
        elif magic < 2:
            _message(cursor, path, depth)
        else:
            raise Malformed(f"the magic must be 0, 1 or 2, got {magic}", at=cursor.at + _MAGIC_AT, path=path)
        if cursor.at < cursor.end:
            raise Malformed(trailing_bytes(cursor.end - cursor.at), at=cursor.at, path=path)


# --- message sets --------------------------------------------------------------------


def _message(cursor: Cursor, path: str, depth: int) -> None:
    cursor.add_integer(f"{path}.offset", INT64)
    cursor.add_integer(f"{path}.message_size", INT32)
    cursor.add_checksum(f"{path}.crc", zlib.crc32(cursor.data[cursor.at + 4 : cursor.end]))
    magic = cursor.add_integer(f"{path}.magic_byte", INT8)
    flags = cursor.add_integer(f"{path}.attributes", INT8, magic=magic)
    if magic:
        cursor.add_integer(f"{path}.timestamp", INT64)
    cursor.add_bytes(f"{path}.key", INT32)
    if not flags & 7:
        cursor.add_bytes(f"{path}.value", INT32)
        return
    packed = cursor.add_bytes(f"{path}.value", INT32, describe=lambda _: "a compressed message set")
    if packed is None:
        raise Malformed("a compressed message set must not be null", at=cursor.at, path=path)
    inner = cursor.decompress(f"{path}.value", packed, flags, depth)
    explain_records(inner, f"{path}.messages", depth + 1)


# --- record batches ------------------------------------------------------------------


def _batch(cursor: Cursor, path: str) -> None:
    offset = cursor.add_integer(f"{path}.base_offset", INT64)
    cursor.add_integer(f"{path}.batch_size", INT32)
    cursor.add_integer(f"{path}.partition_leader_epoch", INT32)
    cursor.add_integer(f"{path}.magic", INT8)
    cursor.add_checksum(f"{path}.crc", crc32c(cursor.data[cursor.at + 4 : cursor.end]))
    flags = cursor.add_integer(f"{path}.attributes", INT16, magic=2)
    cursor.add_integer(f"{path}.last_offset_delta", INT32)
    time = cursor.add_integer(f"{path}.base_timestamp", INT64)
    cursor.add_integer(f"{path}.max_timestamp", INT64)
    cursor.add_integer(f"{path}.producer_id", INT64)
    cursor.add_integer(f"{path}.producer_epoch", INT16)
    cursor.add_integer(f"{path}.base_sequence", INT32)
    count = cursor.add_integer(f"{path}.records", INT32)
    inner = cursor
    if flags & 7 and (count or cursor.at < cursor.end):  # a batch that compaction has emptied has no body
        packed = cursor.data[cursor.at : cursor.end]
        cursor.add_field(f"{path}.compressed", cursor.end, "rest", packed, "compressed records")
        inner = cursor.decompress(f"{path}.compressed", packed, flags)
    _records(inner, f"{path}.records", count, (offset, time), control=bool(flags & 0x20))


def _records(cursor: Cursor, path: str, count: int, base: tuple[int, int], *, control: bool) -> None:
    with cursor.stop_on_error(path):
        for number in range(count):
            where = f"{path}[{number}]"
            start = cursor.at
            size = cursor.add_integer(f"{where}.length", _SIZE)
            if size < 0:
                raise Malformed(
                    f"the length of a record must be at least 0, got {size}", at=start, path=where
                )
            part = cursor.part(cursor.check(size, where))
            with part.stop_on_error(where):
                _record(part, where, base, control=control)
            cursor.at = part.end
        if cursor.at < cursor.end or count < 0:
            left = pluralize(cursor.end - cursor.at, "more byte")
            rule = f"the batch must end after {pluralize(count, 'record')}, got {left}"
            raise Malformed(rule, at=cursor.at, path=path)


def _record(cursor: Cursor, path: str, base: tuple[int, int], *, control: bool) -> None:
    cursor.add_integer(f"{path}.attributes", INT8)
    _delta(cursor, f"{path}.timestamp_delta", VARINTS["varint64"], base[1])
    _delta(cursor, f"{path}.offset_delta", _SIZE, base[0])
    cursor.add_bytes(f"{path}.key", _SIZE, describe=_describe_control if control else None)
    cursor.add_bytes(f"{path}.value", _SIZE)
    start = cursor.at
    count = cursor.add_integer(f"{path}.headers", _SIZE)
    if count < 0:
        raise Malformed(f"the number of headers must be at least 0, got {count}", at=start, path=path)
    for number in range(count):
        cursor.add_bytes(f"{path}.headers[{number}].name", _SIZE, nullable=False)
        cursor.add_bytes(f"{path}.headers[{number}].value", _SIZE)
    if cursor.at < cursor.end:
        raise Malformed("the fields of a record must end where the record ends", at=cursor.at, path=path)


def _delta(cursor: Cursor, path: str, type: Varint, base: int) -> None:
    delta, end = cursor.read_integer(path, type)
    total = base + delta
    meaning = f"offset {total}" if type is _SIZE else "" if total == -1 else format_time(total)
    cursor.add_field(path, end, type.name, delta, meaning)


def _describe_control(key: bytes) -> str:
    if len(key) < 4:
        return ""
    types = {ABORT: "the transaction is aborted", COMMIT: "the transaction is committed"}
    type = ControlRecord.from_record(Record(key=key)).type
    return types.get(type, "a control record between brokers")
