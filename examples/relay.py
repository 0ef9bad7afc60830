"""Forward events from one topic to another exactly once, with one more attribute.

Key, header order, other headers and the bytes of the data do not change. Records that are not events are
forwarded unchanged. Ends after five seconds without a record, or at SIGTERM.

python examples/relay.py BOOTSTRAP_SERVERS FROM_TOPIC TO_TOPIC
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from confluent_kafka import Consumer, Producer

from cloudevents_kafka import Decoded, EventConsumer, EventProcessor, EventProducer, Undecodable


def relay(reader: Any, writer: Any, target: str) -> EventProcessor:
    """Return a processor that forwards what a subscribed consumer reads."""
    producer = EventProducer(writer, topic=target)

    def forward(item: Decoded | Undecodable) -> None:
        if isinstance(item, Decoded):
            producer.send(item.event.replace(relayedby="example"), like=item.record)
        else:
            producer.send_record(item.record)

    return EventProcessor(EventConsumer(reader), producer, forward)


def main(servers: str, source: str, target: str) -> int:
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "example-relay",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # the transactions have the offsets
            "isolation.level": "read_committed",
        }
    )
    reader.subscribe([source])
    # Each process needs a transactional.id of its own, the same after a restart.
    writer = Producer({"bootstrap.servers": servers, "transactional.id": "example-relay"})
    processor = relay(reader, writer, target)
    signal.signal(signal.SIGTERM, lambda *_: processor.stop())
    with processor.consumer:
        passed = processor.run(idle_timeout=5)
    print(f"passed {passed} records")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
