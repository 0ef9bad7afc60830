"""Handle events with several tries, and send what fails finally to a topic for dead letters.

Ends after five seconds without a record, or at SIGTERM: within ten seconds, with all offsets committed of
records that are done.

python examples/service.py BOOTSTRAP_SERVERS TOPIC DEAD_LETTER_TOPIC
"""

from __future__ import annotations

import sys
from typing import Any

from cloudevents_kafka import DeadLetters, Decoded, EventConsumer, EventProducer, RunResult


class Shop:
    """What the service does with events; its accounts time out at first, and it has no ships."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._timeouts = 2

    def handle(self, item: Decoded) -> None:
        """Handle one event; after an error that may pass it is tried again, after others set aside."""
        if item.event.type.endswith(".paid") and self._timeouts:
            self._timeouts -= 1
            raise TimeoutError("the accounts did not answer")
        if item.event.type.endswith(".shipped"):
            raise ValueError(f"there is no ship for order {item.event.data['order']}")
        self.done.append(item.event.type)
        print(f"{item.event.type}: {item.event.data}")


def serve(reader: Any, writer: Any, topic: str, dead: str, idle_timeout: float) -> RunResult:
    """Handle a topic, and send dead letters to another; reader and writer are settings, or clients."""
    with EventProducer(writer, close_timeout=5) as producer, EventConsumer(reader, topics=[topic]) as events:
        return events.run(
            Shop().handle,
            on_failure=DeadLetters(producer, topic=dead),
            tries=5,
            retry_on=(TimeoutError, ConnectionError),
            backoff=0.1,
            concurrency=4,  # events with the same key are handled in order
            stop_timeout=10,
            idle_timeout=idle_timeout,
        )


def main(servers: str, topic: str, dead: str) -> int:
    reader = {
        "bootstrap.servers": servers,
        "group.id": "example-service",
        "auto.offset.reset": "earliest",
    }
    writer = {"bootstrap.servers": servers, "enable.idempotence": True}
    counts = serve(reader, writer, topic, dead, idle_timeout=5)
    print(f"handled: {counts.handled}, dead letters: {counts.dead}, further tries: {counts.retried}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
