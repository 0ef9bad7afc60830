"""The fields and specs of declarations, and invalid declarations."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pytest

from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import (
    ALL,
    BYTES,
    INT16,
    INT32,
    NONE,
    STRING,
    VARINTS,
    ArrayOf,
    Bytes,
    Int16,
    Int32,
    MessageSpec,
    String,
    Structure,
    Versions,
    fields_of,
    wire,
)


class Inner(Structure, kw_only=True):
    number: Int16


class Outer(Structure, kw_only=True):
    spec: ClassVar = MessageSpec.of(
        "Outer", 7, "request", versions="0-4", flexible="3+", guide="OuterRequest"
    )

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
    assert Outer.spec == ("Outer", 7, "request", Versions(0, 4), Versions(3, 32767), "OuterRequest")
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


@pytest.mark.parametrize("declared", [int, list[int], list[list[Int32]], dict[str, Int32], str | None])
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
