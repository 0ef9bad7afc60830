"""Avro names that begin with a dot; such names have no namespace.

The specification says: "If the name specified contains a dot, then it is assumed to be a fullname", and "The
empty string may also be used as a namespace to indicate the null namespace". So ``.Order`` and ``Order`` are
names of the same type: ``Order`` without a namespace (AVRO-3830). Earlier versions of the Python library avro
have written names that begin with a dot into schema registries. For fastavro, ``.Order`` and ``Order`` are
different names. Java also distinguishes the two names if a type is defined with one name, and a schema refers
to the type by the other name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_NAMED: Final = ("record", "error", "enum", "fixed")
_TYPES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map", *_NAMED}
)


def with_one_name(schemas: Iterable[Any]) -> list[Any]:
    """Return schemas in which all names without a namespace begin with a dot, or none of them does.

    Examples:
        >>> from cloudevents_kafka.codecs.avro_names import with_one_name
        >>> field = {"name": "next", "type": ["null", ".Order"]}
        >>> (order,) = with_one_name([{"type": "record", "name": "Order", "fields": [field]}])
        >>> order["name"], order["fields"]
        ('.Order', [{'name': 'next', 'type': ['null', '.Order']}])
    """
    schemas, names = list(schemas), set[str]()
    dotted = [_dotted(schema, "", names) for schema in schemas]
    return dotted if any(name.startswith(".") for name in names) else schemas


def _dotted(schema: Any, space: str, names: set[str]) -> Any:
    """Return a schema whose names without a namespace begin with a dot; add their old forms to ``names``."""
    if isinstance(schema, str):
        is_other = schema in _TYPES or _space_of(schema, space)
        return schema if is_other else _full_name(schema, names)
    if isinstance(schema, list):
        return [_dotted(branch, space, names) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    result, name = dict(schema), schema.get("name")
    if schema.get("type") in _NAMED and isinstance(name, str):
        space = _space_of(name, schema.get("namespace", space))
        result["name"] = name if space else _full_name(name, names)
        if isinstance(fields := schema.get("fields"), list):
            result["fields"] = [_dotted_field(field, space, names) for field in fields]
    for part in ("type", "items", "values"):
        if part in schema:
            result[part] = _dotted(schema[part], space, names)
    return result


def _dotted_field(field: Any, space: str, names: set[str]) -> Any:
    is_field = isinstance(field, dict) and "type" in field
    return {**field, "type": _dotted(field["type"], space, names)} if is_field else field


def _space_of(name: str, space: str) -> str:
    """Return the namespace of a name; a name without a dot is in the namespace ``space``."""
    return name.rpartition(".")[0] if "." in name else space


def _full_name(name: str, names: set[str]) -> str:
    names.add(name)
    return name if name.startswith(".") else f".{name}"
