"""Limits for untrusted Avro data of any schema, checked before fastavro decodes it.

fastavro recurses in C without a limit, which ends the process; creates any number of array
items that have no bytes, which exhausts the memory; and converts the bytes of a decimal to
digits, which takes minutes for a megabyte. Data of a schema without recursion, such arrays
and decimals is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import Malformed, read_count, read_datum
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.primitives import zigzag

MAX_DEPTH: Final = 128
"""The maximum nesting of records, arrays and maps in a recursive schema: it fits a stack of 512 KiB."""
MAX_EMPTY_ITEMS: Final = 65_536
"""The maximum number of array items without bytes (nulls, empty records) in a datum."""
MAX_DECIMAL_BYTES: Final = 1024
"""The maximum number of bytes of a decimal."""

_MAX_DIGITS: Final = 2465  # digits of MAX_DECIMAL_BYTES
# isinstance() tries the built-in types first.
_COLLECTIONS: Final = (dict, list, Collection)
_MAPPINGS: Final = (dict, Mapping)
_LEAVES: Final = (str, int, float, type(None), bytes, bytearray, memoryview)
_HINT: Final = "register a Codec of your own for such data"


class _Datum:
    """The bytes of a datum, and the number of items without bytes so far."""

    __slots__ = ("empty", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.empty = 0


_Step = Callable[[_Datum, int, int], int]
"""A function of a datum, the index of a value and its depth; returns the index after the value."""
_Shape = tuple[_Step, int | None]
"""A step, and the size of the values in bytes if all values of the schema have the same size."""


class AvroLimits:
    """The limits for one schema, which fastavro has parsed, with its named schemas."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self._named = named
        self._records: dict[str, _Shape] = {}
        self._open: set[str] = set()
        self._recursive = self._empties = self._decimals = False
        self._step, _ = self._shape(schema)

    def check_datum(self, raw: bytes) -> None:
        """Raise `DataError` if bytes exceed a limit or are not a datum."""
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
        """Raise `DataError` if a value is nested too deep or has a Decimal with too many digits."""
        waiting = [(value, 0)] if self._recursive or self._decimals else []
        while waiting:
            one, depth = waiting.pop()
            if type(one) is tuple and len(one) == 2 and isinstance(one[0], str):
                waiting.append((one[1], depth))  # the branch of a union and its value: not a nesting level
            elif isinstance(one, Decimal):
                _check_decimal(one)
            elif isinstance(one, _COLLECTIONS) and not isinstance(one, _LEAVES):
                depth = _deeper(depth)
                inner = one.values() if isinstance(one, _MAPPINGS) else one
                waiting += [(each, depth) for each in inner if type(each) not in _LEAVES]

    # --- from a schema to steps --------------------------------------------------------

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
            # Stored before it is complete, since a record may contain itself.
            self._records[name] = _record(steps), None
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
    if end - at > MAX_DECIMAL_BYTES + 2:  # two bytes of length
        raise DataError(f"it has a decimal of more than {MAX_DECIMAL_BYTES} bytes; {_HINT}")
    return end


def _union(branches: list[_Step]) -> _Step:
    def union(datum: _Datum, at: int, depth: int) -> int:
        branch, at = zigzag.decode(datum.raw, at)
        if not 0 <= branch < len(branches):
            raise Malformed("it has an unknown union branch")
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
                    f"it has arrays with more than {MAX_EMPTY_ITEMS} items without bytes; {_HINT}"
                )
            count, at = read_count(datum.raw, at)
        return at

    return array


def _map(value: _Step) -> _Step:
    return _array(lambda datum, at, depth: value(datum, _bytes(datum, at, depth), depth))


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise DataError(f"it is nested deeper than {MAX_DEPTH} records, arrays and maps; {_HINT}")
    return depth + 1


def _check_decimal(number: Decimal) -> None:
    if number.is_finite() and number.adjusted() >= _MAX_DIGITS:
        raise DataError(f"it has a Decimal of more than {_MAX_DIGITS} digits; {_HINT}")


_PLAIN: Final[Mapping[str, _Shape]] = {
    **{kind: _fixed(size) for kind, size in (("null", 0), ("boolean", 1), ("float", 4), ("double", 8))},
    **dict.fromkeys(("int", "long", "enum"), (_number, None)),
}
