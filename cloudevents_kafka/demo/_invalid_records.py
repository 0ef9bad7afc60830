"""Records that are not valid events, as they are found on real topics, with the verdict of each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from cloudevents_kafka.record import Headers, Record

_VALID_HEADERS: Final[dict[str, bytes]] = {
    "ce_specversion": b"1.0",
    "ce_id": b"invalid",
    "ce_source": b"/shop/old",
    "ce_type": b"com.example.shop.order.placed",
    "content-type": b"application/json",
}
_DATA: Final = b'{"order": "2026-999999"}'
_JSON_FORMAT: Final = b"application/cloudevents+json"
_OPEN_ENVELOPE: Final = (
    b'{"specversion": "1.0", "id": "invalid", "source": "/shop/old", "type": "com.example.shop.x"'
)


class InvalidRecord(msgspec.Struct, frozen=True):
    """A kind of invalid record: its name, its verdict, and the function that creates one."""

    name: str
    verdict: str
    create: Callable[[Random], Record]


def _binary(value: bytes | None = _DATA, **changes: bytes | None) -> Callable[[Random], Record]:
    """Return a function for a binary event with changed headers; None removes a header."""
    headers: Headers = [
        (name, text) for name, text in {**_VALID_HEADERS, **changes}.items() if text is not None
    ]
    return lambda _: Record(key=b"2026-999999", value=value, headers=headers)


def _structured(value: bytes | None, content_type: bytes = _JSON_FORMAT) -> Callable[[Random], Record]:
    return lambda _: Record(value=value, headers=[("content-type", content_type)])


def _other(value: bytes | None, headers: Headers, key: bytes | None = None) -> Callable[[Random], Record]:
    return lambda _: Record(key=key, value=value, headers=headers)


def _random_bytes(random: Random) -> Record:
    return Record(key=random.randbytes(4), value=random.randbytes(random.randint(1, 64)), headers=[])


INVALID_RECORDS: Final = (
    InvalidRecord("tombstone", "not-an-event", _other(None, [], b"2026-000001")),
    InvalidRecord("JSON without headers", "not-an-event", _other(b'{"sku": 7, "type": "x"}', [])),
    InvalidRecord(
        "XML with other headers",
        "not-an-event",
        _other(b"<order/>", [("content-type", b"text/xml"), ("traceparent", b"00-0-0-00"), ("empty", None)]),
    ),
    InvalidRecord("random bytes", "not-an-event", _random_bytes),
    InvalidRecord("missing ce_id", "not-an-event", _binary(ce_id=None)),
    InvalidRecord("empty ce_id", "broken-event", _binary(ce_id=b"")),
    InvalidRecord("specversion 0.3", "broken-event", _binary(ce_specversion=b"0.3")),
    InvalidRecord("time not in RFC 3339", "broken-event", _binary(ce_time=b"last tuesday")),
    InvalidRecord("invalid attribute name", "broken-event", _binary(ce_order_id=b"17")),
    InvalidRecord("subject not in UTF-8", "broken-event", _binary(ce_subject=b"\xff\xfe")),
    InvalidRecord("truncated JSON", "broken-event", _structured(_OPEN_ENVELOPE)),
    InvalidRecord("structured mode, null value", "broken-event", _structured(None)),
    InvalidRecord("duplicate member", "broken-event", _structured(_OPEN_ENVELOPE + b', "id": "again"}')),
    InvalidRecord(
        "data and data_base64",
        "broken-event",
        _structured(_OPEN_ENVELOPE + b', "data": 1, "data_base64": "AA=="}'),
    ),
    InvalidRecord(
        "malformed Avro", "broken-event", _structured(b"\x02\x00\x01", b"application/cloudevents+avro")
    ),
    InvalidRecord(
        "unknown event format", "unsupported-format", _structured(b"<x/>", b"application/cloudevents+xml")
    ),
    InvalidRecord("batch", "batch", _structured(b"[]", b"application/cloudevents-batch+json")),
)
