"""Avro's schema resolution: converts a datum from the writer's schema to the reader's schema.

The rules are in Avro's specification, "Schema Resolution". Avro resolves types by their encoding, and logical
types do not change the encoding. So the bytes of a value are copied from the writer's datum to the reader's
datum, with two exceptions. First, Avro's specification promotes some types to other types, such as int to
long. Second, both schemas may have a time or a decimal for the same value, but in different units. In this
case, the value is converted if the conversion is exact; if the conversion is not exact, the data does not
fit. Data does not fit the reader's schema if one of its values cannot be resolved.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import read_bytes, read_count, read_long, write_bytes
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.spark.typed.avro_checks import (
    PARTS,
    AvroChecks,
    Datum,
    find_schema,
    kind_of,
    named_schemas,
    run_checked,
)
from cloudevents_kafka.spark.typed.avro_defaults import NoDefault, encode_default
from cloudevents_kafka.spark.typed.avro_scales import scaling
from cloudevents_kafka.spark.typed.checks import Misfit
from cloudevents_kafka.spark.typed.shape import Where, place

RULE: Final = "must be convertible to the reader's schema"
_PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_REALS: Final = {"float": "<f", "double": "<d"}
_NAMED: Final = ("record", "error", "enum", "fixed")
Resolve = Callable[[Datum, int, Where], tuple[bytes, int]]
"""A function that returns a value's bytes for the reader, and the index after the value in the writer's
datum."""


class Resolution:
    """The resolution of data from a writer's schema to a reader's schema, both parsed by fastavro."""

    def __init__(self, writer: Any, named: Mapping[str, Any], reader: Any) -> None:
        """Compile the resolution; ``named`` contains the named schemas of the writer by their names."""
        self._writers, self._readers = named, named_schemas(reader)
        self._skip = AvroChecks(writer, named, by_type=False)
        self._records: dict[tuple[str, str], Resolve] = {}
        self._root = self._resolve(writer, reader)

    def read(self, datum: bytes) -> bytes:
        """Return the datum in the form of the reader's schema; raise `Misfit` if the data does not fit."""
        found: bytes = run_checked(Datum(datum), lambda each: self._root(each, 0, None))
        return found

    def _resolve(self, writer: Any, reader: Any) -> Resolve:
        empties = self._skip.compile(writer).empties
        resolve = self._resolved(writer, reader)
        return _constant(resolve, empties) if empties else resolve

    def _resolved(self, writer: Any, reader: Any) -> Resolve:
        writer, reader = find_schema(writer, self._writers), find_schema(reader, self._readers)
        if isinstance(writer, list):
            return _of_union([self._resolve(branch, reader) for branch in writer])
        if isinstance(reader, list):
            for n, branch in enumerate(reader):
                if self._matches(writer, branch):
                    return _in_union(zigzag.encode(n), self._resolve(writer, branch))
            return _never("of a type that the union of the reader does not have")
        if not self._matches(writer, reader):
            return _never(f"{_described(writer)}, where the reader has {_described(reader)}")
        return self._matched(writer, reader)

    def _matched(self, writer: Any, reader: Any) -> Resolve:
        kind = kind_of(writer)
        if kind in ("record", "error"):
            return self._record(writer, reader)
        if kind in PARTS:
            item = self._resolve(writer[PARTS[kind]], reader[PARTS[kind]])
            empties = self._skip.compile(writer["items"]).empties if kind == "array" else 0
            return _empty_items(item, empties) if empties else _items(item, named=kind == "map")
        if kind == "enum":
            return _enum(writer["symbols"], reader)
        return _scalar(self._skip.compile(writer).step, writer, reader)

    def _matches(self, writer: Any, reader: Any) -> bool:
        """Return whether schemas match, by the specification's rule for choosing a branch of a union."""
        writer, reader = find_schema(writer, self._writers), find_schema(reader, self._readers)
        if isinstance(writer, list) or isinstance(reader, list):
            return True
        kind, other = kind_of(writer), kind_of(reader)
        if kind != other:
            return other in _PROMOTED.get(kind, ())
        if kind in PARTS:
            return self._matches(writer[PARTS[kind]], reader[PARTS[kind]])
        if kind not in _NAMED:
            return True
        return _has_name(writer, reader) and (kind != "fixed" or writer["size"] == reader["size"])

    def _record(self, writer: Mapping[str, Any], reader: Mapping[str, Any]) -> Resolve:
        key = writer["name"], reader["name"]
        if key not in self._records:
            steps: list[Callable[[Datum, int, Where, list[bytes]], int]] = []
            fields = reader["fields"]
            index = _indexes(writer["fields"], fields)
            defaults = [
                b"" if n in index.values() else self._default(field) for n, field in enumerate(fields)
            ]
            absent = next((n for n, default in enumerate(defaults) if default is None), None)
            missing = None if absent is None else fields[absent]["name"]
            self._records[key] = _of_record(steps, [default or b"" for default in defaults], missing)
            for field in writer["fields"]:
                at = index.get(field["name"])
                if at is None:
                    steps.append(_skipped(field["name"], self._skip.compile(field["type"]).step))
                else:
                    resolve = self._resolve(field["type"], fields[at]["type"])
                    steps.append(_kept(fields[at]["name"], at, resolve))
        return self._records[key]

    def _default(self, field: Mapping[str, Any]) -> bytes | None:
        """Return the default value of a reader's field, or None if there is no default of the right type."""
        try:
            return encode_default(field["type"], field["default"], self._readers)
        except (NoDefault, KeyError):
            return None


