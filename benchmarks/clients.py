"""EventProducer and EventConsumer compared with loops over confluent-kafka, on a local broker.

All loops send or read the same records by turns: those that the peers wrote, in binary mode and
in JSON (see spec-conformance/samples). The bare loops do as little as possible: they produce
encoded records, with a delivery callback and poll(0), or read error, value and headers, which
stay bytes. They are the limit. The loops with the SDK convert each event or record with
`to_binary`, `to_structured` or `from_kafka`, as its users do. Instead of a record that the SDK
cannot read they read the nearest that it can.

The broker and the threads of librdkafka share the cores with the loop, so quote ratios, not
rates. CPU is the time of the calling thread alone.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, Final

from _peer_samples import peer_samples
from _sdk import JSON, message_of
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka, to_binary, to_structured
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from cloudevents_kafka import DataError, Event, EventConsumer, EventProducer, Record, from_record
from cloudevents_kafka.binding import sniff
from cloudevents_kafka.testing import LocalBroker

QUIET: Final = {"log_level": 0}
MIXTURE: Final = 1000  # records, which are sent again and again
BATCH: Final = 100

Times = dict[str, list[tuple[float, float]]]
"""Elapsed seconds and CPU seconds of the calling thread in each round, by the name of the loop."""

# Ours, the loop to compare with, and the least ratio of the rates.
SENDING: Final = (
    ("EventProducer.send", "bare produce()", 0.75),
    ("EventProducer.send", "SDK, then produce()", None),
)
READING: Final = (
    ("EventConsumer, one by one", "bare poll()", 0.5),
    ("EventConsumer, one by one", "poll(), then SDK", 2.5),
    ("the same, data used", "poll(), then SDK", None),
    ("EventConsumer.batches(100)", "bare consume(100)", 0.5),
    ("EventConsumer.batches(100)", "consume(100), then SDK", 2.5),
)


def mixture() -> list[Record]:
    """Return valid records of all peers in binary mode and in JSON, in an order that is always the same."""
    found = [one.record for one in peer_samples() if one.is_event and one.encoding in ("binary", "json")]
    random.Random(15).shuffle(found)
    return [record for record in found if _has_data(record)][:MIXTURE]


def _has_data(record: Record) -> bool:
    """Return whether the data of an event can be read; a peer may write text with a content type of JSON."""
    try:
        _ = from_record(record).data
    except DataError:
        return False
    return True


def nearest(record: Record) -> Record:
    """Return the record nearest to one that the SDK can read."""
    message, _ = message_of(record)
    return Record(key=message.key, value=message.value, headers=list(message.headers.items()))  # type: ignore[arg-type]  # a text is encoded


def read_by_sdk(key: bytes | None, value: Any, headers: Any) -> Any:
    """Return the SDK's event of a record."""
    return from_kafka(KafkaMessage(dict(headers), key, value), JSON)


class Senders:
    """Loops that send ``count`` events of the mixture to a topic."""

    def __init__(self, servers: str, records: list[Record], count: int) -> None:
        self.servers = servers
        self.records = records
        self.count = count
        # replace() forgets the structured value that an event was read from, so it is written again.
        self.events: list[tuple[Event, Any]] = [
            (from_record(record).replace(), sniff(record.headers).mode) for record in records
        ]
        self.sdk_events = [
            (
                from_kafka(message_of(record)[0], JSON),
                to_binary if mode == "binary" else to_structured,
            )
            for record, (_, mode) in zip(records, self.events, strict=True)
        ]

    def client(self) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 20, **QUIET})

    def bare(self, topic: str) -> None:
        self.send_records(self.records, topic, self.count)

    def send_records(self, records: list[Record], topic: str, count: int) -> None:
        client = self.client()
        for record in islice(cycle(records), count):
            _produce(client, topic, record.value, record.key, list(record.headers))
        client.flush()

    def by_sdk(self, topic: str) -> None:
        client = self.client()
        for event, write in islice(cycle(self.sdk_events), self.count):
            message = write(event, JSON)
            _produce(client, topic, message.value, message.key, message.headers)
        client.flush()

    def by_event_producer(self, topic: str) -> None:
        with EventProducer(self.client(), topic=topic) as producer:
            for event, mode in islice(cycle(self.events), self.count):
                producer.send(event, mode=mode)

    def loops(self) -> dict[str, Callable[[str], None]]:
        return {
            "bare produce()": self.bare,
            "EventProducer.send": self.by_event_producer,
            "SDK, then produce()": self.by_sdk,
        }


def _produce(client: Producer, topic: str, value: Any, key: Any, headers: Any) -> None:
    while True:
        try:
            client.produce(topic, value=value, key=key, headers=headers, on_delivery=_on_delivery)
            break
        except BufferError:
            client.poll(0.2)
    client.poll(0)


def _on_delivery(error: object, message: object) -> None:
    """Receive a delivery report."""


