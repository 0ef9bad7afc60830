"""The records of the demo: events in every content mode and format, mixed with invalid records.

`send_traffic` sends the records with `EventProducer`, and `read_back` reads the records with `EventConsumer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from random import Random
from typing import Final

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka.binding import (
    ContentMode,
    Decoded,
    Undecodable,
    from_record,
    partition_key,
    sniff,
    to_record,
)
from cloudevents_kafka.cli.demo._shop import generate_events
from cloudevents_kafka.clients.consumer import ConsumeError, EventConsumer
from cloudevents_kafka.clients.producer import EventProducer
from cloudevents_kafka.errors import CloudEventsKafkaError, DecodeError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.registry import content_type_of
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Headers, Record

_VALID_HEADERS: Final[dict[str, bytes]] = {
    "ce_specversion": b"1.0",
    "ce_id": b"invalid",
    "ce_source": b"/shop/old",
    "ce_type": b"com.example.shop.order.placed",
    "content-type": b"application/json",
}
_JSON_FORMAT: Final = b"application/cloudevents+json"
_OPEN_ENVELOPE: Final = (
    b'{"specversion": "1.0", "id": "invalid", "source": "/shop/old", "type": "com.example.shop.x"'
)
_EVENTS_PER_INVALID_RECORD: Final = 25
_IDLE_SECONDS: Final = 20.0


class Encoding(msgspec.Struct, frozen=True):
    """A content mode and, if the mode is structured, an event format."""

    mode: ContentMode
    format: str | None = None

    def __str__(self) -> str:
        return self.mode if self.format is None else f"{self.mode} {self.format}"


ENCODINGS: Final = (Encoding("binary"), Encoding("structured", "json"), Encoding("structured", "avro"))
_WEIGHTS: Final = (6, 2, 2)  # how often each encoding is used


class InvalidRecord(msgspec.Struct, frozen=True):
    """A record that is not a valid event, with the verdict that the reader must return for it."""

    name: str
    verdict: str
    record: Record


class InvalidLine(CloudEventsKafkaError):
    """A line of a file of events is not a valid event."""


Item = tuple[Event, Encoding] | InvalidRecord
"""An event with its encoding, or an invalid record."""

OnProgress = Callable[[int], None]
"""A function that is called with the number of records that are handled so far."""


class TrafficCounts(msgspec.Struct):
    """The numbers of records in the demo: events by type and encoding, and other records by verdict and name.

    When records are read back, invalid records are counted by the reason of their error, not by name. For
    records that were read back, ``payloads`` maps the partition and offset of an event to its id and its
    data.
    """

    events: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    others: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    with_key: int = 0
    without_data: int = 0
    payloads: dict[tuple[int, int], tuple[str, bytes | None]] = msgspec.field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of all records, events and other records."""
        return self.events.total() + self.others.total()

    @property
    def verdicts(self) -> Counter[str]:
        """The numbers of records that are not valid events, by verdict."""
        return Counter(verdict for verdict, _ in self.others.elements())


def shop_traffic(seed: int, count: int) -> Iterator[Item]:
    """Yield ``count`` events of the shop, mixed with all invalid records of the demo.

    The same seed yields the same items.
    """
    random = Random(seed)
    rounds = max(1, count // (_EVENTS_PER_INVALID_RECORD * len(INVALID_RECORDS)))
    invalid = [
        record for _ in range(rounds) for record in random.sample(INVALID_RECORDS, len(INVALID_RECORDS))
    ]
    total = len(invalid)
    for number, event in enumerate(generate_events(seed, count)):
        while len(invalid) * count >= total * (count - number):  # invalid records come at equal distances
            yield invalid.pop()
        yield event, random.choices(ENCODINGS, _WEIGHTS)[0]
    yield from invalid


def file_traffic(name: str, lines: Iterable[bytes]) -> Iterator[Item | InvalidLine]:
    """Yield the event in each JSON line, with an encoding; yield `InvalidLine` for other lines."""
    headers: Headers = [("content-type", content_type_of("json"))]
    turn = 0
    for number, line in enumerate(map(bytes.strip, lines), 1):
        if not line:
            continue
        try:
            event = from_record(Record(value=line, headers=headers))
            encoding = _next_encoding(event, turn)
        except (DecodeError, EncodeError) as error:
            reason = error.reason if isinstance(error, DecodeError) else error
            yield InvalidLine(f"{name}:{number}: {reason}")
        else:
            turn += 1
            yield event, encoding


def _next_encoding(event: Event, turn: int) -> Encoding:
    """Return the first encoding that can encode an event; the search starts at the encoding ``turn``."""
    start = turn % len(ENCODINGS)
    for encoding in (*ENCODINGS[start:], *ENCODINGS[:start]):
        with suppress(EncodeError):
            to_record(event, mode=encoding.mode, format=encoding.format)
            return encoding
    to_record(event)  # raises an error with the reason
    return ENCODINGS[0]


def send_traffic(
    servers: str, topic: str, items: Iterable[Item], on_progress: OnProgress = lambda _: None
) -> TrafficCounts:
    """Send events with `EventProducer`, and invalid records with the Kafka client; return their counts.

    The key of an event's record is the event's partition key. Raises `DeliveryError` unless all records are
    delivered.
    """
    sent = TrafficCounts()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "compression.type": "lz4"})
    with EventProducer(producer, topic=topic, key_mapper=partition_key) as events:
        for number, item in enumerate(items):
            if isinstance(item, InvalidRecord):
                record = item.record
                producer.produce(topic, value=record.value, key=record.key, headers=list(record.headers))
                sent.others[item.verdict, item.name] += 1
                sent.with_key += record.key is not None
            else:
                event, encoding = item
                events.send(event, mode=encoding.mode, format=encoding.format)
                sent.events[event.type, str(encoding)] += 1
                sent.with_key += partition_key(event) is not None
                sent.without_data += event.payload is None
            on_progress(number)
    return sent


