"""The uncompressed records of a batch of magic 2: decoding and encoding.

::

    varint length, then: int8 attributes (unused)   varint64 timestamp delta   varint offset delta
    varint size, key   varint size, value           (size -1: null)
    varint count of headers, each: varint size, name   varint size, value (-1: null)

All varints are zigzag encoded (see `varint`). The two decoding functions are long on purpose: a consumer
spends most of its time in these functions, and a function call for each number would double this time. Most
lengths are encoded in one byte. If ``byte & 0x81`` is 0, the length has only this byte, and is the
non-negative number ``byte >> 1``. Deltas are often encoded in two bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, cast

from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable
from cloudevents_kafka.protocol.records._unpacked import LARGE, Data, free, take
from cloudevents_kafka.protocol.records.record import Headers, Record, TimestampType
from cloudevents_kafka.protocol.varint import decode_signed, encode_signed

_SMALLEST: Final = 7
"""The size of an empty record in bytes."""
_MAX_HEADERS: Final = 100_000
"""The largest number of headers of a record: a header of 2 bytes takes 100 bytes of memory."""
_NULL: Final = b"\x01"  # length -1


class Base(NamedTuple):
    """The base offset and timestamp of a batch; ``append_time`` replaces the timestamps of the records."""

    offset: int
    timestamp: int
    append_time: int | None = None


def decode_records(  # noqa: C901, PLR0912, PLR0915 - see above
    data: Data, at: int, end: int, count: int, base: Base
) -> Iterator[Record]:
    """Yield ``count`` records; raise `Malformed` unless the records fill ``data[at:end]``.

    If the data is an `mmap`, the memory of each range is freed after the function has read the range.
    """
    if not 0 <= count <= (end - at) // _SMALLEST:
        raise Malformed(
            f"the count must fit the {end - at} bytes of the records, got {count}", at=at, path="records"
        )
    base_offset, base_timestamp, append_time = base
    kind = TimestampType.CREATE if append_time is None else TimestampType.LOG_APPEND
    names: dict[bytes, str] = {}
    freed, full = at, end if isinstance(data, bytes) else at + LARGE
    try:
        for _ in range(count):
            size = data[at]
            at += 1
            if size & 0x81:
                size, at = _size(data, at)
            stop = at + (size >> 1)
            if stop > end:
                raise Malformed("a record must end within its batch", at=at, path="records")
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
                key = data[begin:at] if size < LARGE else take(data, begin, at)
            size = data[at]
            at += 1
            if size != 1:
                if size & 0x81:
                    size, at = _size(data, at)
                begin = at
                at += size >> 1
                value = data[begin:at] if size < LARGE else take(data, begin, at)
            headers = _headers(data, at, stop, names)
            at = stop
            if at > full:
                free(data, freed, at)
                freed, full = at, at + LARGE
            if append_time is not None:
                timestamp = append_time
            yield Record(key, value, headers, None if timestamp == -1 else timestamp, offset, kind)
    except (IndexError, Truncated) as error:
        raise Malformed("a record must end within its batch", at=at, path="records") from error
    if at != end:
        raise Malformed(
            f"the batch must end with its last record, got {end - at} more bytes", at=at, path="records"
        )


def _headers(data: Data, at: int, stop: int, names: dict[bytes, str]) -> Headers:
    """Return the headers at the end of a record; ``names`` is a cache of decoded names."""
    headers: Headers = []
    size = data[at]
    at += 1
    if size & 0x81:
        size, at = _size(data, at)
    if size > stop - at:  # a header has at least 2 bytes, and size is twice the count
        raise Malformed("headers must end within their record", at=at, path="records.headers")
    if size >> 1 > _MAX_HEADERS:
        rule = f"a record must have at most {_MAX_HEADERS:,} headers, got {size >> 1:,}"
        raise Malformed(rule, at=at, path="records.headers")
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
        raise Malformed("the fields of a record must end where the record ends", at=at, path="records")
    return headers


def _size(data: Data, at: int) -> tuple[int, int]:
    """Return twice the length that begins at index ``at - 1``, and the index after the length."""
    first, second = data[at - 1], data[at]
    if first & 1:
        raise Malformed("a length must be at least 0, or -1 for null", at=at - 1, path="records")
    if second < 0x80:
        return first & 0x7F | second << 7, at + 1
    length, at = decode_signed(cast("bytes", data), at - 1)
    return length << 1, at


def _delta(data: Data, at: int, bits: int) -> tuple[int, int]:
    """Return the zigzag number that begins at ``at - 1``, and the index after the number."""
    number, at = decode_signed(cast("bytes", data), at - 1, bits)
    return zigzag.fold(number), at


class _Varints(dict[int, bytes]):
    """A cache of the encodings of integers."""

    def __missing__(self, number: int) -> bytes:
        return remember(self, number, encode_signed(number, 64), max_entries=20_000)


_VARINTS: Final = _Varints()


def encode_records(records: Iterable[Record], offsets: Iterable[int], base: Base) -> bytes:
    """Return the bytes of records with these offsets; raise `Unencodable` if a header name has surrogates."""
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
            fields.append(names.get(name) or _encode_name(name, names))
            if header is None:
                fields.append(_NULL)
            else:
                fields += (varints[len(header)], header)
        body = b"".join(fields)
        parts += (varints[len(body)], body)
    return b"".join(parts)


def _encode_name(name: str, names: dict[str, bytes]) -> bytes:
    try:
        raw = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Unencodable(f"the name of a header must be encodable as UTF-8, got {name!a}") from error
    names[name] = _VARINTS[len(raw)] + raw
    return names[name]
