"""The clients of the demo: `EventProducer` sends the traffic, and `EventConsumer` reads it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Final

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka.binding import Decoded, Undecodable, partition_key, sniff
from cloudevents_kafka.consumer import ConsumeError, EventConsumer
from cloudevents_kafka.demo.traffic import Encoding, InvalidRecord, Item
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.producer import EventProducer

OnProgress = Callable[[int], None]
"""A function that is called with the number of records so far."""

_IDLE_SECONDS: Final = 20.0


class TrafficCounts(msgspec.Struct):
    """Numbers of records: of events by type and encoding, of other records by verdict and kind.

    For records that were read, the reason of the error replaces the kind.
    """

    events: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    others: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    with_key: int = 0
    without_data: int = 0

    @property
    def total(self) -> int:
        """The number of all records."""
        return self.events.total() + self.others.total()

    @property
    def verdicts(self) -> Counter[str]:
        """The numbers of other records by verdict."""
        return Counter(verdict for verdict, _ in self.others.elements())

    def by_mode(self) -> Counter[tuple[str, str]]:
        """Return the numbers of events by type and content mode."""
        return Counter((type_, encoding.split()[0]) for type_, encoding in self.events.elements())


class ReadCounts(TrafficCounts):
    """The records that were read; ``payloads`` maps partition and offset to an event's id and data."""

    payloads: dict[tuple[int, int], tuple[str, bytes | None]] = msgspec.field(default_factory=dict)


def send_traffic(
    servers: str, topic: str, items: Iterable[Item], seed: int, on_progress: OnProgress
) -> TrafficCounts:
    """Send events with `EventProducer` and invalid records with the bare client; return the counts.

    The key of a record is the event's partition key. Raises `DeliveryError` unless all are delivered.
    """
    sent = TrafficCounts()
    random = Random(seed)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "compression.type": "lz4"})
    with EventProducer(producer, topic=topic, key_mapper=partition_key) as events:
        for number, item in enumerate(items):
            if isinstance(item, InvalidRecord):
                record = item.create(random)
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
) -> ReadCounts:
    """Read ``expected`` records from the start of a topic, and return their counts.

    Raises `ConsumeError` if there are fewer.
    """
    counts = ReadCounts()
    with EventConsumer(
        Consumer({"bootstrap.servers": servers, "group.id": "demo", "log_level": 0})
    ) as events:
        events.consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
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


def _count(counts: ReadCounts, item: Decoded | Undecodable) -> None:
    record = item.record
    counts.with_key += record.key is not None
    if isinstance(item, Undecodable):
        counts.others[item.error.verdict, item.error.reason] += 1
        return
    verdict = sniff(record.headers)
    encoding = Encoding("binary") if verdict.mode == "binary" else Encoding("structured", verdict.format)
    counts.events[item.event.type, str(encoding)] += 1
    counts.without_data += item.event.payload is None
    assert record.partition is not None
    assert record.offset is not None
    counts.payloads[record.partition, record.offset] = (item.event.id, item.event.payload)
