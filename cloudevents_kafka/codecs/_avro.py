"""A codec for Avro data with any schema, with limits for untrusted bytes.

The package fastavro has no limits for untrusted data. First, fastavro recurses in C, so deeply nested data
can end the process. Second, a few bytes can make fastavro create any number of values that take no bytes,
until the memory is full. Examples of such values are the nulls of an array, and nested records whose number
doubles at each level. Third, fastavro converts the bytes of a decimal to digits; for a decimal of a megabyte,
this takes minutes. So, if the schema contains recursion, decimals, or values that take no bytes, `AvroLimits`
checks the data before fastavro decodes it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from cloudevents_kafka.codecs.avro_binary import MalformedDatum, read_count, read_datum
from cloudevents_kafka.codecs.avro_budget import FREE_STEPS, MAX_EMPTY_ITEMS, STEPS_PER_BYTE
from cloudevents_kafka.codecs.registry import Codec
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.problems import DataError

MAX_DEPTH: Final = 128
"""The maximum nesting of records, arrays and maps in a recursive schema; it fits into a 512 KiB stack."""
MAX_DECIMAL_BYTES: Final = 1024
"""The maximum number of bytes of a decimal."""

_FEW_EMPTY: Final = 64  # a schema is checked if a part of it has more values that take no bytes
_MAX_DIGITS: Final = 2465  # digits of MAX_DECIMAL_BYTES
# isinstance() tries the built-in types first.
_COLLECTIONS: Final = (dict, list, Collection)
_MAPPINGS: Final = (dict, Mapping)
_SCALARS: Final = (str, int, float, type(None), bytes, bytearray, memoryview)
_HINT: Final = "register a Codec of your own for such data"
_WHOLE: Final = "_cloudevents_kafka_whole"  # not the name of a user's type


def avro(schema: Any, *, references: Iterable[Any] = ()) -> Codec:
    r"""Return a codec for data that consists of one datum of an Avro schema, without a header.

    ``references`` are schemas that define the named types to which ``schema`` refers. A schema in
    ``references`` must come after all schemas that it refers to. Data is untrusted input, so decoding raises
    `DataError` for data that exceeds a limit of this module. The limits apply to recursive schemas, to
    decimals, and to values that take no bytes.

    Examples:
        >>> from cloudevents_kafka import Event, codecs, register_codec
        >>> order = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "string"}]}
        >>> register_codec("application/avro", codecs.avro(order), type="order.placed")
        >>> event = Event(id="1", source="/shop", type="order.placed", datacontenttype="application/avro")
        >>> event.replace(data={"total": "9.50"}).payload
        b'\x089.50'
    """
    import fastavro  # slow to import

    from cloudevents_kafka.codecs.avro_names import with_one_name

    named: dict[str, Any] = {}
    *others, own = with_one_name([*references, schema])
    if others:  # fastavro knows the types of other schemas inside a record only; its bytes are its field's
        own = {"type": "record", "name": _WHOLE, "fields": [{"name": _WHOLE, "type": own}]}
    parsed: Any = [fastavro.parse_schema(each, named) for each in (*others, own)][-1]
    limits = AvroLimits(parsed["fields"][0]["type"] if others else parsed, named)

    def decode(payload: bytes) -> Any:
        limits.check_datum(payload)
        stream = io.BytesIO(payload)
        value: Any = fastavro.schemaless_reader(stream, parsed, None)
        if stream.read(1):
            raise ValueError("the payload must be one datum, but bytes follow it")
        return value[_WHOLE] if others else value

    def encode(value: Any) -> bytes:
        limits.check_value(value)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {_WHOLE: value} if others else value, strict=True)
        limits.check_datum(out.getvalue())  # so that decode accepts it
        return out.getvalue()

    return Codec(decode, encode)


class _Datum(bytes):
    """The bytes of a datum, with counters for records and for values that take no bytes."""

    empty_items = records = 0

    def count_empty(self, number: int) -> None:
        self.empty_items += number
        if self.empty_items > max(MAX_EMPTY_ITEMS, len(self)):
            raise DataError(f"it has more than {MAX_EMPTY_ITEMS} items without bytes; {_HINT}")

    def count_record(self) -> None:
        self.records += 1
        if self.records > FREE_STEPS + STEPS_PER_BYTE * len(self):
            raise DataError(f"it has more than {STEPS_PER_BYTE} records for each byte; {_HINT}")


_Step = Callable[[_Datum, int, int], int]
"""A function with the arguments datum, index and depth; returns the index after the value at the index."""


class _Compiled(NamedTuple):
    """The step function of a schema, which skips one value in a datum, and the size of this value.

    If all values of the schema have the same size, ``size`` is this size in bytes; else ``size`` is None.
    ``empties`` is the number of values that take no bytes in one value of the schema. The values in arrays,
    maps and unions are not included in ``empties``.
    """

    step: _Step
    size: int | None = None
    empties: int = 0


class AvroLimits:
    """Checks data of a schema that fastavro has parsed; ``named`` contains the schema's named types."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self._named = named
        self._records: dict[str, _Compiled] = {}
        self._open: set[str] = set()
        self._recursive = self._empties = self._decimals = self._deep = False
        root = self._compile(schema)
        self._step = root.step
        self._empties |= root.empties > _FEW_EMPTY

    def check_datum(self, raw: bytes) -> None:
        """Raise `DataError` if bytes exceed a limit of this module or are not a datum of the schema."""
        decimals = self._decimals and len(raw) > MAX_DECIMAL_BYTES
        if self._recursive or self._empties or self._deep or decimals:
            try:
                read_datum(raw, lambda datum: (None, self._step(_Datum(datum), 0, 0)))
            except MalformedDatum as error:
                raise DataError(str(error)) from None

    def check_value(self, value: Any) -> None:
        """Raise `DataError` if a Python value is nested too deep, or a Decimal in it has too many digits."""
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
        """Return the step function and the size for a schema; store which limits must be checked."""
        if isinstance(schema, list):
            branches = [self._compile(branch) for branch in schema]
            self._empties |= any(branch.empties > _FEW_EMPTY for branch in branches)
            return _Compiled(_union([_paid(branch) for branch in branches]))
        kind = schema if isinstance(schema, str) else schema["type"]
        is_decimal = schema is not kind and schema.get("logicalType") == "decimal"
        self._decimals |= is_decimal
        match kind:
            case "fixed":
                return _fixed(schema["size"])
            case "array":
                item = self._compile(schema["items"])
                self._empties |= item.size == 0 or item.empties > _FEW_EMPTY
                step = _array(item)
            case "map":
                value = self._compile(schema["values"])
                self._empties |= value.empties > _FEW_EMPTY
                step = _array(_Compiled(_entry(value.step)))
            case "bytes" | "string":
                step = _decimal if is_decimal else _bytes
            case "record" | "error":
                return self._record(schema)
            case _:
                return _NUMBERS.get(kind) or self._compile(self._named[kind])
        return _Compiled(step)

    def _record(self, record: Mapping[str, Any]) -> _Compiled:
        name = record["name"]
        self._recursive |= name in self._open
        if name not in self._records:
            steps: list[_Step] = []
            step = _record(steps)
            self._records[name] = _Compiled(step)  # before it is complete: a record may contain itself
            self._open.add(name)
            self._deep |= len(self._open) > STEPS_PER_BYTE
            fields = [self._compile(field["type"]) for field in record["fields"]]
            self._open.remove(name)
            steps += [field.step for field in fields]
            empties = sum(field.empties for field in fields)
            sizes = [field.size for field in fields if field.size is not None]
            is_counted = len(self._open) > STEPS_PER_BYTE and any(sizes)
            if len(sizes) == len(fields) and not is_counted:
                self._records[name] = _fixed(sum(sizes), empties + (sum(sizes) == 0))
            else:
                self._records[name] = _Compiled(step, None, empties)
        return self._records[name]


