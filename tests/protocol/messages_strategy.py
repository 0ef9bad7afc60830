"""Hypothesis strategies: any message that is declared, in any of its versions."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from cloudevents_kafka.protocol.declare import Message, Structure, wire
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, Sized, default_of, description, layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.headers import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.messages.message_set import MessageSetEntry
from cloudevents_kafka.protocol.messages.offset_commit import OffsetCommitRequestBeta
from cloudevents_kafka.protocol.types import (
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
    Records,
    String,
    UInt16,
    Uuid,
    UuidField,
    Varint,
)


class EverythingInner(Structure):
    """What stands in arrays of `Everything`."""

    short: Annotated[Int16, wire(type={"0-1": "int16", "2+": "varint16"})] = 0
    name: Annotated[String, wire(flexible="none")] = ""
    numbers: list[Int64] = []  # noqa: RUF012  # msgspec makes a new one for each
    extra: Annotated[String | None, wire("2+", nullable="2+", tagged="2+", tag=5)] = None


class Everything(Structure):
    """All that declarations can say, of which real messages use but a part."""

    message: ClassVar = Message.of("Everything", -1, "data", versions="0-3", flexible="2+")

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
    said: Annotated[String | None, wire("0-2", nullable="0+", ignorable=True)] = "hello"
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
    first, last = description(structure).versions
    return range(first, last + 1)


CASES: Final = [(message, version) for message in MESSAGES for version in versions_of(message)]
IDS: Final = [f"{message.__name__}-{version}" for message, version in CASES]

# Lengths around those where a compact one takes a byte more.
_TEXTS: Final = st.text(max_size=6) | st.sampled_from(["x" * 126, "x" * 127, "é" * 64, "\U0001f600", "\x00"])
_BLOBS: Final = st.binary(max_size=6) | st.sampled_from([b"\xff" * 126, b"\x00" * 127, b"ab" * 200])


@cache
def messages(structure: type[Structure], version: int, *, small: bool = False) -> SearchStrategy[Any]:
    """Build messages that the version can carry; small ones have short arrays and texts only."""
    return _structures(layout_of(structure, version), small=small)


def any_case() -> SearchStrategy[tuple[type[Structure], int]]:
    """Choose a message and a version."""
    return st.sampled_from(CASES)


def _structures(layout: Layout, *, small: bool) -> SearchStrategy[Any]:
    slots = (*layout.slots, *layout.tagged.values())
    given = {slot.name: _values(slot.codec, small=small) for slot in slots}
    given |= {field.name: st.builds(default_of, st.just(field)) for field in layout.absent}
    if layout.flexible:
        given["unknown_tags"] = _unknown(tuple(layout.tagged))
    return st.builds(layout.structure, **given)


def _unknown(known: tuple[int, ...]) -> SearchStrategy[tuple[tuple[int, bytes], ...]]:
    tags = st.integers(0, 200).filter(lambda tag: tag not in known) | st.integers(1 << 20, (1 << 31) - 1)
    some = st.dictionaries(tags, st.binary(max_size=4), max_size=2)
    return st.just(()) | some.map(lambda found: tuple(sorted(found.items())))


def _values(codec: Codec, *, small: bool) -> SearchStrategy[Any]:
    if isinstance(codec, Layout):
        return _structures(codec, small=small)
    if isinstance(codec, Array):
        return _or_none(_arrays(codec, small=small), nullable=codec.nullable)
    if isinstance(codec, Sized):
        short: SearchStrategy[Any] = st.text(max_size=4) if codec.type is STRING else st.binary(max_size=4)
        full = _TEXTS if codec.type is STRING else _BLOBS
        return _or_none(short if small else full, nullable=codec.nullable)
    return st.uuids() | st.just(NO_UUID) if isinstance(codec, Uuid) else _numbers(codec)


def _or_none(values: SearchStrategy[Any], *, nullable: bool) -> SearchStrategy[Any]:
    return st.none() | values if nullable else values


def _arrays(codec: Array, *, small: bool) -> SearchStrategy[list[Any]]:
    elements = _values(codec.element, small=small)
    short = st.lists(elements, max_size=2)
    if small or _has_arrays(codec.element):
        return short
    return short | st.tuples(elements, st.sampled_from([126, 127, 300])).map(lambda pair: [pair[0]] * pair[1])


def _has_arrays(codec: Codec) -> bool:
    return isinstance(codec, Layout) and any(
        isinstance(slot.codec, Array) or _has_arrays(slot.codec)
        for slot in (*codec.slots, *codec.tagged.values())
    )


def _numbers(codec: Codec) -> SearchStrategy[Any]:
    if isinstance(codec, Varint):
        return st.integers(-(1 << (codec.bits - 1)), (1 << (codec.bits - 1)) - 1)
    assert isinstance(codec, Fixed)
    if codec.name == "boolean":
        return st.booleans()
    if codec.name == "float64":
        return st.floats(allow_nan=False)
    bits = codec.size * 8
    return st.integers(0, (1 << bits) - 1) if codec.code.isupper() else _signed(bits)


def _signed(bits: int) -> SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