def _described(schema: Any, *, inside: bool = True) -> str:
    """Return a short text that describes a schema.

    For an array or a map, the text also describes the type of the items.
    """
    if isinstance(schema, list):
        return "a union"
    kind = kind_of(schema)
    if kind in PARTS:
        article = "an array" if kind == "array" else "a map"
        return f"{article} of {_described(schema[PARTS[kind]], inside=False)}" if inside else article
    return f"the {kind} {schema['name']}" if kind in _NAMED and kind != schema else f"the type {kind}"


def _has_name(writer: Mapping[str, Any], reader: Mapping[str, Any]) -> bool:
    """Return whether a name in the writer's schema matches a name in the reader's schema.

    The names match if they are equal without their namespaces, or if the reader's schema has the writer's
    name as an alias.
    """
    name, unqualified = writer["name"], writer["name"].rpartition(".")[2]
    if unqualified == reader["name"].rpartition(".")[2]:
        return True
    return any(alias in (name, unqualified) for alias in reader.get("aliases", ()))


def _indexes(writer: list[Any], reader: list[Any]) -> dict[str, int]:
    """Return a dictionary from names of the writer's fields to indexes of the reader's matching fields."""
    names = {field["name"] for field in writer}
    index = {field["name"]: n for n, field in enumerate(reader) if field["name"] in names}
    for n, field in enumerate(reader):
        alias = next((each for each in field.get("aliases", ()) if each in names and each not in index), None)
        if field["name"] not in names and alias is not None:
            index[alias] = n
    return index


# --- each returns a function that resolves a value -----------------------------------------------


def _never(got: str) -> Resolve:
    def never(_: Datum, __: int, where: Where) -> tuple[bytes, int]:
        raise Misfit(place(where), RULE, got)

    return never


