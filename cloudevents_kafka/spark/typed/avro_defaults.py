"""Encodes the default values of Avro fields, which schemas contain as JSON, to Avro bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from cloudevents_kafka.codecs.avro_binary import write_bytes
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.spark.typed.avro_checks import find_schema, kind_of

_BITS: Final = {"int": 32, "long": 64}
_FORMS: Final = {"float": "<f", "double": "<d", "boolean": "?"}


class NoDefault(ValueError):
    """The default value of a field does not fit the field's schema."""


def encode_default(schema: Any, default: Any, named: Mapping[str, Any]) -> bytes:
    """Return the bytes of a default value; raise `NoDefault` if the value does not fit its schema.

    The default value of a field of type bytes is a text with the characters U+0000 to U+00FF. The default
    value of a field whose type is a union may fit any branch of the union.
    """
    schema = find_schema(schema, named)
    if isinstance(schema, list):
        return _of_branch(schema, default, named)
    kind = kind_of(schema)
    if kind in _WRITERS:
        return _WRITERS[kind](schema, default, named)
    try:
        return _scalar(kind, schema, default)
    except (ValueError, OverflowError, struct.error):
        raise NoDefault(kind) from None


def _of_branch(branches: list[Any], default: Any, named: Mapping[str, Any]) -> bytes:
    for n, branch in enumerate(branches):
        try:
            return zigzag.encode(n) + encode_default(branch, default, named)
        except NoDefault:
            continue
    raise NoDefault("union")


def _of(value: Any, *types: type) -> Any:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise NoDefault(types[0].__name__)
    return value


def _record(schema: Any, default: Any, named: Mapping[str, Any]) -> bytes:
    values = _of(default, dict)
    found = []
    for field in schema["fields"]:
        if field["name"] not in values and "default" not in field:
            raise NoDefault(field["name"])
        found.append(encode_default(field["type"], values.get(field["name"], field.get("default")), named))
    return b"".join(found)


def _array(schema: Any, default: Any, named: Mapping[str, Any]) -> bytes:
    return _blocks([encode_default(schema["items"], each, named) for each in _of(default, list)])


def _map(schema: Any, default: Any, named: Mapping[str, Any]) -> bytes:
    return _blocks(
        [
            write_bytes(name.encode()) + encode_default(schema["values"], each, named)
            for name, each in _of(default, dict).items()
        ]
    )


def _blocks(items: list[bytes]) -> bytes:
    return zigzag.encode(len(items)) + b"".join(items) + b"\0" if items else b"\0"


_WRITERS: Final[dict[str, Callable[[Any, Any, Mapping[str, Any]], bytes]]] = {
    "record": _record,
    "error": _record,
    "array": _array,
    "map": _map,
}


def _scalar(kind: str, schema: Any, default: Any) -> bytes:
    if kind == "null":
        return bytes(_of(default, type(None)) or b"")
    if kind in _FORMS:
        types = (bool,) if kind == "boolean" else (int, float)
        return struct.pack(_FORMS[kind], _of(default, *types))
    if kind == "enum":
        return zigzag.encode(schema["symbols"].index(default))
    if kind in _BITS:
        half = 1 << _BITS[kind] - 1
        if not -half <= _of(default, int) < half:
            raise NoDefault(kind)
        return zigzag.encode(default)
    content: bytes = _of(default, str).encode("utf-8" if kind == "string" else "latin-1")
    if kind != "fixed":
        return write_bytes(content)
    if len(content) != schema["size"]:
        raise NoDefault(kind)
    return content
