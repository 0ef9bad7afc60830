"""Decoders of Avro's binary encoding for untrusted bytes, for the types that event schemas use.

A reader is a function with three arguments: the bytes of a datum, an index, and the depth of nested values.
The result of a reader is the value at the index, and the index after the value. A reader raises
`MalformedDatum` if a length is larger than the number of remaining bytes, and `IndexError` if the datum ends
too early. For invalid integers and strings, a reader raises `OverflowError` or `UnicodeDecodeError`. The
function `read_datum` raises `MalformedDatum` for all these errors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

from cloudevents_kafka.primitives import varint, zigzag

_STRING: Final = 6  # the encoded union branch of a string attribute, the fourth in both schemas

T = TypeVar("T")
Reader = Callable[[bytes, int, int], tuple[T, int]]


class MalformedDatum(ValueError):
    """The bytes are not exactly one datum of the schema. The error text does not contain any data."""


def read_datum(datum: bytes, read: Callable[[bytes], tuple[T, int]]) -> T:
    """Return the value of a datum, which must not have further bytes after the value.

    Raises `MalformedDatum` if the bytes are not exactly one datum.
    """
    try:
        value, at = read(datum)
    except (IndexError, struct.error):
        raise MalformedDatum("it ends too early") from None
    except OverflowError:
        raise MalformedDatum("it has an integer of more than 64 bits") from None
    except UnicodeDecodeError:
        raise MalformedDatum("it has a string that is not UTF-8") from None
    except RecursionError:
        raise MalformedDatum("its data is nested too deep") from None
    if at != len(datum):
        raise MalformedDatum("it ends too early" if at > len(datum) else "bytes follow its end")
    return value


# --- reading -------------------------------------------------------------------


def read_long(datum: bytes, at: int, _: int = 0) -> tuple[int, int]:
    """Return an Avro int or long."""
    return zigzag.decode(datum, at)


def read_count(datum: bytes, at: int) -> tuple[int, int]:
    """Return the number of entries in the next block; a negative number is followed by the block's size."""
    count, at = zigzag.decode(datum, at)
    return (count, at) if count >= 0 else (-count, zigzag.decode(datum, at)[1])


def read_bytes(datum: bytes, at: int, _: int = 0) -> tuple[bytes, int]:
    """Return the bytes that follow an encoded length."""
    # Decoded here instead of by `zigzag`: measured, an event is read in 10 % less time.
    size = datum[at]
    if size & 0x81:  # longer than one byte, or negative
        size, at = zigzag.decode(datum, at)
    else:
        size, at = size >> 1, at + 1
    end = at + size
    if size < 0 or end > len(datum):
        raise MalformedDatum("it has a length beyond its end")
    return datum[at:end], end


def read_text(datum: bytes, at: int, _: int = 0) -> tuple[str, int]:
    """Return a string."""
    raw, at = read_bytes(datum, at)
    return raw.decode(), at


def read_null(_datum: bytes, at: int, _: int) -> tuple[None, int]:
    """Return null, whose encoding has 0 bytes."""
    return None, at


def read_boolean(datum: bytes, at: int, _: int) -> tuple[bool, int]:
    """Return a boolean."""
    if datum[at] > 1:
        raise MalformedDatum("it has a boolean other than 0 and 1")
    return datum[at] == 1, at + 1


def union_reader(*branches: Reader[Any]) -> Reader[Any]:
    """Return a reader for a union type; ``branches`` are the readers for the types of the union."""

    def read_branch(datum: bytes, at: int, depth: int) -> tuple[Any, int]:
        branch, at = zigzag.decode(datum, at)
        if not 0 <= branch < len(branches):
            raise MalformedDatum("it has an unknown union branch")
        return branches[branch](datum, at, depth)

    return read_branch


def read_attributes(datum: bytes, at: int, read_value: Reader[Any]) -> tuple[list[tuple[str, Any]], int]:
    """Return the attributes in an Avro map as pairs of name and value; a name may occur more than once."""
    pairs: list[tuple[str, Any]] = []
    length = len(datum)
    count, at = read_count(datum, at)
    while count:
        for _ in range(count):
            # Short strings are decoded here instead of by `read_text`: measured, an event is read in 24 %
            # less time.
            size = datum[at]
            end = at + 1 + (size >> 1)
            if size & 0x81 or end > length:
                name, at = read_text(datum, at)
            else:
                name, at = datum[at + 1 : end].decode(), end
            if datum[at] != _STRING:
                value, at = read_value(datum, at, 0)
            else:
                size = datum[at + 1]
                end = at + 2 + (size >> 1)
                if size & 0x81 or end > length:
                    value, at = read_text(datum, at + 1)
                else:
                    value, at = datum[at + 2 : end].decode(), end
            pairs.append((name, value))
        count, at = read_count(datum, at)
    return pairs, at


# --- writing -------------------------------------------------------------------


def write_bytes(content: bytes) -> bytes:
    """Return the Avro encoding of bytes, or of a string in UTF-8: the length, and then the bytes."""
    return varint.encode(2 * len(content)) + content  # the zigzag number of a length is its double
