"""Schemas and payloads of JSON and Avro at random, right and wrong, and what Python reads of them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import fastavro
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from cloudevents_kafka.spark.typed.shape import Shape

NAMES = ("id", "total", "größe", "a b", "x.y", "nested", "items")
EVERY_TYPE = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "flag": {"type": "boolean"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "price": {"anyOf": [{"type": "number"}, {"type": "string"}]},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "raw": {"type": "string", "contentEncoding": "base64"},
        "list": {"type": "array", "items": {"type": ["integer", "null"]}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "kind": {"enum": ["new", "used"]},
        "nested": {
            "type": ["object", "null"],
            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
    "required": ["text", "count", "nested"],
}
_TEXTS = st.one_of(st.sampled_from(["", "a", 'q"\\', "ä€😀", "\u0000\n"]), st.text(max_size=8))
_INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))
_FIRST, _LAST = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001  # they have no offset yet
_TIMES = st.datetimes(_FIRST, _LAST).map(
    lambda time: time.replace(tzinfo=timezone(timedelta(hours=time.minute % 14 - 6))).isoformat()
)
_BAD = st.sampled_from(
    [
        "x",
        1,
        1.5,
        True,
        None,
        [],
        {},
        [1],
        {"name": 1},
        2**63,
        10**30,
        "2024-13-01",
        "2024-01-01T00:00:00",
        "QQ",
    ]
)


def values(schema: dict[str, Any]) -> SearchStrategy[Any]:
    """Return values that a JSON Schema of `EVERY_TYPE`'s kind allows."""
    if "anyOf" in schema:
        return st.decimals(-(10**6), 10**6, places=2).map(str)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_of_kind(kind, schema) for kind in kinds])


def _of_kind(kind: str, schema: dict[str, Any]) -> SearchStrategy[Any]:
    if kind == "object" and "properties" in schema:
        required = schema.get("required", ())
        members = {name: values(each) for name, each in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: each for name, each in members.items() if name in required},
            optional={name: each for name, each in members.items() if name not in required},
        )
    if kind == "object":
        return st.dictionaries(_TEXTS, values(schema["additionalProperties"]), max_size=3)
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=3)
    if kind == "string":
        form = schema.get("contentEncoding", schema.get("format"))
        texts = {
            "date-time": _TIMES,
            "date": st.dates().map(date.isoformat),
            "base64": st.binary(max_size=6).map(lambda raw: base64.b64encode(raw).decode()),
        }
        return texts.get(form, _TEXTS)
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "integer": _INTEGERS,
        "number": st.floats(allow_nan=False, allow_infinity=False) | _INTEGERS,
    }[kind]


@st.composite
def json_payloads(draw: DrawFn, schema: dict[str, Any]) -> bytes:
    """Return payloads of which about half do not fit, in many ways."""
    value = draw(values(schema))
    change = draw(st.integers(0, 9))
    if change in {1, 2} and value:  # another value somewhere
        value[draw(st.sampled_from(sorted(value)))] = draw(_BAD)
    elif change == 3 and value.get("nested"):
        value["nested"][draw(st.sampled_from(["name", "size", "more"]))] = draw(_BAD)
    elif change == 4:
        value.pop(draw(st.sampled_from(sorted(value))))
    elif change == 5:
        value["extra"] = draw(_BAD)
    pairs = list(value.items())
    if change == 6:
        pairs.append(draw(st.sampled_from(pairs)))
    spaces = draw(st.sampled_from(["", " ", "\n\t"]))
    text = f",{spaces}".join(
        f"{json.dumps(name)}{spaces}:{json.dumps(each, ensure_ascii=draw(st.booleans()))}"
        for name, each in pairs
    )
    payload = f"{spaces}{{{spaces}{text}}}{spaces}".encode()
    if change == 7:
        payload += draw(st.sampled_from([b"x", b"{}", b",", b"}", b"\x00", b" \n"]))
    elif change == 8:
        payload = payload[: draw(st.integers(0, len(payload)))]
    elif change == 9:
        at = draw(st.integers(0, len(payload) - 1))
        payload = payload[:at] + draw(st.sampled_from([b"\xff", b"1", b'"', b"\\", b"0"])) + payload[at:]
    return payload


def expected(shape: Shape, value: Any) -> Any:
    """Return what a value of `json.loads` is in Spark, as PySpark collects it, with times as instants."""
    if value is None:
        return None
    if shape.spark == "STRUCT":
        return {member.name: expected(member.shape, value.get(member.name)) for member in shape.members}
    if shape.item is not None:
        if shape.spark == "ARRAY":
            return [expected(shape.item, each) for each in value]
        return {name: expected(shape.item, each) for name, each in value.items()}
    return _CONVERTED.get(shape.spark.partition("(")[0], lambda text: text)(value)


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "BIGINT": int,
    "DOUBLE": float,
    "DECIMAL": float,
    "TIMESTAMP": lambda text: datetime.fromisoformat(text).astimezone(UTC),
    "DATE": date.fromisoformat,
    "BINARY": base64.b64decode,
}


# --- Avro -----------------------------------------------------------------------

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "text", "type": "string"},
        {"name": "count", "type": "long"},
        {"name": "flag", "type": "boolean"},
        {"name": "share", "type": "double"},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "USED"]}},
        {"name": "raw", "type": "bytes"},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "list", "type": {"type": "array", "items": "int"}},
        {"name": "map", "type": {"type": "map", "values": "long"}},
        {
            "name": "nested",
            "type": {"type": "record", "name": "Nested", "fields": [{"name": "name", "type": "string"}]},
        },
    ],
}
PARSED = fastavro.parse_schema(AVRO)
_DATA = st.fixed_dictionaries(
    {
        "text": _TEXTS,
        "count": _INTEGERS,
        "flag": st.booleans(),
        "share": st.floats(allow_nan=False),
        "maybe": st.none() | _TEXTS,
        "kind": st.sampled_from(["NEW", "USED"]),
        "raw": st.binary(max_size=5),
        "four": st.binary(min_size=4, max_size=4),
        "list": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4),
        "map": st.dictionaries(st.sampled_from(["a", "b", "ü"]), _INTEGERS, max_size=2),
        "nested": st.fixed_dictionaries({"name": _TEXTS}),
    }
)


def avro_of(value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED, value)
    return out.getvalue()


@st.composite
def avro_payloads(draw: DrawFn) -> bytes:
    """Return data of `AVRO` of which about half do not fit."""
    payload = avro_of(draw(_DATA))
    change = draw(st.integers(0, 6))
    at = draw(st.integers(0, len(payload) - 1))
    if change == 1:
        return payload[:at]
    if change == 2:
        return payload + draw(st.binary(min_size=1, max_size=3))
    if change in {3, 4}:
        return payload[:at] + draw(st.binary(min_size=1, max_size=1)) + payload[at + 1 :]
    return payload


def read_avro(payload: bytes) -> Any:
    """Return the datum of a payload by fastavro; raise an error for other bytes, and for more."""
    stream = io.BytesIO(payload)
    value = fastavro.schemaless_reader(stream, PARSED, None)
    if stream.read(1):
        raise ValueError("bytes follow the datum")
    return value
