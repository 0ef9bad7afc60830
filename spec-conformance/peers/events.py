"""Seeded events of all kinds that the specification allows, and the features of each."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from cloudevents_kafka import Event
from cloudevents_kafka.attributes.types import canonical_text
from cloudevents_kafka.record import Headers

Attribute = tuple[str, str, Any]
"""Name, type and value; a value is text, or the Python value of a Boolean, Integer or Binary."""

_WORDS: Final = (
    "a", "order-17", "Hello World", "grüße", "日本語", "😀 ok", "a%20b", 'say "hi"', "back\\slash", "true",
    "5", "null", "{}", "it's", "x=1;y=2", "ﬀ\u200d", " blank ", "=?utf-8?q?x?=",
)  # fmt: skip
_SOURCES: Final = (
    "/s",
    "#fragment",
    "//authority/path",
    "1-555-123-4567",
    "urn:uuid:6e8bc430",
    "https://a.example/p?q=%20#f",
)
_SCHEMAS: Final = (
    "https://a.example/schema",
    "urn:x:y",
    "mailto:a@b.example",
    "https://a.example/s#part",
    "https://a.example",
)
_ZONES: Final = ("Z", "Z", "Z", "z", "+00:00", "-00:00", "+05:30", "-11:00")
_JSON_TYPES: Final[dict[str | None, str]] = {
    "application/json": "plain",
    "application/json; charset=utf-8": "charset",
    "application/vnd.x+json": "suffix",
    "text/json": "text",
    "Application/JSON": "case",
    None: "none",
}
_TEXT_TYPES: Final[dict[str | None, str]] = {
    "text/plain": "plain",
    "text/plain; charset=utf-8": "charset",
    "application/xml": "application-xml",
    "text/xml": "xml",
    "TEXT/csv;header=present": "case",
}
_BYTES_TYPES: Final = ("application/octet-stream", "image/png", "application/avro", None)
_TRACEPARENT: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_TYPES: Final = ("String", "String", "Boolean", "Integer", "Binary", "URI", "URI-reference", "Timestamp")


@dataclass(frozen=True)
class Sample:
    """The parts of an event, the user's key and headers, and their features.

    ``kind`` is how the data is passed to a writer: "json" (a value), "text", "bytes", or "none".
    """

    attributes: tuple[Attribute, ...]
    kind: str
    payload: bytes | None
    key: bytes | None
    headers: Headers
    features: frozenset[str] = field(repr=False)

    @property
    def everyday(self) -> bool:
        """Whether the event is an everyday one: a JSON object, a time in UTC, nothing unusual."""
        return "everyday" in self.features

    def text(self, name: str) -> str | None:
        """Return the canonical text of an attribute, or None."""
        return next((canonical_text(value) for other, _, value in self.attributes if other == name), None)

    def event(self) -> Event:
        """Return the event of this library."""
        data: Any = self.payload
        if self.kind == "json":
            data = msgspec.Raw(self.payload or b"")
        elif self.kind == "text":
            data = (self.payload or b"").decode()
        return Event(data=data, **{name: value for name, _, value in self.attributes})

    def notation(self) -> dict[str, Any]:
        """Return the event in the notation of the line protocol."""
        data = None if self.payload is None else {"kind": self.kind, "hex": self.payload.hex()}
        return {
            "attributes": [[name, kind, canonical_text(value)] for name, kind, value in self.attributes],
            "data": data,
        }


def samples(seed: int, count: int) -> Iterator[Sample]:
    """Yield events, always the same ones for a seed."""
    for number in range(count):
        generator = _Generator(random.Random(f"{seed}/{number}"), number)
        yield generator.sample() if number % 8 else generator.everyday()


class _Generator:
    """Generates one event and collects its features."""

    def __init__(self, chance: random.Random, number: int) -> None:
        self._chance = chance
        self._number = number
        self._features: set[str] = set()

    def sample(self) -> Sample:
        attributes = [*self._core(), *self._extensions()]
        kind, payload, content_type = self._data()
        if content_type is not None:
            attributes.append(("datacontenttype", "String", content_type))
        self._chance.shuffle(attributes)
        key, headers = self._key(), self._headers()
        return Sample(tuple(attributes), kind, payload, key, headers, frozenset(self._features))

    def everyday(self) -> Sample:
        """Return an everyday event; the user's key is text or None."""
        chance = self._chance
        attributes: list[Attribute] = [
            ("specversion", "String", "1.0"),
            ("id", "String", f"A234-{self._number}"),
            ("source", "URI-reference", "/shop/orders"),
            ("type", "String", "com.example.order.placed"),
            (
                "time",
                "Timestamp",
                f"2018-04-05T17:{chance.randrange(60):02}:00.{chance.randrange(100, 999)}Z",
            ),
            ("subject", "String", f"order-{self._number}"),
            ("datacontenttype", "String", "application/json"),
        ]
        if self._maybe(0.3):
            attributes.append(("traceparent", "String", _TRACEPARENT))
        kind, key = chance.choice(("json", "bytes")), chance.choice((None, b"customer-4"))
        payload = f'{{"order":{self._number},"total":"9.50","paid":true}}'.encode()
        self._note("everyday", "id", "type", "time", "subject", "ct:json", "json-type:plain", "json")
        self._note("json:object", f"data:{kind}", *(["data:utf8"] if kind == "bytes" else []))
        self._note(*(["key"] if key else []))
        return Sample(tuple(attributes), kind, payload, key, [], frozenset(self._features))

    def _word(self) -> str:
        return self._chance.choice(_WORDS)

    def _maybe(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _note(self, *features: str) -> None:
        self._features.update(features)

    def _core(self) -> Iterator[Attribute]:
        yield "specversion", "String", "1.0"
        yield "id", "String", self._noted("id", f"{self._number} {self._word()}")
        source = self._chance.choice(_SOURCES)
        yield "source", "URI-reference", source
        yield "type", "String", self._noted("type", self._chance.choice(("com.example.type", self._word())))
        if self._maybe(0.5):
            yield "subject", "String", self._noted("subject", self._word())
        if self._maybe(0.6):
            yield "time", "Timestamp", self._time("time")
        if self._maybe(0.3):
            schema = self._chance.choice(_SCHEMAS)
            self._note("dataschema", *(["dataschema:no-path"] if schema == "https://a.example" else []))
            yield "dataschema", "URI", schema

    def _noted(self, name: str, text: str) -> str:
        self._note(name, *([f"{name}:blanks"] if text != text.strip() else []))
        return text

    def _time(self, feature: str) -> str:
        chance = self._chance
        digits = chance.choice((0, 0, 0, 1, 3, 3, 6, 6, 9))
        fraction = "".join(["." if digits else "", *(chance.choice("123456789") for _ in range(digits))])
        clock = f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"
        future = self._maybe(0.2)
        year = chance.randrange(2100, 2300) if future else chance.randrange(1990, 2020)
        day = f"{year}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
        zone = chance.choice(_ZONES)
        if self._maybe(0.02):
            day, clock, zone = "2016-12-31", "23:59:60", "Z"
            self._note(f"{feature}:leap")
        elif future:
            self._note(f"{feature}:future")
        self._note(feature, f"{feature}:digits={digits}")
        if digits > 3:
            self._note(f"{feature}:finer-than-ms")
        if digits > 6:
            self._note(f"{feature}:finer-than-us")
        if zone == "z":
            self._note(f"{feature}:lower-case")
        if zone not in ("Z", "z"):
            self._note(f"{feature}:offset")
        return f"{day}T{clock}{fraction}{zone}"

    def _extensions(self) -> Iterator[Attribute]:
        if self._maybe(0.2):
            key = self._word()
            self._note("partitionkey")
            yield "partitionkey", "String", key
        if self._maybe(0.1):
            yield "traceparent", "String", _TRACEPARENT
        if self._maybe(0.1):
            self._note("ext", "ext:Integer")
            yield "sampledrate", "Integer", self._chance.randrange(1, 100)
        names = ("x", "ext1", "9lives", "comexampleextension1", "aratherlongextensionname42", "zone")
        for name in self._chance.sample(names, self._chance.choice((0, 0, 1, 1, 2, 3))):
            kind = self._chance.choice(_TYPES)
            self._note("ext", f"ext:{kind}")
            yield name, kind, self._extension(kind)

    def _extension(self, kind: str) -> Any:
        chance = self._chance
        if kind == "Boolean":
            return self._maybe(0.5)
        if kind == "Integer":
            return chance.choice((0, -1, 10, 2**31 - 1, -(2**31)))
        if kind == "Binary":
            return chance.choice((b"\xff", b"\xe0\xff\x00D\xaa", b"\x00\x9f\x92\x96"))
        if kind == "Timestamp":
            return self._time("ext:time")
        if kind == "String" and self._maybe(0.05):
            self._note("ext:empty")
            return ""
        return chance.choice({"URI": _SCHEMAS, "URI-reference": _SOURCES}.get(kind, _WORDS))

    def _key(self) -> bytes | None:
        key = self._chance.choice(
            (None, None, b"customer-4", "schlüssel".encode(), b"\xff\xfe\x00", b"\x00\x00\x00\x2a", b"")
        )
        if key is None:
            return None
        self._note(
            "key", *(["key:empty"] if key == b"" else []), *(["key:not-utf8"] if b"\xff" in key else [])
        )
        return key

    def _headers(self) -> Headers:
        """Return foreign headers, as tracing and other tools add them."""
        if not self._maybe(0.15):
            return []
        kind, value = self._chance.choice((("text", b"00-0a-0b-01"), ("bytes", b"\xff\xfe"), ("null", None)))
        self._note("header", f"header:{kind}")
        return [("trace", value)]

    # --- data ---

    def _data(self) -> tuple[str, bytes | None, str | None]:
        generators = (self._no_data, self._json, self._json, self._json_bytes, self._text, self._bytes)
        kind, payload, content_type = self._chance.choice(generators)()
        self._note(f"data:{kind}", *_kinds_of(content_type))
        if payload == b"":
            self._note("data:empty")
        if kind == "bytes" and payload is not None and _is_utf8(payload):
            self._note("data:utf8")
        return kind, payload, content_type

    def _no_data(self) -> tuple[str, None, str | None]:
        return "none", None, self._chance.choice((None, None, *_JSON_TYPES, *_TEXT_TYPES, *_BYTES_TYPES))

    def _json(self) -> tuple[str, bytes, str | None]:
        value = self._value()
        self._note("json", f"json:{_json_kind(value)}")
        content_type = self._chance.choice(list(_JSON_TYPES))
        text = json.dumps(value, ensure_ascii=self._maybe(0.3), separators=(",", ":"))
        return "json", text.encode(), content_type

    def _json_bytes(self) -> tuple[str, bytes, str | None]:
        value = self._value()
        self._note("json", f"json:{_json_kind(value)}")
        content_type = self._chance.choice([known for known in _JSON_TYPES if known])
        text = json.dumps(value, ensure_ascii=False, indent=self._chance.choice((None, 1)))
        return "bytes", text.encode(), content_type

    def _value(self) -> Any:
        chance = self._chance
        return chance.choice((
            {"a": 1, "b": [True, None, 1.5], "ü": "😀"}, {"nested": {"x": [[], {}]}}, {"data": "x", "id": 7},
            {}, [1, "two", None], [], "hello", "", '{"a":1}', "123", 0, -17, 2**53 + 1, 1.5, 1e21, True,
            False, None,
        ))  # fmt: skip

    def _text(self) -> tuple[str, bytes, str | None]:
        text = self._chance.choice((*_WORDS, "<much wow='xml'/>", "two\nlines", ""))
        return self._chance.choice(("text", "bytes")), text.encode(), self._chance.choice(list(_TEXT_TYPES))

    def _bytes(self) -> tuple[str, bytes, str | None]:
        payload = self._chance.choice(
            (b"\x00\xff\xfe", b"\x89PNG\r\n", b"plain", b"123", b"true", b"", b'{"a":1}', b"\xc3\x28")
        )
        if _is_json(payload):
            self._note("data:looks-like-json")
        return "bytes", payload, self._chance.choice(_BYTES_TYPES)


def _kinds_of(content_type: str | None) -> tuple[str, ...]:
    """Return the features of a content type: its kind and its spelling."""
    if content_type is None:
        return ("ct:none",)
    for kind, known in (("json", _JSON_TYPES), ("text", _TEXT_TYPES)):
        if content_type in known:
            return f"ct:{kind}", f"{kind}-type:{known[content_type]}"
    return ("ct:bytes",)


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and abs(value) > 2**53:
        return "big-integer"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number", type(None): "null"}
    return ("empty-" if value in ({}, []) else "") + names[type(value)]


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_json(payload: bytes) -> bool:
    try:
        json.loads(payload)
    except ValueError:
        return False
    return True
