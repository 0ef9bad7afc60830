"""The doors by which attributes come into an event: each tries one value, or a whole event without data.

A door gives what goes in: attributes for the constructor, or a record to be read. What no
writer would write is tried as well: see `wires`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import CORE, INTEGER_RANGE, AttributeType, canonical_text
from cloudevents_kafka.conformance.dataset import Case
from cloudevents_kafka.conformance.notation import as_data, as_value
from cloudevents_kafka.conformance.raw_encoders import avro, avro_compact, protobuf
from cloudevents_kafka.record import Headers, Record

MINIMUM: Final = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
Given = dict[str, Any] | Record
"""What goes in: attributes for the constructor, or a record."""
_PLACES: Final = {
    "avro": {AttributeType.BINARY},
    "avro-compact": {AttributeType.BINARY, AttributeType.TIMESTAMP},
    "protobuf": {AttributeType.BINARY, AttributeType.TIMESTAMP},
}
"""Types that a format has a place for, other than that of texts."""
_JSON_S_OWN: Final = {AttributeType.BOOLEAN, AttributeType.INTEGER}


def attempts(case: Case) -> Iterator[tuple[str, Given]]:
    """Give every way in that a case of an attribute or an event goes by, named, with what goes in there."""
    if case["kind"] == "construct":
        yield from _of_event(case)
    elif case.get("absent"):
        yield from _without(case["attribute"])
    elif "json" in case:
        yield "json", _from_texts({**_spelled(MINIMUM), case["attribute"]: case["json"]})
    else:
        yield from _of_attribute(case)


def _of_attribute(case: Case) -> Iterator[tuple[str, Given]]:
    name, value = (
        case["attribute"],
        text_of(case["code_units"]) if "code_units" in case else as_value(case["value"]),
    )
    texts = {**MINIMUM, name: value}
    if isinstance(value, int) and type_of(name) in _JSON_S_OWN:  # who reads a header knows the type
        texts[name] = canonical_text(value)
    yield from _by_doors(case, {**MINIMUM, name: value}, texts)


def _of_event(case: Case) -> Iterator[tuple[str, Given]]:
    event = case["event"]
    attributes = {name: as_value(value) for name, value in event["attributes"].items()}
    if event["data"] is None:
        texts = {name: canonical_text(value) for name, value in attributes.items()}
        yield from _by_doors(case, attributes, texts)
    else:
        yield "constructor", {**attributes, "data": as_data(event["data"])}


def _by_doors(case: Case, attributes: dict[str, Any], texts: dict[str, Any]) -> Iterator[tuple[str, Given]]:
    allowed = set(case.get("entry_points", DOORS))
    if case["accepted"] and isinstance(attributes.get("time"), str):
        allowed -= {"protobuf"}  # there a time is no text, so texts can only be refused
    for door, (takes, make) in DOORS.items():
        given = texts if door == "headers" else attributes
        if door in allowed and all(isinstance(value, takes) for value in given.values()):
            made = make(given)
            if made is not None:
                yield door, made


def is_choice(case: Case, door: str) -> bool:
    """Tell whether the specification leaves open what comes of that case at a door.

    So it does where no writer writes such a thing: a text in a place for texts where the
    attribute's type has a place of its own, an integer too large for the format. And where
    one of four required headers is missing: that is a broken event, or no event at all.
    """
    if case.get("absent"):
        return door.startswith("headers") and case["attribute"] in MINIMUM
    if door not in _PLACES:
        return False
    given = (
        case["event"]["attributes"] if case["kind"] == "construct" else {case["attribute"]: case.get("value")}
    )
    return any(_is_misplaced(name, value, _PLACES[door]) for name, value in given.items())


def _is_misplaced(name: str, value: Any, places: set[AttributeType]) -> bool:
    if isinstance(value, str):
        return name not in CORE and type_of(name) in places
    return isinstance(value, int) and value not in INTEGER_RANGE


def text_of(code_units: list[str]) -> str:
    """Make a text of UTF-16 code units; those that form no pair stay as they are."""
    return bytes.fromhex("".join(code_units)).decode("utf-16-be", "surrogatepass")


def _for_constructor(attributes: dict[str, Any]) -> Given:
    return attributes


def _from_headers(attributes: dict[str, str]) -> Given:
    pairs: Headers = [
        (_header(name), text.encode("utf-8", "surrogatepass")) for name, text in attributes.items()
    ]
    return Record(headers=pairs)


def _header(name: str) -> str:
    return "content-type" if name == "datacontenttype" else f"ce_{name}"


def _from_json(attributes: dict[str, Any]) -> Given:
    return _from_texts(_spelled(attributes))


def _spelled(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in attributes.items()}


def _from_texts(members: Mapping[str, str]) -> Record:
    envelope = "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"
    return _structured("json", envelope.encode())


def _from_avro(attributes: dict[str, Any]) -> Given:
    return _structured("avro", avro(attributes))


def _from_protobuf(attributes: dict[str, Any]) -> Given | None:
    message = protobuf(attributes)
    return None if message is None else _structured("protobuf", message)


def _from_avro_compact(attributes: dict[str, Any]) -> Given | None:
    datum = avro_compact(attributes)
    return None if datum is None else _structured("avro-compact", datum)


def _structured(name: str, value: bytes) -> Record:
    content_type = f"application/cloudevents+{name}".encode()
    return Record(value=value, headers=[("content-type", content_type)])


DOORS: Final[dict[str, tuple[Any, Callable[[dict[str, Any]], Given | None]]]] = {
    "constructor": (object, _for_constructor),
    "headers": (str, _from_headers),
    "json": ((str, int, float, list, dict), _from_json),
    "avro": ((str, int, bytes), _from_avro),
    "avro-compact": ((str, int, bytes), _from_avro_compact),
    "protobuf": ((str, int, bytes), _from_protobuf),
}
"""The doors by name: the Python values one takes, and what makes of one what goes in; None if it cannot."""


def _without(name: str) -> Iterator[tuple[str, Given]]:
    rest: dict[str, Any] = {n: v for n, v in MINIMUM.items() if n != name}
    pairs: Headers = [(_header(n), v.encode()) for n, v in rest.items()]
    yield "constructor", {"specversion": None, **rest, name: None}
    yield "headers", Record(headers=pairs)
    yield "headers, null", Record(headers=[*pairs, (_header(name), None)])
    yield "json", _from_json(rest)
    yield "json, null", _from_json({**MINIMUM, name: None})
    yield "avro", _structured("avro", avro(rest))
    yield "avro, null", _structured("avro", avro({**rest, name: None}))
    yield "protobuf", _structured("protobuf", protobuf(rest) or b"")
    if name not in MINIMUM:
        yield "avro-compact, null", _structured("avro-compact", avro_compact(rest) or b"")
