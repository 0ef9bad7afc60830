"""A name that begins with a dot is a name without a namespace."""

from __future__ import annotations

from typing import Any

from cloudevents_kafka import codecs
from cloudevents_kafka.codecs.avro_names import with_one_name
from tests.support.cases import each


def record(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    named = [{"name": f"f{number}", "type": type_} for number, type_ in enumerate(fields)]
    return {"type": "record", "name": name, "fields": named, **more}


def enum(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": ["A", "B"], **more}


CHAIN = {"f0": 1, "f1": {"f0": 2, "f1": None}}
PLAIN = record("Order", "int", ["null", "Order"])
STATES = record("Order", enum("State"), "State")
SCHEMAS: tuple[tuple[Any, Any, Any], ...] = (
    (record("Order", "int", ["null", ".Order"]), PLAIN, CHAIN),
    (record(".Order", "int", ["null", "Order"]), PLAIN, CHAIN),
    (record(".Order", "int", ["null", ".Order"], namespace="shop"), PLAIN, CHAIN),
    (record("Order", "int", ["null", ".Order"], namespace=""), PLAIN, CHAIN),
    (record("shop.Order", enum(".State"), ".State"), STATES, {"f0": "A", "f1": "B"}),
    (record("shop.Order", enum("State", namespace=""), ".State"), STATES, {"f0": "A", "f1": "B"}),
    (
        record("Order", enum("shop.State"), "shop.State", ["null", ".Order"]),
        record("Order", enum("State"), "State", ["null", "Order"]),
        {"f0": "A", "f1": "B", "f2": {"f0": "B", "f1": "B", "f2": None}},
    ),
    (
        record("Order", {"type": "map", "values": ["null", ".Order"]}),
        record("Order", {"type": "map", "values": ["null", "Order"]}),
        {"f0": {"a": {"f0": {"b": None}}}},
    ),
    (
        record("shop.Order", record("Order", "int", namespace=""), ["null", ".Order"], ["null", "Order"]),
        record("A", record("B", "int"), ["null", "B"], ["null", "A"]),
        {"f0": {"f0": 1}, "f1": {"f0": 2}, "f2": {"f0": {"f0": 3}, "f1": None, "f2": None}},
    ),
)


@each(("schema", "plain", "value"), SCHEMAS)
def test_one_name(schema: Any, plain: Any, value: Any) -> None:
    """With and without the dot it is the same name: data is written and read as by a schema without one."""
    codec = codecs.avro(schema)
    written = codecs.avro(plain).encode(value)  # type: ignore[misc]
    assert codec.decode(written) == value  # type: ignore[misc]
    assert codec.encode(value) == written  # type: ignore[misc]


def test_references() -> None:
    """A schema finds the names of those before it, whichever of them are written with a dot."""
    for state, field in (("State", ".State"), (".State", "State"), (".State", ".State")):
        codec = codecs.avro(record("Order", field), references=[enum(state)])
        assert codec.decode is not None
        assert codec.decode(b"\x02") == {"f0": "B"}


@each(
    "schema",
    [
        record("Order", "int", ["null", "Order"]),
        record("shop.Order", enum("State"), "shop.State"),
        record("Order", "int", doc=".Order"),
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": enum("E"), "default": ".R"}]},
        *("long", ["null", "string"], 7, None, {}, {"type": "record"}, {"type": "record", "name": 5}),
        {"type": "record", "name": "R", "fields": {"a": 1}},
        {"type": "record", "name": "R", "fields": [1, {"name": "a"}]},
    ],
)
def test_others_are_the_same(schema: Any) -> None:
    """Schemas without such names are not changed, and neither are other values."""
    assert with_one_name([schema])[0] is schema
