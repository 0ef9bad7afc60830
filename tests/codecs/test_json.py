"""JSON with Python values: encoded strictly, read or refused."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec
import pytest

from cloudevents_kafka import DataError
from cloudevents_kafka.codecs.json import decode_json, encode_json, is_json, typed_json
from tests.support.cases import each


@dataclasses.dataclass
class Point:
    x: float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (msgspec.Raw(b'{"a":1.50}'), b'{"a":1.50}'),
        ({"a": msgspec.Raw(b"1e2"), "b": [msgspec.Raw(b'"\xc3\xa9"')]}, b'{"a":1e2,"b":["\xc3\xa9"]}'),
    ],
)
def test_raw_json_is_copied(value: Any, text: bytes) -> None:
    """A Raw is copied if the whole is JSON."""
    assert encode_json(value) == text


@each(
    "value",
    [
        None,
        [None, 1.5],
        {"a": None},
        "null",
        Point(1.5),
        [msgspec.Raw(b"null")],
        {"null": 1},
        [None, 2**64],
        [None, b"\xcb\x7f\xf8"],
    ],
)
def test_null_in_a_value(value: Any) -> None:
    """A value whose JSON has null is encoded."""
    assert is_json(encode_json(value))


@pytest.mark.parametrize("leaf", [None, 1.5])
def test_deep_values_are_encoded_or_refused(leaf: Any) -> None:
    """Nesting beyond the encoder raises DataError, with null in it and without."""
    for depth in (100, 500, *range(880, 1000), 3000):
        value = leaf
        for _ in range(depth):
            value = [value]
        try:
            text = encode_json(value)
        except DataError as error:
            assert "recursion" in str(error)  # noqa: PT017 - either is right
        else:
            assert len(text) > 2 * depth


def test_long_numbers_take_linear_time() -> None:
    """A number of a million digits is refused or read at once."""
    with pytest.raises(DataError):
        decode_json(b"9" * 10**6)


def test_typed_json_reads_its_type_only() -> None:
    """Data of another shape raises DataError."""
    codec = typed_json(Point)
    assert codec.decode is not None
    assert codec.encode is not None
    assert codec.decode(codec.encode(Point(1.5))) == Point(1.5)
    with pytest.raises(msgspec.ValidationError):
        codec.decode(b"{}")
    for number in (math.nan, math.inf):
        with pytest.raises(DataError, match="NaN or infinite"):
            codec.encode(Point(number))
