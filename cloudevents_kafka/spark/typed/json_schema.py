"""Converts JSON Schema to a `Shape`; errors name the part of the schema that has no type in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec

from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.spark.typed.shape import BY_JSON, Member, Shape, pointer, struct

_ANNOTATIONS: Final = frozenset(
    (
        *("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default"),
        *("examples", "example", "deprecated", "readOnly", "writeOnly", "format", "contentMediaType"),
    )
)
_KEYWORDS: Final = {
    "object": frozenset(("type", "properties", "required", "additionalProperties")),
    "array": frozenset(("type", "items", "uniqueItems")),  # Spark has no sets
    "string": frozenset(("type", "contentEncoding")),
}
_TYPE: Final = frozenset(("type",))
_UNIONS: Final = ("anyOf", "oneOf")
_NUMBER_OR_TEXT: Final = {"number", "string"}  # how pydantic describes a Decimal


def shape_of(schema: Any) -> Shape:
    """Return the shape of a JSON Schema.

    Raises `ValueError` if a part of the schema has no shape; the error contains the JSON pointer of this
    part.
    """
    shape = _Reader(schema).shape(schema, "", ())
    if shape.spark != "STRUCT":
        raise ValueError("the JSON Schema must have the type object at /, with properties")
    return msgspec.structs.replace(shape, nullable=False)


def _refuse(where: str, what: str) -> NoReturn:
    raise ValueError(f"the JSON Schema must have a type of Spark, got {what} at {where or '/'}")


class _Reader:
    def __init__(self, root: Any) -> None:
        self._root = root

    def shape(self, schema: Any, where: str, opened: tuple[str, ...]) -> Shape:
        if not isinstance(schema, Mapping):
            _refuse(where, f"{preview(schema)}, which is any type" if schema is True else preview(schema))
        if "$ref" in schema:
            return self._reference(schema, where, opened)
        for keyword in _UNIONS:
            if keyword in schema:
                return self._union(schema, keyword, where, opened)
        if "enum" in schema or "const" in schema:
            return self._values(schema, where)
        types = schema.get("type")
        names = types if isinstance(types, list) else [types]
        kinds = [name for name in names if name != "null"]
        if len(kinds) != 1 or not isinstance(kinds[0], str):
            _refuse(where, "no type" if types is None else f"the type {preview(types)}")
        return self._typed(schema, kinds[0], where, opened, nullable=len(kinds) < len(names))

    def _typed(
        self, schema: Mapping[str, Any], kind: str, where: str, opened: tuple[str, ...], *, nullable: bool
    ) -> Shape:
        self._check(schema, _KEYWORDS.get(kind, _TYPE), where)
        if kind == "object":
            return self._object(schema, where, opened, nullable=nullable)
        if kind == "array":
            item = self.shape(schema.get("items", True), pointer(where, "items"), opened)
            return Shape("ARRAY", nullable, item)
        form = schema.get("contentEncoding", schema.get("format")) if kind == "string" else None
        if "contentEncoding" in schema and form != "base64":
            _refuse(pointer(where, "contentEncoding"), preview(form))
        spark = BY_JSON.get((kind, form if isinstance(form, str) else None)) or BY_JSON.get((kind, None))
        if spark is None:
            _refuse(pointer(where, "type"), f"the type {preview(kind)}")
        return Shape(spark, nullable)

    def _object(
        self, schema: Mapping[str, Any], where: str, opened: tuple[str, ...], *, nullable: bool
    ) -> Shape:
        members, others = schema.get("properties") or {}, schema.get("additionalProperties", True)
        if not members and isinstance(others, Mapping):
            return Shape("MAP", nullable, self.shape(others, pointer(where, "additionalProperties"), opened))
        if not isinstance(others, bool):
            _refuse(pointer(where, "additionalProperties"), "a schema next to properties")
        required, inside = schema.get("required", ()), pointer(where, "properties")
        for name in required:
            if name not in members:
                _refuse(pointer(where, "required"), f"{preview(name)}, which properties do not have")
        fields = (
            Member(name, self.shape(each, pointer(inside, name), opened), name in required)
            for name, each in members.items()
        )
        return struct(tuple(fields), inside, nullable=nullable, closed=not others)

    def _reference(self, schema: Mapping[str, Any], where: str, opened: tuple[str, ...]) -> Shape:
        self._check(schema, frozenset(("$ref",)), where)
        target, where = schema["$ref"], pointer(where, "$ref")
        if not isinstance(target, str) or not target.startswith("#"):
            _refuse(where, f"{preview(target)}, which is in another document")
        if target in opened:
            _refuse(where, f"{preview(target)}, which contains itself")
        found = self._root
        for name in target[1:].split("/")[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                _refuse(where, f"{preview(target)}, which does not exist")
            found = found[key]
        return self.shape(found, target[1:], (*opened, target))

    def _union(self, schema: Mapping[str, Any], keyword: str, where: str, opened: tuple[str, ...]) -> Shape:
        self._check(schema, frozenset((keyword,)), where)
        where, every = pointer(where, keyword), schema[keyword]
        if not isinstance(every, list):
            _refuse(where, preview(every))
        types = [each.get("type") if isinstance(each, Mapping) else None for each in every]
        kept = [n for n, type_ in enumerate(types) if type_ != "null"]
        nullable = len(kept) < len(every)
        if len(kept) == 2 and {str(types[n]) for n in kept} == _NUMBER_OR_TEXT:
            return Shape(BY_JSON["string", "decimal"], nullable)
        if len(kept) != 1:
            _refuse(where, f"{len(kept)} types for one value")
        shape = self.shape(every[kept[0]], pointer(where, kept[0]), opened)
        return msgspec.structs.replace(shape, nullable=nullable or shape.nullable)

    def _values(self, schema: Mapping[str, Any], where: str) -> Shape:
        self._check(schema, frozenset(("type", "enum", "const")), where)
        keyword = "enum" if "enum" in schema else "const"
        values = schema["enum"] if keyword == "enum" else [schema["const"]]
        texts = [value for value in values if value is not None]
        if not texts or not all(isinstance(text, str) and text.isprintable() for text in texts):
            _refuse(pointer(where, keyword), "values that are not all printable texts")
        return Shape("STRING", nullable=len(texts) < len(values), values=tuple(texts))

    @staticmethod
    def _check(schema: Mapping[str, Any], allowed: frozenset[str], where: str) -> None:
        for keyword in schema:
            if keyword not in allowed and keyword not in _ANNOTATIONS:
                _refuse(pointer(where, keyword), f"the keyword {keyword}, which no type expresses")
