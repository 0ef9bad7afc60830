"""One budget for each datum of Avro: a few bytes cost little by any schema."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import fastavro
import pytest

from cloudevents_kafka import DataError, codecs
from cloudevents_kafka.codecs.avro_budget import FREE_STEPS, MAX_EMPTY_ITEMS, STEPS_PER_BYTE
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.spark.typed.avro_checks import AvroChecks
from cloudevents_kafka.spark.typed.framed import Writer
from cloudevents_kafka.spark.typed.schemas import DataSchema, data_schema
from tests.support.cases import each

MOST_CALLS: Final = 400_000
"""Of Python and C for a datum of 1 KB: 50 ms are about a million."""
_MOST_MEMORY: Final = 64 << 20
_KIB: Final = 1_000


def record(type_: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "a", "type": type_, **more}]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def doubling(levels: int, leaf: Any = "null") -> dict[str, Any]:
    """Return a record that has twice as many values at each level."""
    schema = record(leaf, "D0")
    for level in range(1, levels):
        schema = record(schema, f"D{level}")
        schema["fields"].append({"name": "b", "type": f"D{level - 1}"})
    return schema


def chain(levels: int, leaf: Any = "boolean") -> dict[str, Any]:
    """Return a record in a record in a record."""
    schema = record(leaf, "C0")
    for level in range(1, levels):
        schema = record(schema, f"C{level}")
    return schema


def arrays(count: int, items: bytes) -> bytes:
    return zigzag.encode(count) + items * count + b"\0"


NULLS: Final = array("null")
FULL: Final = zigzag.encode(MAX_EMPTY_ITEMS) + b"\0"  # an array of as many nulls
NOTHING: Final = {"type": "record", "name": "N", "fields": []}
FIXED: Final = {"type": "fixed", "name": "F", "size": 0}
BOMBS: Final[dict[str, tuple[Any, bytes]]] = {
    "nested nulls": (array(NULLS), arrays(8, FULL)),
    "nested nulls of 1 KB": (array(NULLS), arrays(240, FULL)),
    "blocks of nulls": (NULLS, FULL[:-1] * 2 + b"\0"),
    "one array too long": (NULLS, zigzag.encode(2**62) + b"\0"),
    "a negative count": (NULLS, b"\xff" * 9 + b"\x01\x00\x00"),
    "empty records": (array(NOTHING), zigzag.encode(MAX_EMPTY_ITEMS + 1) + b"\0"),
    "fixed of no bytes": (array(FIXED), zigzag.encode(MAX_EMPTY_ITEMS + 1) + b"\0"),
    "doubled at 30 levels": (doubling(30), b""),
    "doubled at 300 levels": (doubling(200), b""),
    "doubled in a union": (array(["null", doubling(12)]), arrays(400, b"\x02")),
    "doubled in a map": ({"type": "map", "values": doubling(12)}, arrays(1, b"\x02k") * 1),
    "records in records": (array(chain(100)), arrays(_KIB, b"\0")),
    "a record that contains itself": (
        {"type": "record", "name": "E", "fields": [{"name": "e", "type": "E"}]},
        b"",
    ),
}
FITS: Final = {"doubled in a map"}  # 4,095 values


def calls(action: Callable[[], object]) -> int:
    """Return the number of calls of Python and of C, after one that fills caches."""
    action()
    events: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        action()
    finally:
        sys.setprofile(before)
    return events.count("call") + events.count("c_call")


def ways(schema: Any, datum: bytes) -> dict[str, Callable[[], str | None]]:
    """Return the ways to read a datum, each of which returns why it is refused."""
    named: dict[str, Any] = {}
    checks = AvroChecks(fastavro.parse_schema(record(schema, "Root"), named), named)
    reader = data_schema(
        record("long", "Root", default=0) | {"fields": [{"name": "z", "type": "long", "default": 0}]}
    )
    writer = Writer("AVRO", (json.dumps(record(schema, "Root")),))
    codec = codecs.avro(record(schema, "Root")).decode
    assert codec is not None

    def decode() -> str | None:
        try:
            codec(datum)
        except DataError as error:
            return str(error)
        return None

    return {
        "checked": lambda: checks.check(datum).reason,
        "in a field that the reader does not have": lambda: writer.read(datum, reader).reason,
        "decoded": decode,
    }


@each("name", BOMBS)
def test_a_datum_of_a_kilobyte_costs_little(name: str) -> None:
    """Each way refuses it by the bound that it names, with few calls and little memory."""
    schema, datum = BOMBS[name]
    assert len(datum) <= 1.3 * _KIB
    for way, action in ways(schema, datum).items():
        assert calls(action) < MOST_CALLS, way
        tracemalloc.start()
        try:
            reason = action()
            assert tracemalloc.get_traced_memory()[1] < _MOST_MEMORY, way
        finally:
            tracemalloc.stop()
        assert (reason is None) == (name in FITS), way
        if reason is not None:
            words = ("items without bytes", "for each byte", "for its 10", "nested", "more than 64 bits")
            assert any(word in reason for word in words), (way, reason)


@each(
    ("type_", "datum", "wrong"),
    [
        ({"type": "bytes", "logicalType": "decimal"}, b"\x02\x04", b"\xff"),
        ({"type": "string", "logicalType": "decimal", "precision": 4, "scale": 2}, b"\x02a", b"\x02\xff"),
        ({"type": "long", "logicalType": "date"}, zigzag.encode(2**40), b"\x80"),
        ({"type": "bytes", "logicalType": "decimal", "precision": "4"}, b"\x02\x04", b"\xff"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, b"\x02\x04", b"\xff"),
        ({"type": "long", "logicalType": "x-timestamp-millis"}, zigzag.encode(2**60), b"\x80"),
    ],
)
def test_an_invalid_logical_type_of_a_reader_is_ignored(type_: Any, datum: bytes, wrong: bytes) -> None:
    """Data is of the type below it, and wrong data has a reason; a default stays as it is."""
    schema = data_schema(record(["null", type_], default=None))
    assert schema.check(b"\x02" + datum).reason is None
    assert (schema.check(b"\x02" + wrong).reason or "").startswith("data: /a must be ")
    noted = DataSchema("avro", avro=json.dumps(record(type_)))  # by an earlier version
    assert noted.check(datum).reason is None
    assert (noted.check(wrong).reason or "").startswith("data: /a must be ")
    default = {"type": "bytes", "logicalType": "decimal"}
    schema = data_schema(record({"type": "map", "values": "string"}, default=default))
    assert json.loads(schema.avro)["fields"][0]["default"] == default


def test_a_schema_of_a_writer_that_cannot_be_read_is_parsed_once() -> None:
    """The schemas of a registry are not trusted: each later datum costs a few calls, and has the reason."""
    fields = [{"name": f"f{n}", "type": "long"} for n in range(1_000)]
    broken = {"type": "record", "name": "R", "fields": [*fields, {"name": "x", "type": "no.such.Type"}]}
    writer, reader = Writer("AVRO", (json.dumps(broken),)), data_schema(record("long"))
    assert "got a schema with " in (writer.read(b"\x02", reader).reason or "")
    assert calls(lambda: writer.read(b"\x02", reader)) < 100
    assert writer.read(b"\x02", reader) == writer.read(b"\x04", reader)


def test_the_bound_is_of_the_whole_datum() -> None:
    """As many values without bytes as the bound fit, in any number of arrays; one more does not."""
    schema = fastavro.parse_schema(record(array(NULLS)))
    half = zigzag.encode(MAX_EMPTY_ITEMS // 2) + b"\0"
    fits = zigzag.encode(2) + half * 2 + b"\0"
    assert AvroChecks(schema).check(fits).payload == fits
    one_more = zigzag.encode(3) + half * 2 + zigzag.encode(1) + b"\0" * 2
    assert AvroChecks(schema).check(one_more).reason == (
        f"data: /a/* must have at most {MAX_EMPTY_ITEMS} items without bytes, got more"
    )


def test_a_long_datum_has_a_larger_budget() -> None:
    """Work is linear: each byte pays for a value without bytes, and for records around others."""
    number = MAX_EMPTY_ITEMS + 10
    with_null = {
        "type": "record",
        "name": "I",
        "fields": [{"name": "n", "type": "null"}, {"name": "b", "type": "int"}],
    }
    datum = arrays(number, b"\x02")
    assert AvroChecks(fastavro.parse_schema(record(array(with_null)))).check(datum).payload == datum
    deep = arrays(5_000, b"\0")
    reason = (
        AvroChecks(fastavro.parse_schema(record(array(chain(STEPS_PER_BYTE + 10))))).check(deep).reason or ""
    )
    assert f"at most {FREE_STEPS + STEPS_PER_BYTE * len(deep)} values, for its {len(deep)} bytes" in reason
    assert AvroChecks(fastavro.parse_schema(record(array(chain(20))))).check(deep).payload == deep


def test_defaults_of_a_reader_are_of_the_budget() -> None:
    """Items without bytes that a reader fills with defaults cannot fill the memory."""
    fields = [{"name": f"f{n}", "type": "string", "default": "x" * 100} for n in range(20)]
    reader = data_schema(record(array({"type": "record", "name": "N", "fields": fields})))
    writer = Writer("AVRO", (json.dumps(record(array(NOTHING))),))
    few, many = (zigzag.encode(number) + b"\0" for number in (100, MAX_EMPTY_ITEMS))
    assert writer.read(few, reader).reason is None
    assert "bytes of defaults, got more" in (writer.read(many, reader).reason or "")


def test_a_schema_of_too_many_parts_is_refused() -> None:
    """The schema of a reader becomes a type of Spark, which has a part for each place."""
    assert data_schema(doubling(10)).avro
    with pytest.raises(ValueError, match="must have at most 10000 parts after each name is replaced"):
        data_schema(doubling(30))
