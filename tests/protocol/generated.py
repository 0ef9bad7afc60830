"""Random messages of any declaration and version."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from random import Random
from typing import Annotated, Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from cloudevents_kafka.protocol.layout import Array, Codec, Layout, LengthPrefixed, default_of, layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.messages.offsets import OffsetCommitRequestBeta
from cloudevents_kafka.protocol.messages.produce import MessageSetEntry
from cloudevents_kafka.protocol.schema import (
    NO_UUID,
    STRING,
    Boolean,
    Bytes,
    Fixed,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    Records,
    String,
    Structure,
    UInt16,
    Uuid,
    UuidField,
    Varint,
    spec_of,
    wire,
)
from tests.support.strategies import scaled


class EverythingInner(Structure, kw_only=True):
    """The element of the arrays in `Everything`."""

    short: Annotated[Int16, wire(type={"0-1": "int16", "2+": "varint16"})] = 0
    name: Annotated[String, wire(flexible="none")] = ""
    numbers: list[Int64] = []  # noqa: RUF012  # msgspec makes a new one for each
    extra: Annotated[String | None, wire("2+", nullable="2+", tagged="2+", tag=5)] = None


class Everything(Structure, kw_only=True):
    """A message with every kind of declaration, more than the real messages have."""

    spec: ClassVar = MessageSpec.of("0-3", flexible="2+")

    flag: Boolean = False
    tiny: Int8
    port: UInt16 = 7
    ratio: Float64 = 0.5
    id: Annotated[UuidField, wire("1+")] = NO_UUID
    signed: Annotated[Int64, wire(encoding={"0": "fixed64", "1": "unsigned64", "2+": "signed64"})] = 0
    unsigned: Annotated[Int32, wire(type={"0": "int32", "1": "varint32", "2+": "unsigned_varint32"})] = 0
    inner: EverythingInner
    inners: Annotated[list[EverythingInner] | None, wire(nullable="1+")] = []  # noqa: RUF012  # the same
    keys: Annotated[list[Bytes], wire("2+", tagged="3+", tag=1)] = []  # noqa: RUF012  # the same
    lengths: Annotated[list[UInt16], wire(flexible="3+")] = []  # noqa: RUF012  # the same
    text: Annotated[String | None, wire("0-2", nullable="0+", ignorable=True)] = "hello"
    records: Annotated[Records | None, wire(nullable="1+")] = b""
    last: Annotated[Int32, wire(optional="0-1")] = -1
    very_last: Annotated[String, wire(optional="0-1")] = "?"


MESSAGES: Final = [
    *(message for api in APIS.values() for message in (api.request, api.response)),
    RequestHeader,
    ResponseHeader,
    OffsetCommitRequestBeta,
    MessageSetEntry,
    Everything,
]


def versions_of(structure: type[Structure]) -> range:
    """Return all versions of a message."""
    first, last = spec_of(structure).versions
    return range(first, last + 1)


CASES: Final = [(message, version) for message in MESSAGES for version in versions_of(message)]
IDS: Final = [f"{message.__name__}-{version}" for message, version in CASES]

# Lengths around those where a compact one takes a byte more.
_TEXTS: Final = ["x" * 126, "x" * 127, "é" * 64, "é" * 63 + "x"]
_SHORT_TEXTS: Final = ["", "a", "topic-1", "\U0001f600", "\x00", "zwölf", '"\\\n']
_BLOBS: Final = [b"\xff" * 126, b"\x00" * 127, b"ab" * 200]
_SHORT_BLOBS: Final = [b"", b"\x00", b"\xff\xfe", b"{}"]
_FLOATS: Final = [0.0, -1.5, 1e300, float("inf"), 2.0**-1074]
_NUMBERS: Final = [-65, -64, -1, 0, 1, 63, 64, 127, 128, 255, 16_383, 16_384]


def message(random: Random, structure: type[Structure], version: int, *, small: bool = False) -> Any:
    """Return a message that the version can carry; a small one has short arrays and strings."""
    return _structure(random, layout_of(structure, version), small=small)


@st.composite
def messages(draw: st.DrawFn, structure: type[Structure], version: int, *, small: bool = False) -> Any:
    """Generate such messages with Hypothesis, which can shrink them."""
    return message(draw(st.randoms(use_true_random=False)), structure, version, small=small)


def bulk(structure: type[Structure], version: int, *, count: int, small: bool = False) -> Iterator[Any]:
    """Return random messages, the same ones in each run."""
    random = Random(f"{structure.__name__} {version}")
    for _ in range(scaled(count)):
        yield message(random, structure, version, small=small)


def any_case() -> SearchStrategy[tuple[type[Structure], int]]:
    """Generate a message type and a version."""
    return st.sampled_from(CASES)


def _structure(random: Random, layout: Layout, *, small: bool) -> Any:
    values = {field.name: default_of(field) for field in layout.absent}
    values |= {field.name: _value(random, field.codec, small=small) for field in layout.fields}
    for field in layout.tagged.values():
        values[field.name] = default_of(field.declared)
        if random.random() < 0.5:
            values[field.name] = _value(random, field.codec, small=small)
    if layout.flexible and random.random() < 0.3:
        tags = {random.choice([6, 127, 128, 16_384, (1 << 31) - 2]) for _ in range(2)}
        values["unknown_tags"] = tuple((tag, random.choice(_SHORT_BLOBS)) for tag in sorted(tags))
    return layout.structure(**values)


def _value(random: Random, codec: Codec, *, small: bool) -> Any:
    if isinstance(codec, Layout):
        return _structure(random, codec, small=small)
    if isinstance(codec, Array | LengthPrefixed) and codec.nullable and random.random() < 0.25:
        return None
    if isinstance(codec, Array):
        return _array(random, codec, small=small)
    if isinstance(codec, LengthPrefixed):
        text = codec.type is STRING
        short: list[Any] = _SHORT_TEXTS if text else _SHORT_BLOBS
        return random.choice(short if small else short + (_TEXTS if text else _BLOBS))
    if isinstance(codec, Uuid):
        return random.choice([NO_UUID, uuid.UUID(int=random.getrandbits(128))])
    return _number(random, codec)


def _array(random: Random, codec: Array, *, small: bool) -> list[Any]:
    count = random.choice([0, 1, 1, 2])
    if not small and not _has_arrays(codec.element) and random.random() < 0.2:
        return [_value(random, codec.element, small=True)] * random.choice([126, 127, 300])
    return [_value(random, codec.element, small=small) for _ in range(count)]


def _has_arrays(codec: Codec) -> bool:
    return isinstance(codec, Layout) and any(
        isinstance(field.codec, Array) or _has_arrays(field.codec)
        for field in (*codec.fields, *codec.tagged.values())
    )


def _number(random: Random, codec: Fixed | Varint) -> Any:
    if codec.name == "boolean":
        return random.random() < 0.5
    if codec.name == "float64":
        return random.choice(_FLOATS)
    bits = codec.bits if isinstance(codec, Varint) else codec.size * 8
    unsigned = isinstance(codec, Fixed) and codec.code.isupper()
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    usual = [number for number in _NUMBERS if low <= number <= high]
    return random.choice([low, high, random.randint(low, high), *usual])
