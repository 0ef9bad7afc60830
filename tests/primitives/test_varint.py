"""Integers of variable length in both notations; Kafka's own vectors are in ``tests/protocol``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.primitives import varint, zigzag
from tests.support.cases import each

UNSIGNED = st.integers(0, 2**64 - 1)
SIGNED = st.integers(-(2**63), 2**63 - 1)


@each(
    ("number", "encoded"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (150, "9601"),  # the example of Protobuf's encoding guide
        (2**32 - 1, "ffffffff0f"),
        (2**64 - 1, "ffffffffffffffffff01"),
    ],
)
def test_varint(number: int, encoded: str) -> None:
    """A non-negative integer has the bytes of Protobuf's guide, in both directions."""
    data = bytes.fromhex(encoded)
    assert varint.encode(number) == data
    assert varint.decode(b"\xff" + data + b"\xff", 1) == (number, len(data) + 1)
    assert varint.size(number) == len(data)


@each(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-64, "7f"),  # this and the next: the table of Avro's specification
        (64, "8001"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_zigzag(value: int, encoded: str) -> None:
    """A signed integer has the bytes of Avro's specification, in both directions."""
    data = bytes.fromhex(encoded)
    assert zigzag.encode(value) == data
    assert zigzag.decode(b"\xff" + data + b"\xff", 1) == (value, len(data) + 1)
    assert zigzag.size(value) == len(data)


@given(UNSIGNED, SIGNED)
def test_decode_is_the_inverse_of_encode(number: int, value: int) -> None:
    """Every 64-bit integer is decoded from its own encoding."""
    assert varint.decode(varint.encode(number), 0) == (number, varint.size(number))
    assert zigzag.decode(zigzag.encode(value), 0) == (value, zigzag.size(value))


@each("decode", [varint.decode, zigzag.decode])
@each("data", ["", "80", "ffffffff"])
def test_an_integer_that_ends_too_early(decode: object, data: str) -> None:
    """A missing byte raises IndexError, as indexing does."""
    with pytest.raises(IndexError):
        decode(bytes.fromhex(data), 0)  # type: ignore[operator]  # one of two functions


@each("decode", [varint.decode, zigzag.decode])
@each(
    ("data", "bits", "message"),
    [
        ("ffffffffffffffffff02", 64, "holds more than 64 bits"),
        ("8080808080808080808000", 64, "of 64 bits has at most 10 bytes"),
        ("ffffffff1f", 32, "holds more than 32 bits"),
        ("808080808000", 32, "of 32 bits has at most 5 bytes"),
    ],
)
def test_an_integer_that_is_too_long(decode: object, data: str, bits: int, message: str) -> None:
    """Too many bits or bytes raise OverflowError, so that decoding takes bounded time."""
    with pytest.raises(OverflowError, match=message):
        decode(bytes.fromhex(data), 0, bits)  # type: ignore[operator]  # see above
