"""The CloudEvents type system: attribute names, the seven types, and canonical texts.

The attributes of an event are stored as a dictionary from names to values. The value of a String, URI,
URI-reference or Timestamp is its canonical text, a `str`. The value of a Boolean, Integer or Binary is a
`bool`, `int` or `bytes`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes._uri import is_uri, is_uri_reference
from cloudevents_kafka.attributes.timestamps import from_datetime, is_timestamp

AttributeValue = str | int | bool | bytes
"""The value of an attribute in an event."""

SPECVERSION: Final = "1.0"
REQUIRED: Final = ("specversion", "id", "source", "type")
CORE: Final = (*REQUIRED, "datacontenttype", "dataschema", "subject", "time")


class AttributeType(Enum):
    """The seven types of the core specification.

    Examples:
        >>> from cloudevents_kafka import AttributeType, Event, register_extension
        >>> register_extension("attempt", AttributeType.INTEGER)
        >>> Event(id="1", source="/shop", type="order.placed", attempt="3")["attempt"]
        3
    """

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"
    BINARY = "Binary"
    URI = "URI"
    URI_REFERENCE = "URI-reference"
    TIMESTAMP = "Timestamp"

    __hash__ = object.__hash__  # members are singletons; Enum's function is slower


_NAME: Final = re.compile(r"[a-z0-9]+", re.ASCII)  # N-01: "from the ASCII character set"
# T-06: "control characters"; T-07: "identified as noncharacters by Unicode"; T-08: "unless used properly in
# pairs", and a pair is one character of a str. A pattern of the allowed characters is ten times faster than a
# pattern of the other characters.
_STRING: Final = re.compile(
    "[ -~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd"
    + "".join(f"{chr(plane << 16)}-{chr(plane << 16 | 0xFFFD)}" for plane in range(1, 17))
    + "]*+"
)
_BASE_CLASSES: Final = frozenset((str, bool, int, bytes))
INTEGER_RANGE: Final = range(-(2**31), 2**31)  # T-04: "a signed, 32-bit, twos-complement encoding"
_LONGEST_INTEGER: Final = len("-2147483648")


def is_name(text: str) -> bool:
    """Return whether a text is a valid attribute name: it consists of a-z and 0-9, and is not ``data``."""
    return _NAME.fullmatch(text) is not None and text != "data"  # N-04: "MUST NOT have the name `data`"


def is_string(text: str) -> bool:
    """Return whether a text is a valid String, without control characters, surrogates and noncharacters."""
    return text.isprintable() or _STRING.fullmatch(text) is not None


def _parse_integer(text: str) -> int:
    try:
        value = int(text) if len(text) <= _LONGEST_INTEGER else None
    except ValueError:
        value = None
    # T-05: "Integer component of the JSON Number", which has no leading zeros, and may be -0
    if value is None or value not in INTEGER_RANGE or (str(value) != text and text != "-0"):
        raise ValueError("an Integer must be a 32-bit number in decimal digits")
    return value


def _parse_boolean(text: str) -> bool:
    if text not in ("true", "false"):  # T-03: "case-sensitive"
        raise ValueError("a Boolean must be true or false")
    return text == "true"


def parse_binary(text: str) -> bytes:
    """Return the bytes that a text in canonical base64 represents (RFC 4648).

    Raises `ValueError` for other texts.
    """
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # the base class of binascii.Error
        decoded = None
    # The decoder ignores excess padding and bits, which RFC 4648 3.5 lets a decoder reject.
    if decoded is None or binascii.b2a_base64(decoded, newline=False) != text.encode():
        raise ValueError("a Binary must be base64 of RFC 4648 with padding")
    return decoded


def canonical_text(value: AttributeValue) -> str:
    """Return the canonical text of a value (T-02)."""
    if isinstance(value, str):
        return value
    return NATIVE_TYPES[type(value)].write(value)


def _write_boolean(value: bool) -> str:  # noqa: FBT001
    return "true" if value else "false"


def _write_binary(value: bytes) -> str:
    return base64.b64encode(value).decode()


class TypeRow(msgspec.Struct, frozen=True):
    """The properties of one of the seven attribute types.

    ``python`` is the Python class of the type's values. The function ``write`` returns the canonical text of
    a value of the type. The function ``parse`` returns the value of a canonical text; ``parse`` is None if
    the value is the text itself. The function ``accepts`` returns whether a String is a valid text of the
    type; ``accepts`` is None if every String is valid. ``clause`` and ``rule`` are the clause of the
    specification and the rule in the error for a value of another type.
    """

    kind: AttributeType
    python: type
    parse: Callable[[str], AttributeValue] | None
    write: Callable[[Any], str]
    accepts: Callable[[str], bool] | None
    clause: str
    rule: str


_STRING_RULE: Final = "must be text without control characters, surrogates and noncharacters"
_ROWS: Final = (
    # T-03: "a case-sensitive value of `true` or `false`"
    TypeRow(
        AttributeType.BOOLEAN, bool, _parse_boolean, _write_boolean, None, "T-03", "must be true or false"
    ),
    # T-04: "in the range -2,147,483,648 to +2,147,483,647"; T-05: "optionally prefixed with a minus sign"
    TypeRow(
        AttributeType.INTEGER,
        int,
        _parse_integer,
        str,
        None,
        "T-05",
        "must be an integer of 32 bits in decimal digits",
    ),
    # T-06: "Sequence of allowable Unicode characters"
    TypeRow(AttributeType.STRING, str, None, str, None, "T-06", _STRING_RULE),
    # T-09: "Base64 encoding per RFC4648"
    TypeRow(
        AttributeType.BINARY,
        bytes,
        parse_binary,
        _write_binary,
        None,
        "T-09",
        "must be bytes, or base64 of RFC 4648 with padding",
    ),
    # T-10: "Absolute uniform resource identifier"
    TypeRow(AttributeType.URI, str, None, str, is_uri, "T-10", "must be a URI with a scheme"),
    # T-11: "`URI-reference` as defined in RFC 3986 Section 4.1"
    TypeRow(AttributeType.URI_REFERENCE, str, None, str, is_uri_reference, "T-11", "must be a URI-reference"),
    # T-12: "Date and time expression using the Gregorian Calendar"
    TypeRow(AttributeType.TIMESTAMP, str, None, str, is_timestamp, "T-12", "must be an RFC 3339 timestamp"),
)
TYPES: Final = {row.kind: row for row in _ROWS}
"""The properties of the seven types, as a dictionary by `AttributeType`."""
NATIVE_TYPES: Final = {row.python: row for row in _ROWS if row.python is not str}
"""The properties of all types whose values are not texts, as a dictionary by the class of the values."""
CORE_TYPES: Final = {
    "source": AttributeType.URI_REFERENCE,
    "dataschema": AttributeType.URI,
    "time": AttributeType.TIMESTAMP,
}
"""The types of those core attributes that are not Strings."""


def parse(attribute_type: AttributeType, text: str) -> AttributeValue:
    """Return the value that a canonical text represents. For four types, the value is the text itself.

    Raises `ValueError` if the text of a Boolean, an Integer or a Binary is malformed.
    """
    parser = TYPES[attribute_type].parse
    return text if parser is None else parser(text)


def to_attribute(value: object) -> AttributeValue:
    """Return a Python value as the value of an attribute.

    Raises `ValueError` if the type of the Python value is not supported.

    A datetime becomes its RFC 3339 text, a bytes-like object becomes bytes, and a member of a `StrEnum`
    becomes its text.
    """
    if type(value) in _BASE_CLASSES:
        return value  # type: ignore[return-value]  # it is of one of the classes
    if type(value) is datetime:
        return from_datetime(value)
    if isinstance(value, str | int | bytes):
        return _to_base_class(value)
    if isinstance(value, datetime):
        return from_datetime(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise ValueError(f"must be str, int, bool, bytes or datetime, got {type(value).__name__}")


def _to_base_class(value: AttributeValue) -> AttributeValue:
    """Convert a value of a subclass, such as a member of an enum, to a value of the base class.

    For a member of an enum, ``str()`` may return a text that differs from the member's value.
    """
    if isinstance(value, str):
        return str.__str__(value)
    return int.__index__(value) if isinstance(value, int) else bytes(value)
