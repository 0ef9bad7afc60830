"""Declarations: the encodings of types, ranges of versions, and the fields and specs of messages."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import (
    ALL,
    BYTES,
    INT16,
    INT32,
    NEWEST,
    NONE,
    STRING,
    VARINTS,
    ArrayOf,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    String,
    Structure,
    Versions,
    fields_of,
    wire,
)
from tests.support.cases import each


def alone(declared):
    """Return a message type with one field."""
    members = {
        "__annotations__": {"field": declared},
        "__module__": __name__,
        "spec": MessageSpec.of("0"),
    }
    return type(Structure)("Alone", (Structure,), members, kw_only=True)


def varying(name):
    return Annotated[Int64, wire(type={"0+": name})]


class Pair(Structure, kw_only=True):
    number: Int16
    names: list[String]


PAIRS = [Pair(number=1, names=["a", "bc"]), Pair(number=-1, names=[])]


@each(
    ("declared", "value", "data"),
    [
        (Int8, -2, "fe"),
        (Int8, 0x12, "12"),
        (Int16, -2, "fffe"),
        (Int16, 0x1234, "1234"),
        (Int32, -2, "fffffffe"),
        (Int32, 0x12345678, "12345678"),
        (Int64, -2, "fffffffffffffffe"),
        (Int64, 0x123456789ABCDEF0, "123456789abcdef0"),
        (String, "é", "0002 c3a9"),
        (String, "", "0000"),
        (Annotated[String | None, wire(nullable="0+")], None, "ffff"),
        (Bytes, b"ab", "00000002 6162"),
        (Bytes, b"", "00000000"),
        (Annotated[Bytes | None, wire(nullable="0+")], None, "ffffffff"),
        (list[Int32], [1, -1], "00000002 00000001 ffffffff"),
        (list[Int32], [], "00000000"),
        (list[Pair], PAIRS, "00000002 0001 00000002 0001 61 0002 6263 ffff 00000000"),
        (varying("varint16"), -2, "03"),
        (varying("varint16"), 300, "d804"),
        (varying("varint32"), -2, "03"),
        (varying("varint32"), -(1 << 31), "ffffffff0f"),
        (varying("varint64"), -2, "03"),
        (varying("varint64"), -(1 << 63), "ffffffffffffffffff01"),
        (varying("unsigned_varint16"), 300, "ac02"),
        (varying("unsigned_varint16"), -1, "ffff03"),
        (varying("unsigned_varint32"), 300, "ac02"),
        (varying("unsigned_varint32"), -1, "ffffffff0f"),
        (varying("unsigned_varint64"), 300, "ac02"),
        (varying("unsigned_varint64"), -1, "ffffffffffffffffff01"),
    ],
)
def test_bytes(declared, value, data):
    """Each type encodes to these bytes, and decodes from them, for either sign."""
    structure, data = alone(declared), bytes.fromhex(data)
    assert interpreter.encode(layout_of(structure, 0), structure(field=value)) == data
    assert interpreter.decode(layout_of(structure, 0), data) == (structure(field=value), len(data))


def test_types_of_kip_625():
    """The variable-length types are the six of KIP-625."""
    assert set(VARINTS) == {f"{sign}varint{bits}" for sign in ("", "unsigned_") for bits in (16, 32, 64)}


ranges = st.builds(Versions, st.integers(0, 20), st.integers(0, 20) | st.just(NEWEST)) | st.just(NONE)


@each(
    ("text", "first", "last"),
    [("0+", 0, 32767), ("2-5", 2, 5), ("7", 7, 7), ("none", 0, -1), ("12+", 12, 32767)],
)
def test_notation(text, first, last):
    """Each form of a range round-trips."""
    found = Versions.parse(text)
    assert found == (first, last)
    assert str(found) == text


@each("text", ["", "+", "-", "1-", "-2", "a", "1.0", "1-2-3", "None"])
def test_not_a_range(text):
    """An invalid range raises `ValueError`."""
    with pytest.raises(ValueError, match="invalid literal"):
        Versions.parse(text)


@each(("version", "there"), [(1, False), (2, True), (5, True), (6, False), ("2", False)])
def test_membership(version, there):
    """A range contains both ends, and only integers."""
    assert (version in Versions(2, 5)) is there
    assert version not in NONE


@given(ranges, ranges, st.integers(-1, 25))
def test_common(one, other, version):
    """The common range contains the versions in both ranges."""
    assert (version in one.common(other)) == (version in one and version in other)
    assert one.common(ALL) == one


@given(ranges)
def test_round_trip_at_any_index(one):
    """The text of a range parses to the same range."""
    found = Versions.parse(str(one))
    assert all((version in found) == (version in one) for version in range(-1, 30))


class Inner(Structure, kw_only=True):
    number: Int16


class Outer(Structure, kw_only=True):
    spec: ClassVar = MessageSpec.of("0-4", 7, flexible="3+", guide="OuterRequest")

    plain: String
    later: Annotated[Bytes | None, wire("2+", nullable="3+", ignorable=True)] = None
    inners: list[Inner]
    maybe: Annotated[list[Int32] | None, wire(nullable="1+", guide="[Number]")] = None
    one: Inner
    marked: Annotated[Int32, wire("3+", tag=4, tagged="3+")] = -1


def test_fields():
    """Fields are in order, with type, versions and default, without `unknown_tags`."""
    plain, later, inners, maybe, one, marked = fields_of(Outer)
    assert (plain.name, plain.type, plain.required, plain.wire.versions) == ("plain", STRING, True, ALL)
    assert (later.type, later.required, later.default) == (BYTES, False, None)
    assert (later.wire.versions, later.wire.nullable) == (Versions(2, 32767), Versions(3, 32767))
    assert later.wire.ignorable
    assert inners.type == ArrayOf(Inner)
    assert (maybe.type, maybe.wire.guide) == (ArrayOf(INT32), "[Number]")
    assert one.type is Inner
    assert (marked.wire.tag, marked.wire.tagged, plain.wire.tagged) == (4, Versions(3, 32767), NONE)
    assert fields_of(Inner)[0].type == INT16


def test_message():
    """The spec of a message has ranges of versions, from their notation."""
    assert Outer.spec == (Versions(0, 4), 7, Versions(3, 32767), "OuterRequest")
    assert Inner.spec is None


def test_values():
    """Fields are keyword arguments, and messages do not share lists."""
    with pytest.raises(TypeError, match="positional"):
        Inner(1)
    with pytest.raises(TypeError, match="number"):
        Inner()
    assert Inner(number=1) == Inner(number=1) != Inner(number=2)
    assert Outer(plain="", inners=[], one=Inner(number=1)).unknown_tags == ()


def test_types_by_version():
    """Both alternatives of KIP-625 for the encoding of an integer are equal."""
    by_type = wire(type={"0-9": "int32", "10+": "unsigned_varint32"}).types
    by_encoding = wire(encoding={"0-9": "fixed32", "10+": "unsigned32"}).types
    assert (
        by_type == by_encoding == {Versions(0, 9): INT32, Versions(10, 32767): VARINTS["unsigned_varint32"]}
    )


@pytest.mark.parametrize("given", [{"type": {"0+": "int31"}}, {"encoding": {"0+": "int32"}}])
def test_unknown_types(given):
    """An unknown type or encoding is refused when it is declared."""
    with pytest.raises(KeyError):
        wire(**given)


@each("declared", [int, list[int], list[list[Int32]], dict[str, Int32], str | None])
def test_fields_of_other_types(declared):
    """A field of another type is refused when it is declared."""
    made = type(Structure)("Wrong", (Structure,), {"__annotations__": {"field": declared}}, kw_only=True)
    with pytest.raises(TypeError, match=r"must have a type of protocol[.]schema|must not contain arrays"):
        fields_of(made)


def test_all_declarations():
    """Fields of a message do not share a tag in a version, and their ranges are consistent."""
    todo = [message for api in APIS.values() for message in (api.request, api.response)]
    seen = 0
    while todo:
        structure = todo.pop()
        fields = fields_of(structure)
        tags = [field.wire.tag for field in fields if field.wire.tag >= 0]
        assert len(tags) == len(set(tags)), structure
        for field in fields:
            assert (field.wire.tag >= 0) is (field.wire.tagged != NONE), (structure, field.name)
            assert field.wire.versions.first <= field.wire.versions.last
            inner = field.type.element if isinstance(field.type, ArrayOf) else field.type
            if isinstance(inner, type) and issubclass(inner, Structure):
                todo.append(inner)
            seen += 1
    assert seen > 200
