"""What of a declaration stands on the wire in one version: the one place that decides it.

The interpreter, the compiler, the grammar and the sizes all go by layouts, so they cannot
disagree about versions, nullability, compact lengths or tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.errors import Unsupported
from cloudevents_kafka.protocol.schema._message import ArrayOf, Field, MessageSpec, Structure, fields_of
from cloudevents_kafka.protocol.schema._types import NO_UUID, Blob, Fixed, Scalar, Text, Uuid, Varint


class Sized(NamedTuple):
    """A text or bytes behind a length: of fixed width, or compact (length + 1, 0 is null); or the rest."""

    type: Text | Blob
    compact: bool
    nullable: bool

    @property
    def name(self) -> str:
        """The type's name in the protocol's documents."""
        return f"{'compact_' * self.compact}{'nullable_' * self.nullable}{self.type.name}"


class Array(NamedTuple):
    """Elements behind their count: int32, compact, or an int16 (``short``)."""

    element: Codec
    compact: bool
    nullable: bool
    short: bool = False

    @property
    def name(self) -> str:
        """The type's name in the protocol's documents."""
        return f"{'compact_' * self.compact}{'nullable_' * self.nullable}{'short_' * self.short}array"


class Slot(NamedTuple):
    """One field as it is in one version."""

    name: str
    codec: Codec
    field: Field


class Layout(NamedTuple):
    """A structure in one version.

    ``slots`` follow each other on the wire, ``tagged`` are written behind them by tag where they
    differ from their default, ``absent`` are not there. From the slot number
    ``optional_from`` on, the bytes may end.
    """

    structure: type[Structure]
    version: int
    flexible: bool
    slots: tuple[Slot, ...]
    tagged: Mapping[int, Slot]
    absent: tuple[Field, ...]
    optional_from: int

    @property
    def name(self) -> str:
        """The structure's name."""
        return self.structure.__name__


Codec: TypeAlias = Fixed | Varint | Uuid | Sized | Array | Layout


def spec_of(structure: type[Structure]) -> MessageSpec:
    """Return what a whole message says of itself; TypeError for a mere part of one."""
    if structure.spec is None:
        raise TypeError(f"{structure.__name__} is a part of a message, not a whole one")
    return structure.spec


@cache
def layout_of(structure: type[Structure], version: int) -> Layout:
    """Return a whole message's layout in a version; `Unsupported` where it has no such version."""
    about = spec_of(structure)
    if version not in about.versions:
        raise Unsupported(f"{structure.__name__} has the versions {about.versions}, not {version}")
    return _layout(structure, version, version in about.flexible)


@cache
def _layout(structure: type[Structure], version: int, flexible: bool) -> Layout:  # noqa: FBT001  # a fact of the message
    slots: list[Slot] = []
    tagged: dict[int, Slot] = {}
    absent: list[Field] = []
    optional_from = None
    for field in fields_of(structure):
        wire = field.wire
        if version not in wire.versions:
            absent.append(field)
            continue
        slot = Slot(field.name, _codec(field, version, flexible), field)
        if version in wire.tagged:
            tagged[wire.tag] = slot
            continue
        if version in wire.optional and optional_from is None:
            optional_from = len(slots)
        slots.append(slot)
    end = len(slots) if optional_from is None else optional_from
    return Layout(
        structure, version, flexible, tuple(slots), dict(sorted(tagged.items())), tuple(absent), end
    )


def _codec(field: Field, version: int, flexible: bool) -> Codec:  # noqa: FBT001
    nullable = version in field.wire.nullable
    compact = flexible and version in field.wire.flexible
    if isinstance(field.type, ArrayOf):
        element = _of(field.type.element, field, version, flexible, compact=compact, nullable=False)
        return Array(element, compact, nullable, field.wire.short)
    return _of(field.type, field, version, flexible, compact=compact, nullable=nullable)


def _of(
    type: Scalar | type[Structure],
    field: Field,
    version: int,
    flexible: bool,  # noqa: FBT001
    *,
    compact: bool,
    nullable: bool,
) -> Codec:
    if isinstance(type, Text | Blob):
        return Sized(type, compact, nullable)
    if isinstance(type, Fixed | Varint):
        return next((t for versions, t in field.wire.types.items() if version in versions), type)
    return type if isinstance(type, Uuid) else _layout(type, version, flexible)


_EMPTY: Final[dict[str, Any]] = {
    "string": "",
    "bytes": b"",
    "records": b"",
    "rest": b"",
    "boolean": False,
    "float64": 0.0,
}


def default_of(field: Field) -> Any:
    """Return what a field is in versions that do not have it; a list or structure is a new one."""
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
    if isinstance(type, Fixed | Varint | Text | Blob):
        return _EMPTY.get(type.name, 0)
    return type(**{field.name: default_of(field) for field in fields_of(type)})