class Readers:
    """Loops that read ``count`` records of a topic, which has more, so that no loop waits for the last."""

    def __init__(self, servers: str, count: int) -> None:
        self.servers = servers
        self.count = count

    def client(self, topic: str) -> Consumer:
        """Return a client that is connected and has the first record."""
        settings = {"bootstrap.servers": self.servers, "group.id": "loops", "enable.auto.commit": False}
        client = Consumer({**settings, **QUIET})
        client.assign([TopicPartition(topic, 0, 0)])
        client.poll(10)
        return client

    def _poll(self, client: Consumer) -> Iterator[Message]:
        left = self.count - 1
        while left:
            message = client.poll(1.0)
            if message is not None and message.error() is None:
                yield message
                left -= 1

    def _consume(self, client: Consumer) -> Iterator[Message]:
        left = self.count - 1
        while left > 0:
            for message in client.consume(BATCH, 0.5):
                if message.error() is None:
                    yield message
                    left -= 1

    def bare_poll(self, client: Consumer) -> None:
        for message in self._poll(client):
            message.value()
            message.headers()

    def bare_consume(self, client: Consumer) -> None:
        for message in self._consume(client):
            message.value()
            message.headers()

    def poll_by_sdk(self, client: Consumer) -> None:
        for message in self._poll(client):
            read_by_sdk(message.key(), message.value(), message.headers())

    def consume_by_sdk(self, client: Consumer) -> None:
        for message in self._consume(client):
            read_by_sdk(message.key(), message.value(), message.headers())

    def items(self, client: Consumer) -> None:
        for _ in islice(EventConsumer(client, strict=True), self.count - 1):
            pass

    def items_with_data(self, client: Consumer) -> None:
        for item in islice(EventConsumer(client, strict=True), self.count - 1):
            _ = item.event.data  # type: ignore[union-attr]  # all are events

    def batches(self, client: Consumer) -> None:
        left = self.count - 1
        for batch in EventConsumer(client, strict=True).batches(BATCH):
            left -= len(batch)
            if left <= 0:
                return

    def loops(self) -> dict[str, Callable[[Consumer], None]]:
        return {
            "bare poll()": self.bare_poll,
            "EventConsumer, one by one": self.items,
            "the same, data used": self.items_with_data,
            "poll(), then SDK": self.poll_by_sdk,
            "bare consume(100)": self.bare_consume,
            "EventConsumer.batches(100)": self.batches,
            "consume(100), then SDK": self.consume_by_sdk,
        }


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return the elapsed seconds and the CPU seconds of this thread."""
    wall, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - wall, time.thread_time() - cpu


def print_table(title: str, count: int, times: Times, pairs: Any) -> None:
    print(f"\n{title}")
    for name, rounds in times.items():
        wall, cpu = (statistics.median(values) for values in zip(*rounds, strict=True))
        print(f"  {name:<28} {count / wall:>9,.0f}/s   CPU {cpu / count * 1e6:6.2f} us each")
    for ours, other, target in pairs:
        rate, cpu = (_ratio(times[ours], times[other], which) for which in (0, 1))
        verdict = "" if target is None else f"   target {target}  {'met' if rate >= target else 'MISSED'}"
        print(f"  {ours} / {other}: {rate:.2f} of the rate, {cpu:.2f} by CPU{verdict}")


def _ratio(ours: list[tuple[float, float]], others: list[tuple[float, float]], which: int) -> float:
    """Return the median of the ratios of all rounds."""
    return statistics.median(other[which] / own[which] for own, other in zip(ours, others, strict=True))


def main() -> None:
    """Print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    records = mixture()
    binary = sum(sniff(record.headers).mode == "binary" for record in records)
    print(f"{len(records)} different records, {binary} of them in binary mode")
    sent: Times = {}
    read: Times = {}
    with LocalBroker() as broker:
        senders = Senders(broker.bootstrap_servers, records, options.count)
        for number in range(options.rounds):
            for name, send in senders.loops().items():
                topic = broker.create_topic(f"{name.split()[0].strip(',')}-{number}")
                sent.setdefault(name, []).append(timed(lambda s=send, t=topic: s(t)))
        print_table("sending", options.count, sent, SENDING)
        topics = {name: broker.create_topic(name) for name in ("all", "nearest")}
        senders.send_records(records, topics["all"], options.count + 2 * BATCH)
        senders.send_records([*map(nearest, records)], topics["nearest"], options.count + 2 * BATCH)
        readers = Readers(broker.bootstrap_servers, options.count)
        for _ in range(options.rounds):
            for name, loop in readers.loops().items():
                client = readers.client(topics["nearest" if "SDK" in name else "all"])
                read.setdefault(name, []).append(timed(lambda r=loop, c=client: r(c)))
                client.close()
        print_table("reading", options.count, read, READING)


if __name__ == "__main__":
    main()
