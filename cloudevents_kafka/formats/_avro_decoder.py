"""A decoder of the schema ``io.cloudevents.AvroCloudEvent`` for untrusted bytes.

A general decoder recurses in C without a limit, so that a hostile datum ends the process,
and it silently drops one of two attributes with the same name. The schema is small and
fixed, so this module decodes it with `codecs.avro_binary`: every length is checked, and
depth is limited.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cloudevents_kafka.attributes.types import AttributeValue
from cloudevents_kafka.codecs.avro_binary import (
    Malformed,
    Reader,
    read_attributes,
    read_boolean,
    read_bytes,
    read_count,
    read_datum,
    read_long,
    read_null,
    read_text,
    union_reader,
)

MAX_DEPTH: Final = 64
"""The maximum nesting of objects in data, since reader and writer recurse."""

_MAX_EXACT: Final = 2**53  # integers up to here are exact as doubles
_read_double: Final = struct.Struct("<d").unpack_from


def read(datum: bytes) -> tuple[list[tuple[str, AttributeValue | None]], Any]:
    """Return the attributes, in order and with repeats, and the data: bytes, None or a JSON value.

    Raises `Malformed`.
    """
    found: tuple[list[tuple[str, AttributeValue | None]], Any] = read_datum(datum, _datum)
    return found


def _datum(datum: bytes) -> tuple[tuple[list[tuple[str, AttributeValue | None]], Any], int]:
    attributes, at = read_attributes(datum, 0, _attribute)
    data, at = _data(datum, at, 0)
    return (attributes, data), at


def _double(datum: bytes, at: int, _: int) -> tuple[float, int]:
    """Return a number, an int if it is integral: 1 in JSON is read as 1, not as 1.0."""
    number: float = _read_double(datum, at)[0]
    return int(number) if number.is_integer() and abs(number) <= _MAX_EXACT else number, at + 8


# --- composed readers ------------------------------------------------------------


def _map(read_value: Reader) -> Reader:
    def read_map(datum: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        count, at = read_count(datum, at)
        while count:
            for _ in range(count):
                name, at = read_text(datum, at)
                if name in found:
                    raise Malformed("it has a map with a repeated key")
                found[name], at = read_value(datum, at, depth)
            count, at = read_count(datum, at)
        return found, at

    return read_map


def _array(read_item: Reader) -> Reader:
    def read_array(datum: bytes, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        count, at = read_count(datum, at)
        while count:
            for _ in range(count):
                item, at = read_item(datum, at, depth)
                found.append(item)
            count, at = read_count(datum, at)
        return found, at

    return read_array


def _object(datum: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    """Return an ``AvroCloudEventData``, a record whose only field is a map."""
    if depth >= MAX_DEPTH:
        raise Malformed(f"its data is nested deeper than {MAX_DEPTH} objects")
    return _members(datum, at, depth + 1)


_attribute: Final = union_reader(read_null, read_boolean, read_long, read_text, read_bytes)
_members: Final = _map(
    union_reader(read_null, read_boolean, _map(_object), _array(_object), _double, read_text)
)
_data: Final = union_reader(
    read_bytes,
    read_null,
    read_boolean,
    _map(union_reader(read_null, read_boolean, _object, _double, read_text)),
    _array(_object),
    _double,
    read_text,
)
