"""Records as decoded from any format, and control records.

In a key, a value and a header, None is null and ``b""`` a value of 0 bytes.

A control record ends a transaction; only brokers write them. Its key is int16 version, int16 type
(0 abort, 1 commit); its value int16 version, int32 coordinator epoch. Other types are used between
brokers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import msgspec

from cloudevents_kafka.protocol.errors import Malformed

Headers = list[tuple[str, bytes | None]]
"""Header names and values in wire order; names may repeat.

A name that is not UTF-8 is kept by surrogate escapes, so it can be written back unchanged.
"""


class TimestampType(IntEnum):
    """Who set a record's timestamp."""

    CREATE = 0
    """The producer."""
    LOG_APPEND = 1
    """The broker, when it wrote the record to its log."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record's key, value and headers, its time, and its offset in the partition.

    ``timestamp`` is in milliseconds since the epoch, None where there is none: always in
    magic 0. ``offset`` is -1 as long as the record has none. Only magic 2 has headers.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = []
    timestamp: int | None = None
    offset: int = -1
    timestamp_type: TimestampType = TimestampType.CREATE


def offsets_of(records: Sequence[Record], base: int | None) -> Sequence[int]:
    """Return the offsets that records are written with: from ``base`` on, or their own if it is None."""
    return [record.offset for record in records] if base is None else range(base, base + len(records))


ABORT: Final = 0
COMMIT: Final = 1
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")


class ControlRecord(msgspec.Struct, frozen=True, gc=False):
    """What a control record says; ``coordinator_epoch`` is None where it has no such value."""

    type: int
    coordinator_epoch: int | None = None
    version: int = 0

    @classmethod
    def of(cls, record: Record) -> ControlRecord:
        """Read a record of a control batch; `Malformed` if its key is too short."""
        if record.key is None or len(record.key) < _KEY.size:
            raise Malformed("a control record's key has four bytes: version and type", path="key")
        version, kind = _KEY.unpack_from(record.key)
        epoch = None
        if kind in {ABORT, COMMIT} and record.value is not None and len(record.value) >= _VALUE.size:
            _, epoch = _VALUE.unpack_from(record.value)
        return cls(kind, epoch, version)

    def record(self, timestamp: int | None = None) -> Record:
        """Make the record that says this, as a broker writes it."""
        value = None if self.coordinator_epoch is None else _VALUE.pack(0, self.coordinator_epoch)
        return Record(key=_KEY.pack(self.version, self.type), value=value, timestamp=timestamp)
