"""What a datum of a user's Avro schema may ask for, found out before a general reader gets it.

Such a reader follows nested data in C as deep as it goes, which ends the process; makes
as many items that take no bytes as it is told, which fills the memory; and turns the
bytes of a decimal into digits, minutes for a megabyte. A schema that has neither
recursion nor arrays of such items nor decimals needs no look at its data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import Malformed, read_count, read_datum
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.primitives import zigzag

MAX_DEPTH: Final = 128
"""How deep records, arrays and maps may be nested where a schema is recursive: 512 KiB of stack hold that."""
MAX_EMPTY_ITEMS: Final = 65_536
"""How many items that take no bytes (null, a record of nothing) the arrays of a datum may have in all."""
MAX_DECIMAL_BYTES: Final = 1024
"""How many bytes a decimal may have."""

_DIGITS: Final = 2465  # that many fit into them
# The built-in ones first, which are found sooner.
_COLLECTIONS: Final = (dict, list, Collection)
_MAPPINGS: Final = (dict, Mapping)
_LEAVES: Final = (str, int, float, type(None), bytes, bytearray, memoryview)
_INSTEAD: Final = "for such data, register a Codec of your own"


class _Datum:
    """The bytes that are walked over, and how many items of no bytes they had until now."""

    __slots__ = ("empty", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.empty = 0


_Step = Callable[[_Datum, int, int], int]
"""Takes a datum, where a value starts, and how deep; tells where the value ends, which may be too late."""
_Shape = tuple[_Step, int | None]
"""A step, and the size of the value in bytes where all values of the schema have the same."""


class AvroLimits:
    """The bounds of one schema, as fastavro parsed it, with the schemas that it found by name."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self._named = named
        self._records: dict[str, _Shape] = {}
        self._open: set[str] = set()
        self._recursive = self._empties = self._decimals = False
        self._step, _ = self._shape(schema)

    def check_datum(self, raw: bytes) -> None:
        """Raise `DataError` for bytes that are beyond the bounds, or no datum."""
        if self._recursive or self._empties or (self._decimals and len(raw) > MAX_DECIMAL_BYTES):
            try:
                read_datum(raw, self._walk)
            except Malformed as error:
                raise DataError(str(error)) from None

    def _walk(self, raw: bytes) -> tuple[None, int]:
        end = self._step(_Datum(raw), 0, 0)
        if end > len(raw):
            raise IndexError
        return None, end

    def check_value(self, value: Any) -> None:
        """Raise `DataError` for a value that is nested too deep, or has a Decimal that is too great."""
        waiting = [(value, 0)] if self._recursive or self._decimals else []
        while waiting:
            one, depth = waiting.pop()
            if type(one) is tuple and len(one) == 2 and isinstance(one[0], str):
                waiting.append((one[1], depth))  # it says which branch of a union, and nests nothing
            elif isinstance(one, Decimal):
                _check_decimal(one)
            elif isinstance(one, _COLLECTIONS) and not isinstance(one, _LEAVES):
                depth = _deeper(depth)
                inner = one.values() if isinstance(one, _MAPPINGS) else one
                waiting += [(each, depth) for each in inner if type(each) not in _LEAVES]

    # --- a schema made into steps ----------------------------------------------------

    def _shape(self, schema: Any) -> _Shape:
        if isinstance(schema, list):
            return _union([self._shape(branch)[0] for branch in schema]), None
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in _PLAIN:
            return _PLAIN[kind]
        if kind in {"bytes", "string", "fixed"}:
            return self._sized(schema, kind)
        if kind == "array":
            return self._array(*self._shape(schema["items"])), None
        if kind == "map":
            return _map(self._shape(schema["values"])[0]), None
        return self._record(schema) if isinstance(schema, dict) else self._shape(self._named[schema])

    def _sized(self, schema: Any, kind: str) -> _Shape:
        decimal = isinstance(schema, dict) and schema.get("logicalType") == "decimal"
        self._decimals = self._decimals or decimal
        if kind == "fixed":
            return _fixed(schema["size"])
        return _decimal if decimal else _bytes, None

    def _array(self, step: _Step, size: int | None) -> _Step:
        self._empties = self._empties or size == 0
        return _array(step) if size is None else _array_of_fixed(size)

    def _record(self, schema: Mapping[str, Any]) -> _Shape:
        name = schema["name"]
        self._recursive = self._recursive or name in self._open
        if name not in self._records:
            steps: list[_Step] = []
            self._records[name] = _record(steps), None  # known before it is whole, as it may hold itself
            self._open.add(name)
            shapes = [self._shape(field["type"]) for field in schema["fields"]]
            self._open.remove(name)
            steps += [step for step, _ in shapes]
            sizes = [size for _, size in shapes if size is not None]
            if len(sizes) == len(shapes):
                self._records[name] = _fixed(sum(sizes))
        return self._records[name]


