"""Reading and writing by walking a layout, step by step: the reference that the compiler must equal.

It is slow, tells exactly what is wrong and where, and can show each field to a visitor
as it goes.
"""

from __future__ import annotations

import operator
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from cloudevents_kafka.primitives.varint import MAX_BYTES
from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unencodable
from cloudevents_kafka.protocol.schema import (
    BOOLEAN,
    REST,
    STRING,
    Array,
    Codec,
    Fixed,
    Layout,
    Sized,
    Slot,
    Structure,
    Uuid,
    Varint,
    default_of,
)

Visitor: TypeAlias = Callable[[str, int, int, str, Any], None]
"""Called with a field's path, its first byte, the one after its last, its type's name, its value.

The calls come in the order of the bytes and have each byte once: an array is told by its count,
before its elements, and so are tagged fields, with their tags and sizes.
"""

_LENGTH: Final = {True: ("h", 2), False: ("i", 4)}  # guide: string has int16, bytes and arrays int32


def read(layout: Layout, data: bytes, at: int = 0, visit: Visitor | None = None) -> tuple[Structure, int]:
    """Read a structure; return it and the position after it. `Malformed`, `Truncated`."""
    return _Reader(data, visit).structure(layout, at, "")


def write(layout: Layout, value: Structure) -> bytes:
    """Write a structure; `Unencodable` where a value does not fit or the version cannot carry it."""
    out = bytearray()
    _write_structure(layout, value, out, layout.name)
    return bytes(out)


def read_tags(layout: Layout, data: bytes, at: int) -> tuple[dict[str, Any], int]:
    """Read the tagged fields at the end of a structure: those that are there, by name."""
    found: dict[str, Any] = {}
    found["unknown_tags"], at = _Reader(data, None).tags(layout, at, "", found)
    return found, at


