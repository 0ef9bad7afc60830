"""Encoding and decoding of messages, field by field: the reference for the module `compiler`.

This module is slow, but its errors name the field, the byte and the rule. The module can also call a visitor
for each field.
"""

from __future__ import annotations

import operator
import struct
import types
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.varint import MAX_BYTES
from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec._function_source import Mark
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unencodable
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, LayoutField, LengthPrefixed, default_of
from cloudevents_kafka.protocol.schema import BOOLEAN, REST, STRING, Fixed, Structure, Uuid, Varint

# The other functions are for generated code, and for the broker of `testing`, which accepts more than
# `decode`.
__all__ = ["MEMORY", "Visitor", "decode", "encode"]

Visitor: TypeAlias = Callable[[str, int, int, str, Any], None]
"""A function that is called with a field's path, its start and end index, the name of its type, and its
value.

The calls are in the order of the bytes and cover each byte once. For an array, the call for the count comes
before the calls for the elements. For tagged fields, there is one call for the count, and one call for each
tag and each size.
"""

MEMORY: Final = 128 * 1024 * 1024
"""The default memory limit of `decode`, in bytes. A decoded element of 1 byte may take 50 times as much
memory, and a frame may have 100 MiB. The metadata of 300,000 partitions fits into this limit.
"""

_TAG: Final = 200  # bytes of memory of an unknown tagged field: a pair, an int and bytes

# S0-P2: "string uses an int16 … bytes uses an int32"
_LENGTH: Final = {True: ("h", 2), False: ("i", 4)}


def decode(
    layout: Layout,
    data: bytes,
    at: int = 0,
    visit: Visitor | None = None,
    *,
    memory: int = MEMORY,
    marks: Sequence[Mark] = (),
) -> tuple[Any, int]:
    """Return the structure at index ``at``, and its end index; raise `Malformed` or `Truncated`.

    ``memory`` limits the memory of array elements and of unknown tagged fields, in bytes; the text and the
    bytes in these elements and fields do not count. If ``marks`` contains a `Mark` of an array, decoding of
    this array begins at the element of the `Mark`. The returned structure is then incomplete, so pass
    ``marks`` only to find the error that decoding raises.
    """
    return Decoder(data, visit, memory, marks).structure(layout, at, "")


def encode(layout: Layout, value: Structure) -> bytes:
    """Return the bytes of a structure.

    Raises `Unencodable` if a value does not fit its field, or if the version has no field for the value.
    """
    out = bytearray()
    _encode_structure(layout, value, out, layout.name)
    return bytes(out)


def decode_tags(layout: Layout, data: bytes, at: int, left: int) -> tuple[dict[str, Any], int, int]:
    """Return a structure's tagged fields by name, the index after these fields, and the remaining memory."""
    found: dict[str, Any] = {}
    decoder = Decoder(data, None, left)
    found["unknown_tags"], at = decoder.tags(layout, at, "", found)
    return found, at, decoder.left


