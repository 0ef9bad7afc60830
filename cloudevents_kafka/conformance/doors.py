"""The doors by which an attribute comes into an event: each tries one value of one attribute.

A door gives what goes in: attributes for the constructor, or a record to be read. What no
writer would write is tried as well: see `wires`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from cloudevents_kafka.conformance.library import Case
from cloudevents_kafka.conformance.notation import as_value
from cloudevents_kafka.conformance.wires import avro, avro_compact, protobuf
from cloudevents_kafka.record import Headers, Record

MINIMUM: Final = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
Given = dict[str, Any] | Record
"""What goes in: attributes for the constructor, or a record."""


def attempts(case: Case) -> Iterator[tuple[str, Given]]:
    """Give every way in that a case goes by, named, with what goes in there."""
    if case.get("absent"):
        yield from _without(case["attribute"])
        return
    if "json" in case:
        yield "json", _from_json(case["attribute"], case["json"])
        return
    value = text_of(case["code_units"]) if "code_units" in case else as_value(case["value"])
    allowed = case.get("entry_points", DOORS)
    for door, (takes, make) in DOORS.items():
        if door in allowed and isinstance(value, takes):
            given = make(case["attribute"], value)
            if given is not None:
                yield door, given


def text_of(code_units: list[str]) -> str:
    """Make a text of UTF-16 code units; those that form no pair stay as they are."""
    return bytes.fromhex("".join(code_units)).decode("utf-16-be", "surrogatepass")


def _for_constructor(name: str, value: Any) -> Given:
    return {**MINIMUM, name: value}


def _from_headers(name: str, value: str) -> Given:
    headers = {_header(n): v for n, v in {**MINIMUM, name: value}.items()}
    pairs: Headers = [(header, text.encode("utf-8", "surrogatepass")) for header, text in headers.items()]
    return Record(headers=pairs)


def _header(name: str) -> str:
    return "content-type" if name == "datacontenttype" else f"ce_{name}"


def _from_value(name: str, value: Any) -> Given:
    return _from_json(name, json.dumps(value))


def _from_json(name: str, text: str) -> Given:
    members = {**{n: json.dumps(v) for n, v in MINIMUM.items()}, name: text}
    envelope = "{" + ",".join(f"{json.dumps(n)}:{v}" for n, v in members.items()) + "}"
    return _structured("json", envelope.encode())


def _from_avro(name: str, value: Any) -> Given:
    return _structured("avro", avro({**MINIMUM, name: value}))


def _from_protobuf(name: str, value: Any) -> Given | None:
    message = protobuf({**MINIMUM, name: value})
    return None if message is None else _structured("protobuf", message)


def _from_avro_compact(name: str, value: Any) -> Given | None:
    datum = avro_compact({**MINIMUM, name: value})
    return None if datum is None else _structured("avro-compact", datum)


def _structured(name: str, value: bytes) -> Record:
    content_type = f"application/cloudevents+{name}".encode()
    return Record(value=value, headers=[("content-type", content_type)])


DOORS: Final[dict[str, tuple[Any, Callable[[str, Any], Given | None]]]] = {
    "constructor": (object, _for_constructor),
    "headers": (str, _from_headers),
    "json": ((str, int, float, list, dict), _from_value),
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
    yield "json", _structured("json", json.dumps(rest).encode())
    yield "json, null", _from_json(name, "null")
    yield "avro", _structured("avro", avro(rest))
    yield "avro, null", _structured("avro", avro({**rest, name: None}))
    yield "protobuf", _structured("protobuf", protobuf(rest) or b"")
    if name not in MINIMUM:
        yield "avro-compact, null", _structured("avro-compact", avro_compact(rest) or b"")
