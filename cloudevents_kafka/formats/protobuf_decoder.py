"""A decoder of the message ``io.cloudevents.v1.CloudEvent`` for untrusted bytes.

Code that the Protobuf compiler generates silently drops parts of some messages: one of two attributes with
the same name, all fields of a oneof except one, or the high bits of a number. The message has few fields, and
they never change, so this module decodes the message without generated code. It returns every field. A
message has four levels, and each length is checked, so the depth and the memory are limited. Unknown fields
and fields with an unexpected wire type are ignored, as Protobuf demands. A group raises `MalformedMessage`,
because proto3 does not have groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.primitives import varint

# Tags. A tag contains the number of a field and, in the lowest three bits, the wire type of the field: 0 for
# a varint, 2 for bytes with their length.
_REQUIRED: Final = {0x0A: "id", 0x12: "source", 0x1A: "specversion", 0x22: "type"}
ATTRIBUTES: Final = 0x2A
DATA: Final = {0x32: "binary_data", 0x3A: "text_data", 0x42: "proto_data"}
_KEY: Final = 0x0A
_VALUE: Final = 0x12
ATTR_FIELDS: Final = {
    AttributeType.BOOLEAN: "ce_boolean",
    AttributeType.INTEGER: "ce_integer",
    AttributeType.STRING: "ce_string",
    AttributeType.BINARY: "ce_bytes",
    AttributeType.URI: "ce_uri",
    AttributeType.URI_REFERENCE: "ce_uri_ref",
    AttributeType.TIMESTAMP: "ce_timestamp",
}
"""The fields of the oneof ``attr`` by the type of the attribute (P-02), in the order of their numbers."""
ATTR_TYPES: Final = {
    number << 3 | (0 if number < 3 else 2): attribute_type
    for number, attribute_type in enumerate(ATTR_FIELDS, 1)
}
_TEXTS: Final = (AttributeType.STRING, AttributeType.URI, AttributeType.URI_REFERENCE)
_SECONDS: Final = 0x08
_NANOS: Final = 0x10
_TYPE_URL: Final = 0x0A
_FIXED_SIZES: Final = {1: 8, 5: 4}  # sizes of numbers, which no field of these messages has
_BEYOND: Final = "it has a length beyond its end"

AttributeField = tuple[str, AttributeType | None, Any]
"""An entry of the map: a name, a type and a value, which is a bool, int, str or bytes.

The value of a Timestamp is a pair of the seconds since the epoch and the nanoseconds. If the entry does not
contain exactly one field of the oneof ``attr``, the type is None, and the value is the number of such fields.
"""


class MalformedMessage(ValueError):
    """The bytes are not a valid Protobuf message. The error text does not contain any data."""


def read(message: bytes) -> tuple[list[tuple[str, str]], list[AttributeField], list[tuple[str, bytes]]]:
    """Return three lists of fields: required attributes, attributes in the map, and fields with data.

    If a field is repeated, its list contains every occurrence. Raises `MalformedMessage` if the bytes are not
    a valid message.
    """
    required: list[tuple[str, str]] = []
    optional: list[AttributeField] = []
    data: list[tuple[str, bytes]] = []
    try:
        for tag, value in _fields(message):
            if tag == ATTRIBUTES:
                optional.append(_entry(value))
            elif tag in _REQUIRED:
                required.append((_REQUIRED[tag], value.decode()))
            elif tag in DATA:
                data.append((DATA[tag], value))
    except IndexError:
        raise MalformedMessage("it ends too early") from None
    except OverflowError:
        raise MalformedMessage("it has a number of more than 64 bits") from None
    except UnicodeDecodeError:
        raise MalformedMessage("it has a string that is not UTF-8") from None
    return required, optional, data


def entries(message: bytes) -> Iterator[tuple[AttributeField, bytes]]:
    """Yield each entry of the map, with the bytes of its field, which may be appended to another message.

    Raises an error if the bytes are not a valid message: see `read`.
    """
    for tag, value in _fields(message):
        if tag == ATTRIBUTES:
            yield _entry(value), bytes((tag, *varint.encode(len(value)))) + value


def is_any(message: bytes) -> bool:
    """Return whether the bytes are a ``google.protobuf.Any`` that contains a message of any type."""
    try:
        for tag, value in _fields(message):
            if tag == _TYPE_URL:
                value.decode()
    except (MalformedMessage, IndexError, OverflowError, UnicodeDecodeError):
        return False
    return True


def _entry(entry: bytes) -> AttributeField:
    name, attr = _two_fields(entry, _KEY, _VALUE, b"")
    fields = [field for field in _fields(attr) if field[0] in ATTR_TYPES]
    if len(fields) != 1:
        return name.decode(), None, len(fields)
    tag, value = fields[0]
    attribute_type = ATTR_TYPES[tag]
    if attribute_type in _TEXTS:
        value = value.decode()
    elif attribute_type is AttributeType.TIMESTAMP:
        seconds, nanos = _two_fields(value, _SECONDS, _NANOS, 0)
        value = signed(seconds), signed(nanos)
    elif attribute_type is AttributeType.INTEGER:
        value = signed(value)
    elif attribute_type is AttributeType.BOOLEAN:
        value = bool(value)
    return name.decode(), attribute_type, value


def _two_fields(message: bytes, first_tag: int, second_tag: int, default: Any) -> tuple[Any, Any]:
    """Return the values of two fields of a message; raise `MalformedMessage` if a field is repeated."""
    fields = _fields(message)
    by_tag = dict(fields)
    if len(by_tag) != len(fields) and any(
        sum(tag == repeated for tag, _ in fields) > 1 for repeated in (first_tag, second_tag)
    ):
        raise MalformedMessage("it has an attribute with a repeated name, value or part of a time")
    return by_tag.get(first_tag, default), by_tag.get(second_tag, default)


def signed(number: int) -> int:
    """Return the signed number that the 64 bits of a varint represent."""
    return number - 2**64 if number >= 2**63 else number


# --- the wire ------------------------------------------------------------------


def _fields(message: bytes) -> list[tuple[int, Any]]:
    """Return the tag and the value of each field: a number, bytes, or None for other wire types."""
    fields: list[tuple[int, Any]] = []
    at, end = 0, len(message)
    while at < end:
        tag, value, at = _field(message, at, end)
        fields.append((tag, value))
    return fields


def _field(message: bytes, at: int, end: int) -> tuple[int, Any, int]:
    tag, at = varint.decode(message, at)
    wire_type = tag & 7
    value: Any = None
    if wire_type == 0:
        value, at = varint.decode(message, at)
    elif wire_type == 2:
        size, start = varint.decode(message, at)
        at = start + size
        value = message[start:at]
    elif wire_type in _FIXED_SIZES:
        at += _FIXED_SIZES[wire_type]
    else:
        raise MalformedMessage("it has a group or an unknown wire type")
    if at > end:
        raise MalformedMessage(_BEYOND)
    if not 0 < tag >> 3 < 2**29:
        raise MalformedMessage("it has an invalid field number")
    return tag, value, at
