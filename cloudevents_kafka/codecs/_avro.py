"""A codec for Avro data of any schema, with limits for untrusted bytes.

fastavro recurses in C without a limit, which ends the process; creates any number of array
items that have no bytes, which exhausts the memory; and converts the bytes of a decimal to
digits, which takes minutes for a megabyte. `AvroLimits` checks data of a schema with
recursion, such arrays or decimals before fastavro decodes it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import MalformedDatum, read_count, read_datum
from cloudevents_kafka.codecs.registry import Codec
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
_SCALARS: Final = (str, int, float, type(None), bytes, bytearray, memoryview)
_HINT: Final = "register a Codec of your own for such data"


def avro(schema: Any) -> Codec:
    r"""Return a codec for data that is one datum of an Avro schema, without a header.

    Data is untrusted input: beyond the limits of this module, which are for recursive
    schemas, decimals, and arrays of items without bytes, decoding raises `DataError`.

    Examples:
        >>> from cloudevents_kafka import Event, codecs, register_codec
        >>> order = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "string"}]}
        >>> register_codec("application/avro", codecs.avro(order), type="order.placed")
        >>> event = Event(id="1", source="/shop", type="order.placed", datacontenttype="application/avro")
        >>> event.replace(data={"total": "9.50"}).payload
        b'\x089.50'
    """
    import fastavro  # slow to import

    named: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, named)
    limits = AvroLimits(parsed, named)

    def decode(payload: bytes) -> Any:
        limits.check_datum(payload)
        stream = io.BytesIO(payload)
        value = fastavro.schemaless_reader(stream, parsed, None)
        if stream.read(1):
            raise ValueError("the payload must be one datum, but bytes follow it")
        return value

    def encode(value: Any) -> bytes:
        limits.check_value(value)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value, strict=True)
        limits.check_datum(out.getvalue())  # so that decode accepts it
        return out.getvalue()

    return Codec(decode, encode)


class _Datum(bytes):
    """The bytes of a datum, and the number of array items without bytes so far."""

    empty_items = 0


_Step = Callable[[_Datum, int, int], int]
"""Return the index after a value at an index and a depth; raise `DataError`, or as in `avro_binary`."""
_Compiled = tuple[_Step, int | None]
"""The step over a value, and the size in bytes if all values of the schema have the same."""


class AvroLimits:
    """The limits for one schema, which fastavro has parsed, with its named schemas."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self._named = named
        self._records: dict[str, _Compiled] = {}
        self._open: set[str] = set()
        self._recursive = self._empties = self._decimals = False
        self._step, _ = self._compile(schema)

    def check_datum(self, raw: bytes) -> None:
        """Raise `DataError` if bytes exceed a limit or are not a datum."""
        if self._recursive or self._empties or (self._decimals and len(raw) > MAX_DECIMAL_BYTES):
            try:
                read_datum(raw, lambda datum: (None, self._step(_Datum(datum), 0, 0)))
            except MalformedDatum as error:
                raise DataError(str(error)) from None

    def check_value(self, value: Any) -> None:
        """Raise `DataError` if a value is nested too deep or has a Decimal with too many digits."""
        values = [(value, 0)] if self._recursive or self._decimals else []
        while values:
            value, depth = values.pop()
            if type(value) is tuple and len(value) == 2 and isinstance(value[0], str):
                values.append((value[1], depth))  # the branch of a union and its value: not a nesting level
            elif isinstance(value, Decimal):
                if value.is_finite() and value.adjusted() >= _MAX_DIGITS:
                    raise DataError(f"it has a Decimal of more than {_MAX_DIGITS} digits; {_HINT}")
            elif isinstance(value, _COLLECTIONS) and not isinstance(value, _SCALARS):
                depth = _deeper(depth)
                items = value.values() if isinstance(value, _MAPPINGS) else value
                values += [(item, depth) for item in items if type(item) not in _SCALARS]

    def _compile(self, schema: Any) -> _Compiled:
        """Return the step and the size of a schema; find out which limits the schema needs."""
        if isinstance(schema, list):
            return _union([self._compile(branch)[0] for branch in schema]), None
        kind = schema if isinstance(schema, str) else schema["type"]
        is_decimal = schema is not kind and schema.get("logicalType") == "decimal"
        self._decimals |= is_decimal
        match kind:
            case "fixed":
                return _fixed(schema["size"])
            case "array":
                item, size = self._compile(schema["items"])
                self._empties |= size == 0
                step = _array(item, size)
            case "map":
                value, _ = self._compile(schema["values"])
                step = _array(lambda datum, at, depth: value(datum, _bytes(datum, at, depth), depth), None)
            case "bytes" | "string":
                step = _decimal if is_decimal else _bytes
            case "record" | "error":
                return self._record(schema)
            case _:
                return _NUMBERS.get(kind) or self._compile(self._named[kind])
        return step, None

    def _record(self, record: Mapping[str, Any]) -> _Compiled:
        name = record["name"]
        self._recursive |= name in self._open
        if name not in self._records:
            steps: list[_Step] = []
            self._records[name] = _record(steps), None  # before it is complete: a record may contain itself
            self._open.add(name)
            fields = [self._compile(field["type"]) for field in record["fields"]]
            self._open.remove(name)
            steps += [step for step, _ in fields]
            sizes = [size for _, size in fields if size is not None]
            if len(sizes) == len(fields):
                self._records[name] = _fixed(sum(sizes))
        return self._records[name]


