"""Use the documented extensions on both sides of a topic.

A producer numbers its events, starts their traces, sets their expirytime, and stores large data. A consumer
skips expired events, finds gaps, fetches stored data, and reads both traces.

python examples/extensions.py BOOTSTRAP_SERVERS TOPIC
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

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
    """Store data in a new file and return its URI; a real store would be S3, for example."""
    path = folder / f"{len(list(folder.iterdir()))}"
    path.write_bytes(data)
    return path.as_uri()


def get(folder: Path, reference: str) -> bytes:
    """Return the data of a file in the folder; the reference is untrusted input."""
    base, _, name = reference.rpartition("/")
    if base != folder.as_uri():
        raise LookupError(f"the reference must be in {folder.as_uri()}, got {reference!r}")
    return (folder / name).read_bytes()


def send(servers: str, topic: str, folder: Path) -> None:
    numbers = sequence_numbers()
    now = datetime.now(UTC)
    with EventProducer({"bootstrap.servers": servers}, topic=topic) as producer:
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
    settings = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    tracker = SequenceTracker()
    with EventConsumer(settings, topics=[topic]) as events:
        for item in unexpired(events.items(idle_timeout=5)):
            if isinstance(item, Decoded):
                step = tracker.observe(item.event)
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