# --- steps -----------------------------------------------------------------------


def _fixed(size: int, empties: int | None = None) -> _Compiled:
    """Return the step function for values of a fixed size.

    By default, a value of size 0 counts as one value that takes no bytes, and a larger value does not count.
    """
    number = int(size == 0) if empties is None else empties

    def fixed(datum: _Datum, at: int, _: int) -> int:
        if number:
            datum.count_empty(number)
        return at + size

    return _Compiled(fixed, size, number)


def _paid(branch: _Compiled) -> _Step:
    """Return the step function for a branch of a union.

    A null in a union is not counted as a value that takes no bytes, because the index of the union's branch
    takes a byte.
    """
    return (lambda _, at, __: at) if branch.size == 0 and branch.empties == 1 else branch.step


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
        datum.count_record()
        for field in fields:
            at = field(datum, at, depth)
        return at

    return record


def _entry(value: _Step) -> _Step:
    return lambda datum, at, depth: value(datum, _bytes(datum, at, depth), depth)


def _array(item: _Compiled) -> _Step:
    step, size, empties = item

    def array(datum: _Datum, at: int, depth: int) -> int:
        depth = _deeper(depth)
        count, at = read_count(datum, at)
        while count:
            if size is None:
                for _ in range(count):
                    at = step(datum, at, depth)
            else:
                at += count * size
                if at > len(datum):
                    raise IndexError
                datum.count_empty(count * empties)
            count, at = read_count(datum, at)
        return at

    return array


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise DataError(f"it is nested deeper than {MAX_DEPTH} records, arrays and maps; {_HINT}")
    return depth + 1


_NUMBERS: Final[Mapping[str, _Compiled]] = {
    **{kind: _fixed(size) for kind, size in (("null", 0), ("boolean", 1), ("float", 4), ("double", 8))},
    **dict.fromkeys(("int", "long", "enum"), _Compiled(_long)),
}
