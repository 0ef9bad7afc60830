"""Do what the documented extensions ask for, on both sides of a topic.

A shop numbers its events, begins their traces, lets them expire, and stores data that is too large for
every hop. A consumer passes over what expired, looks for gaps, fetches what was stored, knows both traces.

python examples/extensions.py BOOTSTRAP_SERVERS TOPIC
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Producer

from cloudevents_kafka import Decoded, Event, EventConsumer, EventProducer
from cloudevents_kafka.extensions import (
    SequenceTracker,
    fetch_data,
    hop_trace,
    origin_trace,
    sequence_numbers,
    start_trace,
    store_data,
    unexpired,
)


def put(folder: Path, data: bytes) -> str:
    """Store data under a name of its own; a real store would be S3 or the like."""
    path = folder / f"{len(list(folder.iterdir()))}"
    path.write_bytes(data)
    return path.as_uri()


def get(folder: Path, reference: str) -> bytes:
    """Fetch what was stored; from nowhere else, whatever an event says."""
    base, _, name = reference.rpartition("/")
    if base != folder.as_uri():
        raise LookupError(f"nothing of ours is stored at {reference!r}")
    return (folder / name).read_bytes()


def send(servers: str, topic: str, folder: Path) -> None:
    numbers = sequence_numbers()
    now = datetime.now(UTC)
    with EventProducer(Producer({"bootstrap.servers": servers}), topic=topic) as producer:
        for name, size, lives in (
            ("small", 10, 600),
            ("large", 100_000, 600),
            ("stale", 10, -1),
            ("last", 10, 600),
        ):
            event = Event(
                id=name,
                source="/shop",
                type="com.example.reading",
                data={"reading": "x" * size},
                datacontenttype="application/json",
                sequence=next(numbers),
                expirytime=now + timedelta(seconds=lives),
            )
            event, headers = start_trace(store_data(event, lambda data: put(folder, data)))
            producer.send(event, headers=headers)


def receive(servers: str, topic: str, folder: Path) -> None:
    client = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
    client.subscribe([topic])
    watch = SequenceTracker()
    with EventConsumer(client) as events:
        for item in unexpired(events.items(idle_timeout=5)):
            if isinstance(item, Decoded):
                step = watch.observe(item.event)
                event = fetch_data(item.event, lambda reference: get(folder, reference))
                same = origin_trace(event) == hop_trace(item.record)  # a single hop
                print(f"{event.id}: {len(event.payload or b'')} bytes, {step.order}, one hop: {same}")


def main(servers: str, topic: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        send(servers, topic, folder)
        receive(servers, topic, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
