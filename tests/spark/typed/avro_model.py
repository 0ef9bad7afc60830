"""A model of Avro: what a datum must be in Spark, and random data, of which many bytes are changed."""

from __future__ import annotations

import io
import random
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import fastavro

_PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")
_TIMES: Final = ("timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62_135_596_800_000_000  # microseconds of the year 1
_END: Final = 253_402_300_800_000_000  # of the year 10000
_EXTREMES: Final = (
    0,
    -1,
    2**31 - 1,
    -(2**31),
    2**62,
    2**63 - 1,
    -(2**63),
    10**15,
    _END // 1000,
    _END,
    _FIRST,
)
_LONGEST: Final = 10  # bytes of a number


class Misfit(Exception):
    """A datum has no value."""


# --- what a datum is --------------------------------------------------------------


def expected(schema: Any, datum: bytes) -> Any:
    """Return the value of a datum as pyarrow returns it, or None for a misfit."""
    try:
        value, end = _read(schema, datum, 0)
    except (Misfit, IndexError, UnicodeDecodeError):
        return None
    return value if end == len(datum) else None


def _read(schema: Any, raw: bytes, at: int) -> tuple[Any, int]:
    if isinstance(schema, list):
        branch, at = _long(raw, at)
        _must(0 <= branch < len(schema))
        return _read(schema[branch], raw, at)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        found = {}
        for field in schema["fields"]:
            found[field["name"]], at = _read(field["type"], raw, at)
        return found, at
    if kind in ("array", "map"):
        return _blocks(schema, raw, at)
    return _scalar(kind, schema if isinstance(schema, dict) else {}, raw, at)


def _blocks(schema: Any, raw: bytes, at: int) -> tuple[Any, int]:
    items: list[Any] = []
    pairs: dict[str, Any] = {}
    while True:
        count, at = _long(raw, at)
        if count < 0:
            count = -count
            _, at = _long(raw, at)
        if count == 0:
            return (items if schema["type"] == "array" else pairs), at
        for _ in range(count):
            if schema["type"] == "map":
                key, at = _bytes(raw, at)
                name = key.decode()
                _must(name not in pairs)
                pairs[name], at = _read(schema["values"], raw, at)
            else:
                item, at = _read(schema["items"], raw, at)
                items.append(item)


def _scalar(kind: str, schema: dict[str, Any], raw: bytes, at: int) -> tuple[Any, int]:  # noqa: PLR0911  # a case for each kind
    match kind:
        case "null":
            return None, at
        case "boolean":
            _must(raw[at] < 2)
            return raw[at] == 1, at + 1
        case "float" | "double":
            form = "<f" if kind == "float" else "<d"
            end = at + struct.calcsize(form)
            _must(end <= len(raw))
            return struct.unpack(form, raw[at:end])[0], end
        case "string":
            text, at = _bytes(raw, at)
            return text.decode(), at
        case "bytes" | "fixed":
            content, at = (
                _bytes(raw, at) if kind == "bytes" else (raw[at : at + schema["size"]], at + schema["size"])
            )
            _must(at <= len(raw))
            return _content(schema, content), at
        case "enum":
            number, at = _long(raw, at)
            _must(0 <= number < len(schema["symbols"]))
            return schema["symbols"][number], at
    number, at = _long(raw, at)
    _must(kind == "long" or -(2**31) <= number < 2**31)
    return _number(schema.get("logicalType", ""), number), at


def _content(schema: dict[str, Any], content: bytes) -> Any:
    if schema.get("logicalType") != "decimal":
        return content
    _must(bool(content))
    number = int.from_bytes(content, "big", signed=True)
    _must(abs(number) < 10 ** schema["precision"])
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -schema["scale"]))


def _number(logical: str, number: int) -> Any:
    if logical == "date":
        _must(1 <= number + date(1970, 1, 1).toordinal() <= date.max.toordinal())
        return date.fromordinal(number + date(1970, 1, 1).toordinal())
    if not logical:
        return number
    micros = number * (1000 if logical.endswith("millis") else 1)
    _must(_FIRST <= micros < _END)
    time = _EPOCH + timedelta(microseconds=micros)
    return time.replace(tzinfo=None) if logical.startswith("local") else time