class Decoder:
    """Decodes one message; a subclass may accept more than the protocol allows.

    Most methods return two results: a value, and the index after the value.
    """

    def __init__(
        self, data: bytes, visit: Visitor | None = None, memory: int = MEMORY, marks: Sequence[Mark] = ()
    ) -> None:
        """Store the data of a message; the arguments have the same meaning as in `decode`."""
        self.data: Final = data
        self.end = len(data)  # the end of a tagged field while it is decoded
        self.visit: Final = visit or (lambda *_: None)
        self.memory: Final = memory
        self.left = memory
        self.marks: Final = marks

    def structure(self, layout: Layout, at: int, path: str) -> tuple[Structure, int]:
        """Return a structure, and the index after it."""
        found: dict[str, Any] = {field.name: default_of(field) for field in layout.absent}
        found |= {field.name: default_of(field.declared) for field in layout.tagged.values()}
        for number, field in enumerate(layout.fields):
            if number >= layout.optional_from and at == self.end:
                found[field.name] = default_of(field.declared)
                continue
            found[field.name], at = self.value(field.codec, at, _join(path, field.name))
        if layout.flexible:
            found["unknown_tags"], at = self.tags(layout, at, path, found)
        return layout.structure(**found), at

    def value(self, codec: Codec, at: int, path: str) -> tuple[Any, int]:
        """Return a value of any codec, and the index after the value."""
        match codec:
            case Layout():
                return self.structure(codec, at, path)
            case Array():
                return self.array(codec, at, path)
            case Fixed():
                (value,) = struct.unpack(f">{codec.code}", self.take(codec.size, at, path))
                end = at + codec.size
            case Varint():
                value, end = self.varint(at, path, codec)
            case Uuid():
                value, end = uuid.UUID(bytes=self.take(16, at, path)), at + 16
            case LengthPrefixed():
                value, end = self.length_prefixed(codec, at, path)
        self.visit(path, at, end, codec.name, value)
        return value, end

    def length_prefixed(self, codec: LengthPrefixed, at: int, path: str) -> tuple[Any, int]:
        """Return text or bytes (None for null), and the index after the text or bytes."""
        if codec.type is REST:
            return self.data[at:], len(self.data)
        length, at = self.length(codec, at, path)
        if length < 0:
            return None, at
        raw = self.take(length, at, path)
        return self.text(raw, at, path) if codec.type is STRING else raw, at + length

    def text(self, raw: bytes, at: int, path: str) -> str:
        """Return the text of an encoded string, whose bytes begin at index ``at``."""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Malformed("a string must be valid UTF-8", at=at, path=path) from None

    def array(self, codec: Array, at: int, path: str) -> tuple[list[Any] | None, int]:
        """Return the elements of an array (None for null), and the index after the array."""
        start = at
        count, at = self.length(codec, at, path)
        self.visit(path, start, at, codec.name, None if count < 0 else count)
        if count <= 0:
            return None if count < 0 else [], at
        if count > self.end - at:  # an element has at least 1 byte
            raise Truncated(count - (self.end - at), at=at, path=path)
        self.take_memory(count * codec.memory, at, path)
        first, at, self.left = self.first_element(codec, at)
        values = []
        for number in range(first, count):
            value, at = self.value(codec.element, at, f"{path}[{number}]")
            values.append(value)
        return values, at

    def first_element(self, codec: Array, at: int) -> tuple[int, int, int]:
        """Return the number and index of the first array element to decode, and the remaining memory."""
        # A structure may occur twice, and the marks of earlier occurrences are before ``at``. The arrays of
        # tagged fields have no marks.
        marks = self.marks if self.end == len(self.data) else ()
        marks = [mark for mark in marks if mark.array is codec and mark.at >= at]
        return min(marks, key=lambda mark: mark.at, default=Mark(codec, 0, at, self.left))[1:]

    def take_memory(self, size: int, at: int, path: str) -> None:
        """Subtract ``size`` from the remaining memory; raise `Malformed` if less memory remains."""
        self.left -= size
        if self.left < 0:
            rule = f"the elements of a message must take at most {self.memory:,} bytes of memory"
            raise Malformed(rule, at=at, path=path)

    def length(self, codec: LengthPrefixed | Array, at: int, path: str) -> tuple[int, int]:
        """Return a length or count (-1 for null), and the index after this number."""
        length, end = self.number(codec, at, path)
        if length < -1:
            raise Malformed(f"a length must be at least -1, got {length}", at=at, path=path)
        if length == -1 and not codec.nullable:  # S0-P3: "A length of -1 indicates null"
            raise Malformed("the value must not be null in this version", at=at, path=path)
        return length, end

    def number(self, codec: LengthPrefixed | Array, at: int, path: str) -> tuple[int, int]:
        """Return a length or a count, and the index after this number."""
        if codec.compact:
            length, end = self.varint(at, path)
            return length - 1, end  # KIP-482: length + 1, 0 for null
        code, size = _LENGTH[codec.short]
        (length,) = struct.unpack(f">{code}", self.take(size, at, path))
        return length, at + size

    def tags(
        self, layout: Layout, at: int, path: str, found: dict[str, Any]
    ) -> tuple[tuple[tuple[int, bytes], ...], int]:
        """Add the declared tagged fields to ``found``; return the unknown tagged fields.

        The second result is the index after all tagged fields.
        """
        count, at = self.counted(at, _join(path, "tags"), "tagged_fields")
        if 2 * count > self.end - at:  # a tag and a size have at least 1 byte each
            raise Truncated(2 * count - (self.end - at), at=at, path=path)
        unknown, last = [], -1
        for number in range(count):
            where = _join(path, f"tags[{number}]")
            tag, after = self.counted(at, f"{where}.tag", "unsigned_varint32")
            if tag <= last:  # KIP-482
                raise Malformed(f"tags must ascend, got {tag} after {last}", at=at, path=path)
            size, at = self.counted(after, f"{where}.size", "unsigned_varint32")
            raw = self.take(size, at, path)
            if (field := layout.tagged.get(tag)) is None:
                self.take_memory(_TAG, at, path)
                unknown.append((tag, raw))
                self.visit(f"{where}.data", at, at + size, "bytes", raw)
            else:
                found[field.name] = self.tagged(field, at, at + size, path)
            last, at = tag, at + size
        return tuple(unknown), at

    def counted(self, at: int, path: str, name: str) -> tuple[int, int]:
        """Return a count, tag or size, and the index after this number; call the visitor."""
        number, end = self.varint(at, path)
        self.visit(path, at, end, name, number)
        return number, end

    def tagged(self, field: LayoutField, at: int, end: int, path: str) -> Any:
        """Return the value of a declared tagged field from ``at`` to ``end``."""
        outer, self.end = self.end, end
        value, after = self.value(field.codec, at, _join(path, field.name))
        self.end = outer
        if after != end:
            needed = pluralize(after - at, "byte")
            raise Malformed(f"a tagged field must have {needed}, got {end - at}", at=at, path=path)
        return value

    def take(self, size: int, at: int, path: str) -> bytes:
        """Return ``size`` bytes from index ``at``; raise `Truncated` if fewer bytes follow."""
        if at + size > self.end:
            raise Truncated(at + size - self.end, at=at, path=path)
        return self.data[at : at + size]

    def varint(self, at: int, path: str, codec: Varint | None = None) -> tuple[int, int]:
        """Return a variable-length integer, by default a length, count or tag, and the index after it."""
        if codec is None and at < self.end and self.data[at] < 0x80:
            return self.data[at], at + 1
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


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _encode_structure(layout: Layout, value: Any, out: bytearray, path: str) -> None:
    if not isinstance(value, layout.structure):
        raise _unfit(path, layout.name, value)
    for declared in layout.absent:
        if not declared.wire.ignorable and getattr(value, declared.name) != default_of(declared):
            raise Unencodable(
                f"{path}.{declared.name} must be {default_of(declared)!r} in version {layout.version}; "
                f"versions {declared.wire.versions} have the field"
            )
    for field in layout.fields:
        _encode(field.codec, getattr(value, field.name), out, f"{path}.{field.name}")
    if layout.flexible:
        encode_tags(layout, value, out, path)
    elif value.unknown_tags:
        raise Unencodable(
            f"{path}.unknown_tags must be () in version {layout.version}, which has no tagged fields"
        )


