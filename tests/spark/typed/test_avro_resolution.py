"""Data of a writer's schema of Avro is read into a reader's as Avro's specification resolves them."""

from __future__ import annotations

import io
import json
import random
from typing import Any, Final

import fastavro

from cloudevents_kafka.codecs.avro_binary import write_bytes
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.spark.typed.avro_checks import AvroChecks
from cloudevents_kafka.spark.typed.avro_resolution import Resolution
from cloudevents_kafka.spark.typed.checks import Misfit
from cloudevents_kafka.spark.typed.framed import Writer
from cloudevents_kafka.spark.typed.schemas import data_schema
from tests.support.cases import each
from tests.support.strategies import scaled

PAIRS: Final = 3_000
"""How many pairs of schemas are compared with fastavro, each with several data."""
_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_WIDER: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class Schemas:
    """Random schemas of writers, readers made of them, and values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._names = 0

    def schema(self, depth: int = 3) -> Any:
        chosen = self.random.choice(
            ["primitive", "primitive", "record", "array", "map", "union", "enum", "fixed"]
        )
        if depth == 0 or chosen == "primitive":
            return self.random.choice(_PRIMITIVES)
        if chosen in ("array", "map"):
            return {"type": chosen, {"array": "items", "map": "values"}[chosen]: self.schema(depth - 1)}
        if chosen == "union":
            branches = self.random.sample(_PRIMITIVES, self.random.randint(1, 3))
            return [*branches, self.record(depth - 1)] if self.random.random() < 0.3 else branches
        if chosen == "record":
            return self.record(depth - 1)
        if chosen == "enum":
            symbols = self.random.sample("ABCDE", self.random.randint(1, 4))
            return {"type": "enum", "name": self.name(), "symbols": symbols}
        return {"type": "fixed", "name": self.name(), "size": self.random.randint(0, 3)}

    def name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def record(self, depth: int) -> dict[str, Any]:
        names = self.random.sample("abcde", self.random.randint(0, 4))
        fields = [{"name": name, "type": self.schema(depth)} for name in names]
        return {"type": "record", "name": self.name(), "fields": fields}

    def reader(self, schema: Any) -> Any:
        """Return a schema that data of another may resolve to."""
        if self.random.random() < 0.05:
            return self.schema(1)
        if isinstance(schema, list):
            kept = [self.reader(branch) for branch in schema if self.random.random() < 0.9]
            self.random.shuffle(kept)
            flat = [one for one in kept if not isinstance(one, list)]
            distinct = {json.dumps(one["type"] if isinstance(one, dict) else one): one for one in flat}
            return list(distinct.values()) or "null"
        changed = self._changed(schema)
        nullable = self.random.random() < 0.15 and changed != "null" and not isinstance(changed, list)
        return ["null", changed] if nullable else changed

    def _changed(self, schema: Any) -> Any:
        if isinstance(schema, str):
            wider = _WIDER.get(schema, ())
            return self.random.choice(wider) if wider and self.random.random() < 0.3 else schema
        match schema["type"]:
            case "array":
                return {**schema, "items": self.reader(schema["items"])}
            case "map":
                return {**schema, "values": self.reader(schema["values"])}
            case "enum":
                symbols = self.random.sample("ABCDE", self.random.randint(1, 5))
                default = {"default": symbols[0]} if self.random.random() < 0.5 else {}
                return {**schema, "symbols": symbols, **default}
            case "record":
                return {**schema, "fields": self._fields(schema["fields"])}
        return schema

    def _fields(self, fields: list[Any]) -> list[Any]:
        kept = [
            {**field, "type": self.reader(field["type"])} for field in fields if self.random.random() < 0.85
        ]
        for field in kept:
            if self.random.random() < 0.1:
                field |= {"aliases": [field["name"]], "name": f"{field['name']}2"}
        for name in self.random.sample("vwxyz", self.random.randint(0, 2)):
            type_, default = self.random.choice([("long", 7), (["null", "string"], None), ("string", "d")])
            kept.append(
                {"name": name, "type": type_, **({} if self.random.random() < 0.1 else {"default": default})}
            )
        self.random.shuffle(kept)
        return kept

    def value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self.value(self.random.choice(schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        scalars: dict[str, Any] = {
            "null": None,
            "boolean": self.random.random() < 0.5,
            # Numbers that 32 bits of a float have, too.
            "int": self.random.choice([0, -1, -(2**31), 2**30, self.random.randint(-(2**24), 2**24)]),
            "long": self.random.choice([0, 2**62, -(2**63), self.random.randint(-(2**24), 2**24)]),
            "float": float(self.random.randint(-(2**20), 2**20)) / 8,
            "double": self.random.random() * 1e300,
            "bytes": self.random.choice([b"", b"ab", b"\xff\x00"]),
            "string": self.random.choice(["", "é", "text"]),
        }
        return scalars[kind] if kind in scalars else self.nested(kind, schema)

    def nested(self, kind: str, schema: Any) -> Any:
        match kind:
            case "array":
                return [self.value(schema["items"]) for _ in range(self.random.randint(0, 3))]
            case "map":
                return {key: self.value(schema["values"]) for key in self.random.sample("pqr", 2)}
            case "enum":
                return self.random.choice(schema["symbols"])
            case "fixed":
                return self.random.randbytes(schema["size"])
        return {field["name"]: self.value(field["type"]) for field in schema["fields"]}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def read(schema: Any, datum: bytes, reader: Any = None) -> Any:
    stream = io.BytesIO(datum)
    value = fastavro.schemaless_reader(stream, schema, reader)
    assert stream.read() == b""
    return value


def resolved(writer: Any, reader: Any, datum: bytes) -> bytes | Misfit:
    """Return the datum for a reader, or the misfit."""
    named: dict[str, Any] = {}
    resolution = Resolution(fastavro.parse_schema(writer, named), named, fastavro.parse_schema(reader))
    try:
        return resolution.read(datum)
    except Misfit as misfit:
        return misfit


def test_pairs_of_schemas_resolve_as_by_fastavro() -> None:
    """For random pairs, a datum of the writer is that of fastavro, or neither resolves it."""
    outcomes = {"read": 0, "misfit": 0}
    for seed in range(scaled(PAIRS)):
        made = Schemas(seed)
        writer = made.record(3)
        reader = made.reader(writer)
        parsed, wanted = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
        for _ in range(3):
            datum = written(parsed, made.value(writer))
            try:
                expected = read(parsed, datum, wanted)
                fastavro.schemaless_writer(io.BytesIO(), wanted, expected)  # bytes may be no text
                resolves = True
            except Exception:  # noqa: BLE001  # fastavro raises errors of any type
                resolves = False
            found = resolved(writer, reader, datum)
            fits = isinstance(found, bytes) and AvroChecks(wanted).check(found).payload == found
            assert fits == resolves, (seed, writer, reader, datum)
            assert not fits or read(wanted, found) == expected, (seed, writer, reader, datum)
            outcomes["read" if fits else "misfit"] += 1
    assert min(outcomes.values()) > sum(outcomes.values()) // 20, outcomes


def field(type_: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": type_, **more}]}


def logical(base: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


MILLIS, MICROS = logical("long", "timestamp-millis"), logical("long", "timestamp-micros")
LOCAL_MILLIS, LOCAL_MICROS = (
    logical("long", "local-timestamp-millis"),
    logical("long", "local-timestamp-micros"),
)
TIME_MILLIS, TIME_MICROS = logical("int", "time-millis"), logical("long", "time-micros")
DATE, UUID = logical("int", "date"), logical("string", "uuid")
FIXED_DECIMAL = {
    "type": "fixed",
    "name": "D",
    "size": 4,
    "logicalType": "decimal",
    "precision": 9,
    "scale": 2,
}
FINER, DIGITS = (
    "a time of a finer unit than the reader's",
    "a number of more digits than the reader's after the point",
)
FIT: Final = "a number that does not fit"
TEXT_OF_UUID = b"\x48{5D0E8F5C-7C0A-4B8A-9E0C-000000000000"  # not the form that a library would write
L, I = zigzag.encode, zigzag.encode  # noqa: E741  # int and long are written in one way
SCALARS: Final[list[tuple[Any, Any, bytes, bytes | str]]] = [
    # A logical type of the writer only, or of the reader only, does not change the number.
    (MILLIS, "long", L(1_500), L(1_500)),
    (MICROS, "long", L(2**63 - 1), L(2**63 - 1)),
    (TIME_MILLIS, "int", I(-5), I(-5)),
    (TIME_MILLIS, "long", I(-5), L(-5)),
    (DATE, "int", I(-(2**31)), I(-(2**31))),
    (DATE, "long", I(19_000), L(19_000)),
    ("long", MILLIS, L(1_500), L(1_500)),
    ("int", DATE, I(1), I(1)),
    (UUID, "string", TEXT_OF_UUID[:1] + TEXT_OF_UUID[1:37], TEXT_OF_UUID[:1] + TEXT_OF_UUID[1:37]),
    (UUID, UUID, b"\x06no!", b"\x06no!"),
    ("string", UUID, b"\x06no!", b"\x06no!"),
    (UUID, "bytes", b"\x06no!", b"\x06no!"),
    (decimal(4, 2), "bytes", b"\x02\x96", b"\x02\x96"),
    ("bytes", decimal(4, 2), b"\x02\x10", b"\x02\x10"),
    # Two times in one unit are copied, also what Python has no time for.
    (MILLIS, MILLIS, L(-1), L(-1)),
    (TIME_MILLIS, TIME_MILLIS, I(-5), I(-5)),
    (MICROS, MICROS, L(1), L(1)),
    (LOCAL_MILLIS, MILLIS, L(5), L(5)),
    # In other units they are scaled exactly, or a misfit.
    (MILLIS, MICROS, L(-1_500), L(-1_500_000)),
    (MICROS, MILLIS, L(1_500_000), L(1_500)),
    (MICROS, MILLIS, L(1_500_001), FINER),
    (MICROS, MILLIS, L(-1), FINER),
    (MILLIS, MICROS, L(2**62), FIT),
    (LOCAL_MILLIS, LOCAL_MICROS, L(2), L(2_000)),
    (TIME_MILLIS, TIME_MICROS, I(-5), L(-5_000)),
    (DATE, MILLIS, I(1), "a date, where the reader has a timestamp"),
    (TIME_MILLIS, MICROS, I(1), "a time, where the reader has a timestamp"),
    (decimal(4, 2), decimal(8, 3), b"\x02\x0a", b"\x02\x64"),
    (decimal(4, 2), decimal(8, 3), b"\x02\xf6", b"\x02\x9c"),
    (decimal(8, 3), decimal(4, 2), b"\x02\x64", b"\x02\x0a"),
    (decimal(8, 3), decimal(4, 2), b"\x02\x0b", DIGITS),
    (decimal(4, 2), decimal(8, 2), b"\x04\x00\x0a", b"\x04\x00\x0a"),
    (decimal(4, 2), decimal(8, 3), b"\x00", FIT),
    (FIXED_DECIMAL, {**FIXED_DECIMAL, "scale": 3}, b"\x00\x00\x00\x0a", b"\x00\x00\x00\x64"),
    (FIXED_DECIMAL, {**FIXED_DECIMAL, "scale": 3}, b"\x7f\xff\xff\xff", FIT),
    (decimal(4, 2), decimal(38, 38), b"\x02\x0a", write_bytes((10 * 10**36).to_bytes(16, "big"))),
    # Promotions are those of the specification, and no others.
    ("long", "int", L(1), "the type long, where the reader has the type int"),
    ("string", "int", b"\x00", "the type string, where the reader has the type int"),
    (["null", "string"], "string", b"\x00", "the type null, where the reader has the type string"),
    ("bytes", "string", b"\x02\xff", b"\x02\xff"),
    (
        {"type": "array", "items": "string"},
        {"type": "array", "items": "int"},
        b"\0",
        "an array of the type string",
    ),
]


@each(("writer", "reader", "datum", "expected"), SCALARS)
def test_numbers_and_bytes_are_copied_scaled_or_misfits(
    writer: Any, reader: Any, datum: bytes, expected: bytes | str
) -> None:
    """Logical types do not change how types resolve; other units are scaled; the reason is a sentence."""
    found = resolved(field(writer), field(reader), datum)
    if isinstance(expected, bytes):
        assert found == expected
    else:
        assert isinstance(found, Misfit)
        assert (found.where, found.rule) == (
            "/a",
            "must be convertible to the reader's schema",
        )
        assert expected in found.got


DEFAULTS: Final[list[tuple[Any, Any, bytes | None]]] = [
    ("bytes", "\u00ff\u0000", b"\x04\xff\x00"),
    (decimal(4, 2), "\u0001\u0000", b"\x04\x01\x00"),
    ({"type": "fixed", "name": "F", "size": 2}, "\u0080a", b"\x80a"),
    ("string", "\u00ff", b"\x04\xc3\xbf"),
    (["null", "bytes"], None, b"\x00"),
    (["null", "bytes"], "\u00fe", b"\x02\x02\xfe"),  # of the second branch: Avro 1.12
    ({"type": "array", "items": "bytes"}, ["\u00ff"], b"\x02\x02\xff\x00"),
    ({"type": "map", "values": "long"}, {"k": 1}, b"\x02\x02k\x02\x00"),
    (field("bytes", default="\u00ff"), {}, b"\x02\xff"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", b"\x02"),
    ("double", 1, b"\x00" * 6 + b"\xf0\x3f"),
    ("boolean", True, b"\x01"),
    (MICROS, 5, L(5)),
]


@each(("type_", "default", "expected"), DEFAULTS)
def test_defaults_are_those_of_the_reader(type_: Any, default: Any, expected: bytes) -> None:
    """A field that the writer does not have has the reader's default; bytes are characters to U+00FF."""
    inner = {**type_, "name": "Inner"} if isinstance(type_, dict) and type_["type"] == "record" else type_
    writer = {"type": "record", "name": "R", "fields": []}
    assert resolved(writer, field(inner, default=default), b"") == expected


