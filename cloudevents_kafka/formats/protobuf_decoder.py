"""Read one message ``io.cloudevents.v1.CloudEvent``, whatever the bytes are.

Generated code reads an attribute that comes twice, two kinds of data, or a number that is
too great, and keeps the last or cuts it, without a word. The message is small and never
changes, so it is read by hand here, and what came is seen. It has four levels, and each
length is checked against what is left: depth and memory have their bounds. Fields that the
message does not have are ignored, as Protobuf wants it, and so are those of another wire
type; groups, which proto3 does not have, are refused.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.primitives import varint

# Tags: the number of a field and, in the lowest three bits, its wire type: 0 for a number,
# 2 for what has a length before it.
_REQUIRED: Final = {0x0A: "id", 0x12: "source", 0x1A: "specversion", 0x22: "type"}
_ATTRIBUTES: Final = 0x2A
_DATA: Final = {0x32: "binary_data", 0x3A: "text_data", 0x42: "proto_data"}
_KEY: Final = 0x0A
_VALUE: Final = 0x12
_CE_STRING: Final = 0x1A
_ARMS: Final = {
    0x08: AttributeType.BOOLEAN,
    0x10: AttributeType.INTEGER,
    _CE_STRING: AttributeType.STRING,
    0x22: AttributeType.BINARY,
    0x2A: AttributeType.URI,
    0x32: AttributeType.URI_REFERENCE,
    0x3A: AttributeType.TIMESTAMP,
}
_TEXTS: Final = (AttributeType.STRING, AttributeType.URI, AttributeType.URI_REFERENCE)
_SECONDS: Final = 0x08
_NANOS: Final = 0x10
_TYPE_URL: Final = 0x0A
_BEYOND: Final = "it has a length beyond its end"

Arm = tuple[str, AttributeType | None, Any]
"""An entry of the map: name, type and value; the type is None where it has no arm, or more than one.

A value is a bool, int, text or bytes; of a Timestamp the seconds since 1970 and nanoseconds.
"""


class Malformed(ValueError):
    """The bytes are no such message; says why, and nothing of what is in them."""


def read(message: bytes) -> tuple[list[tuple[str, str]], list[Arm], list[tuple[str, bytes]]]:
    """Read the required attributes, those of the map, and the arms of data, in order and with repeats.

    Raises `Malformed`.
    """
    required: list[tuple[str, str]] = []
    optional: list[Arm] = []
    data: list[tuple[str, bytes]] = []
    try:
        for tag, value in _fields(message):
            if tag == _ATTRIBUTES:
                optional.append(_entry(value))
            elif tag in _REQUIRED:
                required.append((_REQUIRED[tag], value.decode()))
            elif tag in _DATA:
                data.append((_DATA[tag], value))
    except IndexError:
        raise Malformed("it ends too early") from None
    except OverflowError:
        raise Malformed("it has a number of more than 64 bits") from None
    except UnicodeDecodeError:
        raise Malformed("it has a string that is not UTF-8") from None
    return required, optional, data


def is_any(message: bytes) -> bool:
    """Tell whether the bytes are a ``google.protobuf.Any``; what is in it need not be known."""
    try:
        for tag, value in _fields(message):
            if tag == _TYPE_URL:
                value.decode()
    except (Malformed, IndexError, OverflowError, UnicodeDecodeError):
        return False
    return True


def _entry(entry: bytes) -> Arm:
    """Read an entry of the map; nearly all are a name and a string, and no more."""
    size = len(entry)
    if 4 < size < 0x80 and entry[0] == _KEY:  # so a length of more than one byte is beyond the end
        at = 2 + entry[1]
        if at + 4 <= size and entry[at : at + 4] == bytes((_VALUE, size - at - 2, _CE_STRING, size - at - 4)):
            return entry[2:at].decode(), AttributeType.STRING, entry[at + 4 :].decode()
    return _other_entry(entry)


def _other_entry(entry: bytes) -> Arm:
    fields = _once(_fields(entry), (_KEY, _VALUE))
    name = fields.get(_KEY, b"").decode()
    arms = [field for field in _fields(fields.get(_VALUE, b"")) if field[0] in _ARMS]
    if len(arms) != 1:
        return name, None, len(arms)
    tag, value = arms[0]
    kind = _ARMS[tag]
    if kind in _TEXTS:
        return name, kind, value.decode()
    if kind is AttributeType.TIMESTAMP:
        moment = _once(_fields(value), (_SECONDS, _NANOS))
        return name, kind, (_signed(moment.get(_SECONDS, 0)), _signed(moment.get(_NANOS, 0)))
    if kind is AttributeType.INTEGER:
        return name, kind, _signed(value)
    return name, kind, bool(value) if kind is AttributeType.BOOLEAN else value


def _once(fields: list[tuple[int, Any]], tags: tuple[int, int]) -> dict[int, Any]:
    """Fields by tag, of which those told may come once; of others that are no matter."""
    found = dict(fields)
    if len(found) != len(fields) and any(sum(tag == each for each, _ in fields) > 1 for tag in tags):
        raise Malformed("a name, value or part of a time occurs twice in one attribute")
    return found


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


# --- the wire ------------------------------------------------------------------


def _fields(message: bytes) -> list[tuple[int, Any]]:
    """Split a message into its fields: the tag of each, and a number or bytes; None for what has neither."""
    found: list[tuple[int, Any]] = []
    at, end = 0, len(message)
    while at < end:
        tag = message[at]
        if tag > 7 and tag & 0x87 == 2 and (size := message[at + 1]) < 0x80:  # nearly all: one byte each
            start = at + 2
            at = start + size
            if at > end:
                raise Malformed(_BEYOND)
            found.append((tag, message[start:at]))
        else:
            tag, value, at = _field(message, at, end)
            found.append((tag, value))
    return found


def _field(message: bytes, at: int, end: int) -> tuple[int, Any, int]:
    tag, at = varint.decode(message, at)
    wire_type = tag & 7
    value: Any = None
    if wire_type == 2:
        value, at = _bytes(message, at, end)
    elif wire_type == 0:
        value, at = varint.decode(message, at)
    else:
        at = _skip(wire_type, at, end)
    if not 0 < tag >> 3 < 2**29:
        raise Malformed("it has a field of a number that no field can have")
    return tag, value, at


def _bytes(message: bytes, at: int, end: int) -> tuple[bytes, int]:
    size, at = varint.decode(message, at)
    if size > end - at:
        raise Malformed(_BEYOND)
    return message[at : at + size], at + size


def _skip(wire_type: int, at: int, end: int) -> int:
    """Pass over a number of 8 or 4 bytes, which no field of these messages is."""
    if wire_type not in (1, 5):
        raise Malformed("it has a group or an unknown wire type")
    at += 8 if wire_type == 1 else 4
    if at > end:
        raise Malformed("it ends too early")
    return at
