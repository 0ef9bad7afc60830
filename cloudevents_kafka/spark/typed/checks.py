"""Uses a `Shape`, the type of a JSON value, to read a JSON payload in Python, or finds why it does not fit.

Python reads the JSON payloads that the Java function does not accept. If a payload fits, it is written again
in a form that Spark can read. Members of an object that the schema does not have are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from cloudevents_kafka.codecs.avro_budget import FREE_BYTES, FREE_STEPS, STEPS_PER_BYTE
from cloudevents_kafka.codecs.payload import json_in_utf8
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.problems import DataError
from cloudevents_kafka.spark._names import MAX_NAME
from cloudevents_kafka.spark.typed.scalars import SCALARS, check_type, raw_number
from cloudevents_kafka.spark.typed.shape import RESCUED, Shape, Where, place, pointer

_MAX_PLACE: Final = 200  # characters


class Checked(NamedTuple):
    """A payload that Spark can read completely, or the reason why the payload does not fit its schema."""

    payload: bytes | None
    reason: str | None = None


class Misfit(Exception):
    """A value does not fit its schema.

    ``rule`` describes what the schema requires, and contains no data of the payload; ``got`` describes the
    value.
    """

    def __init__(self, where: str, rule: str, got: str) -> None:
        super().__init__(where, rule, got)
        self.where, self.rule, self.got = where, rule, got

    def reason(self, root: Shape | None = None) -> str:
        """Return the reason why a value does not fit, as text.

        The JSON pointer at the beginning of the reason contains ``*`` for indexes of arrays and for keys of
        maps, so that the number of different reasons stays small.
        """
        place = self.where if root is None else _known_place(root, self.where)
        at = "" if place == self.where else f" at {_shown(self.where)}"
        return f"data: {place or 'it'} {self.rule}, got {self.got}{at}"


def _shown(where: str) -> str:
    """Return a JSON pointer as printable text of limited length.

    The JSON pointer may be long or not printable, because it contains keys of the payload.
    """
    return where if len(where) <= _MAX_PLACE and where.isprintable() else preview(where, _MAX_PLACE)


class _Repeated(dict[str, Any]):
    """A JSON object with repeated members; ``twice`` contains the names that occur more than once."""

    twice: frozenset[str]


class _Payload:
    """A payload that is being read: the work that its check may still do, and its rescued members.

    The number of members, with absent members, is limited, because a few bytes could stand for many absent
    members, and each absent member has a field in Spark's row. The length of all pointers of rescued members
    is limited, because each pointer contains all keys around its member, and a long key could be repeated in
    many pointers.
    """

    __slots__ = ("_characters", "_members", "_size", "rescued")

    def __init__(self, size: int, rescued: dict[str, Any] | None) -> None:
        self.rescued, self._size = rescued, size
        self._members = self._characters = 0

    def spend_members(self, count: int) -> None:
        """Count the members of one object's schema; raise `Misfit` if the payload has too many members."""
        self._members += count
        most = FREE_STEPS + STEPS_PER_BYTE * self._size
        if self._members > most:
            rule = f"must have at most {most} members, including absent members, for its {self._size} bytes"
            raise Misfit("", rule, "more")

    def rescue(self, where: Where, value: Any) -> None:
        """Add a rescued member; raise `Misfit` if the pointers to all rescued members are too long."""
        name = place(where)
        self._characters += len(name)
        most = FREE_BYTES + STEPS_PER_BYTE * self._size
        if self._characters > most or self.rescued is None:
            rule = f"must have at most {most} characters in pointers of rescued members"
            raise Misfit("", rule, "more")
        self.rescued[name] = value


def check_json(
    payload: bytes | None, root: Shape, content_type: str | None = None, *, rescue: bool = False
) -> Checked:
    """Return JSON that Spark can read completely, or the reason why the payload does not fit its schema.

    The payload is encoded in the charset of its content type.

    If ``rescue`` is true, the member `RESCUED` contains the members that do not fit, and the members that the
    shape does not have. The value of the member `RESCUED` is one JSON text: an object whose names are the
    JSON pointers of the rescued members.
    """
    rescued: dict[str, Any] | None = {} if rescue else None
    try:
        members = _object(
            _parsed(payload, content_type, rescue=rescue), root, None, _Payload(len(payload or b""), rescued)
        )
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


