"""Schemas of Avro writers, without the parts that do not matter for reading the writers' data.

A writer's schema may contain an invalid default or an invalid logical type, and topics may contain data that
was written with this schema. Defaults matter only in the schemas of readers. About invalid logical types,
Avro's specification ("Logical Types") says: "implementations must ignore the logical type when reading". So
defaults and invalid logical types are removed, and the data is readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def writer_schema(schema: Any) -> Any:
    """Return a schema, which is decoded JSON, without its defaults and without invalid decimals.

    Examples:
        >>> from cloudevents_kafka.codecs.avro_writers import writer_schema
        >>> field = {"name": "total", "type": "long", "default": "0"}
        >>> writer_schema({"type": "record", "name": "Order", "fields": [field]})["fields"]
        [{'name': 'total', 'type': 'long'}]
    """
    root: list[Any] = [schema]
    waiting: list[Any] = [root]  # not by recursion: a schema may be nested deeply
    while waiting:
        parent = waiting.pop()
        for key, value in parent.items() if isinstance(parent, dict) else enumerate(parent):
            if isinstance(value, dict | list):
                parent[key] = dict(_kept(value)) if isinstance(value, dict) else value.copy()
                waiting.append(parent[key])
    return root[0]


def _kept(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the members of a schema's object, except a default and an invalid logical type."""
    is_wrong = schema.get("logicalType") == "decimal" and not _is_decimal(schema)
    left_out = ("default", "logicalType") if is_wrong else ("default",)
    yield from (pair for pair in schema.items() if pair[0] not in left_out)


def _is_decimal(schema: dict[str, Any]) -> bool:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    return type(precision) is int and type(scale) is int and 0 <= scale <= precision and precision > 0