def _long(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = raw[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
        _must(shift < 7 * _LONGEST)
    _must(number < 2**64)
    return (number >> 1) ^ -(number & 1), at


def _bytes(raw: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(raw, at)
    _must(0 <= size <= len(raw) - at)
    return raw[at : at + size], at + size


def _must(true: bool) -> None:  # noqa: FBT001  # it has no other argument
    if not true:
        raise Misfit


# --- random schemas and data --------------------------------------------------------


def random_schema(chance: random.Random) -> dict[str, Any]:
    """Return the schema of a record."""
    return _Schemas(chance).record(3)


class _Schemas:
    def __init__(self, chance: random.Random) -> None:
        self._chance, self._names = chance, 0

    def record(self, depth: int) -> dict[str, Any]:
        names = self._chance.sample(["a", "b", "c", "d", "e", "f"], self._chance.randint(1, 5))
        fields = [{"name": name, "type": self._type(depth - 1)} for name in names]
        return {"type": "record", "name": self._name(), "fields": fields}

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def _type(self, depth: int, *, item: bool = False) -> Any:
        kind = (
            self._chance.choice(["array", "map", "record", "union", *["scalar"] * 6]) if depth else "scalar"
        )
        if kind == "array":
            return {"type": "array", "items": self._type(depth - 1, item=True)}
        if kind == "map":
            return {"type": "map", "values": self._type(depth - 1)}
        if kind == "record":
            return self.record(depth)
        if kind == "union":
            branches = ["null", self._scalar(double=not item)]
            return branches if self._chance.random() < 0.5 else branches[::-1]
        return self._scalar(double=not item)

    def _scalar(self, *, double: bool) -> Any:  # noqa: PLR0911  # a case for each kind
        kind = self._chance.choice([*_PRIMITIVES, *_TIMES, "date", "decimal", "decimal", "enum", "fixed"])
        if kind in _TIMES:
            return {"type": "long", "logicalType": kind}
        match kind:
            case "date":
                return {"type": "int", "logicalType": "date"}
            case "decimal":
                precision = self._chance.choice([1, 9, 18, 38])
                more = {"precision": precision, "scale": self._chance.randint(0, precision)}
                fixed = self._chance.random() < 0.3
                base = {"type": "fixed", "name": self._name(), "size": 16} if fixed else {"type": "bytes"}
                return {**base, "logicalType": "decimal", **more}
            case "enum":
                return {"type": "enum", "name": self._name(), "symbols": ["A", "B", "C"]}
            case "fixed":
                return {"type": "fixed", "name": self._name(), "size": self._chance.randint(1, 4)}
            case "double" if not double:  # arrays of them are refused
                return "float"
        return kind


def random_datum(chance: random.Random, schema: dict[str, Any]) -> bytes:
    """Return a datum, of which some have other bytes than a writer's."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _without_logical(schema), _value(chance, schema))
    datum = out.getvalue()
    change, at = chance.randint(0, 11), chance.randint(0, len(datum))
    if change == 0:
        return datum[:at]
    if change == 1:
        return datum + chance.randbytes(chance.randint(1, 3))
    if change in (2, 3):
        return datum[:at] + chance.randbytes(1) + datum[at + 1 :]
    if change == 4:
        return datum[:at] + chance.choice([b"\x00", b"\x80\x00", b"\xff" * 9 + b"\x01", b"\x01"]) + datum[at:]
    return datum


def _without_logical(schema: Any) -> Any:
    """Return a schema without logical types, so that any number is written."""
    if isinstance(schema, list):
        return [_without_logical(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key not in ("logicalType", "precision", "scale")}
    for key in ("items", "values"):
        if key in plain:
            plain[key] = _without_logical(plain[key])
    if "fields" in plain:
        plain["fields"] = [{**each, "type": _without_logical(each["type"])} for each in plain["fields"]]
    return plain


def _value(chance: random.Random, schema: Any) -> Any:  # noqa: PLR0911  # a case for each kind
    if isinstance(schema, list):
        return _value(chance, chance.choice(schema))
    kind = schema if isinstance(schema, str) else schema["type"]
    match kind:
        case "record":
            return {field["name"]: _value(chance, field["type"]) for field in schema["fields"]}
        case "array":
            return [_value(chance, schema["items"]) for _ in range(chance.randint(0, 3))]
        case "map":
            return {
                key: _value(chance, schema["values"])
                for key in chance.sample(["k", "ä", "", "z"], chance.randint(0, 3))
            }
        case "enum":
            return chance.choice(schema["symbols"])
        case "fixed":
            return _bytes_of(chance, schema, schema["size"])
        case "bytes":
            return _bytes_of(chance, schema, None)
    return _scalar_of(chance, kind, schema if isinstance(schema, dict) else {})


def _bytes_of(chance: random.Random, schema: Any, size: int | None) -> bytes:
    if not isinstance(schema, dict) or schema.get("logicalType") != "decimal":
        return chance.randbytes(chance.randint(0, 5) if size is None else size)
    most = 10 ** schema["precision"]
    number = chance.choice([0, most - 1, -most + 1, chance.randint(-most, most), most])
    return number.to_bytes(size or (number.bit_length() // 8 + 1 + chance.randint(0, 1)), "big", signed=True)


def _scalar_of(chance: random.Random, kind: str, schema: dict[str, Any]) -> Any:
    if kind in ("int", "long"):
        half = 2 ** (31 if kind == "int" else 63)
        extremes = [number for number in _EXTREMES if -half <= number < half]
        common = chance.randint(-(10**6), 10**6) if schema else chance.randint(-half, half - 1)
        return common if chance.random() < 0.7 else chance.choice([*extremes, common])
    values: dict[str, Any] = {
        "null": None,
        "boolean": chance.random() < 0.5,
        "float": chance.choice([0.5, -0.0, float("inf"), chance.randint(-(2**20), 2**20) / 8]),
        "double": chance.choice([chance.random(), float("-inf"), 1e300]),
        "string": chance.choice(["", "a", "ä€😀", "\x00"]),
    }
    return values[kind]
