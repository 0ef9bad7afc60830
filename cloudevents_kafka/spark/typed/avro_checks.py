"""Checks an Avro datum in Python, to find the value in the datum that does not fit the schema.

Python checks the payloads that the Java function (``java/AvroShape.java``) does not accept. Python and Java
check an Avro datum by the same rules, and with the same limit for the work. A schema is compiled once into
functions; each function returns the index of the byte after a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from typing import Any, Final, NamedTuple

from cloudevents_kafka.codecs.avro_binary import (
    MalformedDatum,
    read_boolean,
    read_bytes,
    read_count,
    read_datum,
    read_long,
    read_text,
)
from cloudevents_kafka.codecs.avro_budget import BeyondBudget, Budget
from cloudevents_kafka.spark.typed.checks import Checked, Misfit
from cloudevents_kafka.spark.typed.shape import Where, place

PARTS: Final = {"array": "items", "map": "values"}
_READERS: Final[dict[str, Any]] = {"boolean": read_boolean, "string": read_text, "bytes": read_bytes}
_SIZES: Final = {"float": 4, "double": 8}
_BITS: Final = {"int": 32, "long": 64}
_UNITS: Final = {
    "date": 1,
    **{f"{local}timestamp-millis": 86_400_000 for local in ("", "local-")},
    **{f"{local}timestamp-micros": 86_400_000_000 for local in ("", "local-")},
}
"""The number of units in a day, by logical type."""
_FIRST, _LAST = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))


class Datum:
    """The bytes of one Avro datum, and the work that its check may still do.

    ``where`` is the path of the last value whose check has started.
    """

    __slots__ = ("budget", "raw", "where")

    def __init__(self, raw: bytes, size: int | None = None) -> None:
        """Create a datum; the limit for its check depends on ``size``, by default the length of ``raw``."""
        self.raw, self.where = raw, None
        self.budget = Budget(len(raw) if size is None else size)

    where: Where


Step = Callable[[Datum, int, Where], int]
"""A function that returns the index after a value. This function raises `Misfit`, or errors of
`avro_binary`."""


_Read = Callable[[bytes, int, Where], int]
"""A function that returns the index after a scalar, even if this index is beyond the end of the bytes."""


class Compiled(NamedTuple):
    """The function that checks a value of an Avro datum, and returns the index after the value.

    If the value has 0 bytes, ``empties`` is the number of values inside the value, including the value
    itself. Otherwise, ``empties`` is 0.
    """

    step: Step
    empties: int = 0


def named_schemas(schema: Any) -> Mapping[str, Any]:
    """Return the named schemas inside a schema that fastavro has parsed."""
    return schema.get("__named_schemas", {}) if isinstance(schema, dict) else {}


def find_schema(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the schema to which a name refers, the schema in the key ``type``, or the passed schema itself.

    ``named`` contains the named schemas by their names.
    """
    while True:
        kind = schema["type"] if isinstance(schema, Mapping) else schema
        if isinstance(kind, Mapping | list) and kind is not schema:
            schema = kind
        elif isinstance(kind, str) and kind in named:
            schema = named[kind]
        else:
            return schema


def kind_of(schema: Any) -> str:
    """Return the type of a schema that is not a union."""
    return str(schema if isinstance(schema, str) else schema["type"])


def run_checked(datum: Datum, read: Callable[[Datum], tuple[Any, int]]) -> Any:
    """Return the result of ``read``, which must read the whole datum; raise `Misfit` for invalid bytes."""
    try:
        return read_datum(datum.raw, lambda _: read(datum))
    except BeyondBudget as error:
        raise Misfit(place(datum.where), f"must have {error}", "more") from None
    except MalformedDatum as error:
        got = str(error).removeprefix("it has ").replace("its data is", "values are")
        raise Misfit(place(datum.where), "must be of the schema", f"wrong data: {got}") from None


class AvroChecks:
    """Checks whether Avro data fits a schema."""

    def __init__(self, schema: Any, named: Mapping[str, Any] | None = None, *, by_type: bool = True) -> None:
        """Compile a schema that fastavro has parsed.

        If ``by_type`` is true, each value must also be in the range of numbers of its logical type.
        """
        self._named = dict(named_schemas(schema) if named is None else named)
        self._records: dict[str, Compiled] = {}
        self._by_type = by_type
        self._root = self.compile(schema).step

    def check(self, payload: bytes | None, size: int | None = None) -> Checked:
        """Return the payload if it is exactly one valid datum, or else the reason why it is invalid.

        The check may do as much work as ``size`` bytes allow; by default, ``size`` is the length of the
        payload.
        """
        if payload is None:
            return Checked(None, Misfit("", "must be one datum of Avro", "no data").reason())
        try:
            run_checked(Datum(payload, size), lambda datum: (None, self._root(datum, 0, None)))
        except Misfit as misfit:
            return Checked(None, misfit.reason())
        return Checked(payload)

    def compile(self, schema: Any) -> Compiled:
        """Return the function that checks a value of ``schema``, the whole schema or a part of it."""
        schema = find_schema(schema, self._named)
        if isinstance(schema, list):
            return Compiled(_union([self.compile(branch) for branch in schema]))
        kind = kind_of(schema)
        if kind in ("record", "error"):
            return self._record(schema)
        if kind in PARTS:
            return Compiled(_blocks(self.compile(schema[PARTS[kind]]), named=kind == "map"))
        if kind == "null" or (kind == "fixed" and schema["size"] == 0):
            return _empty(1)
        schema = schema if isinstance(schema, Mapping) else {"type": kind}
        return Compiled(_begun(_scalar(schema, schema.get("logicalType", "") if self._by_type else "")))

    def _record(self, schema: Mapping[str, Any]) -> Compiled:
        """Return the function that checks an Avro record.

        The function for each record type is compiled only once; if each use were compiled, the work could
        double at each level of the schema.
        """
        name = schema["name"]
        if name not in self._records:
            fields: list[tuple[str, Step]] = []
            self._records[name] = Compiled(_record(fields))  # stored early: a record may contain itself
            compiled = [(field["name"], self.compile(field["type"])) for field in schema["fields"]]
            if all(part.empties for _, part in compiled):
                self._records[name] = _empty(1 + sum(part.empties for _, part in compiled))
            fields += [(field, part.step) for field, part in compiled]
        return self._records[name]


