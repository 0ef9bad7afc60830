"""Schemas of writers: what does not change their bytes does not make data unreadable."""

from __future__ import annotations

from typing import Any

from cloudevents_kafka import codecs
from cloudevents_kafka.codecs.avro_writers import writer_schema
from tests.support.cases import each


def record(type_: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": type_, **more}]}


def decimal(**more: Any) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", **more}


@each(
    ("schema", "datum", "value"),
    [
        (record("long", default="0"), b"\x02", 1),
        (record(["string", "null"], default=None), b"\x02", None),
        (
            record({"type": "array", "items": record("int", default="") | {"name": "I"}}),
            b"\x02\x02\x00",
            [{"a": 1}],
        ),
        (record(decimal(precision=2, scale=3)), b"\x02\x04", b"\x04"),
        (record(decimal(precision="2")), b"\x02\x04", b"\x04"),
        (record(decimal(precision=0)), b"\x02\x04", b"\x04"),
        (record(decimal(precision=2, scale=-1)), b"\x02\x04", b"\x04"),
        (record(decimal(precision=True)), b"\x02\x04", b"\x04"),
        (record(decimal(type="fixed", name="F", size=4, precision=10)), b"\0\0\0\4", b"\0\0\0\4"),
    ],
)
def test_data_is_read_by_its_bytes(schema: Any, datum: bytes, value: Any) -> None:
    """A wrong default, which only a reader uses, and a wrong logical type are left out."""
    decode = codecs.avro(writer_schema(schema)).decode
    assert decode is not None
    assert decode(datum) == {"a": value}


def test_all_else_is_kept() -> None:
    """A schema that is valid is the same but for its defaults."""
    schema = record(decimal(precision=4, scale=2)) | {"doc": "a", "aliases": ["b"]}
    assert writer_schema(schema) == schema
    for precision, scale in ((1, 0), (1, 1), (2, 0)):
        schema = record(decimal(precision=precision, scale=scale))
        assert writer_schema(schema) == schema
    schema = record(decimal(type="fixed", name="F", size=4, precision=9))
    assert writer_schema(schema) == schema
    assert writer_schema("long") == "long"
    assert writer_schema(["null", {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}]) == [
        "null",
        {"type": "enum", "name": "E", "symbols": ["A"]},
    ]
