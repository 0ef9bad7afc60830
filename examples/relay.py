"""Forward events from one topic to another exactly once, with one more attribute.

Key, header order, other headers and the bytes of the data do not change. Records that are not events are
forwarded unchanged. Ends after five seconds without a record, or at SIGTERM.

python examples/relay.py BOOTSTRAP_SERVERS FROM_TOPIC TO_TOPIC
"""

from __future__ import annotations

import sys
from typing import Any

from cloudevents_kafka import Decoded, EventConsumer, EventProcessor, EventProducer, Undecodable


def relay(reader: Any, writer: Any, source: str, target: str) -> EventProcessor:
    """Return a processor from topic to topic; reader and writer are settings, or clients."""
    producer = EventProducer(writer, topic=target)

    def forward(item: Decoded | Undecodable) -> None:
        if isinstance(item, Decoded):
            producer.send(item.event.replace(relayedby="example"), like=item.record)
        else:
            producer.send_record(item.record)

    return EventProcessor(EventConsumer(reader, topics=[source]), producer, forward)


def main(servers: str, source: str, target: str) -> int:
    reader = {
        "bootstrap.servers": servers,
        "group.id": "example-relay",
        "auto.offset.reset": "earliest",
    }
    # Each process needs a transactional.id of its own, the same after a restart.
    writer = {"bootstrap.servers": servers, "transactional.id": "example-relay"}
    processor = relay(reader, writer, source, target)
    with processor.producer, processor.consumer:
        passed = processor.run(idle_timeout=5)
    print(f"passed {passed} records")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
