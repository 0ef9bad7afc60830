"""The demo's two clients: EventProducer sends the traffic, EventConsumer reads it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka.binding import Decoded, Undecodable, partition_key, sniff
from cloudevents_kafka.consumer import ConsumeError, EventConsumer
from cloudevents_kafka.demo.invalid_records import Stray
from cloudevents_kafka.demo.traffic import Item, Way
from cloudevents_kafka.producer import EventProducer

Tell = Callable[[int], None]

_SILENCE_SECONDS = 20.0


class Traffic(msgspec.Struct):
    """Records counted: events by type and way, others by verdict and kind (sent) or reason (read)."""

    events: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    others: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    keyed: int = 0
    without_data: int = 0

    @property
    def total(self) -> int:
        """Number of all records."""
        return self.events.total() + self.others.total()

    @property
    def verdicts(self) -> Counter[str]:
        """Other records by verdict."""
        counts: Counter[str] = Counter()
        for (verdict, _), number in self.others.items():
            counts[verdict] += number
        return counts

    def by_mode(self) -> Counter[tuple[str, str]]:
        """Events by type and mode, formats together."""
        counts: Counter[tuple[str, str]] = Counter()
        for (kind, way), number in self.events.items():
            counts[kind, way.split()[0]] += number
        return counts


class ReadBack(Traffic):
    """What was read back; ``payloads`` is partition and offset to an event's id and data."""

    payloads: dict[tuple[int, int], tuple[str, bytes | None]] = msgspec.field(default_factory=dict)


def send(servers: str, topic: str, items: Iterable[Item], seed: int, tell: Tell) -> Traffic:
    """Send events by EventProducer, strays by the bare client; all are delivered, or DeliveryError.

    Events with a partition key are keyed by it, others have no key.
    """
    sent = Traffic()
    random = Random(seed)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "compression.type": "lz4"})
    with EventProducer(producer, topic=topic, key_mapper=partition_key) as events:
        for number, item in enumerate(items):
            if isinstance(item, Stray):
                record = item.make(random)
                producer.produce(topic, value=record.value, key=record.key, headers=list(record.headers))
                sent.others[item.verdict, item.name] += 1
                sent.keyed += record.key is not None
            else:
                event, way = item
                events.send(event, mode=way.mode, format=way.format)
                sent.events[event.type, str(way)] += 1
                sent.keyed += partition_key(event) is not None
                sent.without_data += event.payload is None
            tell(number)
    return sent


def read_back(servers: str, topic: str, partitions: int, expected: int, tell: Tell) -> ReadBack:
    """Read a topic from its start by EventConsumer, so many records; ConsumeError if they do not come."""
    found = ReadBack()
    with EventConsumer(
        Consumer({"bootstrap.servers": servers, "group.id": "demo", "log_level": 0})
    ) as events:
        events.consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        for batch in events.batches(500, timeout=0.2, idle_timeout=_SILENCE_SECONDS):
            for item in batch:
                _count(found, item)
            tell(found.total)
            if found.total >= expected:
                return found
    raise ConsumeError(
        f"{found.total:,} of {expected:,} records came back, then none for {_SILENCE_SECONDS:g} s", topic
    )


def _count(found: ReadBack, item: Decoded | Undecodable) -> None:
    record = item.record
    found.keyed += record.key is not None
    if isinstance(item, Undecodable):
        found.others[item.error.verdict, item.error.reason] += 1
        return
    verdict = sniff(record.headers)
    way = Way("binary") if verdict.mode == "binary" else Way("structured", verdict.format)
    found.events[item.event.type, str(way)] += 1
    found.without_data += item.event.payload is None
    assert record.partition is not None
    assert record.offset is not None
    found.payloads[record.partition, record.offset] = (item.event.id, item.event.payload)