def _encode(codec: Codec, value: Any, out: bytearray, path: str) -> None:
    match codec:
        case Layout():
            _encode_structure(codec, value, out, path)
        case Array() | LengthPrefixed() if value is None and codec.nullable:
            _encode_length(codec, -1, out, path)
        case Array():
            _encode_array(codec, value, out, path)
        case _:
            try:
                raw = _scalar(codec, value)
            except (TypeError, OverflowError, struct.error, UnicodeEncodeError, Unencodable):
                raise _unfit(path, codec.name, value) from None
            if isinstance(codec, LengthPrefixed) and codec.type is not REST:
                _encode_length(codec, len(raw), out, path)
            out += raw


def _scalar(codec: Fixed | Varint | Uuid | LengthPrefixed, value: Any) -> bytes:
    """Return the bytes of a value, without a length."""
    match codec:
        case Fixed():
            if codec is BOOLEAN:  # struct packs any object as True or False
                _check_class(value, bool)
            return struct.pack(f">{codec.code}", value)
        case Varint():
            encode = varint.encode_signed if codec.signed else varint.encode_unsigned
            return encode(operator.index(value), codec.bits)
        case Uuid():
            _check_class(value, uuid.UUID)
            raw: bytes = value.bytes
            return raw
        case LengthPrefixed():
            _check_class(value, str if codec.type is STRING else bytes | bytearray | memoryview)
            return value.encode() if isinstance(value, str) else bytes(value)


def _check_class(value: object, wanted: type | types.UnionType) -> None:
    if not isinstance(value, wanted):
        raise TypeError(value)


def _encode_array(codec: Array, value: Any, out: bytearray, path: str) -> None:
    if not isinstance(value, list | tuple):
        raise _unfit(path, codec.name, value)
    _encode_length(codec, len(value), out, path)
    for number, element in enumerate(value):
        _encode(codec.element, element, out, f"{path}[{number}]")


def _encode_length(codec: LengthPrefixed | Array, length: int, out: bytearray, path: str) -> None:
    if codec.compact:
        out += varint.encode_unsigned(length + 1)
        return
    if codec.short and length > 32_767:  # int16
        raise Unencodable(f"{path} must have at most 32,767 bytes or elements, got {length:,}")
    out += struct.pack(f">{_LENGTH[codec.short][0]}", length)


def encode_tags(layout: Layout, value: Any, out: bytearray, path: str = "") -> None:
    """Append the tagged fields at the end of a structure, in the order of their tags."""
    tagged: dict[int, bytes] = {}
    for tag, field in layout.tagged.items():
        if (item := getattr(value, field.name)) != default_of(field.declared):
            part = bytearray()
            _encode(field.codec, item, part, f"{path}.{field.name}")
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
        raise Unencodable(f"{path}.unknown_tags must be distinct, undeclared tags from 0 to 2**31 - 1")
    return found


def _unfit(path: str, name: str, value: object) -> ProtocolError:
    text = repr(value)
    return Unencodable(f"{path} must be {name}, got {text[:60]}{'...' * (len(text) > 60)}")