def _of_union(branches: list[Resolve]) -> Resolve:
    def union(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        datum.where = where
        datum.budget.spend_step()
        branch, at = read_long(datum.raw, at)
        if not 0 <= branch < len(branches):
            raise Misfit(place(where), "must be of a branch of the union", f"branch {branch}")
        return branches[branch](datum, at, where)

    return union


def _in_union(branch: bytes, resolve: Resolve) -> Resolve:
    def union(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        found, at = resolve(datum, at, where)
        return branch + found, at

    return union


def _skipped(name: str, step: Callable[[Datum, int, Where], int]) -> Callable[..., int]:
    return lambda datum, at, where, _: step(datum, at, (where, name))


def _kept(name: str, index: int, resolve: Resolve) -> Callable[..., int]:
    def kept(datum: Datum, at: int, where: Where, fields: list[bytes]) -> int:
        fields[index], at = resolve(datum, at, (where, name))
        return at

    return kept


def _of_record(steps: list[Any], defaults: list[bytes], missing: str | None) -> Resolve:
    added = sum(map(len, defaults))

    def record(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        datum.budget.spend_step()
        datum.budget.spend_output(added)
        if missing is not None:
            raise Misfit(place((where, missing)), RULE, "no such field, and no default of its type")
        fields = defaults.copy()
        for step in steps:
            at = step(datum, at, where, fields)
        return b"".join(fields), at

    return record


def _constant(resolve: Resolve, empties: int) -> Resolve:
    """Resolve a value of 0 bytes only once, because all values of this schema are equal.

    If each value of 0 bytes were resolved separately, the work could double at each level of a schema.
    """
    known: list[bytes] = []

    def constant(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        datum.where = where
        datum.budget.spend_empties(empties)
        if not known:
            known.append(resolve(Datum(b""), 0, where)[0])
        datum.budget.spend_output(len(known[0]))
        return known[0], at

    return constant


def _items(resolve: Resolve, *, named: bool) -> Resolve:
    def blocks(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        datum.where, inside = where, (where, "*")
        datum.budget.spend_step()
        found: list[bytes] = []
        number = 0
        count, at = read_count(datum.raw, at)
        while count:
            for _ in range(count):
                if named:
                    key, at = read_bytes(datum.raw, at)
                    found.append(write_bytes(key))
                item, at = resolve(datum, at, inside)
                found.append(item)
            number += count
            count, at = read_count(datum.raw, at)
        return _written(number, b"".join(found)), at

    return blocks


def _empty_items(resolve: Resolve, empties: int) -> Resolve:
    """Resolve an array whose items have 0 bytes."""

    def blocks(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        datum.where = where
        datum.budget.spend_step()
        number = 0
        count, at = read_count(datum.raw, at)
        while count:
            datum.budget.spend_empties(count * empties)
            number += count
            count, at = read_count(datum.raw, at)
        one = resolve(Datum(b""), 0, (where, "*"))[0] if number else b""
        datum.budget.spend_output(len(one) * number)
        return _written(number, one * number), at

    return blocks


def _written(number: int, items: bytes) -> bytes:
    return zigzag.encode(number) + items + b"\0" if number else b"\0"


def _enum(symbols: list[str], reader: Mapping[str, Any]) -> Resolve:
    default = reader.get("default")
    known = {symbol: zigzag.encode(n) for n, symbol in enumerate(reader["symbols"])}
    found = [known.get(symbol, known.get(default)) for symbol in symbols]

    def enum(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        datum.where = where
        datum.budget.spend_step()
        number, at = read_long(datum.raw, at)
        if not 0 <= number < len(found):
            raise Misfit(place(where), "must be a symbol of the schema", f"symbol {number}")
        symbol = found[number]
        if symbol is None:
            raise Misfit(place(where), RULE, "a symbol that the reader does not have")
        return symbol, at

    return enum


def _scalar(step: Callable[[Datum, int, Where], int], writer: Any, reader: Any) -> Resolve:
    """Resolve a scalar: its bytes are copied or converted."""
    convert = _conversion(writer, reader)

    def scalar(datum: Datum, at: int, where: Where) -> tuple[bytes, int]:
        end = step(datum, at, where)
        if end > len(datum.raw):
            raise IndexError
        raw = datum.raw[at:end]
        if convert is None:
            return raw, end
        try:
            return convert(raw), end
        except ValueError as error:
            raise Misfit(place(where), RULE, str(error)) from None

    return scalar


def _conversion(writer: Any, reader: Any) -> Callable[[bytes], bytes] | None:
    kind, other = kind_of(writer), kind_of(reader)
    if other in _REALS and kind != other:
        if kind == "float":
            return lambda raw: struct.pack("<d", *struct.unpack("<f", raw))
        return lambda raw: _real(read_long(raw, 0)[0], _REALS[other])
    return scaling(writer, reader)


def _real(number: int, form: str) -> bytes:
    return struct.pack(form, float(number))
