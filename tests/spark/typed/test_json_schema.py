"""JSON Schema, DDL, Avro and classes as schemas: what has a type of Spark, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest

from cloudevents_kafka.spark.typed.json_schema import shape_of
from cloudevents_kafka.spark.typed.schemas import data_schema
from tests.spark.typed.payloads import AVRO, EVERY_TYPE
from tests.support.cases import each


class Kind(Enum):
    NEW = "new"
    USED = "used"


@dataclass
class Item:
    sku: str
    number: int = 1


@dataclass
class Order:
    id: UUID
    total: Decimal
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    day: date | None
    items: list[Item]
    by_name: dict[str, float]
    kind: Kind = Kind.NEW
    mode: Literal["a", "b"] = "a"
    raw: bytes = b""
    flag: bool = False
    note: str | None = None
    first: Item | None = field(default=None)


ORDER = (
    "STRUCT<`id`: STRING, `total`: DECIMAL(38,18), `at`: TIMESTAMP_LTZ, `day`: DATE, "
    "`items`: ARRAY<STRUCT<`sku`: STRING, `number`: BIGINT>>, `by_name`: MAP<STRING, DOUBLE>, "
    "`kind`: STRING, `mode`: STRING, `raw`: BINARY, `flag`: BOOLEAN, `note`: STRING, "
    "`first`: STRUCT<`sku`: STRING, `number`: BIGINT>>"
)


def test_a_dataclass_has_the_types_of_the_table() -> None:
    """The class that reads data in Python is a schema in Spark."""
    shape = data_schema(Order).shape
    assert shape is not None
    assert shape.ddl() == ORDER
    required = {member.name for member in shape.members if member.required}
    assert required == {"id", "total", "at", "day", "items", "by_name"}
    assert {member.name for member in shape.members if member.shape.nullable} == {"day", "note", "first"}


@dataclass
class Sets:
    numbers: set[int]
    texts: frozenset[str]


def test_sets_are_arrays() -> None:
    """A dataclass and a model say that items are distinct, which no type of Spark expresses."""
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Sets", numbers=(set[int], ...), texts=(frozenset[str], ...))
    for class_ in (Sets, model):
        shape = data_schema(class_).shape
        assert shape is not None
        assert shape.ddl() == "STRUCT<`numbers`: ARRAY<BIGINT>, `texts`: ARRAY<STRING>>"


def test_a_model_of_pydantic_is_a_schema() -> None:
    """A model has the same types as a dataclass with its fields, except for bytes, which are a text."""
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model(
        "Order",
        id=(UUID, ...),
        total=(Decimal, ...),
        at=(datetime, ...),
        kind=(Kind, Kind.NEW),
        first=(Item | None, None),
        raw=(bytes, b""),
    )
    shape = data_schema(model).shape
    assert shape is not None
    assert shape.ddl() == (
        "STRUCT<`id`: STRING, `total`: DECIMAL(38,18), `at`: TIMESTAMP_LTZ, `kind`: STRING, "
        "`first`: STRUCT<`sku`: STRING, `number`: BIGINT>, `raw`: STRING>"
    )


REFUSED = [
    ({"type": "string"}, "must have the type object at /"),
    ({"type": "object"}, "one member or more at /properties"),
    (True, "got True, which is any type at /"),
    ({"a": {}}, "got no type at /properties/a"),
    ({"a": {"type": ["integer", "string"]}}, "got the type a list of 2 at /properties/a"),
    (
        {"a": {"type": "integer", "minimum": 1}},
        "keyword minimum, which no type expresses at /properties/a/minimum",
    ),
    (
        {"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "2 types for one value at /properties/a/anyOf",
    ),
    ({"a/b": {"type": "array"}}, "any type at /properties/a~1b/items"),
    ({"a": {"$ref": "#"}}, "contains itself at /properties/a"),
    ({"a": {"$ref": "other.json"}}, "another document at /properties/a"),
    ({"a": {"$ref": "#/$defs/none"}}, "does not exist at /properties/a"),
    ({"a": {"enum": [1]}}, "not all printable texts at /properties/a/enum"),
    ({"a": {"type": "array", "prefixItems": []}}, "keyword prefixItems"),
    ({"a": {"type": "string", "contentEncoding": "base32"}}, "'base32' at /properties/a/contentEncoding"),
    ({"a": {"type": "string"}, "A": {"type": "string"}}, "in more than their case, got a and A"),
    ({"a": {"type": "string"}, "b\n": {"type": "string"}}, "must be printable"),
]


@each(("schema", "message"), REFUSED)
def test_what_has_no_type_is_refused_with_its_place(schema: Any, message: str) -> None:
    """The error names the JSON pointer of the place."""
    if isinstance(schema, dict) and "type" not in schema:
        schema = {"type": "object", "properties": schema}
    with pytest.raises(ValueError, match=message):
        shape_of(schema)


def test_fields_of_avro_differ_in_more_than_their_case() -> None:
    """Spark finds no field by such a name, as in JSON; the error names the record that has them."""
    twins = [{"name": name, "type": "long"} for name in ("Id", "id")]
    inner = {"type": "array", "items": {"type": "record", "name": "I", "fields": twins}}
    for fields, where in ((twins, "/"), ([{"name": "a", "type": ["null", inner]}], "/a")):
        with pytest.raises(ValueError, match=f"in more than their case, got Id and id at {where}$"):
            data_schema({"type": "record", "name": "R", "fields": fields})


def test_a_required_member_without_a_type_is_refused() -> None:
    """A member must be in properties to be read."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}
    with pytest.raises(ValueError, match="at /required"):
        shape_of(schema)


def test_files(tmp_path: Path) -> None:
    """A path has a schema of Avro or JSON Schema by its content; an error names the file."""
    for name, schema, kind in (("order.avsc", AVRO, "avro"), ("order.json", EVERY_TYPE, "json")):
        (tmp_path / name).write_bytes(msgspec.json.encode(schema))
        assert data_schema(tmp_path / name).kind == data_schema(str(tmp_path / name)).kind == kind
    with pytest.raises(ValueError, match=r"none\.json must be a file of text"):
        data_schema(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"spark-protobuf_2\.13, which is not published"):
        data_schema("order.desc")
    with pytest.raises(ValueError, match="of Avro: "):
        data_schema({"type": "record", "name": "X", "fields": [{"name": "a", "type": "nothing"}]})
    with pytest.raises(TypeError, match="must be DDL, JSON Schema, Avro"):
        data_schema(17)
