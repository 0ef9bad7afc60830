"""A codec for Avro data of any schema, with limits for untrusted bytes.

fastavro recurses in C without a limit, which ends the process; creates any number of array
items that have no bytes, which exhausts the memory; and converts the bytes of a decimal to
digits, which takes minutes for a megabyte. `AvroLimits` checks data of a schema with
recursion, such arrays or decimals before fastavro decodes it.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import Malformed, read_bytes, read_count, read_datum
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
_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
# isinstance() tries the built-in types first.
_COLLECTIONS: Final = (dict, list, Collection)
_MAPPINGS: Final = (dict, Mapping)
_LEAVES: Final = (str, int, float, type(None), bytes, bytearray, memoryview)
_HINT: Final = "register a Codec of your own for such data"


def avro(schema: Any) -> Codec:
    """Return a codec for data that is one datum of an Avro schema, without a header.

    Data is untrusted input: beyond the limits of this module, which are for recursive
    schemas, decimals, and arrays of items without bytes, decoding raises `DataError`.
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


class AvroLimits:
    """The limits for one schema, which fastavro has parsed, with its named schemas."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self._schema = schema
        self.named = named
        self.sizes: dict[str, int | None] = {}
        self._open: set[str] = set()
        self._recursive = self._empties = self._decimals = False
        self.size(schema)

    def check_datum(self, raw: bytes) -> None:
        """Raise `DataError` if bytes exceed a limit or are not a datum."""
        if self._recursive or self._empties or (self._decimals and len(raw) > MAX_DECIMAL_BYTES):
            try:
                read_datum(raw, self._walk)
            except Malformed as error:
                raise DataError(str(error)) from None

    def _walk(self, raw: bytes) -> tuple[None, int]:
        end = _Datum(raw, self).end(self._schema, 0, 0)
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
                if one.is_finite() and one.adjusted() >= _MAX_DIGITS:
                    raise DataError(f"it has a Decimal of more than {_MAX_DIGITS} digits; {_HINT}")
            elif isinstance(one, _COLLECTIONS) and not isinstance(one, _LEAVES):
                depth = _deeper(depth)
                inner = one.values() if isinstance(one, _MAPPINGS) else one
                waiting += [(each, depth) for each in inner if type(each) not in _LEAVES]

    def size(self, schema: Any) -> int | None:
        """Return the size in bytes if all values have the same; find what the schema needs limits for."""
        if isinstance(schema, list):
            for branch in schema:
                self.size(branch)
            return None
        if isinstance(schema, str):
            return self.size(self.named[schema]) if schema in self.named else _SIZES.get(schema)
        match schema["type"]:
            case "array":
                empty = self.size(schema["items"]) == 0  # not in the next line: it sets the same attribute
                self._empties |= empty
            case "map":
                self.size(schema["values"])
            case "bytes" | "fixed":
                self._decimals |= schema.get("logicalType") == "decimal"
                size: int | None = schema.get("size")
                return size
            case "record" | "error":
                return self._record_size(schema)
        return _SIZES.get(schema["type"])

    def _record_size(self, record: Mapping[str, Any]) -> int | None:
        name = record["name"]
        self._recursive |= name in self._open
        if name not in self.sizes:
            self.sizes[name] = None  # before it is known, since a record may contain itself
            self._open.add(name)
            sizes = [self.size(field["type"]) for field in record["fields"]]
            self._open.remove(name)
            self.sizes[name] = None if None in sizes else sum(size or 0 for size in sizes)
        return self.sizes[name]


class _Datum:
    """The bytes of a datum, and the number of items without bytes so far."""

    def __init__(self, raw: bytes, limits: AvroLimits) -> None:
        self._raw = raw
        self._limits = limits
        self._empty = 0

    def end(self, schema: Any, at: int, depth: int) -> int:
        """Return the index after a value; raise `DataError`, or as the readers of `avro_binary` do."""
        if isinstance(schema, list):
            branch, at = zigzag.decode(self._raw, at)
            if not 0 <= branch < len(schema):
                raise Malformed("it has an unknown union branch")
            return self.end(schema[branch], at, depth)
        match schema if isinstance(schema, str) else schema["type"]:
            case "string" | "bytes":
                at = self._bytes_end(schema, at)
            case "int" | "long" | "enum":
                _, at = zigzag.decode(self._raw, at)
            case "array":
                at = self._array_end(schema["items"], at, _deeper(depth))
            case "map":
                at = self._map_end(schema["values"], at, _deeper(depth))
            case "record" | "error":
                at = self._record_end(schema, at, depth)
            case "fixed":
                at += schema["size"]
            case kind:
                at = at + _SIZES[kind] if kind in _SIZES else self.end(self._limits.named[kind], at, depth)
        return at

    def _record_end(self, record: Mapping[str, Any], at: int, depth: int) -> int:
        size = self._limits.sizes[record["name"]]
        if size is not None:
            return at + size
        depth = _deeper(depth)
        for field in record["fields"]:
            at = self.end(field["type"], at, depth)
        return at

    def _bytes_end(self, schema: Any, at: int) -> int:
        value, end = read_bytes(self._raw, at)
        decimal = isinstance(schema, dict) and schema.get("logicalType") == "decimal"
        if decimal and len(value) > MAX_DECIMAL_BYTES:
            raise DataError(f"it has a decimal of more than {MAX_DECIMAL_BYTES} bytes; {_HINT}")
        return end

    def _map_end(self, values: Any, at: int, depth: int) -> int:
        count, at = read_count(self._raw, at)
        while count:
            for _ in range(count):
                at = self.end(values, read_bytes(self._raw, at)[1], depth)
            count, at = read_count(self._raw, at)
        return at

    def _array_end(self, items: Any, at: int, depth: int) -> int:
        size = self._limits.size(items)
        count, at = read_count(self._raw, at)
        while count:
            if size is None:
                for _ in range(count):
                    at = self.end(items, at, depth)
            else:
                at += count * size
                self._empty += 0 if size else count
            if self._empty > MAX_EMPTY_ITEMS:
                raise DataError(
                    f"it has arrays with more than {MAX_EMPTY_ITEMS} items without bytes; {_HINT}"
                )
            count, at = read_count(self._raw, at)
        return at


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise DataError(f"it is nested deeper than {MAX_DEPTH} records, arrays and maps; {_HINT}")
    return depth + 1
