"""Scalars in JSON: each function uses a `Shape` to check a value, and returns a value that Spark can read.

Each function raises `ValueError` with a text that describes the value, or `TypeError` if the value has a
wrong type. Numbers are texts (`msgspec.Raw`), because parsing a number before the check could round the
number.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from cloudevents_kafka.spark.typed.shape import Shape

_REALS: Final = {"FLOAT": ">f", "DOUBLE": ">d"}
_BITS: Final = {"BIGINT": 64, "INT": 32, "SMALLINT": 16, "TINYINT": 8}
_MAX_DIGITS: Final = 4_000  # characters of a number
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_MINUTE: Final = r"(?:[01]\d|2[0-3]):[0-5]\d"
# The digits are checked here, since versions of Python differ in those that they accept.
_TIME: Final = re.compile(
    rf"([\d-]{{10}})[Tt]({_MINUTE}:[0-5]\d)(?:\.(\d{{1,6}})0*)?([Zz]|[+-]{_MINUTE})?", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TOO_LARGE: Final = "a number that does not fit"
_OTHER: Final = "another text"


def raw_number(text: str) -> msgspec.Raw:
    """Return a number as the JSON text that was received."""
    return msgspec.Raw(text.encode())


def check_type(value: Any, type_: type) -> Any:
    """Return the value if it has the type; raise `TypeError` if it has another type."""
    if not isinstance(value, type_):
        raise TypeError
    return value


def _text_of(value: Any) -> str:
    return str(check_type(value, str))


def _boolean(value: Any, _: Shape) -> bool:
    return bool(check_type(value, bool))


def _string(value: Any, shape: Shape) -> str:
    if shape.values and value not in shape.values:
        raise ValueError(_OTHER)
    try:
        _text_of(value).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a character") from None
    return str(value)


def _digits(value: Any, *, or_text: bool = False) -> str:
    """Return the text of a number; raise `ValueError` if the text is not a JSON number.

    The check is necessary because Python also reads numbers that JSON does not allow, such as 1_0.
    """
    if not isinstance(value, msgspec.Raw) and not (or_text and isinstance(value, str)):
        raise TypeError
    text = bytes(value).decode() if isinstance(value, msgspec.Raw) else value
    if not _NUMBER.fullmatch(text):
        raise ValueError(_OTHER)
    if len(text) > _MAX_DIGITS:
        raise ValueError(_TOO_LARGE)
    return text


def _exact(digits: str) -> Decimal:
    try:
        return Decimal(digits) or Decimal(0)  # without an exponent
    except ArithmeticError:  # an exponent of too many digits
        raise ValueError(_TOO_LARGE) from None


def _integer(value: Any, shape: Shape) -> msgspec.Raw:
    number, bits = _exact(_digits(value)), _BITS[shape.spark]
    if number.adjusted() > bits:
        raise ValueError(_TOO_LARGE)
    if number != int(number):
        raise ValueError("a fraction")
    if not -(1 << bits - 1) <= int(number) < 1 << bits - 1:
        raise ValueError(_TOO_LARGE)
    return raw_number(str(int(number)))


def _real(value: Any, shape: Shape) -> msgspec.Raw:
    number = float(_digits(value))
    try:
        struct.pack(_REALS[shape.spark], number)
    except OverflowError:
        number = float("inf")
    if math.isinf(number):
        raise ValueError(_TOO_LARGE)
    return raw_number(repr(number))


def _decimal(value: Any, shape: Shape) -> msgspec.Raw:
    number, (precision, scale) = _exact(_digits(value, or_text=True)), shape.decimal() or (0, 0)
    if number and (number.adjusted() >= precision - scale or number.adjusted() < -scale):
        raise ValueError(_TOO_LARGE)
    digits = f"{number:f}"
    whole = digits.rstrip("0").rstrip(".") if "." in digits else digits
    if len(whole.partition(".")[2]) > scale:
        raise ValueError(_TOO_LARGE)
    return raw_number(whole if number else "0")


def _time(value: Any, shape: Shape) -> str:
    match = _TIME.fullmatch(_text_of(value))
    if match is None or (match[4] is None) is (shape.spark == "TIMESTAMP"):
        raise ValueError(_OTHER)
    day, clock, fraction, offset = match.groups(default="")
    try:
        found = datetime.fromisoformat(f"{day}T{clock}.{fraction.ljust(6, '0')}{offset.upper()}")
        found = found.astimezone(UTC) if offset else found
    except (ValueError, OverflowError):  # such as a leap second, which Spark does not have
        raise ValueError(_OTHER) from None
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _date(value: Any, _: Shape) -> str:
    try:
        if _DATE.fullmatch(_text_of(value)):
            return date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    raise ValueError(_OTHER)


def _base64(value: Any, _: Shape) -> str:
    try:
        return base64.b64encode(base64.b64decode(_text_of(value), validate=True)).decode()
    except ValueError:  # of base64, or of a text that is not ASCII
        raise ValueError(_OTHER) from None


SCALARS: Final[dict[str, Callable[[Any, Shape], Any]]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(_REALS, _real),
    "DECIMAL": _decimal,
    "BOOLEAN": _boolean,
    "STRING": _string,
    "TIMESTAMP": _time,
    "TIMESTAMP_NTZ": _time,
    "DATE": _date,
    "BINARY": _base64,
}
