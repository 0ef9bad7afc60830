"""Types have the encodings of the guide and KIP-625."""

from __future__ import annotations

from typing import Annotated

import pytest

from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.schema import (
    VARINTS,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    String,
    Structure,
    layout_of,
    wire,
)


def alone(declared):
    """Return a message type with one field."""
    members = {
        "__annotations__": {"field": declared},
        "__module__": __name__,
        "spec": MessageSpec.of("Alone", -1, "data", versions="0"),
    }
    return type(Structure)("Alone", (Structure,), members, kw_only=True)


def varying(name):
    return Annotated[Int64, wire(type={"0+": name})]


class Pair(Structure, kw_only=True):
    number: Int16
    names: list[String]


PAIRS = [Pair(number=1, names=["a", "bc"]), Pair(number=-1, names=[])]


@pytest.mark.parametrize(
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
