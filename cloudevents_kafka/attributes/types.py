"""The CloudEvents type system: attribute names, types, and canonical texts.

An event's attributes stand in a plain dict from name to value. A value is the
canonical text (`str`) for String, URI, URI-reference and Timestamp, and a Python
`bool`, `int` or `bytes` for Boolean, Integer and Binary.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final

from cloudevents_kafka.attributes.timestamps import from_datetime

AttributeValue = str | int | bool | bytes
"""An attribute as an event holds it."""

SPECVERSION: Final = "1.0"
REQUIRED: Final = ("specversion", "id", "source", "type")
CORE: Final = (*REQUIRED, "datacontenttype", "dataschema", "subject", "time")


class AttributeType(Enum):
    """The seven types of the core specification; there are no others."""

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"
    BINARY = "Binary"
    URI = "URI"
    URI_REFERENCE = "URI-reference"
    TIMESTAMP = "Timestamp"


_NAME: Final = re.compile(r"[a-z0-9]+", re.ASCII)
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_FORBIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
    + "]"
)
INTEGER_RANGE: Final = range(-(2**31), 2**31)


def is_name(text: str) -> bool:
    """Tell whether the text may name an attribute: a-z and 0-9, and not ``data``."""
    return _NAME.fullmatch(text) is not None and text != "data"


def is_string(text: str) -> bool:
    """Tell whether the text is a String: no control, surrogate or noncharacter."""
    return text.isprintable() or _FORBIDDEN.search(text) is None


def parse_integer(text: str) -> int:
    """Parse the canonical text of an Integer; `ValueError` says what is wrong."""
    if _INTEGER.fullmatch(text) is None or len(text) > 11 or int(text) not in INTEGER_RANGE:
        raise ValueError("an Integer is a 32-bit number in plain digits")
    return int(text)


def parse_boolean(text: str) -> bool:
    """Parse the canonical text of a Boolean, ``true`` or ``false``."""
    if text not in ("true", "false"):
        raise ValueError("a Boolean is true or false")
    return text == "true"


def parse_binary(text: str) -> bytes:
    """Parse base64 of RFC 4648: standard alphabet, padded, no bit left over."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = None
    if decoded is None or base64.b64encode(decoded) != text.encode():  # it ignores excess padding and bits
        raise ValueError("a Binary is base64 of RFC 4648, padded")
    return decoded


def canonical_text(value: AttributeValue) -> str:
    """Return the canonical text of an attribute value (core: Type System)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


_PARSERS: Final[dict[AttributeType, Callable[[str], AttributeValue]]] = {
    AttributeType.BOOLEAN: parse_boolean,
    AttributeType.INTEGER: parse_integer,
    AttributeType.BINARY: parse_binary,
}


def parse(kind: AttributeType, text: str) -> AttributeValue:
    """Parse the canonical text of a type; the text itself for the four types that are text."""
    parser = _PARSERS.get(kind)
    return text if parser is None else parser(text)


def to_attribute(value: object) -> AttributeValue:
    """Turn a Python value into an attribute value, or say in a `ValueError` why not.

    A datetime becomes its RFC 3339 text, bytes-likes become bytes, an enum of text
    its text. Nothing else is guessed at.
    """
    if isinstance(value, bool | str | int | bytes):
        return _plain(value)
    if isinstance(value, datetime):
        return from_datetime(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise ValueError(f"must be text, a whole number, a bool, bytes or a datetime, not {type(value).__name__}")


def _plain(value: AttributeValue) -> AttributeValue:
    """Strip subclasses (enums above all), whose own text may differ from their value."""
    if type(value) in (str, bool, int, bytes):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__index__(value) if isinstance(value, int) else bytes(value)
