"""`Cursor`: a position in a frame; each step adds a field for the bytes between the old and new position."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.varint import MAX_BYTES
from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated
from cloudevents_kafka.protocol.explain._field import (
    ExplainedFrame,
    Field,
    Problem,
    describe_attributes,
    describe_value,
)
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.schema import UINT32, Fixed, Varint


class TooManyFields(ProtocolError):
    """Raised if a frame has more fields than ``max_fields``."""


class Cursor:
    """A position in data that is read up to the index ``end``; `Field` explains ``within``.

    The methods raise `Truncated` and `Malformed` with index and path, as the module `interpreter` does.
    """

    def __init__(self, frame: ExplainedFrame, data: bytes, at: int, end: int, within: str = "") -> None:
        """Start at index ``at`` of the data, and stop at index ``end``."""
        self.frame: Final = frame
        self.data: Final = data
        self.at = at
        self.end: Final = end
        self.within: Final = within

    def part(self, end: int) -> Cursor:
        """Return a cursor from the current index to ``end``, which is not after the end of this cursor."""
        return Cursor(self.frame, self.data, self.at, end, self.within)

    def check(self, size: int, path: str, at: int | None = None) -> int:
        """Return the index after ``size`` bytes; raise `Truncated` if some of these bytes are missing."""
        at = self.at if at is None else at
        if at + size > self.end:
            raise Truncated(at + size - self.end, at=at, path=path)
        return at + size

    # --- fields ---------------------------------------------------------------------------

    def add_field(self, path: str, end: int, type: str, value: Any, note: str = "") -> None:
        """Add a field for the bytes up to ``end``, and advance to ``end``; may raise `TooManyFields`."""
        if len(self.frame.fields) >= (most := self.frame.max_fields):
            raise TooManyFields(f"a frame must have at most {most:,} fields; the rest is omitted")
        self._append(path, end, type, value, note)

    def _append(self, path: str, end: int, type: str, value: Any, note: str = "") -> None:
        raw = self.data[self.at : end]
        self.frame.fields.append(Field(self.at, end, path, type, value, raw, note, self.within))
        self.at = end

    def add_integer(self, path: str, type: Fixed | Varint, *, magic: int | None = None) -> int:
        """Add the field of an integer, and return the integer.

        If ``magic`` is passed, the integer contains the attributes of a message or batch.
        """
        value, end = self.read_integer(path, type)
        name = path.rpartition(".")[2]
        note = describe_value(name, value) if magic is None else describe_attributes(value, magic)
        self.add_field(path, end, type.name, value, note)
        return value

    def read_integer(self, path: str, type: Fixed | Varint) -> tuple[int, int]:
        """Return the integer at the cursor, and the index after the integer."""
        if isinstance(type, Fixed):
            end = self.check(type.size, path)
            return struct.unpack_from(f">{type.code}", self.data, self.at)[0], end
        window = self.data[self.at : min(self.at + MAX_BYTES[type.bits], self.end)]
        try:
            value, size = varint.decode_signed(window, 0, type.bits)
        except Malformed as error:
            raise Malformed(error.rule, at=self.at, path=path) from None
        except Truncated as error:
            raise Truncated(error.missing, at=self.at, path=path) from None
        return value, self.at + size

    def add_bytes(
        self,
        path: str,
        size_type: Fixed | Varint,
        *,
        nullable: bool = True,
        describe: Callable[[bytes], str] | None = None,
    ) -> bytes | None:
        """Add one field for a length and the bytes that follow it; return these bytes."""
        size, begin = self.read_integer(path, size_type)
        if size < (least := -1 if nullable else 0):
            raise Malformed(f"a length must be at least {least}, got {size}", at=self.at, path=path)
        end = self.check(max(size, 0), path, begin)
        value = None if size < 0 else self.data[begin:end]
        type = "nullable_bytes" if isinstance(size_type, Fixed) else "varint_bytes"
        self.add_field(path, end, type, value, describe(value) if describe and value is not None else "")
        return value

    def add_checksum(self, path: str, found: int) -> None:
        """Add the field of a checksum; a wrong checksum is a problem that does not stop the decoding."""
        expected, end = self.read_integer(path, UINT32)
        if expected != found:
            self.add_problem(f"the checksum must be {found:08x}, got {expected:08x}", path)
        note = "correct" if expected == found else f"wrong, must be {found:08x}"
        self.add_field(path, end, UINT32.name, expected, note)

    def decompress(self, path: str, packed: bytes, attributes: int, depth: int = 0) -> Cursor:
        """Return a cursor for the decompressed data of a field that is nested in ``depth`` other fields.

        Raises `Malformed`.
        """
        try:
            data = self.frame.nesting.decompress(packed, Codec.of(attributes), depth)
        except ProtocolError as error:
            self.frame.is_cut |= self.frame.nesting.is_used_up
            # The index of the error is in the compressed data.
            raise Malformed(f"cannot be decompressed: {error}", at=self.at, path=path) from error
        return Cursor(self.frame, data, 0, len(data), path)

    # --- problems -------------------------------------------------------------------------

    def add_problem(self, rule: str, path: str, at: int | None = None) -> None:
        """Add a problem that does not stop the decoding."""
        self.frame.problems.append(Problem(self.at if at is None else at, path, rule, self.within))

    @contextmanager
    def stop_on_error(self, path: str) -> Iterator[None]:
        """Yield to a `with` block; if the block raises a `ProtocolError`, call `stop` with this error."""
        try:
            yield
        except ProtocolError as error:
            self.stop(error, path)

    def stop(self, error: ProtocolError, path: str) -> None:
        """Add a problem for an error, and an ``unread`` field for the cursor's remaining bytes."""
        if not (isinstance(error, TooManyFields) and self.frame.is_cut):
            self.frame.problems.append(_problem(error, self.at, path, self.within))
        self.frame.is_cut |= isinstance(error, TooManyFields)
        self.skip(path)

    def skip(self, path: str) -> None:
        """Add an ``unread`` field for the cursor's remaining bytes."""
        if self.at < self.end:
            # This field is added even above ``max_fields``, so that the fields cover all bytes.
            self._append(path, self.end, "unread", self.end - self.at)


def _problem(error: ProtocolError, at: int, path: str, within: str) -> Problem:
    """Return the problem that describes an error, with the error's own position if the error has one."""
    if isinstance(error, Malformed):
        rule = error.rule
    elif isinstance(error, Truncated):
        rule = f"the data must have at least {pluralize(error.missing, 'more byte')}"
    else:
        return Problem(at, path, str(error), within)
    return Problem(at if error.at is None else error.at, error.path or path, rule, within)
