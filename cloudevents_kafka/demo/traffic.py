"""The records of the demo: events in every content mode and format, mixed with invalid records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Final

import msgspec

from cloudevents_kafka.binding import ContentMode, from_record, to_record
from cloudevents_kafka.demo._shop import generate_events
from cloudevents_kafka.errors import CloudEventsKafkaError, DecodeError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.registry import content_type_of
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
_EVENTS_PER_INVALID_RECORD: Final = 25


class Encoding(msgspec.Struct, frozen=True):
    """A content mode and, for structured mode, an event format."""

    mode: ContentMode
    format: str | None = None

    def __str__(self) -> str:
        return self.mode if self.format is None else f"{self.mode} {self.format}"


ENCODINGS: Final = (Encoding("binary"), Encoding("structured", "json"), Encoding("structured", "avro"))
_WEIGHTS: Final = (6, 2, 2)  # of the encodings


class InvalidRecord(msgspec.Struct, frozen=True):
    """A kind of invalid record: its name, its verdict, and the function that creates one."""

    name: str
    verdict: str
    create: Callable[[Random], Record]


class InvalidLine(CloudEventsKafkaError):
    """A line of a file is not a valid event."""

    def __init__(self, file: str, number: int, reason: str) -> None:
        super().__init__(f"{file}:{number}: {reason}")


Item = tuple[Event, Encoding] | InvalidRecord
"""An event with its encoding, or a kind of invalid record."""


def shop_traffic(seed: int, count: int) -> Iterator[Item]:
    """Yield ``count`` events of the shop, mixed with all kinds of invalid records.

    The same seed yields the same items.
    """
    random = Random(seed)
    invalid = _invalid_records(random, count)
    if count < len(invalid):
        yield from _encoded_events(random, seed, count)
        yield from invalid
        return
    before = {number * count // len(invalid): record for number, record in enumerate(invalid)}
    for number, item in enumerate(_encoded_events(random, seed, count)):
        if number in before:
            yield before[number]
        yield item


def _encoded_events(random: Random, seed: int, count: int) -> Iterator[Item]:
    for event in generate_events(seed, count):
        yield event, random.choices(ENCODINGS, _WEIGHTS)[0]


def _invalid_records(random: Random, count: int) -> list[InvalidRecord]:
    rounds = max(1, count // (_EVENTS_PER_INVALID_RECORD * len(INVALID_RECORDS)))
    return [kind for _ in range(rounds) for kind in random.sample(INVALID_RECORDS, len(INVALID_RECORDS))]


def file_traffic(name: str, lines: Iterable[bytes]) -> Iterator[Item | InvalidLine]:
    """Yield the events of JSON lines, with the encodings in turn; an `InvalidLine` for other lines."""
    turn = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = _parse_event(line.strip())
            encoding = _next_encoding(event, turn)
        except DecodeError as error:
            yield InvalidLine(name, number, error.reason)
        except EncodeError as error:
            yield InvalidLine(name, number, str(error))
        else:
            turn += 1
            yield event, encoding


def _parse_event(line: bytes) -> Event:
    return from_record(Record(value=line, headers=[("content-type", content_type_of("json"))]))


def _next_encoding(event: Event, turn: int) -> Encoding:
    """Return the encoding whose turn it is, or the next one that can encode the event."""
    for step in range(len(ENCODINGS)):
        encoding = ENCODINGS[(turn + step) % len(ENCODINGS)]
        try:
            to_record(event, mode=encoding.mode, format=encoding.format)
        except EncodeError:
            if step == len(ENCODINGS) - 1:
                raise
        else:
            return encoding
    raise AssertionError("ENCODINGS is not empty")


# --- invalid records ---


def _binary(value: bytes | None = _DATA, **changes: bytes | None) -> Callable[[Random], Record]:
    """Return a function for a binary event with changed headers; None removes a header."""
    headers = {name: text for name, text in {**_VALID_HEADERS, **changes}.items() if text is not None}
    return _record(value, list(headers.items()), b"2026-999999")


def _structured(value: bytes | None, content_type: bytes = _JSON_FORMAT) -> Callable[[Random], Record]:
    return _record(value, [("content-type", content_type)])


def _record(value: bytes | None, headers: Headers, key: bytes | None = None) -> Callable[[Random], Record]:
    return lambda _: Record(key=key, value=value, headers=headers)


def _random_bytes(random: Random) -> Record:
    return Record(key=random.randbytes(4), value=random.randbytes(random.randint(1, 64)), headers=[])


INVALID_RECORDS: Final = (
    InvalidRecord("tombstone", "not-an-event", _record(None, [], b"2026-000001")),
    InvalidRecord("JSON without headers", "not-an-event", _record(b'{"sku": 7, "type": "x"}', [])),
    InvalidRecord(
        "XML with other headers",
        "not-an-event",
        _record(b"<order/>", [("content-type", b"text/xml"), ("traceparent", b"00-0-0-00"), ("empty", None)]),
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
