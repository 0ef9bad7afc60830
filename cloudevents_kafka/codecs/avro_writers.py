"""Removes the parts of Avro schemas that are not needed for reading data.

A schema may contain an invalid default or an invalid logical type, but topics may contain data that was
written with this schema. A default matters only in the schema with which data is read, not in the schema with
which it was written. About invalid logical types, Avro's specification ("Logical Types") says:
"implementations must ignore the logical type when reading". This module therefore removes invalid logical
types from all schemas, and defaults from writers' schemas. After that, data of a schema with an invalid
default or logical type can be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

_DATES_AND_TIMES: Final = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    **{
        f"{local}timestamp-{unit}": "long"
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
}
"""The Avro type that a schema must have, for each logical type."""


def writer_schema(schema: Any) -> Any:
    """Return a writer's schema, as decoded JSON, without defaults and without invalid logical types.

    Examples:
        >>> from cloudevents_kafka.codecs.avro_writers import writer_schema
        >>> field = {"name": "total", "type": "long", "default": "0"}
        >>> writer_schema({"type": "record", "name": "Order", "fields": [field]})["fields"]
        [{'name': 'total', 'type': 'long'}]
    """
    return _without(schema, "default")


def reader_schema(schema: Any) -> Any:
    """Return a reader's schema, as decoded JSON, without invalid logical types.

    Examples:
        >>> from cloudevents_kafka.codecs.avro_writers import reader_schema
        >>> reader_schema({"type": "long", "logicalType": "date"})
        {'type': 'long'}
    """
    return _without(schema)


def _without(schema: Any, *left_out: str) -> Any:
    """Return a schema without invalid logical types, and without the members ``left_out`` of its objects."""
    root: list[Any] = [schema]
    waiting: list[Any] = [root]  # not by recursion: a schema may be nested deeply
    while waiting:
        parent = waiting.pop()
        for key, value in parent.items() if isinstance(parent, dict) else enumerate(parent):
            if isinstance(value, dict | list) and key != "default":  # a default is data
                parent[key] = dict(_kept(value, left_out)) if isinstance(value, dict) else value.copy()
                waiting.append(parent[key])
    return root[0]


def _kept(schema: dict[str, Any], left_out: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the members of a schema, except members in ``left_out`` and an invalid ``logicalType``."""
    if not _is_logical(schema):
        left_out = (*left_out, "logicalType")
    yield from (pair for pair in schema.items() if pair[0] not in left_out)


def _is_logical(schema: dict[str, Any]) -> bool:
    """Return whether a schema's logical type is valid; an unknown logical type counts as valid."""
    logical = schema.get("logicalType")
    if logical == "decimal":
        return _is_decimal(schema)
    kind = _DATES_AND_TIMES.get(logical) if isinstance(logical, str) else None
    return kind is None or schema.get("type") == kind


def _is_decimal(schema: dict[str, Any]) -> bool:
    precision, scale, kind = schema.get("precision"), schema.get("scale", 0), schema.get("type")
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or not precision:
        return False
    if kind != "fixed":
        return bool(kind == "bytes")
    # Avro's specification, "Decimal": "the precision is limited by its size".
    return bool(precision <= math.floor(math.log10(2) * (8 * schema["size"] - 1)))
