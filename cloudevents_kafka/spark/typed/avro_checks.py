"""How Python reads a datum of Avro: it finds the place where a payload does not fit its schema.

It decides the payloads that the Java function suspects (``java/AvroShape.java``), by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import (
    MalformedDatum,
    read_boolean,
    read_bytes,
    read_count,
    read_datum,
    read_long,
    read_text,
)
from cloudevents_kafka.spark.typed.checks import Checked, Misfit
from cloudevents_kafka.spark.typed.shape import pointer

_MAX_EMPTY_ITEMS: Final = 65_536  # in an array: a few bytes would become a long list
_MOST_MILLIS: Final = (2**63 - 1) // 1000
_FIXED: Final = {"null": 0, "float": 4, "double": 8}


def check_avro(payload: bytes | None, schema: Any) -> Checked:
    """Return a payload that is one datum of a schema, parsed by fastavro, or the reason why not."""
    if payload is None:
        return Checked(None, Misfit("", "must be one datum of Avro", "no data").reason())
    datum = _Datum(schema.get("__named_schemas", {}) if isinstance(schema, dict) else {})
    try:
        read_datum(payload, lambda raw: (None, datum.end(schema, raw, 0, "")))
    except Misfit as misfit:
        return Checked(None, misfit.reason())
    except MalformedDatum as error:
        got = str(error).removeprefix("it has ")
        return Checked(None, Misfit(datum.where, "must be of the schema", f"data of which {got}").reason())
    return Checked(payload)


class _Datum:
    """Moves through one datum; ``where`` is the place of the last value that was begun."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.where = ""
        self._named = dict(named)

    def end(self, schema: Any, raw: bytes, at: int, where: str) -> int:
        """Return the index after a value; raise `Misfit`, or as the readers of Avro's binary encoding do."""
        if at > len(raw):
            raise IndexError
        self.where = where
        if isinstance(schema, list):
            branch, at = read_long(raw, at)
            if not 0 <= branch < len(schema):
                raise Misfit(where, "must be of a branch of the union", f"branch {branch}")
            return self.end(schema[branch], raw, at, where)
        kind = schema if isinstance(schema, str) else schema["type"]
        if not isinstance(kind, str):
            return self.end(kind, raw, at, where)
        if kind in self._named:
            return self.end(self._named[kind], raw, at, where)
        if kind in {"record", "enum", "fixed"}:
            self._named[schema["name"]] = schema
        if kind == "record":
            for field in schema["fields"]:
                at = self.end(field["type"], raw, at, pointer(where, field["name"]))
            return at
        if kind in {"array", "map"}:
            return self._blocks(schema, raw, at, where)
        return _scalar_end(kind, schema if isinstance(schema, Mapping) else {}, raw, at, where)

    def _blocks(self, schema: Any, raw: bytes, at: int, where: str) -> int:
        names: set[str] = set()
        empty = 0
        count, at = read_count(raw, at)
        while count:
            for _ in range(count):
                begin = at
                if schema["type"] == "map":
                    name, at = read_text(raw, at)
                    if name in names:
                        raise Misfit(where, "must have each key once", "one of them twice")
                    names.add(name)
                at = self.end(schema.get("items", schema.get("values")), raw, at, pointer(where, "*"))
                empty += at == begin
                if empty > _MAX_EMPTY_ITEMS:
                    raise Misfit(where, f"must have at most {_MAX_EMPTY_ITEMS} items without bytes", "more")
            count, at = read_count(raw, at)
        return at


def _scalar_end(kind: str, schema: Mapping[str, Any], raw: bytes, at: int, where: str) -> int:
    """Return the index after a scalar, also where that is beyond the end."""
    logical = schema.get("logicalType", "")
    match kind:
        case "boolean":
            return read_boolean(raw, at, 0)[1]
        case "string":
            return read_text(raw, at)[1]
        case "int" | "long" | "enum":
            value, at = read_long(raw, at)
            most = (
                _MOST_MILLIS if logical.endswith("timestamp-millis") else 2 ** (31 if kind == "int" else 63)
            )
            if kind == "enum" and not 0 <= value < len(schema["symbols"]):
                raise Misfit(where, "must be a symbol of the schema", f"symbol {value}")
            if kind != "enum" and not -most <= value <= most - (kind == "int"):
                raise Misfit(where, f"must be of the type {logical or kind}", "a number that does not fit")
            return at
        case "bytes" | "fixed":
            end: int = at + schema["size"] if kind == "fixed" else 0
            digits, end = (raw[at:end], end) if end else read_bytes(raw, at)
            if logical == "decimal" and end <= len(raw):
                precision = schema["precision"]
                if not digits or abs(int.from_bytes(digits, "big", signed=True)) >= 10**precision:
                    raise Misfit(where, f"must have at most {precision} digits", "a number that does not fit")
            return end
    return at + _FIXED[kind]
