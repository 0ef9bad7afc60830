"""The topics that are landed: events of this library, the records of each SDK, and mixtures of them."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from typing import Final, Literal

from _peer_samples import peer_samples
from confluent_kafka import Producer

from cloudevents_kafka import Event, Record, codecs, to_record
from cloudevents_kafka.testing import LocalBroker

PARTITIONS: Final = 4
_DISTINCT: Final = 20_000  # events of this library; the samples of the SDKs are a few hundred each
_TYPES: Final = 5_000
_DAYS: Final = 3 * 365


def peer_names() -> list[str]:
    """Return the names of the SDKs."""
    return list(dict.fromkeys(sample.peer for sample in peer_samples()))


def topics() -> dict[str, Callable[[], list[Record]]]:
    """Return the functions that make the records of each topic, by its name; they are sent repeatedly."""
    peers = {peer: lambda peer=peer: _of_peer(peer) for peer in peer_names()}
    return {
        "binary": lambda: _own("binary"),
        "structured": lambda: _own("structured"),
        **peers,
        "java-with-protobuf": lambda: _of_peer("java", protobuf=True),
        "mixture": mixture,
        "mixture-broken": lambda: list(_with_broken(mixture())),
    }


def _own(mode: Literal["binary", "structured"]) -> list[Record]:
    return [to_record(event, mode=mode) for event in _events(_DISTINCT)]


def _events(count: int) -> Iterator[Event]:
    chance = random.Random(16)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    for number in range(count):
        sensor = f"sensor-{number % 10_000}"
        data = {
            "sensor": sensor,
            "value": chance.random() * 1000,
            "unit": "celsius",
            "status": {
                "battery": number % 100,
                "flags": ["ok", "calibrated"],
                "site": f"plant {number % 50}",
            },
            "note": f"reading of section {number % 900}, taken automatically, checked and stored",
            "operator": f"shift {number % 3}",
            "seq": number,
        }
        yield Event(
            id=str(uuid.UUID(int=chance.getrandbits(128))),
            source=f"/plants/{number % 50}/lines/{number % 7}",
            type=f"com.example.reading.{('created', 'updated', 'closed', 'v1')[number % 4]}",
            subject=sensor,
            time=start + timedelta(seconds=number * 0.731),
            datacontenttype="application/json",
            data=json.dumps(data).encode(),
            partitionkey=sensor,
        )


TYPED_SCHEMA: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "total", "type": "double"},
        {"name": "currency", "type": "string"},
        {"name": "paid", "type": "boolean"},
        {"name": "items", "type": "int"},
        {"name": "street", "type": "string"},
        {"name": "city", "type": "string"},
        {"name": "note", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
TYPED_DDL: Final = (
    "`order` BIGINT NOT NULL, customer STRING NOT NULL, total DOUBLE NOT NULL, currency STRING NOT NULL, "
    "paid BOOLEAN NOT NULL, items INT NOT NULL, street STRING NOT NULL, city STRING NOT NULL, "
    "note STRING NOT NULL, tags ARRAY<STRING> NOT NULL"
)


def typed(*, avro: bool) -> list[Record]:
    """Return events with data of ten fields, 500 bytes of JSON, or the same in Avro."""
    codec = codecs.avro(TYPED_SCHEMA) if avro else None
    media = "application/avro" if avro else "application/json"
    records = []
    for number, event in enumerate(_events(_DISTINCT)):
        data = {
            "order": 1_000_000 + number,
            "customer": f"customer {number % 5_000}",
            "total": round(number * 1.37 % 900, 2),
            "currency": "EUR",
            "paid": number % 3 > 0,
            "items": number % 9,
            "street": f"{number % 300} Long Street of the Old Town",
            "city": f"City {number % 70}",
            "tags": ["web", f"campaign-{number % 40}"],
        }
        data["note"] = f"call {number} before the delivery ".ljust(490 - len(json.dumps(data)), "x")
        encode = (
            codec.encode if codec is not None and codec.encode else lambda value: json.dumps(value).encode()
        )
        changed = event.replace(datacontenttype=media, data=encode(data))
        records.append(to_record(changed, mode="binary"))
    return records


def many_types() -> list[Record]:
    """Return events of 5,000 types whose times range over three years."""
    start = datetime(2023, 1, 1, tzinfo=UTC)
    events = (
        event.replace(
            type=f"com.example.kind-{number % _TYPES}",
            time=start + timedelta(days=number * 7 % _DAYS, seconds=number % 86_400),
        )
        for number, event in enumerate(_events(_DISTINCT))
    )
    return [to_record(event, mode="binary") for event in events]


def _of_peer(peer: str, *, protobuf: bool = False) -> list[Record]:
    """Return the valid records of an SDK, in binary mode, in JSON and, if asked, in Protobuf."""
    encodings = {"binary", "json", *(["protobuf"] if protobuf else [])}
    found = [
        sample.record
        for sample in peer_samples()
        if sample.peer == peer and sample.is_event and sample.encoding in encodings
    ]
    random.Random(16).shuffle(found)
    return found


def mixture() -> list[Record]:
    """Return valid records of all SDKs, by turns, in binary mode and in JSON."""
    each = [cycle(_of_peer(peer)) for peer in peer_names()]
    return [next(records) for records in islice(cycle(each), 5_000)]


def _with_broken(records: Sequence[Record]) -> Iterator[Record]:
    """Yield records of which every hundredth is broken, in five ways."""
    ways: list[Callable[[Record], Record]] = [
        lambda record: Record(value=(record.value or b"")[:-3] or b"{", headers=_JSON),
        lambda _: Record(value=b"17", headers=[("ce_specversion", b"1.0"), ("ce_id", b"")]),
        lambda record: Record(value=record.value, headers=[("traceparent", b"00-1")]),
        lambda _: Record(value=b'{"specversion":"1.0","id":"1","source":"","type":"t"}', headers=_JSON),
        lambda _: Record(value=b"{}", headers=[("ce_specversion", b"1.0"), *_BAD_TIME]),
    ]
    for number, record in enumerate(records):
        yield record if number % 100 else ways[number // 100 % len(ways)](record)


_JSON: Final = [("content-type", b"application/cloudevents+json")]
_BAD_TIME: Final = [("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t"), ("ce_time", b"yesterday")]


def fill(
    broker: LocalBroker, name: str, records: Sequence[Record], count: int, partitions: int = PARTITIONS
) -> str:
    """Create a topic, send it ``count`` records, these again and again, and return its name."""
    topic = broker.create_topic(name, partitions=partitions)
    settings = {"linger.ms": 20, "batch.size": 1 << 20, "queue.buffering.max.messages": 200_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for number, record in enumerate(islice(cycle(records), count)):
        while True:
            try:
                producer.produce(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=number % partitions,
                )
                break
            except BufferError:
                producer.poll(0.05)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records of {topic} were not sent")
    return topic