def _parsed(payload: bytes | None, content_type: str | None, *, rescue: bool) -> Any:
    if payload is None:
        raise Misfit("", "must be one JSON text", "no data")
    try:
        text = json_in_utf8(payload, content_type).decode()
        return (_decode_once if rescue else _decode)(text)
    except DataError:
        got = "bytes that are not of its charset"
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
        counts = Counter(name for name, _ in pairs)
        found = _Repeated(found)
        found.twice = frozenset(name for name, count in counts.items() if count > 1)
    return found


def _members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := _members(pairs)) < len(pairs):
        raise ValueError("a member that occurs twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is not JSON")


def _decoder(members: Callable[[list[tuple[str, Any]]], Any]) -> Callable[[str], Any]:
    numbers = {"parse_int": raw_number, "parse_float": raw_number, "parse_constant": _refuse_constant}
    return json.JSONDecoder(object_pairs_hook=members, **numbers).decode  # type: ignore[arg-type]


_decode: Final = _decoder(_members)
_decode_once: Final = _decoder(_members_once)


# --- each function returns a value to encode, or raises `Misfit` ---------------------------------


def _object(value: Any, shape: Shape, where: Where, read: _Payload) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misfit(place(where), "must be an object", _kind(value))
    read.spend_members(len(shape.members))
    twice = getattr(value, "twice", ())
    members: dict[str, Any] = {}
    for member in shape.members:
        if member.name in twice:
            raise Misfit(place((where, member.name)), "must be there once", "it more than once")
        if member.name in value:
            members[member.name] = _member(value[member.name], member.shape, (where, member.name), read)
        elif member.required:
            raise Misfit(place((where, member.name)), "must be there", "no such member")
    others = value.keys() - members.keys()
    if read.rescued is not None:
        for name in value:
            if name in others:
                read.rescue((where, name), value[name])
    elif others and shape.closed:
        raise Misfit(place(where), "must have no other members than its schema", "one more")
    return members


def _member(value: Any, shape: Shape, where: Where, read: _Payload) -> Any:
    """Return the value of a member of an object.

    If ``rescue`` is true, a member whose value does not fit is rescued, and the function returns None for
    this member.
    """
    if read.rescued is None:
        return _value(value, shape, where, read)
    before = len(read.rescued)
    try:
        return _value(value, shape, where, read)
    except Misfit:
        while len(read.rescued) > before:
            read.rescued.popitem()
        read.rescue(where, value)
        return None


def _value(value: Any, shape: Shape, where: Where, read: _Payload) -> Any:
    if value is None and shape.nullable:
        return None
    if shape.spark == "STRUCT":
        return _object(value, shape, where, read)
    try:
        if shape.item is None:
            return SCALARS[shape.spark.partition("(")[0]](value, shape)
        check_type(value, list if shape.spark == "ARRAY" else dict)
    except (ValueError, TypeError) as error:
        raise Misfit(place(where), f"must be {shape.must_be}", str(error) or _kind(value)) from None
    if isinstance(value, list):
        return [_value(each, shape.item, (where, n), read) for n, each in enumerate(value)]
    if isinstance(value, _Repeated):
        raise Misfit(place(where), "must have each member once", "one of them twice")
    if any(len(name) > MAX_NAME for name in value):
        raise Misfit(place(where), f"must have names of at most {MAX_NAME} characters", "a longer one")
    return {name: _value(each, shape.item, (where, name), read) for name, each in value.items()}


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
    """Return a JSON pointer in which ``*`` replaces each index of an array and each key of a map."""
    place, current = "", shape
    for name in where.split("/")[1:]:
        known = {pointer("", each.name)[1:]: each.shape for each in current.members}
        place += f"/{name if name in known else '*'}"
        current = current.item or known.get(name, current)
    return place