class _Reader:
    def __init__(self, data: bytes, visit: Visitor | None) -> None:
        self.data: Final = data
        self.end = len(data)  # of a tagged field, while one is read
        self.visit: Final = visit

    def structure(self, layout: Layout, at: int, path: str) -> tuple[Structure, int]:
        found: dict[str, Any] = {field.name: default_of(field) for field in layout.absent}
        found |= {slot.name: default_of(slot.field) for slot in layout.tagged.values()}
        for number, slot in enumerate(layout.slots):
            if number >= layout.optional_from and at == self.end:
                found[slot.name] = default_of(slot.field)
                continue
            found[slot.name], at = self.field(slot, at, path)
        if layout.flexible:
            found["unknown_tags"], at = self.tags(layout, at, path, found)
        return layout.structure(**found), at

    def field(self, slot: Slot, at: int, path: str) -> tuple[Any, int]:
        where = f"{path}.{slot.name}" if path else slot.name
        value, end = self.value(slot.codec, at, where)
        self.visit_whole(slot.codec, where, at, end, value)
        return value, end

    def visit_whole(self, codec: Codec, path: str, at: int, end: int, value: Any) -> None:
        if self.visit is not None and not isinstance(codec, Layout | Array):
            self.visit(path, at, end, codec.name, value)

    def value(self, codec: Codec, at: int, path: str) -> tuple[Any, int]:
        if isinstance(codec, Layout):
            return self.structure(codec, at, path)
        if isinstance(codec, Fixed):
            return struct.unpack(f">{codec.code}", self.take(codec.size, at, path))[0], at + codec.size
        if isinstance(codec, Varint):
            return self.varint(at, path, codec)
        if isinstance(codec, Uuid):
            return uuid.UUID(bytes=self.take(16, at, path)), at + 16
        return self.array(codec, at, path) if isinstance(codec, Array) else self.sized(codec, at, path)

    def sized(self, codec: Sized, at: int, path: str) -> tuple[Any, int]:
        if codec.type is REST:
            return self.data[at:], len(self.data)
        start = at
        length, at = self.length(at, path, compact=codec.compact, short=codec.type is STRING)
        if length < 0:
            self.null(length, codec.nullable, start, path)
            return None, at
        raw = self.take(length, at, path)
        if codec.type is not STRING:
            return raw, at + length
        try:
            return raw.decode(), at + length
        except UnicodeDecodeError:
            raise Malformed("a string must be UTF-8", at=at, path=path) from None

    def array(self, codec: Array, at: int, path: str) -> tuple[list[Any] | None, int]:
        start = at
        count, at = self.length(at, path, compact=codec.compact, short=codec.short)
        if count < 0:
            self.null(count, codec.nullable, start, path)
        if self.visit is not None:
            self.visit(path, start, at, codec.name, None if count < 0 else count)
        if count < 0:
            return None, at
        if count > self.end - at:  # an element takes a byte at least
            raise Truncated(count - (self.end - at), at=at, path=path)
        values = []
        for number in range(count):
            where = f"{path}[{number}]"
            value, end = self.value(codec.element, at, where)
            self.visit_whole(codec.element, where, at, end, value)
            values.append(value)
            at = end
        return values, at

    def length(self, at: int, path: str, *, compact: bool, short: bool) -> tuple[int, int]:
        if compact:
            length, end = self.varint(at, path)
            return length - 1, end
        code, size = _LENGTH[short]
        (length,) = struct.unpack(f">{code}", self.take(size, at, path))
        return length, at + size

    def null(self, length: int, nullable: bool, at: int, path: str) -> None:  # noqa: FBT001  # of the field
        if length != -1:
            raise Malformed(f"a length of {length}: it must be 0 or more, or -1 for null", at=at, path=path)
        if not nullable:
            raise Malformed("null, where this version allows none", at=at, path=path)

    def tags(
        self, layout: Layout, at: int, path: str, found: dict[str, Any]
    ) -> tuple[tuple[tuple[int, bytes], ...], int]:
        count, at = self.counted(at, f"{path}.tags" if path else "tags", "tagged_fields")
        unknown, last = [], -1
        for number in range(count):
            where = f"{path}.tags[{number}]" if path else f"tags[{number}]"
            tag, after = self.counted(at, f"{where}.tag", "unsigned_varint32")
            if tag <= last:
                raise Malformed(f"tag {tag} after tag {last}: tags must ascend", at=at, path=path)
            size, at = self.counted(after, f"{where}.size", "unsigned_varint32")
            raw = self.take(size, at, path)
            if (slot := layout.tagged.get(tag)) is None:
                unknown.append((tag, raw))
                if self.visit is not None:
                    self.visit(f"{where}.data", at, at + size, "bytes", raw)
            else:
                found[slot.name] = self.tagged(slot, at, at + size, path)
            last, at = tag, at + size
        return tuple(unknown), at

    def counted(self, at: int, path: str, name: str) -> tuple[int, int]:
        """Read a count, tag or size, and tell of it."""
        number, end = self.varint(at, path)
        if self.visit is not None:
            self.visit(path, at, end, name, number)
        return number, end

    def tagged(self, slot: Slot, at: int, end: int, path: str) -> Any:
        outer, self.end = self.end, end
        value, after = self.field(slot, at, path)
        self.end = outer
        if after != end:
            raise Malformed(f"a tagged field of {end - at} bytes that needs {after - at}", at=at, path=path)
        return value

    def take(self, size: int, at: int, path: str) -> bytes:
        if at + size > self.end:
            raise Truncated(at + size - self.end, at=at, path=path)
        return self.data[at : at + size]

    def varint(self, at: int, path: str, codec: Varint | None = None) -> tuple[int, int]:
        """Read an integer of variable length; by default a length, count or tag."""
        window = self.data[at : min(at + MAX_BYTES[64], self.end)]
        try:
            if codec is None:
                value, size = varint.decode_length(window)
            else:
                decode = varint.decode_signed if codec.signed else varint.decode_unsigned
                value, size = decode(window, 0, codec.bits)
        except Malformed as error:
            raise Malformed(error.rule, at=at, path=path) from None
        except Truncated as error:
            raise Truncated(error.missing, at=at + len(window), path=path) from None
        return value, at + size


# --- writing -------------------------------------------------------------------------


def _write_structure(layout: Layout, value: Any, out: bytearray, path: str) -> None:
    if not isinstance(value, layout.structure):
        raise _unfit(path, layout.name, value)
    for field in layout.absent:
        if not field.wire.ignorable and getattr(value, field.name) != default_of(field):
            raise Unencodable(
                f"{path}.{field.name}: version {layout.version} cannot carry it; it is there in "
                f"{field.wire.versions}. Leave it at {default_of(field)!r}, or ask for another version"
            )
    for slot in layout.slots:
        _write(slot.codec, getattr(value, slot.name), out, f"{path}.{slot.name}")
    if layout.flexible:
        write_tags(layout, value, out, path)
    elif value.unknown_tags:
        raise Unencodable(
            f"{path}.unknown_tags: version {layout.version} has no tagged fields. "
            "Leave it at (), or ask for another version"
        )