# --- steps -----------------------------------------------------------------------


def _fixed(size: int) -> _Shape:
    return (lambda _, at, __: at + size), size


def _number(datum: _Datum, at: int, _: int) -> int:
    return zigzag.decode(datum.raw, at)[1]


def _bytes(datum: _Datum, at: int, _: int) -> int:
    size, at = zigzag.decode(datum.raw, at)
    if not 0 <= size <= len(datum.raw) - at:
        raise Malformed("it has a length beyond its end")
    return at + size


def _decimal(datum: _Datum, at: int, depth: int) -> int:
    end = _bytes(datum, at, depth)
    if end - at > MAX_DECIMAL_BYTES + 2:  # the two say its length
        raise DataError(f"it has a decimal of more than {MAX_DECIMAL_BYTES} bytes; {_INSTEAD}")
    return end


def _union(branches: list[_Step]) -> _Step:
    def union(datum: _Datum, at: int, depth: int) -> int:
        branch, at = zigzag.decode(datum.raw, at)
        if not 0 <= branch < len(branches):
            raise Malformed("it has a union branch that the schema has not")
        return branches[branch](datum, at, depth)

    return union


def _record(fields: list[_Step]) -> _Step:
    def record(datum: _Datum, at: int, depth: int) -> int:
        depth = _deeper(depth)
        for field in fields:
            at = field(datum, at, depth)
        return at

    return record


def _array(item: _Step) -> _Step:
    def array(datum: _Datum, at: int, depth: int) -> int:
        depth = _deeper(depth)
        count, at = read_count(datum.raw, at)
        while count:
            for _ in range(count):
                at = item(datum, at, depth)
            count, at = read_count(datum.raw, at)
        return at

    return array


def _array_of_fixed(size: int) -> _Step:
    def array(datum: _Datum, at: int, depth: int) -> int:
        _deeper(depth)
        count, at = read_count(datum.raw, at)
        while count:
            at += count * size
            datum.empty += 0 if size else count
            if datum.empty > MAX_EMPTY_ITEMS:
                raise DataError(
                    f"it has arrays with more than {MAX_EMPTY_ITEMS} items that take no bytes; {_INSTEAD}"
                )
            count, at = read_count(datum.raw, at)
        return at

    return array


def _map(value: _Step) -> _Step:
    return _array(lambda datum, at, depth: value(datum, _bytes(datum, at, depth), depth))


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise DataError(f"it is nested deeper than {MAX_DEPTH} records, arrays and maps; {_INSTEAD}")
    return depth + 1


def _check_decimal(number: Decimal) -> None:
    if number.is_finite() and number.adjusted() >= _DIGITS:
        raise DataError(f"it has a Decimal of more than {_DIGITS} digits; {_INSTEAD}")


_PLAIN: Final[Mapping[str, _Shape]] = {
    **{kind: _fixed(size) for kind, size in (("null", 0), ("boolean", 1), ("float", 4), ("double", 8))},
    **dict.fromkeys(("int", "long", "enum"), (_number, None)),
}
