"""Random events of the SDK, of the versions that are installed.

An event has attributes and data that a class of the SDK accepts, also those that break rules of CloudEvents.
`messages` are those that the SDK writes of it, in both modes, and `READERS` read one as the SDK and as here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any, NamedTuple

from cloudevents_kafka import sdk
from cloudevents_kafka.sdk import v1
from cloudevents_kafka.sdk._installed import HAS_VERSION_2, http
from cloudevents_kafka.sdk._installed import kafka as kafka1

if HAS_VERSION_2:
    from cloudevents.core.bindings import kafka as kafka2
    from cloudevents.core.v1.event import CloudEvent as CloudEvent2

TEXTS = (
    "a",
    "two words",
    "",
    "é",
    "日本",
    "a\nb",
    "\x00",
    "%zz",
    "\ufffe",
    '"q"',
    "17",
    "true",
    "{}",
    "None",
)
SOURCES = ("/shop", "a b", "not a uri%%", "urn:x:1", "<event-source", "é")
SCHEMAS = ("https://example.com/s", "schema.json", "#", "1.0", "a b")
TYPES = (
    *("application/json", "text/json", "application/vnd.a+json", "foo", "text/plain"),
    *(
        "APPLICATION/JSON",
        "image/x+json",
        "application/vnd.a_b+json",
        "json",
        "foo",
        "text/plain",
        "text/xml",
    ),
    *("application/json; charset=utf-8", "text/plain; charset=latin-1"),
    *("application/json; charset=utf-16", "application/xml", "image/png"),
    *("application/octet-stream", "application/avro", "a/b; c", " text/plain", ""),
)
TIMES = (
    *("2026-11-23T09:30:00Z", "2026-11-23T09:30:00.123456789+02:00", "2026-11-23T09:30:00", "now"),
    *("2026-11-23 09:30:00+00:00", "20261123T093000Z", "2026-11-23T09:30Z", "1576245885912", "", "24:00"),
    *("2026-11-23T09:30:00+0530", "2026-11-23T24:00:00Z", "2026-W48-1T09:30:00Z", "2016-12-31T23:59:60Z"),
)
NAMES = (
    *("ext", "x1", "traceparent", "partitionkey", "sequence", "expirytime", "sampledrate", "severitytext"),
    *("extension-key", "my_ext", "MyExt", "my.ext", "é", "a b", "dataref", "abc\n", "dssematerial"),
)
VALUES = (17, -1, 2**40, 2**70, 1.5, -0.0, 1e300, True, False, None, [1, "a"], {"a": {"b": 1}}, {}, [])
KEYS = ("k", "", b"k", b"", b"\xff", "a\x00", b"a\x00", "日本", b"\xc3\xa9")
DATA = (
    *(None, {}, {"a": 1}, [], [1, True, None], "", "hello", '{"a": 1}', "17", 17, 2**70, 1.5, True, False),
    *({"a": {"b": [1.5, "é"]}, "n": None}, {1: "a", 2.5: "b"}, {None: 1, True: 2}, "é\n\x00", 10**400),
    *(b"", b"\x00\xff", b'{"a":1}', b"hello", bytearray(b"ab"), memoryview(b"ab"), "\ud800", float("nan")),
    *(b"1e400", b"[NaN]", b'"\\ud800"', {"a": float("inf")}, {"time": datetime(2026, 1, 1, tzinfo=UTC)}),
)
MARSHALLERS: tuple[tuple[Any, Any], ...] = (
    (None, None),
    (lambda data: data, lambda data: [data]),
    (repr, lambda text: text),
    (lambda data: json.dumps(data).encode(), json.loads),
)


class Message(NamedTuple):
    """A message that a version of the SDK wrote, its mode, and the function for its data."""

    version: int
    mode: str
    message: Any
    unmarshaller: Any


def messages(random: Random) -> Iterator[Message]:
    """Yield the messages that the SDK writes of a random event."""
    version = random.choice((1, 2)) if HAS_VERSION_2 else 1
    with suppress(Exception):  # the SDK refuses some
        event = (_event1 if version == 1 else _event2)(random)
        key = random.choice(KEYS) if random.random() < 0.3 else None
        mapper = (lambda _: key) if key is not None else None
        marshal, unmarshal = random.choice(MARSHALLERS) if random.random() < 0.3 else (None, None)
        for mode in ("binary", "structured"):
            with suppress(Exception):
                if version == 2:
                    message = getattr(kafka2, f"to_{mode}_event")(event, key_mapper=mapper)
                    unmarshal = None
                else:
                    message = getattr(kafka1, f"to_{mode}")(event, marshal, key_mapper=mapper)
                # Version 1 returns a key and data of any type, which no client sends.
                if isinstance(message.key, str | bytes | None) and isinstance(message.value, bytes):
                    yield Message(version, mode, message, unmarshal)


def _event1(random: Random) -> Any:
    event = http.CloudEvent(_attributes(random, TIMES), random.choice(DATA))
    if random.random() < 0.3:
        del event[random.choice(("time", "time", "time", "id", "specversion"))]
    return event


def _event2(random: Random) -> Any:
    offset = timedelta(minutes=random.randrange(-800, 800), seconds=random.choice((0, 0, 0, 30)))
    time = datetime(
        2026, 11, 23, 9, 30, 0, random.choice((0, 123456)), random.choice((UTC, timezone(offset)))
    )
    event = CloudEvent2(_attributes(random, (time,)), random.choice(DATA))  # type: ignore[arg-type]
    if random.random() < 0.2:
        event.get_attributes().pop(random.choice(("time", "id")))
    return event


def _attributes(random: Random, times: tuple[Any, ...]) -> dict[str, Any]:
    """Return attributes, most of which are usual: an event with many deviations hides some."""
    often = random.random() < 0.5
    found: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed"}
    for name, values in (
        ("id", (*TEXTS, 17)),
        ("source", (*SOURCES, *TEXTS)),
        ("type", TEXTS),
        ("subject", TEXTS),
        ("dataschema", SCHEMAS),
        ("time", times),
    ):
        if random.random() < (0.1 if often else 0.3):
            found[name] = random.choice(values)
    if random.random() < 0.8:
        found["datacontenttype"] = random.choice(TYPES)
    for _ in range(random.randrange(3)):
        found[random.choice(NAMES)] = random.choice((*VALUES, *TEXTS, *map(repr, VALUES)))
    return found


Read = Callable[[Message], tuple[dict[str, Any], Any]]


def read1(functions: Any) -> Read:
    def read(written: Message) -> tuple[dict[str, Any], Any]:
        event = getattr(functions, f"from_{written.mode}")(written.message, None, written.unmarshaller)
        return dict(event.get_attributes()), event.get_data()

    return read


def read2(functions: Any, name: str) -> Read:
    def read(written: Message) -> tuple[dict[str, Any], Any]:
        suffix = written.mode if name == "mode" else name
        event = getattr(functions, f"from_{suffix}_event")(written.message)
        return dict(event.get_attributes()), event.get_data()

    return read


READERS: dict[str, tuple[Read, Read]] = {"version 1": (read1(kafka1), read1(v1))}
if HAS_VERSION_2:
    READERS["version 2"] = read2(kafka2, "mode"), read2(sdk, "mode")
    READERS["version 2, from_kafka"] = read2(kafka2, "kafka"), read2(sdk, "kafka")
