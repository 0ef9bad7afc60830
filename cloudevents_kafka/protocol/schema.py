"""How messages are declared: one class declares all versions of a message.

::

    class JoinGroupRequest(Structure, kw_only=True):
        \"\"\"Become a member of a group.\"\"\"

        spec: ClassVar = MessageSpec.of("0-9", ApiKey.JOIN_GROUP, flexible="6+")

        group_id: String
        session_timeout_ms: Int32
        rebalance_timeout_ms: Annotated[Int32, wire("1+")] = -1

The annotation of a field is its type, such as `Int32`, which combines the Python type and the wire type.
`wire` adds the versions that have the field, and the versions in which the field may be null. In a version
that does not have the field, the field has its default value. `layout.layout_of` returns the fields of one
version.
"""

from __future__ import annotations

import types
import uuid
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Union, get_args, get_origin

import msgspec


class Fixed(NamedTuple):
    """A big-endian integer, float or bool of fixed width; ``code`` is the format character of `struct`."""

    name: str
    code: str
    size: int


class Varint(NamedTuple):
    """A variable-length integer, which `varint` encodes."""

    name: str
    bits: int
    signed: bool


class Prefixed(NamedTuple):
    """A type whose value follows its length: a UTF-8 string, or bytes.

    The bytes of the type ``records`` are a message set or record batches. Only the type ``rest`` has no
    length: its bytes extend to the end of the message (Kafka 0.7).
    """

    name: str


class Uuid(NamedTuple):
    """A UUID of 16 bytes."""

    name: str = "uuid"


Scalar = Fixed | Varint | Prefixed | Uuid

# S0-P1: "stored in big endian order"
INT8: Final = Fixed("int8", "b", 1)
INT16: Final = Fixed("int16", "h", 2)
INT32: Final = Fixed("int32", "i", 4)
INT64: Final = Fixed("int64", "q", 8)
UINT16: Final = Fixed("uint16", "H", 2)
UINT32: Final = Fixed("uint32", "I", 4)
FLOAT64: Final = Fixed("float64", "d", 8)
BOOLEAN: Final = Fixed("boolean", "?", 1)
STRING: Final = Prefixed("string")
BYTES: Final = Prefixed("bytes")
RECORDS: Final = Prefixed("records")
REST: Final = Prefixed("rest")

Int8 = Annotated[int, INT8]
Int16 = Annotated[int, INT16]
Int32 = Annotated[int, INT32]
Int64 = Annotated[int, INT64]
UInt16 = Annotated[int, UINT16]
UInt32 = Annotated[int, UINT32]
Float64 = Annotated[float, FLOAT64]
Boolean = Annotated[bool, BOOLEAN]
String = Annotated[str, STRING]
Bytes = Annotated[bytes, BYTES]
Records = Annotated[bytes, RECORDS]
"""A message set or record batches; `records.Batches` decodes them."""
Rest = Annotated[bytes, REST]
"""All remaining bytes; only the last field of a message may have this type."""
UuidField = Annotated[uuid.UUID, Uuid()]
NO_UUID: Final = uuid.UUID(int=0)

VARINTS: Final = {
    f"{sign}varint{bits}": Varint(f"{sign}varint{bits}", bits, signed=not sign)
    for bits in (16, 32, 64)
    for sign in ("", "unsigned_")
}
"""The types of variable-length integers in KIP-625, by name."""

# S3-T2: "the keys would be version ranges"
_TYPES: Final = {type.name: type for type in (INT8, INT16, INT32, INT64, UINT16)} | VARINTS
# S3-T3: "how the value should be encoded"
_ENCODINGS: Final = {f"fixed{type.size * 8}": type for type in (INT16, INT32, INT64)} | {
    f"{'' if type.signed else 'un'}signed{type.bits}": type for type in VARINTS.values()
}

NEWEST: Final = 32767
"""The last version of a range without an end, such as ``0+``; it is the largest int16."""


class Versions(NamedTuple):
    """A range of versions that includes both ends; the range is empty if ``first > last``."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Return the range of versions in a text such as ``0+``, ``2-5``, ``7`` or ``none``.

        Raises `ValueError` for other texts.
        """
        if text == "none":
            return NONE
        if text.endswith("+"):
            return cls(int(text[:-1]), NEWEST)
        first, dash, last = text.partition("-")
        return cls(int(first), int(last if dash else first))

    def __contains__(self, version: object) -> bool:
        """Return whether this range contains a version."""
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        """Return the range in the notation that `parse` accepts."""
        if self.first > self.last:
            return "none"
        if self.last == NEWEST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def common(self, other: Versions) -> Versions:
        """Return the range of versions that are in both ranges."""
        return Versions(max(self.first, other.first), min(self.last, other.last))


NONE: Final = Versions(0, -1)
ALL: Final = Versions(0, NEWEST)


