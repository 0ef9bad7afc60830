"""Converts numbers of an Avro logical type to another unit, and refuses inexact conversions.

The schema resolution of Avro's specification ignores logical types, such as timestamp-millis. By this rule, 5
milliseconds would become 5 microseconds, and 1.50 with a scale of 2 would become 0.150 with a scale of 3.
After a conversion with this module, the time or the number is still equal to the original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import read_bytes, read_long, write_bytes
from cloudevents_kafka.primitives import zigzag

_DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}  # of a fraction of a second
_MOST_BYTES: Final = 1024  # of a decimal: the time to convert it grows with the square of its digits
_TOO_LARGE: Final = "a number that does not fit"
_BITS: Final = {"int": 32, "long": 64}

Convert = Callable[[bytes], bytes]
"""A function that returns the bytes of a value for the reader. This function raises `ValueError`, whose text
describes the value."""


def scaling(writer: Any, reader: Any) -> Convert | None:
    """Return a function that converts a scalar value from the writer's schema to the reader's schema.

    Return None if the bytes of the scalar value can be copied.
    """
    one, other = _logical(writer), _logical(reader)
    if one == other == "decimal":
        scales = [schema.get("scale", 0) for schema in (writer, reader)]
        return None if scales[0] == scales[1] else _decimals(writer, reader, scales[1] - scales[0])
    (kind, digits), (reads, wanted) = _unit(one), _unit(other)
    if not kind or not reads:
        return None  # if only one schema has a time, the value is a number
    if kind != reads:
        return _refused(f"a {kind}, where the reader has a {reads}")
    bits = _BITS[reader["type"]]
    return None if digits == wanted else lambda raw: _moved(raw, wanted - digits, bits)


def _logical(schema: Any) -> str:
    return str(schema.get("logicalType", "")) if isinstance(schema, Mapping) else ""


def _unit(logical: str) -> tuple[str, int]:
    """Return the kind of a logical type, such as "time", and the number of decimal places of its seconds.

    The kind is empty if the logical type is not a date or a time.
    """
    if logical == "date":
        return "date", 0
    kind, _, unit = logical.removeprefix("local-").rpartition("-")
    known = kind in ("timestamp", "time") and unit in _DIGITS
    return (kind, _DIGITS[unit]) if known else ("", 0)


def _refused(got: str) -> Convert:
    def refuse(_: bytes) -> bytes:
        raise ValueError(got)

    return refuse


def _moved(raw: bytes, digits: int, bits: int) -> bytes:
    value = _shifted(read_long(raw, 0)[0], digits, "a time of a finer unit than the reader's")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(_TOO_LARGE)
    return zigzag.encode(value)


def _decimals(writer: Mapping[str, Any], reader: Mapping[str, Any], digits: int) -> Convert:
    is_fixed = writer["type"] == "fixed"
    bound = 3 * _MOST_BYTES  # a number of this many bytes has fewer decimal digits

    def convert(raw: bytes) -> bytes:
        content = raw if is_fixed else read_bytes(raw, 0)[0]
        if not content or len(content) > _MOST_BYTES:
            raise ValueError(_TOO_LARGE)
        value = int.from_bytes(content, "big", signed=True)
        if value and abs(digits) > bound:
            raise ValueError(_TOO_LARGE)
        value = value and _shifted(value, digits, "a number of more digits than the reader's after the point")
        try:
            size = reader["size"] if is_fixed else (value + (value < 0)).bit_length() // 8 + 1
            content = value.to_bytes(size, "big", signed=True)
        except OverflowError:
            raise ValueError(_TOO_LARGE) from None
        return content if is_fixed else write_bytes(content)

    return convert


def _shifted(value: int, digits: int, got: str) -> int:
    """Return a number with more or fewer digits; raise `ValueError` if a removed digit is not 0."""
    if digits >= 0:
        return value * int(10**digits)
    moved, rest = divmod(value, int(10**-digits))
    if rest:
        raise ValueError(got)
    return moved
