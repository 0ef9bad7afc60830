"""The declaration of messages, each once for all its versions.

::

    class JoinGroupRequest(Structure, kw_only=True):
        \"\"\"Become a member of a group.\"\"\"

        spec: ClassVar = MessageSpec.of("JoinGroup", 11, "request", versions="0-9", flexible="6+")

        group_id: String
        session_timeout_ms: Int32
        rebalance_timeout_ms: Annotated[Int32, wire("1+")] = -1

The annotation of a field is its type, and `wire` adds the versions that have the field and those in which it
may be null. In other versions the field has its default. `layout_of` returns the fields of one version.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
)

import msgspec

from cloudevents_kafka.protocol.schema._types import ENCODINGS, INTEGERS, Fixed, Scalar, Varint
from cloudevents_kafka.protocol.schema._versions import ALL, NONE, Versions

Kind = Literal["request", "response", "header", "data"]


class MessageSpec(NamedTuple):
    """The name, API, versions and flexible versions (KIP-482) of a message.

    ``key`` is the API key of a request or response, otherwise -1; ``guide`` is the name in the 0.8 guide,
    if it differs.
    """

    name: str
    key: int
    kind: Kind
    versions: Versions
    flexible: Versions
    guide: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        key: int,
        kind: Kind,
        *,
        versions: str,
        flexible: str = "none",
        guide: str | None = None,
    ) -> MessageSpec:
        """Return a spec; ranges are in the notation of `Versions.parse`."""
        return cls(name, key, kind, Versions.parse(versions), Versions.parse(flexible), guide)


class Wire(NamedTuple):
    """The properties of a field other than its type; see `wire`."""

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
    """Return the properties of a field: the versions that have it, and its encoding in them.

    ``tag`` and ``tagged`` declare a tagged field. The value of an ``ignorable`` field is dropped in
    versions without the field. ``flexible`` limits the versions in which the length is compact.
    ``type`` and ``encoding`` are KIP-625's alternatives for an integer whose encoding depends on the
    version: ``{"0-9": "int32", "10+": "unsigned_varint32"}``, or a logical type with
    ``{"0-9": "fixed32", "10+": "unsigned32"}``. ``guide`` is the field's name in the 0.8 guide: in
    brackets if it names the elements of an array, "" if the guide writes the parts in place. An
    ``optional`` field may be missing at the end of a message (the guide's ``|foo|``). The count of a
    ``short`` array is an int16 (0.7).
    """
    names, known = (type, INTEGERS) if type is not None else (encoding or {}, ENCODINGS)
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
    """A structure of a message; a whole message has a ``spec``."""

    spec: ClassVar[MessageSpec | None] = None

    unknown_tags: tuple[tuple[int, bytes], ...] = ()
    """The undeclared tagged fields: pairs of tag and bytes (KIP-482)."""


class ArrayOf(NamedTuple):
    """Elements after their count."""

    element: Scalar | type[Structure]


class Field(NamedTuple):
    """One declared field."""

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
    declared, properties = _split(info.type)
    default = info.default
    if info.default_factory is not msgspec.NODEFAULT:
        default = info.default_factory()
    return Field(info.name, _type_of(declared), properties, default, required=default is msgspec.NODEFAULT)


def _split(annotation: Any) -> tuple[Any, Wire]:
    """Return the type of ``Annotated[type, Wire]`` with its wire type, and the properties."""
    if get_origin(annotation) is not Annotated:
        return annotation, Wire()
    declared, *marks = get_args(annotation)
    properties = next((mark for mark in marks if isinstance(mark, Wire)), Wire())
    types = [mark for mark in marks if not isinstance(mark, Wire)]
    return (Annotated[declared, types[0]] if types else declared), properties


def _type_of(declared: Any) -> Scalar | ArrayOf | type[Structure]:
    if get_origin(declared) is Annotated:
        found: Scalar = get_args(declared)[1]
        return found
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
