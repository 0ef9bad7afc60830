"""The protocol client compared with kafka-python and confluent-kafka: records sent and read.

Each client sends records to its own topic on the local broker, waits until all are
acknowledged, and reads them from the start; by turns, in one process. The broker runs on
the same cores, so quote ratios. confluent-kafka is written in C and is the limit.
kafka-python uses the CRC-32C of this library, because its own is written in Python.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import confluent_kafka
from protocol import RECORDS

from cloudevents_kafka.protocol import EARLIEST, Client, TopicPartition
from cloudevents_kafka.protocol.records.checksum import crc32c
from cloudevents_kafka.testing import LocalBroker

try:
    import kafka
    from kafka.record import default_records
except ImportError:
    kafka = None

ClientPair = tuple[Callable[[str, str, int], None], Callable[[str, str, int], None]]


def send_by_this_library(servers, topic, count):
    with Client(servers) as client, client.producer(linger=0.02) as producer:
        for number in range(count):
            record = RECORDS[number % len(RECORDS)]
            producer.produce(topic, record.value, record.key, headers=record.headers)
            producer.poll(0)


def read_by_this_library(servers, topic, count):
    with Client(servers) as client, client.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0, EARLIEST)])
        for _ in range(count):
            consumer.poll(30).value()


def send_by_kafka_python(servers, topic, count):
    producer = kafka.KafkaProducer(bootstrap_servers=servers, linger_ms=20, acks="all")
    for number in range(count):
        record = RECORDS[number % len(RECORDS)]
        producer.send(topic, record.value, record.key, headers=record.headers)
    producer.flush()
    producer.close()


def read_by_kafka_python(servers, topic, count):
    consumer = kafka.KafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
    for _, message in zip(range(count), consumer, strict=False):
        _ = message.value
    consumer.close()


def send_by_confluent(servers, topic, count):
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 0})
    for number in range(count):
        record = RECORDS[number % len(RECORDS)]
        while True:
            try:
                producer.produce(topic, record.value, record.key, headers=list(record.headers))
            except BufferError:
                producer.poll(0.05)
                continue
            break
        producer.poll(0)
    producer.flush()


def read_by_confluent(servers, topic, count):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "bench", "log_level": 0})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    for _ in range(count):
        consumer.poll(30).value()
    consumer.close()


def main() -> None:
    """Print the rates of all clients, and the ratios of this library to the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    clients: dict[str, ClientPair] = {
        "ours": (send_by_this_library, read_by_this_library),
        "confluent-kafka": (send_by_confluent, read_by_confluent),
    }
    if kafka is not None:
        default_records.calc_crc32c = lambda view: crc32c(bytes(view))
        clients["kafka-python"] = (send_by_kafka_python, read_by_kafka_python)
    with LocalBroker() as broker:
        report(measure(broker, clients, options.records, options.rounds), options.records)


def measure(
    broker: LocalBroker, clients: dict[str, ClientPair], count: int, rounds: int
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the seconds of sending and of reading of each client in each round after a warm-up."""
    seconds: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in clients}
    for turn in range(rounds + 1):
        for name, functions in clients.items():
            topic = broker.create_topic(f"{name}-{turn}")
            for work, times in zip(functions, seconds[name], strict=True):
                start = time.perf_counter()
                work(broker.bootstrap_servers, topic, count)
                if turn:
                    times.append(time.perf_counter() - start)
    return seconds


def report(seconds: dict[str, tuple[list[float], list[float]]], count: int) -> None:
    """Print a line for each client and direction."""
    for at, direction in enumerate(("sent", "read")):
        for name, times in seconds.items():
            ratios = [other / own for own, other in zip(seconds["ours"][at], times[at], strict=True)]
            rate = count / statistics.median(times[at])
            ratio = "" if name == "ours" else f"   ours {statistics.median(ratios):5.2f}x"
            print(f"{direction:<5} {name:<16} {rate:10,.0f} records/s{ratio}", flush=True)


if __name__ == "__main__":
    main()
