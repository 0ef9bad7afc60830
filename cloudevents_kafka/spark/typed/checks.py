"""How Python reads a payload of JSON by a `Shape`: whole, or with the reason why it does not fit.

It decides all payloads that the Java function suspects. A payload that fits is written again, without
what the schema does not have, and in a form that Spark reads as it is.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from cloudevents_kafka.spark.typed.shape import RESCUED, Shape, pointer

_MOST: Final = {"FLOAT": 3.4028235677973366e38, "DOUBLE": 1.7976931348623157e308}
_BITS: Final = {"BIGINT": 64, "INT": 32, "SMALLINT": 16, "TINYINT": 8}
_MAX_DIGITS: Final = 4_000  # characters of a number
_TIME: Final = re.compile(r"([\d-]{10})[Tt]([\d:]{8})(?:\.(\d{1,6})0*)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TOO_LARGE: Final = "a number that does not fit"
_OTHER: Final = "another text"


class Checked(NamedTuple):
    """A payload that Spark reads whole, or the reason why there is none."""

    payload: bytes | None
    reason: str | None = None


class Misfit(Exception):
    """A value does not fit. ``rule`` has no data of the payload, ``got`` says what is there."""

    def __init__(self, where: str, rule: str, got: str) -> None:
        super().__init__(where, rule, got)
        self.where, self.rule, self.got = where, rule, got

    def reason(self, root: Shape | None = None) -> str:
        """Return the reason; its rule has ``*`` for items and for keys of maps, so that rules are few."""
        place = self.where if root is None else _known_place(root, self.where)
        at = "" if place == self.where else f" at {self.where}"
        return f"data: {place or 'it'} {self.rule}, got {self.got}{at}"


class _Repeated(dict[str, Any]):
    """An object of which ``twice`` has the members that are there more than once."""

    twice: frozenset[str]


def check_json(payload: bytes | None, root: Shape, *, rescue: bool = False) -> Checked:
    """Return a payload of JSON in a form that Spark reads whole, or the reason why it does not fit.

    With ``rescue``, members that do not fit, and those that the shape does not have, become one text of JSON
    in the member `RESCUED`, by their JSON pointers.
    """
    rescued: dict[str, Any] | None = {} if rescue else None
    try:
        members = _object(_parsed(payload, rescue=rescue), root, "", rescued)
        if rescued:
            members[RESCUED] = _encoded(rescued).decode()
        return Checked(_encoded(members))
    except Misfit as misfit:
        return Checked(None, misfit.reason(root))


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise Misfit("", "must be one JSON text", "half of a character") from None


def _parsed(payload: bytes | None, *, rescue: bool) -> Any:
    if payload is None:
        raise Misfit("", "must be one JSON text", "no data")
    try:
        return (_decode_once if rescue else _decode)(payload.decode())
    except json.JSONDecodeError as error:
        got = f"{error.msg} at character {error.pos}"
    except UnicodeDecodeError:
        got = "bytes that are not UTF-8"
    except RecursionError:
        got = "values that are nested too deep"
    except ValueError as error:
        got = str(error)
    raise Misfit("", "must be one JSON text", got)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        found = _Repeated(found)
        found.twice = frozenset(name for name in found if names.count(name) > 1)
    return found


def _members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := _members(pairs)) < len(pairs):
        raise ValueError("a member that is there twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is not JSON")


def _number(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _decoder(members: Callable[[list[tuple[str, Any]]], Any]) -> Callable[[str], Any]:
    numbers = {"parse_int": _number, "parse_float": _number, "parse_constant": _refuse_constant}
    return json.JSONDecoder(object_pairs_hook=members, **numbers).decode  # type: ignore[arg-type]


_decode: Final = _decoder(_members)
_decode_once: Final = _decoder(_members_once)


# --- each function returns a value to encode, or raises `Misfit` ---------------------------------


def _object(value: Any, shape: Shape, where: str, rescued: dict[str, Any] | None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misfit(where, "must be an object", _kind(value))
    twice = getattr(value, "twice", ())
    members: dict[str, Any] = {}
    for member in shape.members:
        place = pointer(where, member.name)
        if member.name in twice:
            raise Misfit(place, "must be there once", "it more than once")
        if member.name in value:
            members[member.name] = _member(value[member.name], member.shape, place, rescued)
        elif member.required:
            raise Misfit(place, "must be there", "no such member")
    others = value.keys() - {member.name for member in shape.members}
    if rescued is not None:
        rescued |= {pointer(where, name): value[name] for name in value if name in others}
    elif others and shape.closed:
        raise Misfit(where, "must have no other members than its schema", "one more")
    return members


def _member(value: Any, shape: Shape, place: str, rescued: dict[str, Any] | None) -> Any:
    """Return a member; one that does not fit becomes null if it is rescued."""
    found = None if rescued is None else dict(rescued)
    try:
        member = _value(value, shape, place, found)
    except Misfit:
        if rescued is None:
            raise
        member, found = None, {**rescued, place: value}
    if rescued is not None:
        rescued |= found or {}
    return member


def _value(value: Any, shape: Shape, where: str, rescued: dict[str, Any] | None) -> Any:
    if value is None and shape.nullable:
        return None
    if shape.spark == "STRUCT":
        return _object(value, shape, where, rescued)
    try:
        if shape.item is None:
            return _SCALARS[shape.spark.partition("(")[0]](value, shape)
        _check_type(value, list if shape.spark == "ARRAY" else dict)
    except (ValueError, TypeError) as error:
        raise Misfit(where, f"must be {shape.must_be}", str(error) or _kind(value)) from None
    if isinstance(value, list):
        return [_value(each, shape.item, pointer(where, n), rescued) for n, each in enumerate(value)]
    if isinstance(value, _Repeated):
        raise Misfit(where, "must have each member once", "one of them twice")
    return {name: _value(each, shape.item, pointer(where, name), rescued) for name, each in value.items()}


# --- each returns a scalar, or raises an error whose text says what was there --------------------


def _check_type(value: Any, type_: type) -> Any:
    if not isinstance(value, type_):
        raise TypeError
    return value


def _text_of(value: Any) -> str:
    return str(_check_type(value, str))


def _boolean(value: Any, _: Shape) -> bool:
    return bool(_check_type(value, bool))


def _string(value: Any, shape: Shape) -> str:
    if shape.values and value not in shape.values:
        raise ValueError(_OTHER)
    try:
        _text_of(value).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a character") from None
    return str(value)


def _digits(value: Any, *, or_text: bool = False) -> Decimal:
    if not isinstance(value, msgspec.Raw) and not (or_text and isinstance(value, str)):
        raise TypeError
    text = bytes(value).decode() if isinstance(value, msgspec.Raw) else value
    try:
        number = Decimal(text) if len(text) <= _MAX_DIGITS else Decimal("Infinity")
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite():
        raise ValueError(_TOO_LARGE if number.is_infinite() else _OTHER)
    return number or Decimal(0)  # without an exponent


def _integer(value: Any, shape: Shape) -> msgspec.Raw:
    number, bits = _digits(value), _BITS[shape.spark]
    if number.adjusted() > bits:
        raise ValueError(_TOO_LARGE)
    if number != int(number):
        raise ValueError("a fraction")
    if not -(1 << bits - 1) <= int(number) < 1 << bits - 1:
        raise ValueError(_TOO_LARGE)
    return _number(str(int(number)))


def _real(value: Any, shape: Shape) -> msgspec.Raw:
    number = float(_digits(value))
    if abs(number) > _MOST[shape.spark]:
        raise ValueError(_TOO_LARGE)
    return _number(repr(number))


def _decimal(value: Any, shape: Shape) -> msgspec.Raw:
    number, (precision, scale) = _digits(value, or_text=True), shape.decimal() or (0, 0)
    if number and (number.adjusted() >= precision - scale or number.adjusted() < -scale):
        raise ValueError(_TOO_LARGE)
    digits = f"{number:f}"
    whole = digits.rstrip("0").rstrip(".") if "." in digits else digits
    if len(whole.partition(".")[2]) > scale:
        raise ValueError(_TOO_LARGE)
    return _number(whole if number else "0")


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
    except binascii.Error:
        raise ValueError(_OTHER) from None


_SCALARS: Final[dict[str, Callable[[Any, Shape], Any]]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(_MOST, _real),
    "DECIMAL": _decimal,
    "BOOLEAN": _boolean,
    "STRING": _string,
    "TIMESTAMP": _time,
    "TIMESTAMP_NTZ": _time,
    "DATE": _date,
    "BINARY": _base64,
}
_KINDS: Final = {
    str: "a text",
    dict: "an object",
    _Repeated: "an object",
    list: "an array",
    bool: "a boolean",
}


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), "a number")


def _known_place(shape: Shape, where: str) -> str:
    """Return a place whose names are those of the schema, and ``*`` for items and for keys of maps."""
    place, current = "", shape
    for name in where.split("/")[1:]:
        known = {pointer("", each.name)[1:]: each.shape for each in current.members}
        place += f"/{name if name in known else '*'}"
        current = current.item or known.get(name, current)
    return place