def test_a_field_without_a_default_is_a_misfit_with_its_place() -> None:
    """The reason names the field of the reader."""
    writer = {"type": "record", "name": "R", "fields": []}
    found = Writer("AVRO", (json.dumps(writer),)).read(b"", data_schema(field("long")))
    assert found.reason == (
        "data: /a must be convertible to the reader's schema, got no such field, and no default of its type"
    )


WRITTEN: Final = [
    # fastavro #676, hudi #2765: defaults that are not of their type, or of the second branch of a union.
    (field("long", default="0"), field("long"), b"\x02"),
    (field(["string", "null"], default=None), field(["null", "string"], default=None), b"\x00\x02x"),
    # A logical type that is invalid is ignored.
    (field(decimal(2, 5)), field("bytes"), b"\x02\x04"),
    (field(logical("bytes", "decimal", precision="2")), field("bytes"), b"\x02\x04"),
    (field(logical("bytes", "decimal")), field(decimal(4, 2)), b"\x02\x04"),
    (field(logical("long", "no-such-type")), field("long"), b"\x02"),
    (field({**FIXED_DECIMAL, "precision": 10}), field({**FIXED_DECIMAL}), b"\0\0\0\x0a"),
    (field(logical("long", "date")), field(MILLIS), L(5)),
]


