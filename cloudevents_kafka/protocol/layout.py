"""The layout of a message in one version.

The modules `interpreter`, `compiler` and `grammar` all use layouts, so all three treat versions, null,
compact lengths and tags in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.errors import Unsupported
from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    STRING,
    ArrayOf,
    Field,
    Fixed,
    Prefixed,
    Scalar,
    Structure,
    Uuid,
    Varint,
    fields_of,
    spec_of,
)


class LengthPrefixed(NamedTuple):
    """A string or bytes that follow a fixed or compact length; or all remaining bytes of the message.

    A compact length is the length + 1, or 0 for null.
    """

    type: Prefixed
    compact: bool
    nullable: bool

    @property
    def short(self) -> bool:
        """Whether a fixed length is an int16 (True) or an int32 (False)."""
        return self.type is STRING  # S0-P2: "string uses an int16 for its size"

    @property
    def name(self) -> str:
        """The type's name in the protocol's documents."""
        return f"{'compact_' * self.compact}{'nullable_' * self.nullable}{self.type.name}"


class Array(NamedTuple):
    """Array elements that follow their count, which is an int32, a compact count, or an int16 (``short``).

    ``least`` is the smallest number of bytes of an encoded element. A decoded element takes about ``memory``
    bytes of memory, not counting the text, the bytes and the arrays in the element. A decoder uses ``least``
    and ``memory`` to check the count, which is untrusted input.
    """

    element: Codec
    compact: bool
    nullable: bool
    short: bool = False
    least: int = 1
    memory: int = 72

    @property
    def name(self) -> str:
        """The type's name in the protocol's documents."""
        return f"{'compact_' * self.compact}{'nullable_' * self.nullable}{'short_' * self.short}array"


class LayoutField(NamedTuple):
    """A field in one version of a message, and the field's declaration."""

    name: str
    codec: Codec
    declared: Field


class Layout(NamedTuple):
    """A structure in one version of a message.

    ``fields`` are in wire order. ``tagged`` contains the tagged fields by tag. A tagged field is encoded only
    if the field's value differs from the default; the encoded tagged fields follow ``fields``. ``absent`` are
    the declared fields that this version does not have. An encoded structure may end before the field with
    the index ``optional_from``, or before any later field.
    """

    structure: type[Structure]
    version: int
    flexible: bool
    fields: tuple[LayoutField, ...]
    tagged: Mapping[int, LayoutField]
    absent: tuple[Field, ...]
    optional_from: int

    @property
    def name(self) -> str:
        """The structure's name."""
        return self.structure.__name__


Codec: TypeAlias = Fixed | Varint | Uuid | LengthPrefixed | Array | Layout


@cache
def layout_of(structure: type[Structure], version: int) -> Layout:
    """Return the layout of a message in a version; raise `Unsupported` if the message has no such version."""
    spec = spec_of(structure)
    if version not in spec.versions:
        raise Unsupported(f"{structure.__name__} must have a version in {spec.versions}, got {version}")
    return _layout(structure, version, version in spec.flexible)


@cache
def _layout(structure: type[Structure], version: int, flexible: bool) -> Layout:  # noqa: FBT001  # a fact of the message
    fields: list[LayoutField] = []
    tagged: dict[int, LayoutField] = {}
    absent: list[Field] = []
    optional_from = None
    for declared in fields_of(structure):
        wire = declared.wire
        if version not in wire.versions:
            absent.append(declared)  # S0-F4: "the format corresponding to the request version"
            continue
        field = LayoutField(declared.name, _codec(declared, version, flexible), declared)
        if version in wire.tagged:
            tagged[wire.tag] = field
            continue
        # S0-P5: "may be present under certain conditions"
        if version in wire.optional and optional_from is None:
            optional_from = len(fields)
        fields.append(field)
    end = len(fields) if optional_from is None else optional_from
    in_order = dict(sorted(tagged.items()))  # KIP-482: tags ascend
    return Layout(structure, version, flexible, tuple(fields), in_order, tuple(absent), end)


def _codec(field: Field, version: int, flexible: bool) -> Codec:  # noqa: FBT001
    def codec_of(type: Scalar | type[Structure], *, nullable: bool) -> Codec:
        if isinstance(type, Prefixed):
            return LengthPrefixed(type, compact, nullable)
        if isinstance(type, Fixed | Varint):
            return next((t for versions, t in field.wire.types.items() if version in versions), type)
        return type if isinstance(type, Uuid) else _layout(type, version, flexible)

    compact = flexible and version in field.wire.flexible
    nullable = version in field.wire.nullable
    if isinstance(field.type, ArrayOf):
        element = codec_of(field.type.element, nullable=False)
        least, memory = max(1, _least(element)), _memory(element)
        return Array(element, compact, nullable, field.wire.short, least, memory)
    return codec_of(field.type, nullable=nullable)


def _least(codec: Codec) -> int:
    """Return the number of bytes of the shortest encoding of a value."""
    match codec:
        case Fixed():
            return codec.size
        case Uuid():
            return 16
        case Layout():
            return sum(_least(field.codec) for field in codec.fields[: codec.optional_from]) + codec.flexible
        case LengthPrefixed() | Array() if not codec.compact:
            return 2 if codec.short else 4
        case _:
            return 1


def _memory(codec: Codec) -> int:
    """Return the approximate number of bytes of memory that a value in a list or structure takes."""
    match codec:
        case Layout():
            fields = (*codec.fields, *codec.tagged.values())
            return _OBJECT + 8 * len(codec.absent) + sum(_memory(field.codec) for field in fields)
        case Fixed() | Varint():
            return _NUMBER
        case _:
            return _OBJECT


_NUMBER: Final = 40  # bytes of a small int and of the pointer to it
_OBJECT: Final = 72  # bytes of an empty list, structure or str, and of the pointer to it
_EMPTY: Final = dict.fromkeys(("bytes", "records", "rest"), b"") | {
    "string": "",
    "boolean": False,
    "float64": 0.0,
}


def default_of(field: Field) -> Any:
    """Return a field's value in versions without the field; each list or structure is a new object."""
    if isinstance(field.default, list):
        return list(field.default)
    if not field.required and not isinstance(field.default, Structure):
        return field.default
    return _empty(field.type)


def _empty(type: Scalar | ArrayOf | type[Structure]) -> Any:
    if isinstance(type, ArrayOf):
        return []
    if isinstance(type, Uuid):
        return NO_UUID
    if isinstance(type, Fixed | Varint | Prefixed):
        return _EMPTY.get(type.name, 0)
    return type(**{field.name: default_of(field) for field in fields_of(type)})
