"""Decoded records of any format, control records, and the boundaries of entries in a buffer.

In a key, a value or a header, None stands for null, and ``b""`` stands for 0 bytes.

A control record ends a transaction; only brokers write control records. The key of a control record is an
int16 version and an int16 type (0 abort, 1 commit); the value is an int16 version and an int32 coordinator
epoch. Control records of other types are used between brokers.

Messages (magic 0 and 1) and batches (magic 2) start with the same fields: an int64 offset and the int32 size
of the following bytes; byte 16 is the magic.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.records._unpacked import Data

Headers = list[tuple[str, bytes | None]]
"""Header names and values in wire order; names may repeat.

A name that is not UTF-8 contains surrogate escapes, so that encoding the name returns the same bytes.
"""


class TimestampType(IntEnum):
    """Who set a record's timestamp: the producer, or the broker.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Record, TimestampType
        >>> Record(value=b"17", timestamp=1_767_225_600_000).timestamp_type is TimestampType.CREATE
        True
    """

    CREATE = 0
    """The producer set the timestamp."""
    LOG_APPEND = 1
    """The broker set the timestamp when it appended the record."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record's key, value, headers, timestamp, and offset in the partition.

    ``timestamp`` is in milliseconds since the epoch, or None; magic 0 has no timestamps. ``offset`` is -1
    if the record has no offset yet. Only magic 2 has headers.

    Examples:
        >>> from cloudevents_kafka.protocol.records import Record
        >>> Record(key=b"customer-4", value=b"17", headers=[("trace", b"1")]).offset
        -1
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = []
    timestamp: int | None = None
    offset: int = -1
    timestamp_type: TimestampType = TimestampType.CREATE


def offsets_of(records: Sequence[Record], base: int | None) -> Sequence[int]:
    """Return consecutive offsets that begin with ``base``, or the records' offsets if ``base`` is None."""
    return [record.offset for record in records] if base is None else range(base, base + len(records))


ABORT: Final = 0
"""The type of the control record that ends an aborted transaction."""
COMMIT: Final = 1
"""The type of the control record that ends a committed transaction."""
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")


class ControlRecord(msgspec.Struct, frozen=True, gc=False):
    r"""A decoded control record; ``coordinator_epoch`` is None if the record contains no epoch.

    Examples:
        >>> from cloudevents_kafka.protocol.records import ControlRecord
        >>> from cloudevents_kafka.protocol.records.record import COMMIT
        >>> ControlRecord(COMMIT, coordinator_epoch=3).to_record().key
        b'\x00\x00\x00\x01'
    """

    type: int
    coordinator_epoch: int | None = None
    version: int = 0

    @classmethod
    def from_record(cls, record: Record) -> ControlRecord:
        """Return the decoded control record; raise `Malformed` if the key of the record is too short."""
        if record.key is None or len(record.key) < _KEY.size:
            raise Malformed("the key of a control record must have at least 4 bytes", path="key")
        version, kind = _KEY.unpack_from(record.key)
        epoch = None
        if kind in {ABORT, COMMIT} and record.value is not None and len(record.value) >= _VALUE.size:
            _, epoch = _VALUE.unpack_from(record.value)
        return cls(kind, epoch, version)

    def to_record(self, timestamp: int | None = None) -> Record:
        """Return the record that a broker would write for this control record."""
        value = None if self.coordinator_epoch is None else _VALUE.pack(0, self.coordinator_epoch)
        return Record(key=_KEY.pack(self.version, self.type), value=value, timestamp=timestamp)


START: Final = struct.Struct(">qi")
_SIZE: Final = struct.Struct(">i").unpack_from
_MAGIC_AT: Final = 16
_SMALLEST: Final = (26, 34, 61)  # bytes of an entry, by magic


def find_entries(data: Data) -> Iterator[tuple[int, int]]:
    """Yield the start and end index of each complete message or batch; a partial entry may follow.

    Raises `Malformed` for an invalid size or magic.
    """
    start, end = 0, len(data)
    while end - start >= START.size:
        size = START.size + _SIZE(data, start + 8)[0]
        if size < _SMALLEST[0]:
            rule = f"an entry must have at least {_SMALLEST[0]} bytes, got {size}"
            raise Malformed(rule, at=start, path="size")
        if size > end - start:
            # S0-M7: "a partial message at the end"; since 2.0, it may never become complete
            return
        magic = data[start + _MAGIC_AT]
        if magic > 2:
            raise Malformed(f"the magic must be 0, 1 or 2, got {magic}", at=start, path="magic")
        if size < _SMALLEST[magic]:
            rule = f"an entry of magic {magic} must have at least {_SMALLEST[magic]} bytes, got {size}"
            raise Malformed(rule, at=start, path="size")
        yield start, start + size
        start += size