class MessageSpec(NamedTuple):
    """The versions of a message, its API key, and its flexible versions (KIP-482).

    ``key`` is -1 if the message is not a request or response. ``guide`` is the message's name in the 0.8
    guide, if this name differs from the name of the class.
    """

    versions: Versions
    key: int
    flexible: Versions
    guide: str | None

    @classmethod
    def of(
        cls, versions: str, key: int = -1, *, flexible: str = "none", guide: str | None = None
    ) -> MessageSpec:
        """Return a `MessageSpec`; ``versions`` and ``flexible`` are texts that `Versions.parse` accepts."""
        return cls(Versions.parse(versions), key, Versions.parse(flexible), guide)


class Wire(NamedTuple):
    """The properties of a field, except its type; see `wire`."""

    versions: Versions = ALL
    nullable: Versions = NONE
    tagged: Versions = NONE
    tag: int = -1
    ignorable: bool = False
    flexible: Versions = ALL
    types: Mapping[Versions, Fixed | Varint] = types.MappingProxyType({})
    guide: str | None = None
    optional: Versions = NONE
    short: bool = False


def wire(
    versions: str = "0+",
    *,
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "none",
    ignorable: bool = False,
    flexible: str = "0+",
    type: Mapping[str, str] | None = None,
    encoding: Mapping[str, str] | None = None,
    guide: str | None = None,
    optional: str = "none",
    short: bool = False,
) -> Wire:
    """Return the properties of a field: the versions that have the field, and its encoding in these versions.

    ``tag`` is the tag of a tagged field; ``tagged`` are the versions in which the field is tagged. If a
    version does not have an ``ignorable`` field, the encoder omits the field's value. ``flexible`` limits the
    versions in which the field's length is compact. If the encoding of an integer depends on the version,
    pass one of the two notations of KIP-625: the argument ``type``, such as
    ``{"0-9": "int32", "10+": "unsigned_varint32"}``, or the argument ``encoding``, such as
    ``{"0-9": "fixed32", "10+": "unsigned32"}``. ``guide`` is the field's name in Kafka's 0.8 protocol guide.
    A name in brackets is the name of the elements of an array. The name "" means that the guide has no name
    for the field, and writes the content of the field in place of a name. An ``optional`` field may be
    missing at the end of a message (in the guide, ``|foo|``). The count of a ``short`` array is an int16
    (Kafka 0.7).
    """
    names, known = (type, _TYPES) if type is not None else (encoding or {}, _ENCODINGS)
    return Wire(
        versions=Versions.parse(versions),
        nullable=Versions.parse(nullable),
        tagged=Versions.parse(tagged),
        tag=tag,
        ignorable=ignorable,
        flexible=Versions.parse(flexible),
        types={Versions.parse(range_): known[name] for range_, name in names.items()},
        guide=guide,
        optional=Versions.parse(optional),
        short=short,
    )


class Structure(msgspec.Struct, gc=False, kw_only=True):
    """A message, or a structure in a message; only a message has a ``spec``."""

    spec: ClassVar[MessageSpec | None] = None

    unknown_tags: tuple[tuple[int, bytes], ...] = ()
    """The tagged fields that are not declared, as pairs of a tag and bytes (KIP-482)."""


def spec_of(structure: type[Structure]) -> MessageSpec:
    """Return a message's `MessageSpec`; raise `TypeError` for a structure that is a part of a message."""
    if structure.spec is None:
        raise TypeError(f"{structure.__name__} must be a message, but it is a part of a message")
    return structure.spec


class ArrayOf(NamedTuple):
    """The type of an array; an array is encoded as the number of its elements, followed by the elements."""

    element: Scalar | type[Structure]


class Field(NamedTuple):
    """One declared field of a structure."""

    name: str
    type: Scalar | ArrayOf | type[Structure]
    wire: Wire
    default: Any
    required: bool


@cache
def fields_of(structure: type[Structure]) -> tuple[Field, ...]:
    """Return the declared fields in wire order."""
    return tuple(_field(info) for info in msgspec.structs.fields(structure) if info.name != "unknown_tags")


def _field(info: msgspec.structs.FieldInfo) -> Field:
    marks = getattr(info.type, "__metadata__", ())
    properties = next((mark for mark in marks if isinstance(mark, Wire)), Wire())
    default = info.default
    if info.default_factory is not msgspec.NODEFAULT:
        default = info.default_factory()
    return Field(info.name, _type_of(info.type), properties, default, required=default is msgspec.NODEFAULT)


def _type_of(declared: Any) -> Scalar | ArrayOf | type[Structure]:
    if get_origin(declared) is Annotated:
        declared, *marks = get_args(declared)
        found: Scalar | None = next((mark for mark in marks if not isinstance(mark, Wire)), None)
        return found or _type_of(declared)
    if get_origin(declared) in (Union, types.UnionType):
        (kept,) = (part for part in get_args(declared) if part is not type(None))
        return _type_of(kept)
    if get_origin(declared) is list:
        element = _type_of(get_args(declared)[0])
        if isinstance(element, ArrayOf):
            raise TypeError("an array must not contain arrays; declare a structure between them")
        return ArrayOf(element)
    if isinstance(declared, type) and issubclass(declared, Structure):
        return declared
    raise TypeError(f"a field must have a type of protocol.schema, got {declared!r}")
