"""The records inside a batch of magic 2, uncompressed: bytes to records, and back.

::

    varint length, then: int8 attributes (unused)   varint64 timestamp delta   varint offset delta
    varint size, key   varint size, value           (size -1: null)
    varint count of headers, each: varint size, name   varint size, value (-1: null)

All varints are zigzag (see `varint`). The two functions that walk the bytes are long on
purpose: they are where the time of a consumer goes, and a call for each number would
double it. Of most lengths there is one byte: ``byte & 0x81`` is 0 if it is the only one
and not negative, and ``byte >> 1`` is then the length. Differences often have two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable
from cloudevents_kafka.protocol.records._record import Headers, Record, TimestampType
from cloudevents_kafka.protocol.varint import decode_signed, encode_signed

_SMALLEST: Final = 7
"""The bytes of a record that holds nothing."""
_NULL: Final = b"\x01"  # the length -1


class Base(NamedTuple):
    """What a batch's header says of all its records; ``stamp`` is the broker's time, where it set one."""

    offset: int
    timestamp: int
    stamp: int | None = None


def decode_records(  # noqa: C901, PLR0912, PLR0915 - see above
    data: bytes, at: int, end: int, count: int, base: Base
) -> Iterator[Record]:
    """Decode so many records, which reach from ``at`` to ``end``, one after the other; `Malformed`."""
    if not 0 <= count <= (end - at) // _SMALLEST:
        raise Malformed(f"{count} records have no room in {end - at} bytes", at=at, path="records")
    base_offset, base_timestamp, stamp = base
    kind = TimestampType.CREATE if stamp is None else TimestampType.LOG_APPEND
    names: dict[bytes, str] = {}
    try:
        for _ in range(count):
            size = data[at]
            at += 1
            if size & 0x81:
                size, at = _size(data, at)
            stop = at + (size >> 1)
            if stop > end:
                raise Malformed("a record is longer than its batch", at=at, path="records")
            delta = data[at + 1]
            at += 2
            if delta & 0x80:
                more = data[at]
                if more < 0x80:
                    delta = delta & 0x7F | more << 7
                    at += 1
                else:
                    delta, at = _delta(data, at, 64)
            timestamp = base_timestamp + (delta >> 1 ^ -(delta & 1))
            delta = data[at]
            at += 1
            if delta & 0x80:
                more = data[at]
                if more < 0x80:
                    delta = delta & 0x7F | more << 7
                    at += 1
                else:
                    delta, at = _delta(data, at, 32)
            offset = base_offset + (delta >> 1 ^ -(delta & 1))
            key = value = None
            size = data[at]
            at += 1
            if size != 1:
                if size & 0x81:
                    size, at = _size(data, at)
                begin = at
                at += size >> 1
                key = data[begin:at]
            size = data[at]
            at += 1
            if size != 1:
                if size & 0x81:
                    size, at = _size(data, at)
                begin = at
                at += size >> 1
                value = data[begin:at]
            headers = _headers(data, at, stop, names)
            at = stop
            if stamp is not None:
                timestamp = stamp
            yield Record(key, value, headers, None if timestamp == -1 else timestamp, offset, kind)
    except (IndexError, Truncated) as error:
        raise Malformed("a record reaches beyond the end of its batch", at=at, path="records") from error
    if at != end:
        raise Malformed(f"{end - at} bytes follow the last record", at=at, path="records")


def _headers(data: bytes, at: int, stop: int, names: dict[bytes, str]) -> Headers:
    """Decode a record's headers, with which it must end; ``names`` remembers their names."""
    headers: Headers = []
    size = data[at]
    at += 1
    if size & 0x81:
        size, at = _size(data, at)
    if size > stop - at:  # a header has two bytes at least, and size is twice the count
        raise Malformed("headers have no room in their record", at=at, path="records.headers")
    for _ in range(size >> 1):
        size = data[at]
        at += 1
        if size & 0x81:
            size, at = _size(data, at)
        begin = at
        at += size >> 1
        raw = data[begin:at]
        try:
            name = names[raw]
        except KeyError:
            name = names[raw] = raw.decode("utf-8", "surrogateescape")
        size = data[at]
        at += 1
        if size & 0x81:
            if size == 1:
                headers.append((name, None))
                continue
            size, at = _size(data, at)
        begin = at
        at += size >> 1
        headers.append((name, data[begin:at]))
    if at != stop:
        raise Malformed("a record's fields and its length do not agree", at=at, path="records")
    return headers


def _size(data: bytes, at: int) -> tuple[int, int]:
    """Read on after the first byte of a length; return twice the length, and where it ends."""
    first, second = data[at - 1], data[at]
    if first & 1:
        raise Malformed("a length is negative where there is no null", at=at - 1, path="records")
    if second < 0x80:
        return first & 0x7F | second << 7, at + 1
    length, at = decode_signed(data, at - 1)
    return length << 1, at


def _delta(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Read on after the first two bytes of a difference; return its zigzag number, and where it ends."""
    number, at = decode_signed(data, at - 1, bits)
    return zigzag.fold(number), at


class _Varints(dict[int, bytes]):
    """The encodings of integers, cached."""

    def __missing__(self, number: int) -> bytes:
        return remember(self, number, encode_signed(number, 64), max_entries=20_000)


_VARINTS: Final = _Varints()


def encode_records(records: Iterable[Record], offsets: Iterable[int], base: Base) -> bytes:
    """Encode records, at those offsets; `Unencodable` for names that are no text."""
    parts: list[bytes] = []
    varints, names = _VARINTS, dict[str, bytes]()
    for record, offset in zip(records, offsets, strict=True):
        key, value, headers = record.key, record.value, record.headers
        timestamp = -1 if record.timestamp is None else record.timestamp
        fields = [
            b"\x00",
            varints[timestamp - base.timestamp],
            varints[offset - base.offset],
            *((_NULL,) if key is None else (varints[len(key)], key)),
            *((_NULL,) if value is None else (varints[len(value)], value)),
            varints[len(headers)],
        ]
        for name, header in headers:
            fields.append(names.get(name) or _named(name, names))
            if header is None:
                fields.append(_NULL)
            else:
                fields += (varints[len(header)], header)
        body = b"".join(fields)
        parts += (varints[len(body)], body)
    return b"".join(parts)


def _named(name: str, names: dict[str, bytes]) -> bytes:
    try:
        raw = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Unencodable(f"a header's name is no text: {name!a}") from error
    names[name] = _VARINTS[len(raw)] + raw
    return names[name]