def _write(codec: Codec, value: Any, out: bytearray, path: str) -> None:
    if isinstance(codec, Layout):
        _write_structure(codec, value, out, path)
    elif isinstance(codec, Fixed):
        out += _packed(codec, value, path)
    elif isinstance(codec, Varint):
        out += _variable(codec, value, path)
    elif isinstance(codec, Uuid):
        if not isinstance(value, uuid.UUID):
            raise _unfit(path, codec.name, value)
        out += value.bytes
    elif isinstance(codec, Array):
        _write_array(codec, value, out, path)
    else:
        _write_sized(codec, value, out, path)


def _packed(codec: Fixed, value: Any, path: str) -> bytes:
    if codec is BOOLEAN and not isinstance(value, bool):  # to struct, anything is true or false
        raise _unfit(path, codec.name, value)
    try:
        return struct.pack(f">{codec.code}", value)
    except (struct.error, OverflowError, TypeError):
        raise _unfit(path, codec.name, value) from None


def _variable(codec: Varint, value: Any, path: str) -> bytes:
    encode = varint.encode_signed if codec.signed else varint.encode_unsigned
    try:
        return encode(operator.index(value), codec.bits)
    except (TypeError, Unencodable):
        raise _unfit(path, codec.name, value) from None


def _write_sized(codec: Sized, value: Any, out: bytearray, path: str) -> None:
    kinds = str if codec.type is STRING else bytes | bytearray | memoryview
    if value is None and codec.nullable:
        _write_length(-1, out, path, compact=codec.compact, short=codec.type is STRING)
        return
    if not isinstance(value, kinds):
        raise _unfit(path, codec.name, value)
    try:
        raw: bytes = value.encode() if isinstance(value, str) else bytes(value)
    except UnicodeEncodeError:
        raise _unfit(path, codec.name, value) from None
    if codec.type is not REST:
        _write_length(len(raw), out, path, compact=codec.compact, short=codec.type is STRING)
    out += raw


def _write_array(codec: Array, value: Any, out: bytearray, path: str) -> None:
    if value is None and codec.nullable:
        _write_length(-1, out, path, compact=codec.compact, short=codec.short)
        return
    if not isinstance(value, list | tuple):
        raise _unfit(path, codec.name, value)
    _write_length(len(value), out, path, compact=codec.compact, short=codec.short)
    for number, element in enumerate(value):
        _write(codec.element, element, out, f"{path}[{number}]")


def _write_length(length: int, out: bytearray, path: str, *, compact: bool, short: bool) -> None:
    if compact:
        out += varint.encode_unsigned(length + 1)
        return
    if short and length > 32_767:  # int16
        raise Unencodable(f"{path}: {length} bytes or elements; with a length of int16 it has 32,767 at most")
    out += struct.pack(f">{_LENGTH[short][0]}", length)


def write_tags(layout: Layout, value: Any, out: bytearray, path: str = "") -> None:
    """Write the tagged fields at the end of a structure, by tag."""
    tagged: dict[int, bytes] = {}
    for tag, slot in layout.tagged.items():
        if (given := getattr(value, slot.name)) != default_of(slot.field):
            part = bytearray()
            _write(slot.codec, given, part, f"{path}.{slot.name}")
            tagged[tag] = bytes(part)
    tagged |= _unknown(layout, value.unknown_tags, path)
    out += varint.encode_unsigned(len(tagged))
    for tag, raw in sorted(tagged.items()):
        out += varint.encode_unsigned(tag) + varint.encode_unsigned(len(raw)) + raw


def _unknown(layout: Layout, tags: Any, path: str) -> dict[int, bytes]:
    try:
        count = len(tags)
        found = {operator.index(tag): bytes(memoryview(raw)) for tag, raw in tags}
    except (TypeError, ValueError):
        raise _unfit(f"{path}.unknown_tags", "pairs of a tag and bytes", tags) from None
    if len(found) != count or any(tag in layout.tagged or not 0 <= tag < 1 << 31 for tag in found):
        raise Unencodable(f"{path}.unknown_tags: tags must be unlike each other and the declared ones")
    return found


def _unfit(path: str, name: str, value: object) -> ProtocolError:
    seen = repr(value)
    return Unencodable(f"{path}: {seen[:60]}{'...' * (len(seen) > 60)} is no {name}")
