"""Read one datum of the schema ``io.cloudevents.AvroCloudEvent``, whatever the bytes are.

A general reader follows nested data in C as deep as it goes, so a hostile datum would
end the process; and it keeps one of two attributes of one name without a word. The
schema is small and never changes, so it is read by hand here: each length is checked
against what is left, and depth has a bound. Readers take the datum, where to read, and
the depth; they return what they read and where it ends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from cloudevents_kafka.attributes import AttributeValue

DEPTH: Final = 64
"""How deep objects may be nested in data; reader and writer recurse."""

_EXACT: Final = 2**53  # whole numbers up to here are the same as doubles
_STRING: Final = 6  # the branch of an attribute that is a text, as written
_LONGEST: Final = 10  # bytes of a 64-bit number, seven bits in each
_read_double: Final = struct.Struct("<d").unpack_from

_Reader = Callable[[bytes, int, int], tuple[Any, int]]


class Malformed(ValueError):
    """The bytes are no datum of the schema; says why, and nothing of what is in them."""


def read(datum: bytes) -> tuple[list[tuple[str, AttributeValue | None]], Any]:
    """Read the attributes, in order and with repeats, and the data; raises `Malformed`.

    Data is bytes, None, or a JSON value.
    """
    try:
        attributes, at = _attributes(datum)
        data, at = _data(datum, at, 0)
    except (IndexError, struct.error):
        raise Malformed("it ends too early") from None
    except UnicodeDecodeError:
        raise Malformed("it has a string that is not UTF-8") from None
    except RecursionError:
        raise Malformed("its data is nested too deep") from None
    if at != len(datum):
        raise Malformed(f"{len(datum) - at} bytes are left over")
    return attributes, data


def _attributes(datum: bytes) -> tuple[list[tuple[str, AttributeValue | None]], int]:
    found: list[tuple[str, AttributeValue | None]] = []
    count, at = _count(datum, 0)
    while count:
        for _ in range(count):
            name, at = _text(datum, at)
            plain = datum[at] == _STRING
            value, at = _text(datum, at + 1) if plain else _attribute(datum, at, 0)
            found.append((name, value))
        count, at = _count(datum, at)
    return found, at


# --- numbers, lengths, texts ---------------------------------------------------


def _long(datum: bytes, at: int, _: int = 0) -> tuple[int, int]:
    byte = datum[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number = shift = 0
    for end in range(at, at + _LONGEST):
        byte = datum[end]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), end + 1
        shift += 7
    raise Malformed("it has a number of more than 64 bits")


def _count(datum: bytes, at: int) -> tuple[int, int]:
    """Read how many entries the next block has; a negative count has the block's size behind it."""
    count, at = _long(datum, at)
    return (count, at) if count >= 0 else (-count, _long(datum, at)[1])


def _bytes(datum: bytes, at: int, _: int = 0) -> tuple[bytes, int]:
    size = datum[at]
    if size & 0x81:  # longer than one byte, or negative
        size, at = _long(datum, at)
    else:
        size, at = size >> 1, at + 1
    end = at + size
    if size < 0 or end > len(datum):
        raise Malformed("it has a length beyond its end")
    return datum[at:end], end


def _text(datum: bytes, at: int, _: int = 0) -> tuple[str, int]:
    raw, at = _bytes(datum, at)
    return raw.decode(), at


def _null(_datum: bytes, at: int, _: int) -> tuple[None, int]:
    return None, at


def _boolean(datum: bytes, at: int, _: int) -> tuple[bool, int]:
    if datum[at] > 1:
        raise Malformed("it has a boolean that is neither 0 nor 1")
    return datum[at] == 1, at + 1


def _double(datum: bytes, at: int, _: int) -> tuple[float, int]:
    """Read a number; one that is whole reads as int: JSON does not tell 1 from 1.0, and people do."""
    number: float = _read_double(datum, at)[0]
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number, at + 8


# --- what is made of others ------------------------------------------------------


def _union(*branches: _Reader) -> _Reader:
    def read_union(datum: bytes, at: int, depth: int) -> tuple[Any, int]:
        branch, at = _long(datum, at)
        if not 0 <= branch < len(branches):
            raise Malformed("it has a union branch that the schema has not")
        return branches[branch](datum, at, depth)

    return read_union


def _map(read_value: _Reader) -> _Reader:
    def read_map(datum: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        count, at = _count(datum, at)
        while count:
            for _ in range(count):
                name, at = _text(datum, at)
                if name in found:
                    raise Malformed("it has a map with a key that occurs twice")
                found[name], at = read_value(datum, at, depth)
            count, at = _count(datum, at)
        return found, at

    return read_map


def _array(read_item: _Reader) -> _Reader:
    def read_array(datum: bytes, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        count, at = _count(datum, at)
        while count:
            for _ in range(count):
                item, at = read_item(datum, at, depth)
                found.append(item)
            count, at = _count(datum, at)
        return found, at

    return read_array


def _object(datum: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    """Read an ``AvroCloudEventData``: a record of one field, which is a map."""
    if depth >= DEPTH:
        raise Malformed(f"its data is nested deeper than {DEPTH} objects")
    return _members(datum, at, depth + 1)


_attribute: Final = _union(_null, _boolean, _long, _text, _bytes)
_members: Final = _map(_union(_null, _boolean, _map(_object), _array(_object), _double, _text))
_data: Final = _union(
    _bytes,
    _null,
    _boolean,
    _map(_union(_null, _boolean, _object, _double, _text)),
    _array(_object),
    _double,
    _text,
)
