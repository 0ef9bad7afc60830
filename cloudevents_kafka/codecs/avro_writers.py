"""Schemas of writers of Avro, without what does not matter for reading their data.

A registry has schemas that some tool has written, and their data is there. Defaults are those of readers,
and Avro's specification, "Logical Types", says of one that is invalid: "implementations must ignore the
logical type when reading". So neither makes data unreadable.
"""

from __future__ import annotations

from typing import Any


def writer_schema(schema: Any) -> Any:
    """Return a schema, as JSON has it, without defaults and without decimals that are invalid.

    Examples:
        >>> from cloudevents_kafka.codecs.avro_writers import writer_schema
        >>> field = {"name": "total", "type": "long", "default": "0"}
        >>> writer_schema({"type": "record", "name": "Order", "fields": [field]})["fields"]
        [{'name': 'total', 'type': 'long'}]
    """
    if isinstance(schema, list):
        return [writer_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"default"}
    if schema.get("logicalType") == "decimal" and not _is_decimal(schema):
        left_out.add("logicalType")
    nested = ("type", "items", "values", "fields")
    return {
        key: writer_schema(value) if key in nested else value
        for key, value in schema.items()
        if key not in left_out
    }


def _is_decimal(schema: dict[str, Any]) -> bool:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    return type(precision) is int and type(scale) is int and 0 <= scale <= precision and precision > 0