def read_back(
    servers: str, topic: str, partitions: int, expected: int, on_progress: OnProgress
) -> TrafficCounts:
    """Read ``expected`` records from the start of a topic, and return their counts.

    Raises `ConsumeError` if the topic contains fewer records.
    """
    counts = TrafficCounts()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "demo", "log_level": 0})
    with EventConsumer(consumer) as events:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        for batch in events.batches(500, timeout=0.2, idle_timeout=_IDLE_SECONDS):
            for item in batch:
                _count(counts, item)
            on_progress(counts.total)
            if counts.total >= expected:
                return counts
    raise ConsumeError(
        f"the topic must have {pluralize(expected, 'record')}, got {counts.total:,} and then none "
        f"for {_IDLE_SECONDS:g} s",
        topic,
    )


def _count(counts: TrafficCounts, item: Decoded | Undecodable) -> None:
    record = item.record
    counts.with_key += record.key is not None
    if isinstance(item, Undecodable):
        counts.others[item.error.verdict, item.error.reason] += 1
        return
    sniffed = sniff(record.headers)
    encoding = Encoding("binary") if sniffed.mode == "binary" else Encoding("structured", sniffed.format)
    counts.events[item.event.type, str(encoding)] += 1
    counts.without_data += item.event.payload is None
    assert record.partition is not None
    assert record.offset is not None
    counts.payloads[record.partition, record.offset] = (item.event.id, item.event.payload)


# --- invalid records ---


def _binary(**changes: bytes | None) -> Record:
    """Return a record in binary mode with changed headers; the value None removes a header."""
    headers: Headers = [
        (name, text) for name, text in {**_VALID_HEADERS, **changes}.items() if text is not None
    ]
    return Record(key=b"2026-999999", value=b'{"order": "2026-999999"}', headers=headers)


def _structured(value: bytes | None, content_type: bytes = _JSON_FORMAT) -> Record:
    return Record(value=value, headers=[("content-type", content_type)])


_XML_HEADERS: Final[Headers] = [("content-type", b"text/xml"), ("traceparent", b"00-0-0-00"), ("empty", None)]
_TWO_DATA: Final = _OPEN_ENVELOPE + b', "data": 1, "data_base64": "AA=="}'

INVALID_RECORDS: Final = tuple(
    InvalidRecord(name, verdict, record)
    for name, verdict, record in (
        ("tombstone", "not-an-event", Record(key=b"2026-000001", value=None)),
        ("JSON without headers", "not-an-event", Record(value=b'{"sku": 7, "type": "x"}')),
        ("XML with other headers", "not-an-event", Record(value=b"<order/>", headers=_XML_HEADERS)),
        ("random bytes", "not-an-event", Record(key=b"\x8f\x02", value=Random(1).randbytes(64))),
        ("missing ce_id", "not-an-event", _binary(ce_id=None)),
        ("empty ce_id", "broken-event", _binary(ce_id=b"")),
        ("specversion 0.3", "broken-event", _binary(ce_specversion=b"0.3")),
        ("time not in RFC 3339", "broken-event", _binary(ce_time=b"last tuesday")),
        ("invalid attribute name", "broken-event", _binary(ce_order_id=b"17")),
        ("subject not in UTF-8", "broken-event", _binary(ce_subject=b"\xff\xfe")),
        ("truncated JSON", "broken-event", _structured(_OPEN_ENVELOPE)),
        ("structured mode, null value", "broken-event", _structured(None)),
        ("duplicate member", "broken-event", _structured(_OPEN_ENVELOPE + b', "id": "again"}')),
        ("data and data_base64", "broken-event", _structured(_TWO_DATA)),
        ("malformed Avro", "broken-event", _structured(b"\x02\x00\x01", b"application/cloudevents+avro")),
        ("unknown format", "unsupported-format", _structured(b"<x/>", b"application/cloudevents+xml")),
        ("batch", "batch", _structured(b"[]", b"application/cloudevents-batch+json")),
    )
)