# --- steps -----------------------------------------------------------------------


def _fixed(size: int) -> _Compiled:
    return lambda _, at, __: at + size, size


def _long(datum: _Datum, at: int, _: int) -> int:
    while datum[at] > 0x7F:  # fastavro checks the number of bytes
        at += 1
    return at + 1


def _bytes(datum: _Datum, at: int, _: int) -> int:
    size, at = zigzag.decode(datum, at)
    if not 0 <= size <= len(datum) - at:
        raise MalformedDatum("it has a length beyond its end")
    return at + size


def _decimal(datum: _Datum, at: int, depth: int) -> int:
    end = _bytes(datum, at, depth)
    if end - at > MAX_DECIMAL_BYTES + 2:  # the length has two bytes
        raise DataError(f"it has a decimal of more than {MAX_DECIMAL_BYTES} bytes; {_HINT}")
    return end


def _union(branches: list[_Step]) -> _Step:
    def union(datum: _Datum, at: int, depth: int) -> int:
        branch, at = zigzag.decode(datum, at)
        if not 0 <= branch < len(branches):
            raise MalformedDatum("it has an unknown union branch")
        return branches[branch](datum, at, depth)

    return union


def _record(fields: list[_Step]) -> _Step:
    def record(datum: _Datum, at: int, depth: int) -> int:
        depth = _deeper(depth)
        for field in fields:
            at = field(datum, at, depth)
        return at

    return record


def _array(item: _Step, size: int | None) -> _Step:
    def array(datum: _Datum, at: int, depth: int) -> int:
        depth = _deeper(depth)
        count, at = read_count(datum, at)
        while count:
            if size is None:
                for _ in range(count):
                    at = item(datum, at, depth)
            else:
                at += count * size
                datum.empty_items += 0 if size else count
            if datum.empty_items > MAX_EMPTY_ITEMS:
                raise DataError(
                    f"it has arrays with more than {MAX_EMPTY_ITEMS} items without bytes; {_HINT}"
                )
            count, at = read_count(datum, at)
        return at

    return array


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise DataError(f"it is nested deeper than {MAX_DEPTH} records, arrays and maps; {_HINT}")
    return depth + 1


_NUMBERS: Final[Mapping[str, _Compiled]] = {
    **{kind: _fixed(size) for kind, size in (("null", 0), ("boolean", 1), ("float", 4), ("double", 8))},
    **dict.fromkeys(("int", "long", "enum"), (_long, None)),
}
