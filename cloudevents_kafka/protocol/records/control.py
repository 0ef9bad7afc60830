"""Control batches: the marks that end a transaction, written by brokers alone.

A mark is a record: key int16 version, int16 type (0 abort, 1 commit); value int16
version, int32 epoch of the coordinator. Other types are for brokers among themselves.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.records.record import Record

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
