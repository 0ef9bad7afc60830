"""EventProducer and EventConsumer compared with a confluent-kafka loop, on a local broker.

The bare loops do as little as possible: they produce encoded records, with a delivery
callback and poll(0), or poll and read error, value and headers, which stay bytes. They
are the limit. "read by hand" reads the whole record, with its headers as texts in a dict,
unchecked. The broker runs on the same cores, so quote ratios, not rates. CPU is the time of
the calling thread, without the threads of librdkafka.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from converters import ATTRIBUTES, DATA, TIME_TEXT

from cloudevents_kafka import Event, EventConsumer, EventProducer, to_record
from cloudevents_kafka.testing import LocalBroker

QUIET = {"log_level": 0}


def events(count: int = 1000) -> list[Event]:
    """Return events with different ids."""
    return [Event(**{**ATTRIBUTES, "id": f"event-{n:032d}"}, time=TIME_TEXT, data=DATA) for n in range(count)]


class Loops:
    """Loops that write or read ``count`` events of a topic."""

    def __init__(self, broker: LocalBroker, count: int) -> None:
        self.servers = broker.bootstrap_servers
        self.count = count
        self.events = events()
        self.records = [to_record(event) for event in self.events]
        self.broker = broker
        self.topics = 0

    def producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 20, **QUIET})

    def create_topic(self) -> str:
        self.topics += 1
        return self.broker.create_topic(f"loops-{self.topics}")

    def bare_produce(self, topic: str, callback: Callable[..., None] | None) -> None:
        client, records = self.producer(), self.records
        options: dict[str, Any] = {} if callback is None else {"on_delivery": callback}
        for number in range(self.count):
            record = records[number % 1000]
            while True:
                try:
                    client.produce(
                        topic, value=record.value, key=None, headers=list(record.headers), **options
                    )
                    break
                except BufferError:
                    client.poll(0.2)
            client.poll(0)
        client.flush()

    def send_events(self, topic: str) -> None:
        with EventProducer(self.producer(), topic=topic) as producer:
            for number in range(self.count):
                producer.send(self.events[number % 1000])

    def consumer(self, topic: str) -> Consumer:
        client = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "loops",
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        client.assign([TopicPartition(topic, 0, 0)])
        client.poll(10)  # the client is connected and has the first record
        return client

    def bare_poll(self, client: Consumer) -> None:
        left = self.count - 1
        while left:
            message = client.poll(1.0)
            if message is not None and message.error() is None:
                message.value()
                message.headers()
                left -= 1

    def read_by_hand(self, client: Consumer) -> None:
        left = self.count - 1
        while left:
            message = client.poll(1.0)
            if message is not None and message.error() is None:
                attributes = {name: value.decode() for name, value in message.headers()}
                position = (message.topic(), message.partition(), message.offset(), message.timestamp())
                _ = (attributes, message.key(), message.value(), position)
                left -= 1

    def bare_consume(self, client: Consumer, size: int) -> None:
        left = self.count - 1
        while left > 0:
            for message in client.consume(size, 0.5):
                if message.error() is None:
                    message.value()
                    message.headers()
                    left -= 1

    def read_items(self, client: Consumer) -> None:
        left = self.count - 1
        for _ in EventConsumer(client):
            left -= 1
            if not left:
                return

    def read_batches(self, client: Consumer, size: int) -> None:
        left = self.count - 1
        for batch in EventConsumer(client).batches(size):
            left -= len(batch)
            if left <= 0:
                return


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return the elapsed seconds and the CPU seconds of this thread."""
    wall, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - wall, time.thread_time() - cpu


def table(
    title: str, count: int, results: dict[str, list[tuple[float, float]]], pairs: list[tuple[str, str]]
) -> None:
    print(f"\n{title}")
    for name, rounds in results.items():
        wall, cpu = (statistics.median(values) for values in zip(*rounds, strict=True))
        print(f"  {name:<34} {count / wall:>9,.0f}/s   CPU {cpu / count * 1e6:5.2f} us each")
    for ours, bare in pairs:
        ratio = statistics.median(b[0] / o[0] for o, b in zip(results[ours], results[bare], strict=True))
        verdict = "met" if ratio >= 0.8 else "MISSED"
        print(f"  {ours} at {ratio:.2f} of the rate of: {bare}   target 0.8  {verdict}")


def main() -> None:
    """Print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with LocalBroker() as broker:
        loops = Loops(broker, options.count)
        sent: dict[str, list[tuple[float, float]]] = {}
        read: dict[str, list[tuple[float, float]]] = {}
        topic = ""
        for _ in range(options.rounds):
            topic = loops.create_topic()
            for name, produce in (
                ("bare produce, no callback", lambda t: loops.bare_produce(t, None)),
                ("bare produce, with callback", lambda t: loops.bare_produce(t, lambda *_: None)),
                ("EventProducer.send", loops.send_events),
            ):
                sent.setdefault(name, []).append(timed(lambda p=produce, t=topic: p(t)))
        table("producing", options.count, sent, [("EventProducer.send", name) for name in list(sent)[:2]])
        for _ in range(options.rounds):
            for name, consume in (
                ("bare poll", loops.bare_poll),
                ("EventConsumer, one by one", loops.read_items),
                ("poll, read by hand", loops.read_by_hand),
                ("bare consume(100)", lambda c: loops.bare_consume(c, 100)),
                ("EventConsumer.batches(100)", lambda c: loops.read_batches(c, 100)),
                ("bare consume(500)", lambda c: loops.bare_consume(c, 500)),
                ("EventConsumer.batches(500)", lambda c: loops.read_batches(c, 500)),
            ):
                client = loops.consumer(topic)
                read.setdefault(name, []).append(timed(lambda c=consume, k=client: c(k)))
                client.close()
        pairs = [
            ("EventConsumer, one by one", "bare poll"),
            ("EventConsumer, one by one", "poll, read by hand"),
            ("EventConsumer.batches(100)", "bare consume(100)"),
            ("EventConsumer.batches(500)", "bare consume(500)"),
        ]
        table("consuming", options.count, read, pairs)


if __name__ == "__main__":
    main()
