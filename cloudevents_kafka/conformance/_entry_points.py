"""The entry points by which attributes come into an event: the constructor, headers and event formats.

An entry point turns the attributes of a case into its input: arguments of the constructor,
or a record to read. `_raw_encoders` writes the values, so that a case can use values which
no writer writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import CORE, INTEGER_RANGE, AttributeType, canonical_text
from cloudevents_kafka.conformance._raw_encoders import avro, avro_compact, protobuf
from cloudevents_kafka.conformance._vectors import AttributeCase, ConstructCase
from cloudevents_kafka.conformance.notation import as_data, as_value
from cloudevents_kafka.record import Headers, Record

EntryCase = AttributeCase | ConstructCase
Input = dict[str, Any] | Record
"""The input of an entry point: arguments of the constructor, or a record."""

MINIMUM: Final = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
_TYPES_WITH_FIELDS: Final = {
    "avro": {AttributeType.BINARY},
    "avro-compact": {AttributeType.BINARY, AttributeType.TIMESTAMP},
    "protobuf": {AttributeType.BINARY, AttributeType.TIMESTAMP},
}
"""Types that have a field of their own in a format, so that they are not written as text."""
_JSON_TYPES: Final = {AttributeType.BOOLEAN, AttributeType.INTEGER}


def inputs(case: EntryCase) -> Iterator[tuple[str, Input]]:
    """Yield the name of every entry point that can express a case, with its input."""
    if isinstance(case, ConstructCase):
        yield from _event_inputs(case)
    elif case.absent:
        yield from _inputs_without(case.attribute)
    elif case.json is not None:
        yield "json", _json_record({**_json_texts(MINIMUM), case.attribute: case.json})
    else:
        yield from _attribute_inputs(case)


def _attribute_inputs(case: AttributeCase) -> Iterator[tuple[str, Input]]:
    name = case.attribute
    value = as_value(case.value) if case.code_units is None else text_of(case.code_units)
    texts = {**MINIMUM, name: value}
    if isinstance(value, int) and type_of(name) in _JSON_TYPES:  # a reader of headers converts by type
        texts[name] = canonical_text(value)
    allowed = set(case.entry_points or ENTRY_POINTS)
    yield from _by_entry_point(allowed, {**MINIMUM, name: value}, texts, accepted=case.accepted)


def _event_inputs(case: ConstructCase) -> Iterator[tuple[str, Input]]:
    attributes = {name: as_value(value) for name, value in case.event.attributes.items()}
    if case.event.data is None:
        texts = {name: canonical_text(value) for name, value in attributes.items()}
        yield from _by_entry_point(set(ENTRY_POINTS), attributes, texts, accepted=case.accepted)
    else:
        yield "constructor", {**attributes, "data": as_data(case.event.data)}


def _by_entry_point(
    allowed: set[Any], attributes: dict[str, Any], texts: dict[str, Any], *, accepted: bool
) -> Iterator[tuple[str, Input]]:
    if accepted and isinstance(attributes.get("time"), str):
        allowed -= {"protobuf"}  # P-02: a time is a timestamp there, and a text must be refused
    for name, (accepted_types, encode) in ENTRY_POINTS.items():
        values = texts if name == "headers" else attributes
        if name in allowed and all(isinstance(value, accepted_types) for value in values.values()):
            encoded = encode(values)
            if encoded is not None:
                yield name, encoded


def is_choice(case: EntryCase, entry_point: str) -> bool:
    """Return whether the specification leaves open the outcome of a case at an entry point.

    It does if no writer produces such a value: a text in place of a type that has a field of
    its own, or an integer that is too large for the format. It also does if a required header
    is missing, whose outcome is a broken event or no event.
    """
    if isinstance(case, AttributeCase) and case.absent:
        return entry_point.startswith("headers") and case.attribute in MINIMUM
    if entry_point not in _TYPES_WITH_FIELDS:
        return False
    values = case.event.attributes if isinstance(case, ConstructCase) else {case.attribute: case.value}
    return any(_is_misplaced(name, value, _TYPES_WITH_FIELDS[entry_point]) for name, value in values.items())


def _is_misplaced(name: str, value: Any, types: set[AttributeType]) -> bool:
    if isinstance(value, str):
        return name not in CORE and type_of(name) in types
    return isinstance(value, int) and value not in INTEGER_RANGE


def text_of(code_units: list[str]) -> str:
    """Return the text of UTF-16 code units; surrogates without a pair are kept."""
    return bytes.fromhex("".join(code_units)).decode("utf-16-be", "surrogatepass")


def _constructor_input(attributes: dict[str, Any]) -> Input:
    return attributes


def _headers_record(attributes: dict[str, str]) -> Input:
    pairs: Headers = [
        (_header_name(name), text.encode("utf-8", "surrogatepass")) for name, text in attributes.items()
    ]
    return Record(headers=pairs)


def _header_name(name: str) -> str:
    return "content-type" if name == "datacontenttype" else f"ce_{name}"


def _json_input(attributes: dict[str, Any]) -> Input:
    return _json_record(_json_texts(attributes))


def _json_texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in attributes.items()}


def _json_record(members: Mapping[str, str]) -> Record:
    envelope = "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"
    return _structured_record("json", envelope.encode())


def _avro_record(attributes: dict[str, Any]) -> Input:
    return _structured_record("avro", avro(attributes))


def _protobuf_record(attributes: dict[str, Any]) -> Input | None:
    message = protobuf(attributes)
    return None if message is None else _structured_record("protobuf", message)


def _avro_compact_record(attributes: dict[str, Any]) -> Input | None:
    datum = avro_compact(attributes)
    return None if datum is None else _structured_record("avro-compact", datum)


def _structured_record(name: str, value: bytes) -> Record:
    content_type = f"application/cloudevents+{name}".encode()
    return Record(value=value, headers=[("content-type", content_type)])


ENTRY_POINTS: Final[dict[str, tuple[Any, Callable[[dict[str, Any]], Input | None]]]] = {
    "constructor": (object, _constructor_input),
    "headers": (str, _headers_record),
    "json": ((str, int, float, list, dict), _json_input),
    "avro": ((str, int, bytes), _avro_record),
    "avro-compact": ((str, int, bytes), _avro_compact_record),
    "protobuf": ((str, int, bytes), _protobuf_record),
}
"""For each entry point the types of its values and a function that returns its input, or None."""


def _inputs_without(name: str) -> Iterator[tuple[str, Input]]:
    rest: dict[str, Any] = {n: v for n, v in MINIMUM.items() if n != name}
    pairs: Headers = [(_header_name(n), v.encode()) for n, v in rest.items()]
    yield "constructor", {"specversion": None, **rest, name: None}
    yield "headers", Record(headers=pairs)
    yield "headers, null", Record(headers=[*pairs, (_header_name(name), None)])
    yield "json", _json_input(rest)
    yield "json, null", _json_input({**MINIMUM, name: None})
    yield "avro", _structured_record("avro", avro(rest))
    yield "avro, null", _structured_record("avro", avro({**rest, name: None}))
    yield "protobuf", _structured_record("protobuf", protobuf(rest) or b"")
    if name not in MINIMUM:
        yield "avro-compact, null", _structured_record("avro-compact", avro_compact(rest) or b"")
