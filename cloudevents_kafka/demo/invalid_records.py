"""What else is found on a topic: records that are no events, and events that break rules.

Each kind has the verdict that it must get, so that the demo knows what to expect.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from cloudevents_kafka.record import Headers, Record

_GOOD: Final[dict[str, bytes]] = {
    "ce_specversion": b"1.0",
    "ce_id": b"stray",
    "ce_source": b"/shop/old",
    "ce_type": b"com.example.shop.order.placed",
    "content-type": b"application/json",
}
_DATA: Final = b'{"order": "2026-999999"}'
_JSON: Final = b"application/cloudevents+json"
_ENVELOPE: Final = (
    b'{"specversion": "1.0", "id": "stray", "source": "/shop/old", "type": "com.example.shop.x"'
)


class Stray(msgspec.Struct, frozen=True):
    """A kind of record that is not to become an event: its name, its verdict, and how it is made."""

    name: str
    verdict: str
    make: Callable[[Random], Record]


def _binary(value: bytes | None = _DATA, **changed: bytes | None) -> Callable[[Random], Record]:
    headers: Headers = [(name, text) for name, text in {**_GOOD, **changed}.items() if text is not None]
    return lambda _: Record(key=b"2026-999999", value=value, headers=headers)


def _structured(value: bytes | None, content_type: bytes = _JSON) -> Callable[[Random], Record]:
    return lambda _: Record(value=value, headers=[("content-type", content_type)])


def _plain(value: bytes | None, headers: Headers, key: bytes | None = None) -> Callable[[Random], Record]:
    return lambda _: Record(key=key, value=value, headers=headers)


def _noise(random: Random) -> Record:
    return Record(key=random.randbytes(4), value=random.randbytes(random.randint(1, 64)), headers=[])


STRAYS: Final = (
    Stray("tombstone", "not-an-event", _plain(None, [], b"2026-000001")),
    Stray("plain JSON of another service", "not-an-event", _plain(b'{"sku": 7, "type": "x"}', [])),
    Stray(
        "record with headers of its own",
        "not-an-event",
        _plain(b"<order/>", [("content-type", b"text/xml"), ("traceparent", b"00-0-0-00"), ("empty", None)]),
    ),
    Stray("random bytes", "not-an-event", _noise),
    Stray("no ce_id", "not-an-event", _binary(ce_id=None)),
    Stray("empty ce_id", "broken-event", _binary(ce_id=b"")),
    Stray("specversion 0.3", "broken-event", _binary(ce_specversion=b"0.3")),
    Stray("time in words", "broken-event", _binary(ce_time=b"last tuesday")),
    Stray("bad attribute name", "broken-event", _binary(ce_order_id=b"17")),
    Stray("subject not in UTF-8", "broken-event", _binary(ce_subject=b"\xff\xfe")),
    Stray("JSON that breaks off", "broken-event", _structured(_ENVELOPE)),
    Stray("structured, but null", "broken-event", _structured(None)),
    Stray("member twice", "broken-event", _structured(_ENVELOPE + b', "id": "again"}')),
    Stray(
        "data and data_base64",
        "broken-event",
        _structured(_ENVELOPE + b', "data": 1, "data_base64": "AA=="}'),
    ),
    Stray("Avro that is none", "broken-event", _structured(b"\x02\x00\x01", b"application/cloudevents+avro")),
    Stray(
        "format not known here", "unsupported-format", _structured(b"<x/>", b"application/cloudevents+xml")
    ),
    Stray("a batch", "batch", _structured(b"[]", b"application/cloudevents-batch+json")),
)