# --- steps ---------------------------------------------------------------------------------------


def _empty(values: int) -> Compiled:
    def empty(datum: Datum, at: int, where: Where) -> int:
        datum.where = where
        datum.budget.spend_empties(values)
        return at

    return Compiled(empty, values)


def _begun(read: _Read) -> Step:
    """Return a function that checks a scalar value.

    The function ``read`` returns the index after the scalar; this index may be beyond the end of the datum.
    """

    def scalar(datum: Datum, at: int, where: Where) -> int:
        datum.where = where
        datum.budget.spend_step()
        if at > len(datum.raw):
            raise IndexError
        return read(datum.raw, at, where)

    return scalar


def _union(branches: list[Compiled]) -> Step:
    steps = [None if branch.empties == 1 else branch.step for branch in branches]  # None: no bytes follow

    def union(datum: Datum, at: int, where: Where) -> int:
        datum.where = where
        branch, at = read_long(datum.raw, at)
        if not 0 <= branch < len(steps):
            raise Misfit(place(where), "must be of a branch of the union", f"branch {branch}")
        step = steps[branch]
        return at if step is None else step(datum, at, where)

    return union


def _record(fields: list[tuple[str, Step]]) -> Step:
    def record(datum: Datum, at: int, where: Where) -> int:
        datum.budget.spend_step()
        for name, step in fields:
            at = step(datum, at, (where, name))
        return at

    return record


def _blocks(item: Compiled, *, named: bool) -> Step:
    def blocks(datum: Datum, at: int, where: Where) -> int:
        datum.where, inside = where, (where, "*")
        datum.budget.spend_step()
        names: set[str] = set()
        count, at = read_count(datum.raw, at)
        while count:
            if item.empties and not named:
                datum.budget.spend_empties(count * item.empties)
                count = 0
            for _ in range(count):
                if named:
                    at = _key(datum, at, where, names)
                at = item.step(datum, at, inside)
            count, at = read_count(datum.raw, at)
        return at

    return blocks


def _key(datum: Datum, at: int, where: Where, names: set[str]) -> int:
    """Return the index after a key of an Avro map."""
    name, at = read_text(datum.raw, at)
    if name in names:
        raise Misfit(place(where), "must have each key once", "one of them twice")
    names.add(name)
    return at


def _scalar(schema: Mapping[str, Any], logical: str) -> _Read:
    """Return a function that returns the index after a scalar."""
    kind = schema["type"]
    if kind == "enum":
        return _enum(len(schema["symbols"]))
    if kind in _BITS:
        return _number(kind, logical)
    if logical == "decimal":
        return _decimal(schema["precision"], schema.get("size"))
    if kind in _READERS:
        reader = _READERS[kind]
        return lambda raw, at, _: reader(raw, at, 0)[1]
    size = schema["size"] if kind == "fixed" else _SIZES[kind]
    return lambda _, at, __: at + size


def _enum(symbols: int) -> _Read:
    def read(raw: bytes, at: int, where: Where) -> int:
        value, at = read_long(raw, at)
        if not 0 <= value < symbols:
            raise Misfit(place(where), "must be a symbol of the schema", f"symbol {value}")
        return at

    return read


def _number(kind: str, logical: str) -> _Read:
    least, most = _range(kind, logical)

    def read(raw: bytes, at: int, where: Where) -> int:
        value, at = read_long(raw, at)
        if not least <= value <= most:
            rule = f"must be of the type {logical or kind}"
            raise Misfit(place(where), rule, "a number that does not fit")
        return at

    return read


@cache
def _range(kind: str, logical: str) -> tuple[int, int]:
    """Return the least and the largest number that a type allows.

    Dates and times must be in the years 1 to 9999, as in Python.
    """
    half = 1 << _BITS[kind] - 1
    unit = _UNITS.get(logical, 0)
    return (_FIRST * unit, (_LAST + 1) * unit - 1) if unit else (-half, half - 1)


def _decimal(precision: int, size: int | None) -> _Read:
    bound = 10**precision

    def read(raw: bytes, at: int, where: Where) -> int:
        digits, end = read_bytes(raw, at) if size is None else (raw[at : at + size], at + size)
        fits = bool(digits) and abs(int.from_bytes(digits, "big", signed=True)) < bound
        if end <= len(raw) and not fits:
            raise Misfit(place(where), f"must have at most {precision} digits", "a number that does not fit")
        return end

    return read
