"""Avro's binary encoding, as far as the schemas of events have it, for bytes of any kind.

Readers take the datum, where to read, and a depth that most have no use for; they return
what they read and where it ends. Each length is checked against what is left. Beyond the
end they raise `IndexError`, for text that is none `UnicodeDecodeError`; `read_datum` turns
both into `Malformed`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from cloudevents_kafka.primitives import zigzag

_STRING: Final = 6  # a text among attributes, as written: the fourth branch in both schemas

Reader = Callable[[bytes, int, int], tuple[Any, int]]


class Malformed(ValueError):
    """The bytes are no datum of the schema; says why, and nothing of what is in them."""


def read_datum(datum: bytes, read: Callable[[bytes], tuple[Any, int]]) -> Any:
    """Read what fills a datum to its end; raises `Malformed` for whatever the bytes are not."""
    try:
        value, at = read(datum)
    except (IndexError, struct.error):
        raise Malformed("it ends too early") from None
    except OverflowError:
        raise Malformed("it has a number of more than 64 bits") from None
    except UnicodeDecodeError:
        raise Malformed("it has a string that is not UTF-8") from None
    except RecursionError:
        raise Malformed("its data is nested too deep") from None
    if at != len(datum):
        raise Malformed(f"{len(datum) - at} bytes are left over")
    return value


# --- reading -------------------------------------------------------------------


def read_long(datum: bytes, at: int, _: int = 0) -> tuple[int, int]:
    """Read a number of up to 64 bits."""
    return zigzag.decode(datum, at)


def read_count(datum: bytes, at: int) -> tuple[int, int]:
    """Read how many entries the next block has; a negative count has the block's size behind it."""
    count, at = zigzag.decode(datum, at)
    return (count, at) if count >= 0 else (-count, zigzag.decode(datum, at)[1])


def read_bytes(datum: bytes, at: int, _: int = 0) -> tuple[bytes, int]:
    """Read bytes, which have their length before them."""
    size = datum[at]
    if size & 0x81:  # longer than one byte, or negative
        size, at = zigzag.decode(datum, at)
    else:
        size, at = size >> 1, at + 1
    end = at + size
    if size < 0 or end > len(datum):
        raise Malformed("it has a length beyond its end")
    return datum[at:end], end


def read_text(datum: bytes, at: int, _: int = 0) -> tuple[str, int]:
    """Read a string."""
    raw, at = read_bytes(datum, at)
    return raw.decode(), at


def read_null(_datum: bytes, at: int, _: int) -> tuple[None, int]:
    """Read a null, which takes no byte."""
    return None, at


def read_boolean(datum: bytes, at: int, _: int) -> tuple[bool, int]:
    """Read a Boolean."""
    if datum[at] > 1:
        raise Malformed("it has a boolean that is neither 0 nor 1")
    return datum[at] == 1, at + 1


def union_reader(*branches: Reader) -> Reader:
    """Make a reader of a union, whose branches are told by number."""

    def read_branch(datum: bytes, at: int, depth: int) -> tuple[Any, int]:
        branch, at = zigzag.decode(datum, at)
        if not 0 <= branch < len(branches):
            raise Malformed("it has a union branch that the schema has not")
        return branches[branch](datum, at, depth)

    return read_branch


def read_attributes(datum: bytes, at: int, read_value: Reader) -> tuple[list[tuple[str, Any]], int]:
    """Read a map of attributes, in order and with repeats; most of them are texts."""
    found: list[tuple[str, Any]] = []
    count, at = read_count(datum, at)
    while count:
        for _ in range(count):
            name, at = read_text(datum, at)
            plain = datum[at] == _STRING
            value, at = read_text(datum, at + 1) if plain else read_value(datum, at, 0)
            found.append((name, value))
        count, at = read_count(datum, at)
    return found, at


# --- writing -------------------------------------------------------------------


def write_bytes(content: bytes) -> bytes:
    """Write bytes, or the UTF-8 of a string, behind their length."""
    return zigzag.encode(len(content)) + content