@each(("writer", "reader", "datum"), WRITTEN)
def test_a_schema_of_a_writer_is_read_by_its_bytes_alone(writer: Any, reader: Any, datum: bytes) -> None:
    """What does not change the bytes of a writer does not make them unreadable."""
    found = Writer("AVRO", (json.dumps(writer),)).read(datum, data_schema(reader))
    assert found.reason is None
    assert found.payload is not None
    assert found.payload[-1:] == datum[-1:]


def test_a_named_schema_may_be_elsewhere() -> None:
    """Fastavro #780: a record that is defined in another field of the reader is still the same record."""
    part = field("long") | {"name": "Part"}
    writer = field(part)
    reader = {**writer, "fields": [{"name": "b", "type": ["null", part], "default": None}]}
    reader["fields"].append({"name": "a", "type": "Part"})
    assert resolved(writer, reader, b"\x04") == b"\x00\x04"
    assert resolved(reader, writer, b"\x02\x02\x04") == b"\x04"


def test_reasons_have_no_error_of_python() -> None:
    """A schema of a writer that cannot be read, and data of none, are sentences."""
    reader = data_schema(field("long"))
    deep = '{"type":"array","items":' * 9_000 + '"long"' + "}" * 9_000
    for text in ("{", '"nothing"', '{"type": "record"}', "[" * 5_000, deep):
        reason = Writer("AVRO", (text,)).read(b"\x02", reader).reason or ""
        assert reason.startswith("data: it must have a writer's schema that is valid Avro, got a schema ")
        assert "Error" not in reason
        assert "recursion" not in reason
