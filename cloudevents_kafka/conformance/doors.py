"""The doors by which an attribute comes into an event: each tries one value of one attribute.

What no writer would write is tried as well: see `wires`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from cloudevents_kafka.conformance.library import Case
from cloudevents_kafka.conformance.notation import as_value
from cloudevents_kafka.conformance.wires import avro, avro_compact, protobuf
from cloudevents_kafka.convert import from_record
from cloudevents_kafka.errors import InvalidEvent, NotAnEvent, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record

MINIMUM: Final = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
Attempt = Callable[[], Event]


def attempts(case: Case) -> Iterator[tuple[str, Attempt]]:
    """Give every way in that a case goes by, named; calling one gives an event or raises."""
    if case.get("absent"):
        yield from _without(case["attribute"])
        return
    if "json" in case:
        yield "json", _from_json(case["attribute"], case["json"])
        return
    value = text_of(case["code_units"]) if "code_units" in case else as_value(case["value"])
    allowed = case.get("entry_points", DOORS)
    for door, (takes, enter) in DOORS.items():
        if door not in allowed or not isinstance(value, takes):
            continue
        attempt = enter(case["attribute"], value)
        if attempt is not None:
            yield door, attempt


def text_of(code_units: list[str]) -> str:
    """Make a text of UTF-16 code units; those that form no pair stay as they are."""
    return bytes.fromhex("".join(code_units)).decode("utf-16-be", "surrogatepass")


def _construct(name: str, value: Any) -> Attempt:
    return lambda: Event(**{**MINIMUM, name: value})


def _from_headers(name: str, value: str) -> Attempt:
    headers = {_header(n): v for n, v in {**MINIMUM, name: value}.items()}
    pairs: Headers = [(header, text.encode("utf-8", "surrogatepass")) for header, text in headers.items()]
    return lambda: from_record(Record(headers=pairs))


def _header(name: str) -> str:
    return "content-type" if name == "datacontenttype" else f"ce_{name}"


def _from_value(name: str, value: Any) -> Attempt:
    return _from_json(name, json.dumps(value))


def _from_json(name: str, text: str) -> Attempt:
    members = {**{n: json.dumps(v) for n, v in MINIMUM.items()}, name: text}
    envelope = "{" + ",".join(f"{json.dumps(n)}:{v}" for n, v in members.items()) + "}"
    return _structured("json", envelope.encode())


def _from_avro(name: str, value: Any) -> Attempt:
    return _structured("avro", avro({**MINIMUM, name: value}))


def _from_protobuf(name: str, value: Any) -> Attempt | None:
    message = protobuf({**MINIMUM, name: value})
    return None if message is None else _structured("protobuf", message)


def _from_avro_compact(name: str, value: Any) -> Attempt | None:
    datum = avro_compact({**MINIMUM, name: value})
    return None if datum is None else _structured("avro-compact", datum)


def _structured(name: str, value: bytes) -> Attempt:
    headers: Headers = [("content-type", f"application/cloudevents+{name}".encode())]
    return lambda: from_record(Record(value=value, headers=headers))


DOORS: Final[dict[str, tuple[Any, Callable[[str, Any], Attempt | None]]]] = {
    "constructor": (object, _construct),
    "headers": (str, _from_headers),
    "json": ((str, int, float, list, dict), _from_value),
    "avro": ((str, int, bytes), _from_avro),
    "avro-compact": ((str, int, bytes), _from_avro_compact),
    "protobuf": ((str, int, bytes), _from_protobuf),
}
"""The doors by name: what Python values one takes, and what makes the attempt; None if it cannot be said."""


def _without(name: str) -> Iterator[tuple[str, Attempt]]:
    rest: dict[str, Any] = {n: v for n, v in MINIMUM.items() if n != name}
    pairs: Headers = [(_header(n), v.encode()) for n, v in rest.items()]
    # Here the door has its own word for it: without a required header a record is no event.
    yield "constructor", lambda: Event(**{"specversion": None, **rest, name: None})
    yield "headers", _refusing_as_broken(lambda: from_record(Record(headers=pairs)), name)
    yield (
        "headers, null",
        _refusing_as_broken(lambda: from_record(Record(headers=[*pairs, (_header(name), None)])), name),
    )
    yield "json", _structured("json", json.dumps(rest).encode())
    yield "json, null", _from_json(name, "null")
    yield "avro", _structured("avro", avro(rest))
    yield "avro, null", _structured("avro", avro({**rest, name: None}))
    yield "protobuf", _structured("protobuf", protobuf(rest) or b"")
    if name not in MINIMUM:
        yield "avro-compact, null", _structured("avro-compact", avro_compact(rest) or b"")


def _refusing_as_broken(attempt: Attempt, name: str) -> Attempt:
    def enter() -> Event:
        try:
            return attempt()
        except NotAnEvent as error:
            if name not in MINIMUM:
                raise
            raise InvalidEvent([Problem(name, "is required", "R-01")]) from error

    return enter
