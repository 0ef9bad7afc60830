"""The part of JSON Schema (2020-12) that the vectors' own schema uses, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_KNOWN: Final = {
    *("$schema", "title", "$defs", "$ref", "anyOf", "allOf", "type", "const", "enum", "pattern", "minLength"),
    *(
        "minimum",
        "maximum",
        "minItems",
        "prefixItems",
        "items",
        "required",
        "properties",
        "additionalProperties",
    ),
}


class Schema:
    """A schema document, which tells what is wrong with a value."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def shapes(self) -> dict[str, Any]:
        """The shapes that have a name, in ``$defs``."""
        found: dict[str, Any] = self._document["$defs"]
        return found

    def errors(self, value: Any) -> list[str]:
        """Return what is wrong, each with its place; nothing for a good value."""
        return list(self._errors(value, self._document, "$"))

    def errors_of(self, shape: str, value: Any) -> list[str]:
        """Return what is wrong with a value that must have one of the shapes in ``$defs``."""
        return list(self._errors(value, self.shapes[shape], "$"))

    def _errors(self, value: Any, schema: Any, at: str) -> Iterator[str]:
        if isinstance(schema, bool):
            if not schema:
                yield f"{at}: must not be there"
            return
        if unknown := schema.keys() - _KNOWN:
            raise ValueError(f"the schema uses {unknown}, which this checker does not know")
        yield from self._of_combined(value, schema, at)
        yield from _of_scalar(value, schema, at)
        if isinstance(value, list):
            yield from self._of_list(value, schema, at)
        if isinstance(value, dict):
            yield from self._of_object(value, schema, at)

    def _of_combined(self, value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
        if "$ref" in schema:
            yield from self._errors(value, self.shapes[schema["$ref"].removeprefix("#/$defs/")], at)
        for each in schema.get("allOf", []):
            yield from self._errors(value, each, at)
        tries = [list(self._errors(value, each, at)) for each in schema.get("anyOf", [])]
        if tries and all(tries):
            yield from min(tries, key=len)

    def _of_list(self, value: list[Any], schema: dict[str, Any], at: str) -> Iterator[str]:
        if len(value) < schema.get("minItems", 0):
            yield f"{at}: too short"
        prefix = schema.get("prefixItems", [])
        for number, item in enumerate(value):
            each = prefix[number] if number < len(prefix) else schema.get("items", True)
            yield from self._errors(item, each, f"{at}[{number}]")

    def _of_object(self, value: dict[str, Any], schema: dict[str, Any], at: str) -> Iterator[str]:
        for name in schema.get("required", []):
            if name not in value:
                yield f"{at}: {name} is missing"
        for name, member in value.items():
            each = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
            yield from self._errors(member, each, f"{at}.{name}")


def _of_scalar(value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
    types = schema.get("type", [])
    if types and not any(_TYPES[name](value) for name in ([types] if isinstance(types, str) else types)):
        yield f"{at}: must be of type {types}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: must be one of {schema['enum']}"
    if _TYPES["number"](value) and value < schema.get("minimum", value):
        yield f"{at}: too small"
    if _TYPES["number"](value) and value > schema.get("maximum", value):
        yield f"{at}: too large"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{at}: too short"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: must match {schema['pattern']}"
